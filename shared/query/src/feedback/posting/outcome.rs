//! How an attempt ended: the state of its row, what its place shows, the log, and the next attempt.

use callboard_domain::feedback::{FeedbackAction, FeedbackState};
use callboard_domain::ids::RunId;
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::ScmError;
use callboard_store::db::Session;
use callboard_store::scm_feedback::{self, FeedbackRow, LogRow, TargetRow};

use super::{BUSY_MS, PostFeedback, Written, enqueue};
use crate::scm::SourceControlError;
use crate::{Context, Result};

/// Pauses before the second and later attempts, ms: seven attempts over ten hours.
const RETRY_AFTER_MS: [i64; 6] =
    [60_000, 5 * 60_000, 15 * 60_000, 60 * 60_000, 3 * 60 * 60_000, 6 * 60 * 60_000];
/// Attempts that one wish takes at most, whether they ended or not.
pub(super) const MAX_ATTEMPTS: i64 = 7;
/// Longest time that a rate limit is waited for, ms.
const MAX_WAIT_MS: i64 = 6 * 60 * 60_000;

/// An attempt that was counted.
pub(super) struct Attempt {
    pub(super) job: PostFeedback,
    pub(super) row: FeedbackRow,
    /// Name of the status.
    pub(super) context: String,
    /// Whether the project still wants it.
    pub(super) is_on: bool,
    /// Commit of the run.
    pub(super) commit: Option<String>,
}

/// How it ended.
pub(super) enum Ended {
    /// The place was called.
    Posted(Box<Posted>),
    /// There is no place for it.
    Skipped(String),
    /// Something has to be configured first.
    Failed(String),
    /// The code host brought nothing when the place was looked for.
    Upstream(ScmError),
    /// Somebody else writes to the place.
    Busy,
}

/// What came of a call.
pub(super) struct Posted {
    pub(super) lease: TargetRow,
    pub(super) request: Option<i64>,
    pub(super) run: RunId,
    pub(super) order: Timestamp,
    /// `None` when people deleted the comment and want none.
    pub(super) written: Result<Option<Written>, SourceControlError>,
}

impl Attempt {
    /// Stores what is about to be written in a leased place.
    pub(super) async fn save_place(&self, ctx: &Context, place: &TargetRow, now: Timestamp) -> Result<()> {
        let mut session = ctx.store.db().begin().await?;
        self.save_leased(&mut session, place.clone(), now).await?;
        session.commit().await?;
        Ok(())
    }

    /// Notes that no attempt came to an end, and lets what else the run says go on without this one.
    pub(super) async fn give_up(self, session: &mut Session, now: Timestamp) -> Result<()> {
        let mut row = self.row.clone();
        let why =
            format!("{MAX_ATTEMPTS} attempts ended before they were done. Post again to try once more.");
        let ended = (FeedbackAction::None, FeedbackState::Failed);
        self.log(session, &row, ended, None, Some(why.clone()), None, now).await?;
        (row.state, row.error, row.next_at, row.updated_at) = (FeedbackState::Failed, Some(why), None, now);
        scm_feedback::save(session, self.job.project, &row).await?;
        enqueue(session, &self, &row, now, now).await
    }

    /// Writes a place while its lease is still this attempt's.
    async fn save_leased(&self, session: &mut Session, row: TargetRow, now: Timestamp) -> Result<()> {
        let project = self.job.project;
        let stored = scm_feedback::lock_target(session, project, &row.target, &row.marker, now).await?;
        if stored.lease == row.lease {
            scm_feedback::save_target(session, project, &row, now).await?;
        }
        Ok(())
    }

