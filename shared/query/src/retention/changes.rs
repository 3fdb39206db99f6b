//! Changing the policy. What keeps more applies immediately. What keeps less
//! waits for a grace, with a preview of what it deletes, and can be undone
//! until a job brings it into force.

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::ProjectId;
use callboard_domain::retention::{Edit, Policy, Split, shortened, split};
use callboard_domain::time::Timestamp;
use callboard_store::audit::{self, Actor, AuditEvent, Recorded, Target};
use callboard_store::jobs::{self, Payload};
use callboard_store::retention::runs_after;
use callboard_store::settings::{self, StoredSettings};
use callboard_store::{Session, StoreError, boxed, projects};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::preview::{self, Preview};
use super::redating;
use super::settings::{BRANCH_KEYS, GROUP, VARIABLE, effective_at};
use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::{Context, QueryError, Result};
use callboard_core::retention::{Pending, Stored};

/// How often a change is planned again because somebody else changed the
/// policy meanwhile.
pub(super) const ATTEMPTS: u32 = 3;

/// What a change that keeps less deletes, and when.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shortened {
    /// Paths of the keys that keep less.
    #[schema(example = json!(["runs.days"]))]
    pub keys: Vec<&'static str>,
    /// When they come into force; until then the change can be undone.
    #[schema(value_type = String, format = DateTime)]
    pub effective_at: Timestamp,
    /// What will have to be deleted at that time.
    pub preview: Preview,
}

/// A change whose grace is over comes into force.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ApplyRetention {
    /// The project whose policy it is; none for that of the installation.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// Whether the environment of the service asked for it.
    #[serde(default)]
    pub is_from_environment: bool,
}

impl Payload for ApplyRetention {
    const KIND: &'static str = "apply_retention";
}

impl ApplyRetention {
    /// Enqueues it for the time when a change comes into force.
    pub(super) async fn enqueue(
        self,
        session: &mut Session,
        effective_at: Timestamp,
        now: Timestamp,
    ) -> Result<()> {
        let level = match self.project {
            Some(project) => project.to_string(),
            None if self.is_from_environment => "environment".to_owned(),
            None => "instance".to_owned(),
        };
        let key = format!("{}:{level}:{}:{}", Self::KIND, effective_at.millis(), now.millis());
        jobs::enqueue_at(session, &key, self.project, &self, effective_at, now).await?;
        Ok(())
    }
}

/// Changes the policy of the installation. The answer says what it deletes and
/// when; `None` when nothing is kept for less time.
///
/// # Errors
/// [`AdministrationRule::SettingLocked`] when the environment sets one of the
/// keys; nothing is changed then.
pub async fn edit_instance(ctx: &Context, acting: Acting<'_>, edit: &Edit) -> Result<Option<Shortened>> {
    acting.reaches_everything()?;
    if let Some(key) = edit.keys().find(|key| ctx.retention.holds(key)) {
        return Err(AdministrationRule::SettingLocked { key, variable: VARIABLE }.into());
    }
    write(ctx, acting, None, edit).await
}

/// Changes what is set for a project. The answer says what it deletes and
/// when; `None` when nothing is kept for less time.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn edit_project(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    edit: &Edit,
) -> Result<Option<Shortened>> {
    write(ctx, acting, Some(project.get()), edit).await
}

async fn write(
    ctx: &Context,
    acting: Acting<'_>,
    project: Option<ProjectId>,
    edit: &Edit,
) -> Result<Option<Shortened>> {
    for _ in 0..ATTEMPTS {
        // Counting takes up to two seconds, so it comes before the transaction.
        let mut session = ctx.store.db().read().await?;
        let seen = Seen::read(&mut session, project).await?;
        let plan = Plan::new(ctx, &mut session, &seen, edit, acting).await?;
        drop(session);
        if plan.changed.is_empty() {
            return Ok(plan.shortens);
        }
        let mut session = ctx.store.db().begin().await?;
        let row = settings::lock(&mut session, project, GROUP, acting.now).await?;
        if Stored::read(Some(&row))? != seen.stored {
            continue;
        }
        let recorded = plan.store(&mut session, project, acting).await?;
        session.commit().await?;
        recorded.into_iter().for_each(Recorded::committed);
        return Ok(plan.shortens);
    }
    Err(StoreError::Busy("a policy that others change").into())
}

