//! Deleting runs and projects. A request hides what it names and leaves a
//! receipt. What a person deletes is kept for a grace period: one job takes it
//! out of the aggregates (`hiding`), and an administrator can bring it back
//! (`restoring`). Then a job frees everything in bounded steps (`freeing`) and
//! the receipt says how far it has come.

pub(crate) mod aged;
mod freeing;
mod hiding;
mod restoring;

use std::collections::{BTreeMap, BTreeSet};

use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{DeletionId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::deletions::runs::{self as doomed, RowsOfRun};
use callboard_store::deletions::{
    self, NewReceipt, ObjectCount, ReceiptFilter, ReceiptRow, kept, project as doomed_project,
};
use callboard_store::ids::{self, Listed};
use callboard_store::jobs::{self, Payload};
use callboard_store::projects::edit;
use callboard_store::{Session, boxed, feed, intake, runs};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::page::{Slice, fetch};
use crate::shapes::UserRef;
use crate::{Context, Entity, QueryError, Result};
use callboard_core::retry::repeated;
use callboard_ingest::{Priority, apply_pending_for_run, count_until, hide_runs};

pub use callboard_store::deletions::DeletionState;
pub use callboard_store::deletions::runs::RunsToDelete;
pub use freeing::{Advanced, advance, note_failure, resume};
pub use hiding::{HideTarget, advance_hiding};
pub use restoring::{RenamedProject, RestoreTarget, Restored, advance_restoring, restore};

/// Runs that a request hides itself; the job hides the rest.
pub const HIDDEN_AT_ONCE: usize = 200;
/// Matching runs are counted up to this number.
const COUNTED: i64 = 100_000;
/// Runs of which calls may wait when a project is deleted.
const MOST_WAITING: i64 = 1_000;

/// The work that follows a deletion.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeleteTarget {
    /// The receipt.
    pub receipt: i64,
    /// Further runs that go with it.
    #[serde(default)]
    pub further: Option<FurtherRuns>,
}

impl Payload for DeleteTarget {
    const KIND: &'static str = "delete_target";
}

impl DeleteTarget {
    /// The key of its job.
    fn key(receipt: DeletionId) -> String {
        format!("deletion:{receipt}")
    }
}

/// Runs by what they have in common, as a job keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FurtherRuns {
    project: Option<i64>,
    branch: Option<String>,
    environment: Option<String>,
    statuses: Option<Vec<String>>,
    before: i64,
}

impl From<&RunsToDelete> for FurtherRuns {
    fn from(wanted: &RunsToDelete) -> Self {
        Self {
            project: wanted.project.map(ProjectId::get),
            branch: wanted.branch.clone(),
            environment: wanted.environment.clone(),
            statuses: wanted.statuses.clone(),
            before: wanted.before.millis(),
        }
    }
}

impl From<&FurtherRuns> for RunsToDelete {
    fn from(kept: &FurtherRuns) -> Self {
        Self {
            project: kept.project.map(ProjectId),
            branch: kept.branch.clone(),
            environment: kept.environment.clone(),
            statuses: kept.statuses.clone(),
            before: Timestamp(kept.before),
        }
    }
}

/// What was deleted.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletionTarget {
    /// `run`, `runs`, `project`, or `files` for what went of runs that stay.
    #[schema(example = "run")]
    pub kind: String,
    /// Id of the run or project; of the project for several runs and for files, 0 for runs of all projects.
    pub id: i64,
    /// What it was called.
    pub label: String,
}

/// Rows that are gone.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct ReceiptRows {
    /// Runs.
    pub runs: i64,
    /// Executions.
    pub executions: i64,
    /// Files and reports.
    pub files: i64,
    /// All others.
    pub other: i64,
}

/// Objects and their bytes.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct Objects {
    /// How many.
    pub count: i64,
    /// Bytes.
    pub bytes: i64,
}

impl From<ObjectCount> for Objects {
    fn from(count: ObjectCount) -> Self {
        Self { count: count.count, bytes: count.bytes }
    }
}