    /// Notes how the attempt ended, and queues another one when that may help.
    pub(super) async fn finish(&self, ctx: &Context, ended: Ended, now: Timestamp) -> Result<()> {
        let mut session = ctx.store.db().begin().await?;
        let project = self.job.project;
        let locked = scm_feedback::lock(&mut session, project, self.job.run, self.row.kind).await?;
        // The run was deleted meanwhile: only the place has to be released.
        let mut row = locked.clone().unwrap_or_else(|| self.row.clone());
        let is_current = row.wanted == self.row.wanted;
        row.updated_at = now;
        let mut action = FeedbackAction::None;
        let mut response_status = None;
        let result = match ended {
            Ended::Busy => {
                row.state = FeedbackState::Pending;
                row.attempts -= 1;
                row.next_at = Some(Timestamp(now.millis() + BUSY_MS));
                if locked.is_some() {
                    scm_feedback::save(&mut session, project, &row).await?;
                    enqueue(&mut session, self, &row, Timestamp(now.millis() + BUSY_MS), now).await?;
                }
                session.commit().await?;
                return Ok(());
            }
            Ended::Skipped(reason) => Err((FeedbackState::Skipped, reason, None)),
            Ended::Failed(reason) => Err((FeedbackState::Failed, reason, None)),
            Ended::Upstream(error) => {
                response_status = error.status();
                Err(self.after(&error, now))
            }
            Ended::Posted(posted) => {
                let Posted { lease, request, run, order, written } = *posted;
                row.request = request;
                let mut target = TargetRow { lease_until: None, ..lease };
                match written {
                    Ok(Some(written)) => {
                        action = written.action;
                        let (id, url) = written.comment.map(|comment| (comment.id, comment.url)).unzip();
                        target.url = url.flatten().or(target.url);
                        target.external_id = id;
                        target.marker = written.marker;
                        target.times_remade = written.times_remade;
                        target.times_replaced = written.times_replaced;
                        target.shown = Some((order, run));
                        row.url = target.url.clone();
                        self.save_leased(&mut session, target, now).await?;
                        Ok(())
                    }
                    Ok(None) => {
                        self.save_leased(&mut session, target, now).await?;
                        let reason = "The comment was deleted twice. Post again to create it once more.";
                        Err((FeedbackState::Skipped, reason.to_owned(), None))
                    }
                    Err(error) => {
                        // What may still arrive must not meet another write.
                        if !may_arrive(&error) {
                            self.release(&mut session, target, now).await?;
                        }
                        match error {
                            SourceControlError::Upstream { error, .. } => {
                                response_status = error.status();
                                Err(self.after(&error, now))
                            }
                            SourceControlError::NotConfigured(missing) => {
                                Err((FeedbackState::Failed, missing.to_string(), None))
                            }
                            SourceControlError::Query(error) => {
                                // The queue tries again.
                                session.commit().await?;
                                return Err(error);
                            }
                        }
                    }
                }
            }
        };
        let (state, error, next_at) = match result {
            Ok(()) => (FeedbackState::Sent, None, None),
            Err((state, error, next_at)) => (state, Some(error), next_at),
        };
        self.log(&mut session, &row, (action, state), response_status, error.clone(), next_at, now).await?;
        if locked.is_some() && is_current {
            (row.state, row.error, row.next_at) = (state, error, next_at);
            if let Some(due) = next_at {
                enqueue(&mut session, self, &row, due, now).await?;
            }
            scm_feedback::save(&mut session, project, &row).await?;
        } else if locked.is_some() {
            // The run changed meanwhile, and another job posts that.
            scm_feedback::save(&mut session, project, &row).await?;
        }
        session.commit().await?;
        Ok(())
    }

    /// Gives a place back after a failed call. Its marker stays: the call may have had its effect.
    pub(super) async fn release(&self, session: &mut Session, row: TargetRow, now: Timestamp) -> Result<()> {
        let project = self.job.project;
        let mut stored = scm_feedback::lock_target(session, project, &row.target, &row.marker, now).await?;
        if stored.lease == row.lease {
            stored.lease_until = None;
            scm_feedback::save_target(session, project, &stored, now).await?;
        }
        Ok(())
    }

    /// What follows a failed call: the state, why, and when it is tried again.
    fn after(&self, error: &ScmError, now: Timestamp) -> (FeedbackState, String, Option<Timestamp>) {
        let made = usize::try_from(self.row.attempts - 1).unwrap_or_default();
        let pause = RETRY_AFTER_MS.get(made).filter(|_| may_help_to_wait(error));
        let Some(pause) = pause else { return (FeedbackState::Failed, error.to_string(), None) };
        let limited = match error {
            ScmError::RateLimited { until: Some(until), .. } => until.millis() - now.millis(),
            _ => 0,
        };
        let due = now.millis() + (*pause).max(limited.clamp(0, MAX_WAIT_MS));
        (FeedbackState::Pending, error.to_string(), Some(Timestamp(due)))
    }

    #[expect(clippy::too_many_arguments, reason = "one entry of the log")]
    async fn log(
        &self,
        session: &mut Session,
        row: &FeedbackRow,
        (action, state): (FeedbackAction, FeedbackState),
        response_status: Option<u16>,
        error: Option<String>,
        next_at: Option<Timestamp>,
        at: Timestamp,
    ) -> Result<()> {
        let entry = LogRow {
            id: 0,
            run: self.job.run,
            kind: row.kind,
            action,
            state,
            attempt: self.row.attempts,
            request: row.request,
            commit: self.commit.clone(),
            response_status: response_status.map(i64::from),
            error,
            next_at,
            at,
        };
        Ok(scm_feedback::insert_log(session, self.job.project, &entry).await?)
    }
}

/// Whether the same call may succeed later without anybody doing something about it.
const fn may_help_to_wait(error: &ScmError) -> bool {
    match error {
        ScmError::RateLimited { .. }
        | ScmError::Unreachable { .. }
        | ScmError::TooSlow { .. }
        | ScmError::Unreadable { .. } => true,
        ScmError::Failed { status, .. } => matches!(*status, 408 | 409 | 423 | 425) || *status >= 500,
        ScmError::TokenRejected { .. }
        | ScmError::RepositoryNotFound { .. }
        | ScmError::NotInRepository { .. }
        | ScmError::MissingPermission { .. }
        | ScmError::AddressRefused { .. }
        | ScmError::Redirected { .. }
        | ScmError::TooManyComments { .. }
        | ScmError::TooLarge { .. } => false,
    }
}

/// Whether a write that failed here may still be carried out there.
pub(super) fn may_arrive(error: &SourceControlError) -> bool {
    let SourceControlError::Upstream { error, .. } = error else { return false };
    match error {
        ScmError::TooSlow { .. }
        | ScmError::Unreachable { .. }
        | ScmError::Unreadable { .. }
        | ScmError::TooLarge { .. } => true,
        ScmError::Failed { status, .. } => *status >= 500,
        _ => false,
    }
}