/// The state a change is planned for.
struct Seen {
    project: Option<ProjectId>,
    stored: Stored,
    /// What is in force for the installation.
    base: Policy,
}

impl Seen {
    async fn read(session: &mut Session, project: Option<ProjectId>) -> Result<Self> {
        let row = settings::get(session, None, GROUP).await?;
        let of_instance = Stored::read(row.as_ref())?;
        let base = of_instance.policy();
        let stored = match project {
            None => of_instance,
            Some(_) => Stored::read(settings::get(session, project, GROUP).await?.as_ref())?,
        };
        Ok(Self { project, stored, base })
    }

    fn policy(&self, set: &callboard_domain::retention::Overrides) -> Policy {
        if self.project.is_some() { set.over(&self.base) } else { self.stored.policy_with(set) }
    }

    async fn preview(&self, session: &mut Session, policy: &Policy, at: Timestamp) -> Result<Preview> {
        match self.project {
            Some(project) => preview::of_project(session, project, policy, at).await,
            None => preview::of_all_projects(session, policy, at).await,
        }
    }

    /// Whether there is a run that a policy could delete.
    async fn has_runs(&self, session: &mut Session) -> Result<bool> {
        Ok(!runs_after(session, self.project, (i64::MIN, 0), 1).await?.is_empty())
    }
}

/// A change that can be stored.
struct Plan {
    changed: Vec<&'static str>,
    after: Stored,
    /// What keeps less, waiting or not.
    shortens: Option<Shortened>,
    /// Whether a job has to be enqueued for it.
    is_queued: bool,
    /// Whether something that waited no longer does.
    cancels: bool,
}

impl Plan {
    async fn new(
        ctx: &Context,
        session: &mut Session,
        seen: &Seen,
        edit: &Edit,
        acting: Acting<'_>,
    ) -> Result<Self> {
        let (before, mut wanted) = (seen.stored.wanted(), seen.stored.wanted());
        let changed = wanted.apply(edit);
        let (in_force, policy) = (seen.policy(&seen.stored.set), seen.policy(&wanted));
        let keys = shortened(&in_force, &policy);
        let pending = seen.stored.pending.as_ref();
        let mut plan = Self {
            changed,
            after: Stored { set: wanted.clone(), pending: None, ..seen.stored.clone() },
            shortens: None,
            is_queued: false,
            cancels: pending.is_some_and(|pending| pending.waiting.keys().any(|key| !keys.contains(&key))),
        };
        if keys.is_empty() {
            return Ok(plan);
        }
        // What deletes no more than what waits already does not wait longer.
        // A change whose time came while its project was deleted begins anew.
        let going_on = pending.filter(|pending| {
            pending.effective_at > acting.now && shortened(&seen.policy(&before), &policy).is_empty()
        });
        let has_grace = ctx.retention_grace_ms > 0 && seen.has_runs(session).await?;
        let (effective_at, requested_at) = match going_on {
            Some(pending) => (pending.effective_at, pending.requested_at),
            None if has_grace => (effective_at(ctx, acting.now), acting.now),
            None => (acting.now, acting.now),
        };
        let requested_by = match going_on {
            Some(pending) => pending.requested_by,
            None => acting.caller.user_id(),
        };
        let preview = seen.preview(session, &policy, effective_at).await?;
        if going_on.is_some() || has_grace {
            let Split { in_force, waiting } = split(&seen.stored.set, &wanted, |set| seen.policy(set));
            plan.after.set = in_force;
            plan.after.pending = Some(Pending { waiting, effective_at, requested_at, requested_by, preview });
            plan.is_queued = going_on.is_none();
        }
        plan.shortens = Some(Shortened { keys, effective_at, preview });
        Ok(plan)
    }