/// A receipt of a deletion.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Receipt id.
    pub id: i64,
    /// What was deleted.
    pub target: DeletionTarget,
    /// The name of its project, for the dashboard.
    #[serde(skip)]
    pub project_name: Option<String>,
    /// `user`, `retention` or `purge`.
    #[schema(example = "user")]
    pub reason: String,
    /// Who asked for it.
    pub requested_by: Option<UserRef>,
    /// `pending`, `freeing`, `complete`, `failed`, `restoring` or `restored`.
    #[schema(example = "complete")]
    pub state: &'static str,
    /// Rows that are gone.
    pub rows: ReceiptRows,
    /// Objects that go with it.
    pub objects: Objects,
    /// Objects that are gone, confirmed by the object store.
    pub freed: Objects,
    /// Objects that something else refers to, and that stay.
    pub kept_shared: Objects,
    /// Runs and objects that are still to go.
    pub remaining: i64,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When nothing was left.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
    /// When the object store confirmed that nothing is left.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub verified_at: Option<Timestamp>,
    /// What went wrong last; it is tried again.
    pub error: Option<String>,
    /// Until when an administrator can restore it; null when it cannot be restored (any more).
    #[schema(value_type = Option<String>, format = DateTime)]
    pub restorable_until: Option<Timestamp>,
    /// When it was restored.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub restored_at: Option<Timestamp>,
}

impl Receipt {
    fn from_row(row: ReceiptRow) -> Self {
        let requested_by =
            row.requested_by.map(|(id, username, name)| UserRef { id: id.get(), username, name });
        Self {
            id: row.id.get(),
            target: DeletionTarget { kind: row.target_kind, id: row.target_id, label: row.label },
            project_name: row.project_name,
            reason: row.reason,
            requested_by,
            state: row.state.as_str(),
            rows: ReceiptRows {
                runs: row.rows.runs,
                executions: row.rows.executions,
                files: row.rows.files,
                other: row.rows.other,
            },
            objects: row.objects.into(),
            freed: row.freed.into(),
            kept_shared: row.kept_shared.into(),
            remaining: row.remaining,
            created_at: row.created_at,
            completed_at: row.completed_at,
            verified_at: row.verified_at,
            error: row.error,
            restorable_until: row.restorable_until.filter(|_| row.state == DeletionState::Pending),
            restored_at: row.restored_at,
        }
    }
}

/// Which receipts a list shows.
#[derive(Debug, Clone, Default)]
pub struct DeletionFilters {
    /// Only in this state.
    pub state: Option<DeletionState>,
    /// Only in this project.
    pub project: Option<ProjectId>,
    /// Asked for at this moment or later.
    pub from: Option<Timestamp>,
    /// Asked for at this moment or earlier.
    pub to: Option<Timestamp>,
}

/// Key of a page: when the last deletion was asked for, and its id.
pub type DeletionKey = (i64, i64);

/// Receipts, newest first. Of a project that is gone there are receipts as
/// long as they are kept.
///
/// # Errors
/// [`QueryError::NotFound`] for a project that never was or has no receipt
/// any more, [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    filters: DeletionFilters,
    after: Option<DeletionKey>,
    limit: usize,
) -> Result<Slice<Receipt, DeletionKey>> {
    let mut session = ctx.store.db().read().await?;
    let DeletionFilters { state, project, from, to } = filters;
    let wanted = ReceiptFilter { state, project, from, to, after, ..ReceiptFilter::default() };
    let rows = deletions::list(&mut session, &wanted, fetch(limit)).await?;
    if let Some(project) = project.filter(|_| rows.is_empty()) {
        let any = ReceiptFilter { project: Some(project), ..ReceiptFilter::default() };
        let is_known = callboard_store::projects::get(&mut session, project).await?.is_some()
            || !deletions::list(&mut session, &any, 1).await?.is_empty();
        if !is_known {
            return Err(QueryError::not_found(Entity::Project, project));
        }
    }
    Ok(Slice::cut(rows, limit, |row: &ReceiptRow| (row.created_at.millis(), row.id.get()))
        .map(Receipt::from_row))
}

/// Receipts of what can be restored at a moment, newest first.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn restorable(ctx: &Context, at: Timestamp, limit: i64) -> Result<Vec<Receipt>> {
    let wanted = ReceiptFilter { restorable_at: Some(at), ..ReceiptFilter::default() };
    let rows = deletions::list(&mut ctx.store.db().read().await?, &wanted, limit).await?;
    Ok(rows.into_iter().map(Receipt::from_row).collect())
}

/// One receipt.
///
/// # Errors
/// [`QueryError::NotFound`].
#[boxed]
pub async fn get(ctx: &Context, id: DeletionId) -> Result<Receipt> {
    Ok(Receipt::from_row(required(&mut ctx.store.db().read().await?, id).await?))
}

