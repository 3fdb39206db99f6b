//! The policy as people read it. What is in force for a project: what it sets,
//! else what the environment of the service sets, else what is set for the
//! installation, else the default. Changes are in `changes`.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::retention::{Edit, Overrides, Policy, shortened};
use callboard_domain::time::Timestamp;
pub(super) use callboard_ingest::expiry::{GROUP, stored_both};
use callboard_store::{Session, accounts::users, boxed, settings};
use serde::Serialize;
use utoipa::ToSchema;

use super::preview::{self, Preview};
use crate::shapes::UserRef;
use crate::{Context, Result};
use callboard_core::retention::{Pending, Stored};

/// What a change of the branches of a project is about.
pub(super) const BRANCH_KEYS: [&str; 2] = ["defaultBranch", "trackedBranches"];
/// The variable that sets them.
pub(super) const VARIABLE: &str = "SERVICE_RETENTION";

/// A key that the environment of the service sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Locked {
    /// The path of the key.
    pub key: &'static str,
    /// The variable that sets it.
    pub variable: &'static str,
}

/// A change that keeps less.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingChange {
    /// Paths of the keys that keep less.
    #[schema(example = json!(["runs.days"]))]
    pub keys: Vec<&'static str>,
    /// When it comes into force; until then nothing is deleted because of it.
    #[schema(value_type = String, format = DateTime)]
    pub effective_at: Timestamp,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    pub requested_at: Timestamp,
    /// By whom, as long as the account exists; null for what the environment sets.
    pub requested_by: Option<UserRef>,
    /// What will have to be deleted at that time.
    pub preview: Preview,
}

/// The policy of the installation.
#[derive(Debug, Clone)]
pub struct InstanceRetention {
    /// What is in force.
    pub settings: Policy,
    /// What people and the environment set, in force or not.
    pub wanted: Policy,
    /// What is in force when nothing is set.
    pub defaults: Policy,
    /// What cannot be set here.
    pub locked: Vec<Locked>,
    /// A change by people that is not in force yet.
    pub pending: Option<PendingChange>,
    /// A change by the environment of the service that is not in force yet.
    pub pending_environment: Option<PendingChange>,
    /// When it was set last.
    pub updated_at: Option<Timestamp>,
    /// By whom, as long as the account exists.
    pub updated_by: Option<UserRef>,
}

/// The policy of a project.
#[derive(Debug, Clone)]
pub struct ProjectRetention {
    /// What is set for it and in force.
    pub settings: Overrides,
    /// What is set for it, in force or not.
    pub wanted: Overrides,
    /// What is in force.
    pub effective: Policy,
    /// A change that is not in force yet.
    pub pending: Option<PendingChange>,
    /// A change of the default or tracked branches after which runs have to be deleted that are still kept.
    pub pending_branches: Option<PendingChange>,
}

/// What a change does before it is made.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangePreview {
    /// What has to be deleted at that time.
    #[serde(flatten)]
    pub preview: Preview,
    /// Paths of the keys that keep less than now.
    #[schema(example = json!(["runs.days"]))]
    pub shortened: Vec<&'static str>,
    /// When the change comes into force: the numbers are those of this time.
    #[schema(value_type = String, format = DateTime)]
    pub effective_at: Timestamp,
}

/// What a project sets that is in force.
pub(super) async fn set_of_project(session: &mut Session, project: ProjectId) -> Result<Overrides> {
    let row = settings::get(session, Some(project), GROUP).await?;
    Ok(Stored::read(row.as_ref())?.set)
}

/// An account, as long as it exists.
async fn user(session: &mut Session, id: Option<UserId>) -> Result<Option<UserRef>> {
    let Some(id) = id else { return Ok(None) };
    Ok(users::get_many(session, vec![id.get()]).await?.first().map(UserRef::from_row))
}

