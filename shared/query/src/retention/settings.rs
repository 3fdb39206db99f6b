//! The policy as people read and set it. What holds for a project: what it
//! sets, else what the configuration of the service says, else what is set for
//! the installation, else the default.

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::ProjectId;
use callboard_domain::retention::{Edit, Overrides, Policy};
use callboard_domain::time::Timestamp;
use callboard_store::settings::{self, StoredSettings};
use callboard_store::{Session, StoreError, accounts::users, boxed};
use serde::Serialize;
use serde_json::json;

use super::redating;
use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::shapes::UserRef;
use crate::{Context, Result};

/// The name of these settings in the store.
const GROUP: &str = "retention";
/// Where the configuration of the service sets them.
const VARIABLE: &str = "SERVICE_RETENTION";

/// A key that the configuration of the service sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Locked {
    /// The path of the key.
    pub key: &'static str,
    /// The variable that sets it.
    pub variable: &'static str,
}

/// The policy of the installation.
#[derive(Debug, Clone)]
pub struct InstanceRetention {
    /// What holds.
    pub settings: Policy,
    /// What would hold if nothing was set.
    pub defaults: Policy,
    /// What cannot be set here.
    pub locked: Vec<Locked>,
    /// When it was set last.
    pub updated_at: Option<Timestamp>,
    /// By whom, as long as the account exists.
    pub updated_by: Option<UserRef>,
}

/// The policy of a project.
#[derive(Debug, Clone)]
pub struct ProjectRetention {
    /// What is set for it.
    pub settings: Overrides,
    /// What holds.
    pub effective: Policy,
}

fn overrides(stored: Option<&StoredSettings>) -> Result<Overrides> {
    let Some(stored) = stored else { return Ok(Overrides::default()) };
    Ok(Overrides::from_json(&stored.value).map_err(|_| StoreError::Damaged("settings of retention"))?)
}

fn stored_form(set: &Overrides) -> String {
    json!(set).to_string()
}

/// What holds for projects that set nothing, by what is set for the installation.
fn of_all(ctx: &Context, stored: Option<&StoredSettings>) -> Result<Policy> {
    Ok(ctx.retention.over(&overrides(stored)?.over(&Policy::default())))
}

/// What a project sets, and what holds where it sets nothing.
async fn of_one(session: &mut Session, ctx: &Context, project: ProjectId) -> Result<(Overrides, Policy)> {
    let (of_instance, of_project) = settings::get_both(session, project, GROUP).await?;
    Ok((overrides(of_project.as_ref())?, of_all(ctx, of_instance.as_ref())?))
}

/// What holds for a project.
pub(super) async fn effective(session: &mut Session, ctx: &Context, project: ProjectId) -> Result<Policy> {
    let (set, policy) = of_one(session, ctx, project).await?;
    Ok(set.over(&policy))
}

/// What would hold for a project after an edit.
pub(super) async fn edited(
    session: &mut Session,
    ctx: &Context,
    project: ProjectId,
    edit: &Edit,
) -> Result<Policy> {
    let (mut set, policy) = of_one(session, ctx, project).await?;
    set.apply(edit);
    Ok(set.over(&policy))
}

/// The policy of the installation.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn of_instance(ctx: &Context) -> Result<InstanceRetention> {
    let mut session = ctx.store.db().read().await?;
    let stored = settings::get(&mut session, None, GROUP).await?;
    let policy = of_all(ctx, stored.as_ref())?;
    let by = stored.as_ref().and_then(|stored| stored.updated_by);
    let by = match by {
        Some(user) => users::get_many(&mut session, vec![user.get()]).await?,
        None => Vec::new(),
    };
    Ok(InstanceRetention {
        settings: policy,
        defaults: Policy::default(),
        locked: ctx.retention.keys().map(|key| Locked { key, variable: VARIABLE }).collect(),
        updated_at: stored.map(|stored| stored.updated_at),
        updated_by: by.first().map(UserRef::of),
    })
}

/// The policy of a project.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn of_project(ctx: &Context, project: Authorized<ProjectId>) -> Result<ProjectRetention> {
    let mut session = ctx.store.db().read().await?;
    let (settings, policy) = of_one(&mut session, ctx, project.get()).await?;
    Ok(ProjectRetention { effective: settings.over(&policy), settings })
}

/// Changes the policy of the installation. What is stored already is dated
/// anew by a job.
///
/// # Errors
/// [`AdministrationRule::SettingLocked`] when the configuration sets one of
/// the keys; nothing is changed then.
pub async fn edit_instance(ctx: &Context, acting: Acting<'_>, edit: &Edit) -> Result<()> {
    acting.reaches_everything()?;
    if let Some(key) = edit.keys().find(|key| ctx.retention.holds(key)) {
        return Err(AdministrationRule::SettingLocked { key, variable: VARIABLE }.into());
    }
    write(ctx, acting, None, edit).await
}

/// Changes what is set for a project. What it stores already is dated anew by
/// a job.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn edit_project(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    edit: &Edit,
) -> Result<()> {
    write(ctx, acting, Some(project.get()), edit).await
}

async fn write(ctx: &Context, acting: Acting<'_>, project: Option<ProjectId>, edit: &Edit) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let stored = settings::lock(&mut session, project, GROUP, acting.now).await?;
    let mut set = overrides(Some(&stored))?;
    let changed = set.apply(edit);
    if changed.is_empty() {
        return Ok(());
    }
    let by = acting.caller.user_id();
    settings::set(&mut session, project, GROUP, &stored_form(&set), acting.now, by).await?;
    redating::enqueue(&mut session, project, acting.now).await?;
    let target = project.map_or(("settings", 0), |project| ("project", project.get()));
    let detail = json!({ "group": GROUP, "changed": changed });
    let noted = acting.record(&mut session, AuditAction::SettingsChanged, target, project, detail).await?;
    session.commit().await?;
    noted.committed();
    Ok(())
}