async fn required(session: &mut Session, id: DeletionId) -> Result<ReceiptRow> {
    deletions::get(session, id).await?.ok_or_else(|| QueryError::not_found(Entity::Deletion, id))
}

/// When a deletion takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// After the grace period of the service; restorable until then.
    AfterGrace,
    /// Immediately, for personal data.
    Now,
}

impl Effect {
    /// Reads the choice of a request.
    #[must_use]
    pub const fn from_choice(now: bool) -> Self {
        if now { Self::Now } else { Self::AfterGrace }
    }

    /// Until when a deletion can be restored.
    fn restorable_until(self, ctx: &Context, now: Timestamp) -> Option<Timestamp> {
        let has_grace = self == Self::AfterGrace && ctx.deletion_grace_ms > 0;
        has_grace.then(|| Timestamp(now.millis() + ctx.deletion_grace_ms))
    }
}

/// Whether a deletion takes what its runs counted for out of the aggregates:
/// that of a person does.
fn takes_back(receipt: &ReceiptRow) -> bool {
    receipt.reason == "user" && receipt.target_kind != "project"
}

/// Deletes a run. One that is going on ends with it.
///
/// # Errors
/// [`AdministrationRule::Pinned`] unless `force`; [`QueryError::NotFound`].
pub async fn delete_run(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: RunId,
    force: bool,
    effect: Effect,
) -> Result<Receipt> {
    let project = project.get();
    let run = runs::get(&mut ctx.store.db().read().await?, project, id).await?;
    let run = run.ok_or_else(|| QueryError::not_found(Entity::Run, id))?;
    if run.pin.is_some() && !force {
        return Err(AdministrationRule::Pinned.into());
    }
    // Not in one transaction with the rest, which nobody should wait for longer than needed.
    apply_pending_for_run(ctx, project, id).await?;
    count_until(ctx, project, id, Priority::Immediate).await?;
    let label = run.label.unwrap_or_else(|| format!("#{id}"));
    repeated(|| hide_one(ctx, acting, (project, id), &label, effect)).await
}

async fn hide_one(
    ctx: &Context,
    acting: Acting<'_>,
    (project, id): Run,
    label: &str,
    effect: Effect,
) -> Result<Receipt> {
    let restorable_until = effect.restorable_until(ctx, acting.now);
    let mut session = ctx.store.db().begin().await?;
    let new = NewReceipt {
        project: Some(project),
        target_kind: "run",
        target_id: id.get(),
        label,
        reason: "user",
        requested_by: acting.caller.user_id(),
        runs: 1,
        restorable_until,
    };
    let receipt = deletions::create(&mut session, &new, acting.now).await?;
    let rows = rows_kept(restorable_until);
    if hide_runs(&mut session, project, &BTreeSet::from([id]), receipt, true, rows).await? == 0 {
        return Err(QueryError::not_found(Entity::Run, id));
    }
    kept::expire_exports(&mut session, project, acting.now).await?;
    enqueue(&mut session, receipt, Some(project), None, restorable_until, acting.now).await?;
    let detail = json!({ "label": label, "receipt": receipt.get() });
    let target = ("run", id.get());
    let recorded =
        acting.record(&mut session, AuditAction::RunDeleted, target, Some(project), detail).await?;
    feed::publish(&mut session, "run-deleted", id, project, None, acting.now).await?;
    let row = required(&mut session, receipt).await?;
    session.commit().await?;
    recorded.committed();
    Ok(Receipt::from_row(row))
}

/// What becomes of the rows of runs that are hidden now.
const fn rows_kept(restorable_until: Option<Timestamp>) -> RowsOfRun {
    if restorable_until.is_some() { RowsOfRun::KeptCounted } else { RowsOfRun::Freed }
}

/// Queues what follows the hiding: freeing, or with a grace period taking what
/// is hidden out of the aggregates, and freeing when it is over.
async fn enqueue(
    session: &mut Session,
    receipt: DeletionId,
    project: Option<ProjectId>,
    further: Option<FurtherRuns>,
    restorable_until: Option<Timestamp>,
    now: Timestamp,
) -> Result<()> {
    let Some(until) = restorable_until else {
        return enqueue_freeing(session, receipt, project, further, now, now).await;
    };
    let job = HideTarget { receipt: receipt.get(), further };
    jobs::enqueue(session, &HideTarget::key(receipt), project, &job, now).await?;
    enqueue_freeing(session, receipt, project, None, until, now).await
}