async fn shown(session: &mut Session, pending: Option<&Pending>) -> Result<Option<PendingChange>> {
    let Some(pending) = pending else { return Ok(None) };
    Ok(Some(PendingChange {
        keys: pending.waiting.keys().collect(),
        effective_at: pending.effective_at,
        requested_at: pending.requested_at,
        requested_by: user(session, pending.requested_by).await?,
        preview: pending.preview,
    }))
}

/// The policy of the installation.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn of_instance(ctx: &Context) -> Result<InstanceRetention> {
    let mut session = ctx.store.db().read().await?;
    let row = settings::get(&mut session, None, GROUP).await?;
    let stored = Stored::read(row.as_ref())?;
    // A row may hold what the environment sets, and nothing that a person did.
    let is_by_people = stored.set.keys().next().is_some() || stored.pending.is_some();
    let edited = row.as_ref().filter(|row| is_by_people || row.updated_by.is_some());
    Ok(InstanceRetention {
        settings: stored.policy(),
        wanted: ctx.retention.over(&stored.policy_with(&stored.wanted())),
        defaults: Policy::default(),
        locked: ctx.retention.keys().map(|key| Locked { key, variable: VARIABLE }).collect(),
        pending: shown(&mut session, stored.pending.as_ref()).await?,
        pending_environment: shown(&mut session, stored.pending_environment.as_ref()).await?,
        updated_at: edited.map(|row| row.updated_at),
        updated_by: user(&mut session, edited.and_then(|row| row.updated_by)).await?,
    })
}

/// The policy of a project.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn of_project(ctx: &Context, project: Authorized<ProjectId>) -> Result<ProjectRetention> {
    let mut session = ctx.store.db().read().await?;
    let (of_instance, of_project) = stored_both(&mut session, project.get()).await?;
    Ok(ProjectRetention {
        effective: of_project.set.over(&of_instance.policy()),
        wanted: of_project.wanted(),
        pending: shown(&mut session, of_project.pending.as_ref()).await?,
        pending_branches: match &of_project.held_branches {
            Some(held) => Some(PendingChange {
                keys: BRANCH_KEYS.to_vec(),
                effective_at: held.effective_at(),
                requested_at: Timestamp(held.requested_at),
                requested_by: user(&mut session, held.requested_by()).await?,
                preview: held.preview,
            }),
            None => None,
        },
        settings: of_project.set,
    })
}

/// When a change that is made now comes into force.
pub(super) fn effective_at(ctx: &Context, now: Timestamp) -> Timestamp {
    Timestamp(now.millis() + ctx.retention_grace_ms)
}

/// What an edit of a project's policy deletes; without one, what its policy
/// has to delete now.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn preview_project(
    ctx: &Context,
    project: Authorized<ProjectId>,
    edit: Option<&Edit>,
    now: Timestamp,
) -> Result<ChangePreview> {
    let mut session = ctx.store.db().read().await?;
    let (of_instance, of_project) = stored_both(&mut session, project.get()).await?;
    let base = of_instance.policy();
    let (policy, at) = match edit {
        Some(edit) => (of_project.wanted().with(edit).over(&base), effective_at(ctx, now)),
        None => (of_project.set.over(&base), now),
    };
    let shortened = shortened(&of_project.set.over(&base), &policy);
    let preview = preview::of_project(&mut session, project.get(), &policy, at).await?;
    Ok(ChangePreview { preview, shortened, effective_at: at })
}

/// What an edit of the installation's policy deletes in all projects; without
/// one, what its policy has to delete now.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn preview_instance(ctx: &Context, edit: Option<&Edit>, now: Timestamp) -> Result<ChangePreview> {
    let mut session = ctx.store.db().read().await?;
    let row = settings::get(&mut session, None, GROUP).await?;
    let stored = Stored::read(row.as_ref())?;
    let (policy, at) = match edit {
        Some(edit) => (stored.policy_with(&stored.wanted().with(edit)), effective_at(ctx, now)),
        None => (stored.policy(), now),
    };
    let shortened = shortened(&stored.policy(), &policy);
    let preview = preview::of_all_projects(&mut session, &policy, at).await?;
    Ok(ChangePreview { preview, shortened, effective_at: at })
}
