//! What is set about judging tests. What holds for a project: what it sets,
//! else what is set for the installation, else the default.
//!
//! Lists and proposals follow a change at once. Runs that have ended keep what
//! they were judged by until something of them changes.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::flakiness::{FlakinessOverrides, FlakinessSettings, UnusableSetting};
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_store::StoreError;
use callboard_store::accounts::users;
use callboard_store::db::Session;
use callboard_store::settings::{self, StoredSettings};
use serde_json::{Map, Value, json};

use crate::accounts::Acting;
use crate::shapes::UserRef;
use crate::{Context, Result};

/// The name of these settings in the store.
const GROUP: &str = "flakiness";

/// What is set for the installation.
#[derive(Debug, Clone)]
pub struct InstanceFlakiness {
    /// What holds for projects that set nothing.
    pub settings: FlakinessSettings,
    /// When it was set last.
    pub updated_at: Option<Timestamp>,
    /// By whom, as long as the account exists.
    pub updated_by: Option<UserRef>,
}

/// What is set for a project.
#[derive(Debug, Clone, Copy)]
pub struct ProjectFlakiness {
    /// What is set for it.
    pub settings: FlakinessOverrides,
    /// What holds.
    pub effective: FlakinessSettings,
}

/// What came of an attempt to set something.
pub type Edited = std::result::Result<(), UnusableSetting>;

fn overrides(stored: Option<&StoredSettings>) -> Result<FlakinessOverrides> {
    let Some(stored) = stored else { return Ok(FlakinessOverrides::default()) };
    Ok(serde_json::from_str(&stored.value).map_err(|_| StoreError::Damaged("settings of flakiness"))?)
}

/// What holds for a project.
pub(crate) async fn effective(session: &mut Session, project: ProjectId) -> Result<FlakinessSettings> {
    let of_all = overrides(settings::get(session, None, GROUP).await?.as_ref())?;
    let of_project = overrides(settings::get(session, Some(project), GROUP).await?.as_ref())?;
    Ok(of_project.over(&of_all.over(&FlakinessSettings::default())))
}

/// What holds for each of some projects.
pub(crate) async fn effective_of(
    session: &mut Session,
    projects: &[ProjectId],
) -> Result<HashMap<ProjectId, FlakinessSettings>> {
    let of_all = overrides(settings::get(session, None, GROUP).await?.as_ref())?;
    let of_all = of_all.over(&FlakinessSettings::default());
    let ids = projects.iter().map(|project| project.get()).collect();
    let stored = settings::of_projects(session, ids, GROUP).await?;
    let each = projects.iter().map(|project| Ok((*project, overrides(stored.get(project))?.over(&of_all))));
    each.collect()
}

/// What is set for the installation.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn of_instance(ctx: &Context) -> Result<InstanceFlakiness> {
    let mut session = ctx.store.db().read().await?;
    let stored = settings::get(&mut session, None, GROUP).await?;
    let by = match stored.as_ref().and_then(|stored| stored.updated_by) {
        Some(user) => users::get_many(&mut session, vec![user.get()]).await?,
        None => Vec::new(),
    };
    Ok(InstanceFlakiness {
        settings: overrides(stored.as_ref())?.over(&FlakinessSettings::default()),
        updated_at: stored.map(|stored| stored.updated_at),
        updated_by: by.first().map(UserRef::of),
    })
}

/// What is set for a project.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn of_project(ctx: &Context, project: Authorized<ProjectId>) -> Result<ProjectFlakiness> {
    let mut session = ctx.store.db().read().await?;
    let stored = settings::get(&mut session, Some(project.get()), GROUP).await?;
    let effective = effective(&mut session, project.get()).await?;
    Ok(ProjectFlakiness { settings: overrides(stored.as_ref())?, effective })
}

/// Changes what is set for the installation.
///
/// # Errors
/// [`crate::QueryError::Store`]; the answer says which value cannot be set.
pub async fn edit_instance(ctx: &Context, acting: Acting<'_>, body: &Map<String, Value>) -> Result<Edited> {
    acting.reaches_everything()?;
    write(ctx, acting, None, body).await
}

/// Changes what is set for a project.
///
/// # Errors
/// [`crate::QueryError::Store`]; the answer says which value cannot be set.
pub async fn edit_project(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    body: &Map<String, Value>,
) -> Result<Edited> {
    write(ctx, acting, Some(project.get()), body).await
}

async fn write(
    ctx: &Context,
    acting: Acting<'_>,
    project: Option<ProjectId>,
    body: &Map<String, Value>,
) -> Result<Edited> {
    if let Err(unusable) = FlakinessOverrides::default().apply(body) {
        return Ok(Err(unusable));
    }
    let mut session = ctx.store.db().begin().await?;
    let stored = settings::lock(&mut session, project, GROUP, acting.now).await?;
    let before = overrides(Some(&stored))?;
    let mut after = before;
    if let Err(unusable) = after.apply(body) {
        return Ok(Err(unusable));
    }
    if after == before {
        return Ok(Ok(()));
    }
    let by = acting.caller.user_id();
    settings::set(&mut session, project, GROUP, &json!(after).to_string(), acting.now, by).await?;
    let target = project.map_or(("settings", 0), |project| ("project", project.get()));
    let detail = json!({ "group": GROUP, "changed": differences(&before, &after) });
    let noted = acting.record(&mut session, AuditAction::SettingsChanged, target, project, detail).await?;
    session.commit().await?;
    noted.committed();
    Ok(Ok(()))
}

/// The changed keys, as they were and as they are.
fn differences(before: &FlakinessOverrides, after: &FlakinessOverrides) -> Value {
    let (before, after) = (json!(before), json!(after));
    let mut changed = Map::new();
    for (key, now) in after.as_object().into_iter().flatten() {
        let was = before.get(key).cloned().unwrap_or_default();
        if was != *now {
            changed.insert(key.clone(), json!({ "before": was, "after": now }));
        }
    }
    Value::Object(changed)
}