async fn enqueue_freeing(
    session: &mut Session,
    receipt: DeletionId,
    project: Option<ProjectId>,
    further: Option<FurtherRuns>,
    at: Timestamp,
    now: Timestamp,
) -> Result<()> {
    let job = DeleteTarget { receipt: receipt.get(), further };
    jobs::enqueue_at(session, &DeleteTarget::key(receipt), project, &job, at, now).await?;
    Ok(())
}

/// Which runs a request names.
#[derive(Debug, Clone)]
pub enum NamedRuns {
    /// These.
    Ids(BTreeSet<RunId>),
    /// Those that match.
    Matching(RunsToDelete),
}

/// What a deletion of several runs did, or would do.
#[derive(Debug, Clone)]
pub struct DeletedRuns {
    /// The receipt; none when nothing matched, or nothing was to be done.
    pub receipt: Option<Receipt>,
    /// Runs that go, or would go.
    pub matched: i64,
    /// Runs that were named, or match, and stay because they are pinned; of
    /// those that match at most [`HIDDEN_AT_ONCE`].
    pub skipped: Vec<i64>,
}

/// Why several runs go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A person wants them gone: what they counted for goes too.
    User,
    /// They are old: what they counted for stays.
    Purge,
}

impl Reason {
    const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Purge => "purge",
        }
    }
}

/// Deletes several runs, or with `dry_run` only says how many. Pinned ones
/// stay.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Denied`] for a run or project.
pub async fn delete_runs(
    ctx: &Context,
    acting: Acting<'_>,
    scope: &Scope,
    named: NamedRuns,
    reason: Reason,
    effect: Effect,
    dry_run: bool,
) -> Result<DeletedRuns> {
    let mut session = ctx.store.db().read().await?;
    let (first, matched, skipped, wanted) = match named {
        NamedRuns::Ids(ids) => {
            let (go, stay) = unpinned(&mut session, scope, ids).await?;
            let matched = i64::try_from(go.len()).unwrap_or(i64::MAX);
            (go, matched, stay, None)
        }
        NamedRuns::Matching(wanted) => {
            match wanted.project {
                Some(project) => {
                    scope.authorize(project)?;
                }
                None => acting.reaches_everything()?,
            }
            let mut found = doomed::matching(&mut session, &wanted, COUNTED).await?;
            let matched = i64::try_from(found.len()).unwrap_or(i64::MAX);
            found.truncate(HIDDEN_AT_ONCE);
            let most = i64::try_from(HIDDEN_AT_ONCE).unwrap_or(i64::MAX);
            let pinned = doomed::pinned(&mut session, &wanted, most).await?;
            (found, matched, pinned.into_iter().map(|(_, run)| run.get()).collect(), Some(wanted))
        }
    };
    drop(session);
    if dry_run || matched == 0 {
        return Ok(DeletedRuns { receipt: None, matched, skipped });
    }
    let named = (&*first, matched, wanted.as_ref());
    let receipt = repeated(|| hide_several(ctx, acting, named, reason, effect)).await?;
    Ok(DeletedRuns { receipt: Some(receipt), matched, skipped })
}

type Run = (ProjectId, RunId);

/// Parts named runs into those that go and those that are pinned.
async fn unpinned(
    session: &mut Session,
    scope: &Scope,
    named: BTreeSet<RunId>,
) -> Result<(Vec<Run>, Vec<i64>)> {
    let mut of_project: BTreeMap<ProjectId, Vec<i64>> = BTreeMap::new();
    for id in named {
        let project = ids::project_of(session, Listed::Run, id.get()).await?;
        let project = project.ok_or_else(|| QueryError::not_found(Entity::Run, id))?;
        scope.authorize(project)?;
        of_project.entry(project).or_default().push(id.get());
    }
    let (mut go, mut stay) = (Vec::new(), Vec::new());
    for (project, ids) in of_project {
        let mut rows = runs::get_many(session, project, ids).await?;
        rows.sort_unstable_by_key(|row| row.id);
        for row in rows {
            if row.pin.is_some() { stay.push(row.id.get()) } else { go.push((project, row.id)) }
        }
    }
    Ok((go, stay))
}

