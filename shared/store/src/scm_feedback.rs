//! What runs say at their code hosts: comments on requests and statuses of commits, how far each is, which place shows
//! which run, and the log of all calls.
//!
//! The row of a run (`scm_feedback`) says what is wanted. The row of a place (`scm_feedback_targets`) is a request or a
//! commit; whoever calls the code host about it holds its lease, so two runs never write to one place together.

use callboard_domain::feedback::{FeedbackAction, FeedbackKind, FeedbackState};
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::{Result, StoreError};

/// What a run says in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackRow {
    /// Run.
    pub run: RunId,
    /// Comment or status.
    pub kind: FeedbackKind,
    /// How far it is.
    pub state: FeedbackState,
    /// How often it was wanted: the run changed, or a person asked for it.
    pub wanted: i64,
    /// Attempts since it was wanted last.
    pub attempts: i64,
    /// When it is tried again.
    pub next_at: Option<Timestamp>,
    /// Number of the request that has the comment.
    pub request: Option<i64>,
    /// Page that shows it.
    pub url: Option<String>,
    /// Why it is not there.
    pub error: Option<String>,
    /// Last change.
    pub updated_at: Timestamp,
}

/// A place that shows a run: a request or a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRow {
    /// Names provider, repository and request or commit.
    pub target: String,
    /// By what the comment is recognised; empty for a status.
    pub marker: String,
    /// Id of the comment at the provider; `None` until it is known.
    pub external_id: Option<String>,
    /// Page of the comment.
    pub url: Option<String>,
    /// The run that is shown, by its order.
    pub shown: Option<(Timestamp, RunId)>,
    /// How often a deleted comment was made anew.
    pub times_remade: i64,
    /// How often a comment that the account may not edit was replaced since one was edited.
    pub times_replaced: i64,
    /// Number of the newest lease.
    pub lease: i64,
    /// Until when it is held.
    pub lease_until: Option<Timestamp>,
}

/// An entry of the log: one call, or why there was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// Id; ascending.
    pub id: i64,
    /// Run.
    pub run: RunId,
    /// Comment or status.
    pub kind: FeedbackKind,
    /// What was done.
    pub action: FeedbackAction,
    /// How it ended.
    pub state: FeedbackState,
    /// Which attempt it was, from 1.
    pub attempt: i64,
    /// Request, where one was found.
    pub request: Option<i64>,
    /// Commit.
    pub commit: Option<String>,
    /// Status of the answer, where it says more than the error.
    pub response_status: Option<i64>,
    /// Why it failed.
    pub error: Option<String>,
    /// When it is tried again.
    pub next_at: Option<Timestamp>,
    /// When it happened.
    pub at: Timestamp,
}

macro_rules! select_feedback {
    ($tail:literal) => {
        concat!(
            "SELECT run_id, kind, state, wanted, attempts, next_at, request, url, error, updated_at FROM scm_feedback ",
            $tail
        )
    };
}

macro_rules! select_log {
    ($tail:literal) => {
        concat!(
            "SELECT id, run_id, kind, action, state, attempt, request, commit_sha, response_status, error, next_at, at \
             FROM scm_feedback_log ",
            $tail
        )
    };
}

