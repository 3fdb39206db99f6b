//! What people set: groups of values, for the installation and for a project.
//! Each group says itself what may be set, and what holds where nothing is.

use callboard_domain::audit::AuditAction;
use callboard_domain::ids::ProjectId;
use callboard_domain::setting::{SettingsGroup, UnusableSetting};
use callboard_domain::time::Timestamp;
use callboard_store::StoreError;
use callboard_store::accounts::users;
use callboard_store::db::Session;
use callboard_store::settings::{self, StoredSettings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::accounts::Acting;
use crate::shapes::UserRef;
use crate::{Context, Result};

/// What is set for the installation.
#[derive(Debug, Clone)]
pub struct OfInstance<G> {
    /// What somebody set.
    pub set: G,
    /// When it was set last.
    pub updated_at: Option<Timestamp>,
    /// By whom, as long as the account exists.
    pub updated_by: Option<UserRef>,
}

/// What came of an attempt to set something.
pub type Edited = std::result::Result<(), UnusableSetting>;

/// What a stored group says; nothing is set in one that nobody has written.
pub(crate) fn read<G: SettingsGroup + DeserializeOwned + Default>(
    stored: Option<&StoredSettings>,
) -> Result<G> {
    let Some(stored) = stored else { return Ok(G::default()) };
    Ok(serde_json::from_str(&stored.value).map_err(|_| StoreError::Damaged("settings"))?)
}

/// What is set for the installation, or for a project.
pub(crate) async fn stored<G: SettingsGroup + DeserializeOwned + Default>(
    session: &mut Session,
    project: Option<ProjectId>,
) -> Result<G> {
    read(settings::get(session, project, G::NAME).await?.as_ref())
}

/// What is set for the installation.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn of_instance<G>(ctx: &Context) -> Result<OfInstance<G>>
where
    G: SettingsGroup + DeserializeOwned + Default,
{
    let mut session = ctx.store.db().read().await?;
    let stored = settings::get(&mut session, None, G::NAME).await?;
    let by = match stored.as_ref().and_then(|stored| stored.updated_by) {
        Some(user) => users::get_many(&mut session, vec![user.get()]).await?,
        None => Vec::new(),
    };
    Ok(OfInstance {
        set: read(stored.as_ref())?,
        updated_at: stored.map(|stored| stored.updated_at),
        updated_by: by.first().map(UserRef::from_row),
    })
}

/// Changes what is set for the installation.
///
/// # Errors
/// [`crate::QueryError::Store`]; the answer says which value cannot be set.
pub async fn edit_instance<G>(ctx: &Context, acting: Acting<'_>, body: &Map<String, Value>) -> Result<Edited>
where
    G: SettingsGroup + Serialize + DeserializeOwned + Default + Clone + PartialEq,
{
    acting.reaches_everything()?;
    write::<G>(ctx, acting, None, body).await
}

/// Changes what is set for the installation or for a project, whose caller may.
pub(crate) async fn write<G>(
    ctx: &Context,
    acting: Acting<'_>,
    project: Option<ProjectId>,
    body: &Map<String, Value>,
) -> Result<Edited>
where
    G: SettingsGroup + Serialize + DeserializeOwned + Default + Clone + PartialEq,
{
    if let Err(unusable) = G::default().apply(body) {
        return Ok(Err(unusable));
    }
    let mut session = ctx.store.db().begin().await?;
    let stored = settings::lock(&mut session, project, G::NAME, acting.now).await?;
    let before: G = read(Some(&stored))?;
    let mut after = before.clone();
    if let Err(unusable) = after.apply(body) {
        return Ok(Err(unusable));
    }
    if after == before {
        return Ok(Ok(()));
    }
    let by = acting.caller.user_id();
    settings::set(&mut session, project, G::NAME, &json!(after).to_string(), acting.now, by).await?;
    let target = project.map_or(("settings", 0), |project| ("project", project.get()));
    let detail = json!({ "group": G::NAME, "changed": differences(&json!(before), &json!(after)) });
    let noted = acting.record(&mut session, AuditAction::SettingsChanged, target, project, detail).await?;
    session.commit().await?;
    noted.committed();
    Ok(Ok(()))
}

/// The changed keys, as they were and as they are.
fn differences(before: &Value, after: &Value) -> Value {
    let mut changed = Map::new();
    for (key, now) in after.as_object().into_iter().flatten() {
        let was = before.get(key).cloned().unwrap_or_default();
        if was != *now {
            changed.insert(key.clone(), json!({ "before": was, "after": now }));
        }
    }
    Value::Object(changed)
}