    async fn store(
        &self,
        session: &mut Session,
        project: Option<ProjectId>,
        acting: Acting<'_>,
    ) -> Result<Vec<Recorded>> {
        let (now, by) = (acting.now, acting.caller.user_id());
        settings::set(session, project, GROUP, &self.after.to_json(), now, by).await?;
        redating::enqueue(session, project, now).await?;
        let target = target(project);
        let mut detail = json!({ "group": GROUP, "changed": self.changed });
        if self.cancels {
            detail["cancelled"] = json!(true);
        }
        let pending = self.shortens.as_ref().filter(|_| self.after.pending.is_some());
        if let (Some(shortens), None) = (&self.shortens, pending) {
            detail["deletes"] = numbers(&shortens.keys, &shortens.preview, shortens.effective_at);
        }
        let mut recorded =
            vec![acting.record(session, AuditAction::SettingsChanged, target, project, detail).await?];
        if let Some(pending) = pending {
            if self.is_queued {
                let job = ApplyRetention { project, is_from_environment: false };
                job.enqueue(session, pending.effective_at, now).await?;
            }
            let detail = numbers(&pending.keys, &pending.preview, pending.effective_at);
            let action = AuditAction::RetentionQueued;
            recorded.push(acting.record(session, action, target, project, detail).await?);
        }
        Ok(recorded)
    }
}

/// What the audit log says of a change that keeps less.
pub(super) fn numbers(keys: &[&'static str], preview: &Preview, effective_at: Timestamp) -> Value {
    json!({
        "keys": keys,
        "effectiveAt": effective_at,
        "runs": preview.runs,
        "executions": preview.executions,
        "files": preview.files,
        "evidenceSlices": preview.evidence_slices,
        "bytes": preview.bytes,
        "partial": preview.partial,
    })
}

const fn target(project: Option<ProjectId>) -> (&'static str, i64) {
    match project {
        Some(project) => ("project", project.get()),
        None => ("settings", 0),
    }
}

/// Undoes a change of the installation's policy that is not in force yet.
///
/// # Errors
/// [`AdministrationRule::NotPending`] when there is none;
/// [`AdministrationRule::SettingLocked`] when only the environment of the
/// service asks for one.
pub async fn undo_instance(ctx: &Context, acting: Acting<'_>) -> Result<()> {
    acting.reaches_everything()?;
    undo(ctx, acting, None).await
}

/// Undoes a change of a project's policy that is not in force yet.
///
/// # Errors
/// [`AdministrationRule::NotPending`] when there is none.
pub async fn undo_project(ctx: &Context, acting: Acting<'_>, project: Authorized<ProjectId>) -> Result<()> {
    undo(ctx, acting, Some(project.get())).await
}

async fn undo(ctx: &Context, acting: Acting<'_>, project: Option<ProjectId>) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let row = settings::lock(&mut session, project, GROUP, acting.now).await?;
    let mut stored = Stored::read(Some(&row))?;
    let Some(pending) = stored.pending.take() else {
        let of_environment = stored.pending_environment.and_then(|pending| pending.waiting.keys().next());
        return Err(match of_environment {
            Some(key) => AdministrationRule::SettingLocked { key, variable: VARIABLE }.into(),
            None => QueryError::from(AdministrationRule::NotPending),
        });
    };
    let by = acting.caller.user_id();
    settings::set(&mut session, project, GROUP, &stored.to_json(), acting.now, by).await?;
    let keys: Vec<&'static str> = pending.waiting.keys().collect();
    let detail = numbers(&keys, &pending.preview, pending.effective_at);
    let action = AuditAction::RetentionUndone;
    let recorded = acting.record(&mut session, action, target(project), project, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}

/// Brings a change into force whose grace is over. One that was undone, or
/// waits longer since, is left alone.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn apply(ctx: &Context, job: ApplyRetention, now: Timestamp) -> Result<()> {
    let ApplyRetention { project, is_from_environment } = job;
    let preview = preview_of(ctx, job, now).await?;
    let mut session = ctx.store.db().begin().await?;
    if let Some(project) = project
        && projects::get(&mut session, project).await?.is_none()
    {
        return Ok(());
    }
    let row = settings::lock(&mut session, project, GROUP, now).await?;
    let mut stored = Stored::read(Some(&row))?;
    let slot = if is_from_environment { &mut stored.pending_environment } else { &mut stored.pending };
    let pending = slot.take_if(|pending| pending.effective_at <= now);
    let branches = stored.held_branches.take_if(|held| held.effective_at() <= now);
    let StoredSettings { updated_at, updated_by, .. } = row;
    let mut details = Vec::new();
    if let Some(held) = &branches {
        let mut detail = numbers(&BRANCH_KEYS, &held.preview, held.effective_at());
        detail["requestedBy"] = json!(held.requested_by);
        details.push(detail);
    }
    let Some(pending) = pending else {
        if branches.is_some() {
            settings::set(&mut session, project, GROUP, &stored.to_json(), updated_at, updated_by).await?;
            redating::enqueue(&mut session, project, now).await?;
        }
        return finish_applying(session, project, details, now).await;
    };
    let set = if is_from_environment { stored.environment.get_or_insert_default() } else { &mut stored.set };
    set.apply(&pending.waiting);
    settings::set(&mut session, project, GROUP, &stored.to_json(), updated_at, updated_by).await?;
    redating::enqueue(&mut session, project, now).await?;
    let keys: Vec<&'static str> = pending.waiting.keys().collect();
    let mut detail = numbers(&keys, &preview.unwrap_or(pending.preview), pending.effective_at);
    detail["requestedBy"] = json!(pending.requested_by.map(callboard_domain::ids::UserId::get));
    if is_from_environment {
        detail["variable"] = json!(VARIABLE);
    }
    details.push(detail);
    finish_applying(session, project, details, now).await
}

/// Writes what came into force into the audit log and commits.
async fn finish_applying(
    mut session: Session,
    project: Option<ProjectId>,
    details: Vec<Value>,
    now: Timestamp,
) -> Result<()> {
    let mut recorded = Vec::with_capacity(details.len());
    for detail in details {
        let action = AuditAction::RetentionApplied;
        recorded.push(record_by_service(&mut session, action, project, detail, now).await?);
    }
    session.commit().await?;
    recorded.into_iter().for_each(Recorded::committed);
    Ok(())
}

/// Lets the grace of a change begin anew that ended while its project was
/// deleted: the job that would have brought it into force did nothing.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub(crate) async fn renew_pending(
    ctx: &Context,
    session: &mut Session,
    project: ProjectId,
    now: Timestamp,
) -> Result<()> {
    let row = settings::lock(session, Some(project), GROUP, now).await?;
    let mut stored = Stored::read(Some(&row))?;
    let at = effective_at(ctx, now);
    let mut is_renewed = false;
    if let Some(pending) = stored.pending.as_mut().filter(|pending| pending.effective_at <= now) {
        (pending.effective_at, is_renewed) = (at, true);
    }
    if let Some(held) = stored.held_branches.as_mut().filter(|held| held.effective_at() <= now) {
        held.postpone(at);
        is_renewed = true;
    }
    if !is_renewed {
        return Ok(());
    }
    let StoredSettings { updated_at, updated_by, .. } = row;
    settings::set(session, Some(project), GROUP, &stored.to_json(), updated_at, updated_by).await?;
    ApplyRetention { project: Some(project), is_from_environment: false }.enqueue(session, at, now).await
}