async fn hide_several(
    ctx: &Context,
    acting: Acting<'_>,
    (first, matched, wanted): (&[Run], i64, Option<&RunsToDelete>),
    reason: Reason,
    effect: Effect,
) -> Result<Receipt> {
    let restorable_until = effect.restorable_until(ctx, acting.now);
    let projects: BTreeSet<ProjectId> = first.iter().map(|(project, _)| *project).collect();
    let only = if projects.len() == 1 { projects.first().copied() } else { None };
    let within = wanted.map_or(only, |wanted| wanted.project);
    let label = if matched == 1 { "1 run".to_owned() } else { format!("{matched} runs") };
    let mut session = ctx.store.db().begin().await?;
    let new = NewReceipt {
        project: within,
        target_kind: "runs",
        target_id: within.map_or(0, ProjectId::get),
        label: &label,
        reason: reason.as_str(),
        requested_by: acting.caller.user_id(),
        runs: matched,
        restorable_until,
    };
    let receipt = deletions::create(&mut session, &new, acting.now).await?;
    for project in projects {
        let of_project = first.iter().filter(|(of, _)| *of == project).map(|(_, run)| *run);
        let (takes_back, rows) = (reason == Reason::User, rows_kept(restorable_until));
        hide_runs(&mut session, project, &of_project.collect(), receipt, takes_back, rows).await?;
        kept::expire_exports(&mut session, project, acting.now).await?;
    }
    let further = wanted.map(FurtherRuns::from);
    enqueue(&mut session, receipt, within, further, restorable_until, acting.now).await?;
    let action = match reason {
        Reason::User => AuditAction::RunDeleted,
        Reason::Purge => AuditAction::CleanedUp,
    };
    let named: Vec<i64> = first.iter().map(|(_, run)| run.get()).collect();
    let detail = json!({ "runs": matched, "first": named });
    let recorded = acting.record(&mut session, action, ("deletion", receipt.get()), within, detail).await?;
    for (project, run) in first {
        feed::publish(&mut session, "run-deleted", *run, *project, None, acting.now).await?;
    }
    let row = required(&mut session, receipt).await?;
    session.commit().await?;
    recorded.committed();
    Ok(Receipt::from_row(row))
}

/// Deletes a project. Its name is free again immediately.
///
/// # Errors
/// [`AdministrationRule::NotConfirmed`] unless `confirm` is its name;
/// [`QueryError::NotFound`].
pub async fn delete_project(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    confirm: &str,
    effect: Effect,
) -> Result<Receipt> {
    let (id, restorable_until) = (project.get(), effect.restorable_until(ctx, acting.now));
    // What was accepted is part of its runs before nobody finds them any more.
    let waiting = intake::waiting(&mut ctx.store.db().read().await?, MOST_WAITING).await?;
    for (_, run) in waiting.into_iter().filter(|(project, _)| *project == id) {
        apply_pending_for_run(ctx, id, run).await?;
    }
    repeated(|| hide_project(ctx, acting, id, confirm, restorable_until)).await
}

async fn hide_project(
    ctx: &Context,
    acting: Acting<'_>,
    id: ProjectId,
    confirm: &str,
    restorable_until: Option<Timestamp>,
) -> Result<Receipt> {
    let mut session = ctx.store.db().begin().await?;
    // Counters before the project, as submissions lock them.
    kept::lock_counters(&mut session, id).await?;
    let found = edit::lock(&mut session, id).await?;
    let found = found.ok_or_else(|| QueryError::not_found(Entity::Project, id))?;
    if found.name != confirm {
        return Err(AdministrationRule::NotConfirmed.into());
    }
    let runs = doomed_project::count_runs(&mut session, id).await?;
    let new = NewReceipt {
        project: Some(id),
        target_kind: "project",
        target_id: id.get(),
        label: &found.name,
        reason: "user",
        requested_by: acting.caller.user_id(),
        runs,
        restorable_until,
    };
    let receipt = deletions::create(&mut session, &new, acting.now).await?;
    if restorable_until.is_some() {
        kept::keep_project(&mut session, id).await?;
    }
    doomed_project::hide(&mut session, id).await?;
    let free_at = restorable_until.unwrap_or(acting.now);
    enqueue_freeing(&mut session, receipt, Some(id), None, free_at, acting.now).await?;
    let detail = json!({ "name": found.name, "receipt": receipt.get() });
    let target = ("project", id.get());
    let recorded = acting.record(&mut session, AuditAction::ProjectDeleted, target, Some(id), detail).await?;
    let row = required(&mut session, receipt).await?;
    session.commit().await?;
    recorded.committed();
    Ok(Receipt::from_row(row))
}
