//! What became of the feedback of runs: the state of each, the log of a project, and posting again.

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::feedback::{FeedbackAction, FeedbackKind, FeedbackSettings, FeedbackState};
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::scm_feedback::{self, FeedbackRow, LogRow};
use callboard_store::{StoreError, boxed, jobs};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::posting::PostFeedback;
use super::subscriber::want;
use crate::accounts::Acting;
use crate::page::{Slice, fetch};
use crate::runs::required_run;
use crate::scm::{NotConfigured, SourceControlError};
use crate::{Context, LifeRefusal, QueryError, Result, settings};

/// How long entries stay in the log, and the statuses of commits are remembered, ms.
const LOG_LIFE_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// How long the marker of a comment that nobody saw is remembered: requests stay open for long, ms.
const MARKER_LIFE_MS: i64 = 400 * 24 * 60 * 60 * 1000;
/// Entries deleted by one statement.
const PURGE_BATCH: i64 = 500;

/// What a run says in one place.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackItem {
    /// `comment` or `status`.
    #[schema(value_type = String, example = "comment")]
    pub kind: FeedbackKind,
    /// `pending`, `sending`, `sent`, `failed` or `skipped`.
    #[schema(value_type = String, example = "sent")]
    pub state: FeedbackState,
    /// Number of the request that has the comment.
    #[schema(example = 42)]
    pub request: Option<i64>,
    /// Page that shows it, where the provider says so.
    pub url: Option<String>,
    /// Why it is not there.
    pub error: Option<String>,
    /// Attempts since it was wanted last.
    pub attempts: i64,
    /// When it is tried again.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_attempt_at: Option<Timestamp>,
    /// Last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl From<FeedbackRow> for FeedbackItem {
    fn from(row: FeedbackRow) -> Self {
        Self {
            kind: row.kind,
            state: row.state,
            request: row.request,
            url: row.url,
            error: row.error,
            attempts: row.attempts,
            next_attempt_at: row.next_at.filter(|_| row.state == FeedbackState::Pending && row.attempts > 0),
            updated_at: row.updated_at,
        }
    }
}

/// An entry of the log: one call, or why there was none.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackEntry {
    /// Entry.
    pub id: i64,
    /// Run.
    pub run_id: i64,
    /// `comment` or `status`.
    #[schema(value_type = String, example = "comment")]
    pub kind: FeedbackKind,
    /// `created`, `updated`, `recreated`, `replaced`, `set` or `none`.
    #[schema(value_type = String, example = "updated")]
    pub action: FeedbackAction,
    /// `pending` when it is tried again, else `sent`, `failed` or `skipped`.
    #[schema(value_type = String, example = "sent")]
    pub state: FeedbackState,
    /// Which attempt it was, from 1.
    pub attempt: i64,
    /// Number of the request.
    pub request: Option<i64>,
    /// Commit.
    pub commit: Option<String>,
    /// Status of the answer, of a failed attempt.
    pub response_status: Option<i64>,
    /// Why it failed, or why there was nothing to do.
    pub error: Option<String>,
    /// When it is tried again.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_attempt_at: Option<Timestamp>,
    /// When it happened.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
}

impl From<LogRow> for FeedbackEntry {
    fn from(row: LogRow) -> Self {
        Self {
            id: row.id,
            run_id: row.run.get(),
            kind: row.kind,
            action: row.action,
            state: row.state,
            attempt: row.attempt,
            request: row.request,
            commit: row.commit,
            response_status: row.response_status,
            error: row.error,
            next_attempt_at: row.next_at,
            at: row.at,
        }
    }
}

/// What a run says at its code host; nothing while nothing was wanted.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn of_run(ctx: &Context, project: Authorized<ProjectId>, run: RunId) -> Result<Vec<FeedbackItem>> {
    let mut session = ctx.store.db().read().await?;
    required_run(&mut session, project.get(), run).await?;
    let rows = scm_feedback::of_run(&mut session, project.get(), run).await?;
    Ok(rows.into_iter().map(FeedbackItem::from).collect())
}

/// The log of a project, newest first.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn feedback_log(
    ctx: &Context,
    project: Authorized<ProjectId>,
    state: Option<FeedbackState>,
    before: Option<i64>,
    limit: usize,
) -> Result<Slice<FeedbackEntry, i64>> {
    let mut session = ctx.store.db().read().await?;
    let rows = scm_feedback::log(&mut session, project.get(), state, before, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row: &LogRow| row.id).map(FeedbackEntry::from))
}

/// Posts comment and status of a run again; returns the job that does it. A comment that was deleted twice is made anew.
///
/// # Errors
/// [`QueryError::NotFound`]; [`LifeRefusal::NotFinished`]; [`NotConfigured::Feedback`] while both are off.
pub async fn repost(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    run: RunId,
) -> Result<i64, SourceControlError> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    let row = required_run(&mut session, project, run).await?;
    let settings: FeedbackSettings = settings::stored(&mut session, Some(project)).await?;
    if settings.kinds().next().is_none() {
        return Err(NotConfigured::Feedback.into());
    }
    if !row.status.is_final() {
        return Err(QueryError::from(LifeRefusal::NotFinished).into());
    }
    let key =
        want(&mut session, PostFeedback { project, run, is_asked: true }, &settings, acting.now).await?;
    let job = jobs::id_of(&mut session, &key).await?;
    let job = job.ok_or(StoreError::Damaged("a job vanished when it was queued"))?;
    let detail = json!({ "job": job });
    let target = ("run", run.get());
    let recorded =
        acting.record(&mut session, AuditAction::FeedbackRepeated, target, Some(project), detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(job)
}

/// Deletes old entries, a batch; returns whether there may be more.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn purge_log(ctx: &Context, now: Timestamp) -> Result<bool> {
    let mut session = ctx.store.db().begin().await?;
    let (before, unseen) = (Timestamp(now.millis() - LOG_LIFE_MS), Timestamp(now.millis() - MARKER_LIFE_MS));
    let purged = scm_feedback::purge(&mut session, before, unseen, PURGE_BATCH).await?;
    session.commit().await?;
    Ok(purged > 0)
}