/// What a change deletes now that its grace is over.
async fn preview_of(ctx: &Context, job: ApplyRetention, now: Timestamp) -> Result<Option<Preview>> {
    let mut session = ctx.store.db().read().await?;
    let seen = Seen::read(&mut session, job.project).await?;
    let policy = if job.is_from_environment {
        if seen.stored.pending_environment.is_none() {
            return Ok(None);
        }
        let environment = Some(seen.stored.wanted_environment());
        Stored { environment, ..seen.stored.clone() }.policy()
    } else {
        if seen.stored.pending.is_none() {
            return Ok(None);
        }
        seen.policy(&seen.stored.wanted())
    };
    Ok(Some(seen.preview(&mut session, &policy, now).await?))
}

/// Writes what the service did by itself into the audit log.
pub(super) async fn record_by_service(
    session: &mut Session,
    action: AuditAction,
    project: Option<ProjectId>,
    detail: Value,
    now: Timestamp,
) -> Result<Recorded> {
    let detail = match detail {
        Value::Object(detail) => detail,
        _ => Map::new(),
    };
    let (kind, id) = target(project);
    let target = Some(Target { kind, id });
    let event = AuditEvent { at: now, actor: Actor::default(), action, target, project, detail };
    Ok(audit::record(session, event).await?)
}