statements! {
    /// A run is to say something, whatever it said before. PK
    WANT = "INSERT INTO scm_feedback (project_id, run_id, kind, state, wanted, attempts, next_at, updated_at) \
        VALUES ($1, $2, $3, 'pending', 1, 0, $4, $4) ON CONFLICT (project_id, run_id, kind) DO UPDATE SET state = 'pending', \
        wanted = scm_feedback.wanted + 1, attempts = 0, next_at = excluded.next_at, error = NULL, updated_at = excluded.updated_at";
    /// What a run says. PK
    OF_RUN = select_feedback!("WHERE project_id = $1 AND run_id = $2 ORDER BY kind");
    /// What a run says in one place, locked. PK
    LOCK = select_feedback!("WHERE project_id = $1 AND run_id = $2 AND kind = $3 for_update()");
    /// Writes how far it is. PK
    SAVE = "UPDATE scm_feedback SET state = $4, attempts = $5, next_at = $6, request = $7, url = $8, error = $9, updated_at = $10 \
        WHERE project_id = $1 AND run_id = $2 AND kind = $3";
    /// A place that nothing was written to before. PK
    MAKE_TARGET = "INSERT INTO scm_feedback_targets (project_id, target, marker, updated_at) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (project_id, target) DO NOTHING";
    /// A place, locked. PK
    LOCK_TARGET = "SELECT target, marker, external_id, url, shown_run, shown_order, times_remade, times_replaced, lease, lease_until \
        FROM scm_feedback_targets WHERE project_id = $1 AND target = $2 for_update()";
    /// Writes what a place shows. PK
    SAVE_TARGET = "UPDATE scm_feedback_targets SET marker = $3, external_id = $4, url = $5, shown_run = $6, shown_order = $7, \
        times_remade = $8, times_replaced = $9, lease = $10, lease_until = $11, updated_at = $12 WHERE project_id = $1 AND target = $2";
    /// An entry of the log.
    INSERT_LOG = "INSERT INTO scm_feedback_log (project_id, run_id, kind, action, state, attempt, request, commit_sha, \
        response_status, error, next_at, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    /// The log of a project, newest first. ix: scm_feedback_log_of_project
    LOG = select_log!("WHERE project_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
    /// The same in one state. ix: scm_feedback_log_of_project
    LOG_IN_STATE = select_log!("WHERE project_id = $1 AND id < $2 AND state = $4 ORDER BY id DESC LIMIT $3");
    /// Deletes old entries. ix: scm_feedback_log_by_time
    PURGE_LOG = "DELETE FROM scm_feedback_log WHERE id IN (SELECT id FROM scm_feedback_log WHERE at < $1 ORDER BY at LIMIT $2)";
    /// The project that sets a status of a name, unless another one does already. PK
    CLAIM_STATUS_NAME = "INSERT INTO scm_status_names (repository, context, project_id) VALUES ($1, $2, $3) \
        ON CONFLICT (repository, context) DO NOTHING";
    /// The project that sets a status of a name, locked. PK
    LOCK_STATUS_NAME = "SELECT project_id FROM scm_status_names WHERE repository = $1 AND context = $2 for_update()";
    /// Gives the name of a status to another project. PK
    GIVE_STATUS_NAME = "UPDATE scm_status_names SET project_id = $3 WHERE repository = $1 AND context = $2";
    /// Forgets places that nothing was written to for long: those of statuses, which have no marker, and those of
    /// comments that were never seen. ix: scm_feedback_targets_by_time
    PURGE_TARGETS = "DELETE FROM scm_feedback_targets WHERE (project_id, target) IN (SELECT t.project_id, t.target \
        FROM scm_feedback_targets t WHERE t.external_id IS NULL AND t.updated_at < $1 AND (t.marker = '' OR t.updated_at < $2) \
        ORDER BY t.updated_at LIMIT $3)";
}

fn unknown() -> StoreError {
    StoreError::Damaged("an unknown word of feedback")
}

fn read(row: &Row) -> Result<FeedbackRow> {
    let mut r = row.reader();
    Ok(FeedbackRow {
        run: RunId(r.int()?),
        kind: FeedbackKind::parse(&r.text()?).ok_or_else(unknown)?,
        state: FeedbackState::parse(&r.text()?).ok_or_else(unknown)?,
        wanted: r.int()?,
        attempts: r.int()?,
        next_at: r.opt_time()?,
        request: r.opt_int()?,
        url: r.opt_text()?,
        error: r.opt_text()?,
        updated_at: r.time()?,
    })
}

fn read_target(row: &Row) -> Result<TargetRow> {
    let mut r = row.reader();
    let (target, marker, external_id, url) = (r.text()?, r.text()?, r.opt_text()?, r.opt_text()?);
    let (run, order) = (r.opt_int()?.map(RunId), r.opt_time()?);
    Ok(TargetRow {
        target,
        marker,
        external_id,
        url,
        shown: order.zip(run),
        times_remade: r.int()?,
        times_replaced: r.int()?,
        lease: r.int()?,
        lease_until: r.opt_time()?,
    })
}

fn read_log(row: &Row) -> Result<LogRow> {
    let mut r = row.reader();
    Ok(LogRow {
        id: r.int()?,
        run: RunId(r.int()?),
        kind: FeedbackKind::parse(&r.text()?).ok_or_else(unknown)?,
        action: FeedbackAction::parse(&r.text()?).ok_or_else(unknown)?,
        state: FeedbackState::parse(&r.text()?).ok_or_else(unknown)?,
        attempt: r.int()?,
        request: r.opt_int()?,
        commit: r.opt_text()?,
        response_status: r.opt_int()?,
        error: r.opt_text()?,
        next_at: r.opt_time()?,
        at: r.time()?,
    })
}

/// Notes that a run is to say something, from the beginning.
///
/// # Errors
/// [`StoreError`].
pub async fn want(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    kind: FeedbackKind,
    now: Timestamp,
) -> Result<()> {
    session.execute(&WANT, args![project, run, kind.as_str(), now]).await?;
    Ok(())
}

/// What a run says: at most one row of each kind.
///
/// # Errors
/// [`StoreError`].
pub async fn of_run(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<FeedbackRow>> {
    session.all(&OF_RUN, args![project, run]).await?.iter().map(read).collect()
}

/// What a run says in one place, locked until the transaction ends.
///
/// # Errors
/// [`StoreError`].
pub async fn lock(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    kind: FeedbackKind,
) -> Result<Option<FeedbackRow>> {
    session.first(&LOCK, args![project, run, kind.as_str()]).await?.as_ref().map(read).transpose()
}

/// Writes how far a row is that was read with [`lock`].
///
/// # Errors
/// [`StoreError`].
pub async fn save(session: &mut Session, project: ProjectId, row: &FeedbackRow) -> Result<()> {
    let args = args![
        project,
        row.run,
        row.kind.as_str(),
        row.state.as_str(),
        row.attempts,
        row.next_at,
        row.request,
        row.url.clone(),
        row.error.clone(),
        row.updated_at
    ];
    session.execute(&SAVE, args).await?;
    Ok(())
}

/// A place, locked until the transaction ends and made with `marker` when it is new.
///
/// # Errors
/// [`StoreError`].
pub async fn lock_target(
    session: &mut Session,
    project: ProjectId,
    target: &str,
    marker: &str,
    now: Timestamp,
) -> Result<TargetRow> {
    session.execute(&MAKE_TARGET, args![project, target, marker, now]).await?;
    let row = session.first(&LOCK_TARGET, args![project, target]).await?;
    read_target(&row.ok_or(StoreError::Damaged("a place of feedback vanished while it was locked"))?)
}

/// Writes what a place shows that was read with [`lock_target`].
///
/// # Errors
/// [`StoreError`].
pub async fn save_target(
    session: &mut Session,
    project: ProjectId,
    row: &TargetRow,
    now: Timestamp,
) -> Result<()> {
    let (order, run) = row.shown.unzip();
    let args = args![
        project,
        &row.target,
        &row.marker,
        row.external_id.clone(),
        row.url.clone(),
        run,
        order,
        row.times_remade,
        row.times_replaced,
        row.lease,
        row.lease_until,
        now
    ];
    session.execute(&SAVE_TARGET, args).await?;
    Ok(())
}

/// Adds an entry to the log of a project; its id is given here.
///
/// # Errors
/// [`StoreError`].
pub async fn insert_log(session: &mut Session, project: ProjectId, row: &LogRow) -> Result<()> {
    let args = args![
        project,
        row.run,
        row.kind.as_str(),
        row.action.as_str(),
        row.state.as_str(),
        row.attempt,
        row.request,
        row.commit.clone(),
        row.response_status,
        row.error.clone(),
        row.next_at,
        row.at
    ];
    session.execute(&INSERT_LOG, args).await?;
    Ok(())
}

/// The log of a project, newest first, before one of its entries.
///
/// # Errors
/// [`StoreError`].
pub async fn log(
    session: &mut Session,
    project: ProjectId,
    state: Option<FeedbackState>,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<LogRow>> {
    let before = before.unwrap_or(i64::MAX);
    let rows = match state {
        None => session.all(&LOG, args![project, before, limit]).await?,
        Some(state) => session.all(&LOG_IN_STATE, args![project, before, limit, state.as_str()]).await?,
    };
    rows.iter().map(read_log).collect()
}

/// The project that sets a status of a name in a repository, locked until the transaction ends; `project` when none did.
///
/// # Errors
/// [`StoreError`].
pub async fn claim_status_name(
    session: &mut Session,
    repository: &str,
    context: &str,
    project: ProjectId,
) -> Result<ProjectId> {
    session.execute(&CLAIM_STATUS_NAME, args![repository, context, project]).await?;
    let row = session.first(&LOCK_STATUS_NAME, args![repository, context]).await?;
    let row = row.ok_or(StoreError::Damaged("the name of a status vanished while it was locked"))?;
    Ok(ProjectId(row.reader().int()?))
}

/// Gives the name of a status, locked with [`claim_status_name`], to another project.
///
/// # Errors
/// [`StoreError`].
pub async fn give_status_name(
    session: &mut Session,
    repository: &str,
    context: &str,
    project: ProjectId,
) -> Result<()> {
    session.execute(&GIVE_STATUS_NAME, args![repository, context, project]).await?;
    Ok(())
}

/// Deletes at most `limit` entries of the log that are older than `before`, and as many places without a comment: those
/// of statuses that are older than `before`, and those of comments that are older than `comments_before`. Returns how
/// many.
///
/// # Errors
/// [`StoreError`].
pub async fn purge(
    session: &mut Session,
    before: Timestamp,
    comments_before: Timestamp,
    limit: i64,
) -> Result<u64> {
    let entries = session.execute(&PURGE_LOG, args![before, limit]).await?;
    Ok(entries + session.execute(&PURGE_TARGETS, args![before, comments_before, limit]).await?)
}
