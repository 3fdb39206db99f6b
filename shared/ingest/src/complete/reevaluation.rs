//! Judges stored executions by the rule of today: those of runs that were
//! judged by an older one keep its outcome until this job comes by. It is
//! enqueued once, by a migration, and walks the newest runs of every project.

use callboard_domain::attempts::AttemptSet;
use callboard_domain::ids::{ExecutionId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::executions::{self, ExecutionRow};
use callboard_store::jobs::Payload;
use callboard_store::retention::lanes::next_project;
use callboard_store::runs::{RunRow, compared};
use callboard_store::{StoreError, boxed};
use serde::{Deserialize, Serialize};

use crate::apply::attempt_merge::{decided, stored_attempts};
use crate::apply::redecide::redecide;
use crate::transaction::run_lanes::place_of;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, QueryError, Result};

/// Executions of one step.
const PAGE: i64 = 500;
/// How old runs are judged anew at most, ms.
const MAX_AGE_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// The work of judging stored executions anew, with the place it has reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReevaluateOutcomes {
    /// Order key of the oldest run, ms; set by the first step.
    since: Option<i64>,
    /// The current project; `None` before the first one.
    project: Option<ProjectId>,
    /// Order key and id of the run that was done last; runs follow newest first.
    before: Option<(i64, RunId)>,
    /// The last execution that was done of the next run.
    after: Option<ExecutionId>,
}

impl Payload for ReevaluateOutcomes {
    const KIND: &'static str = "reevaluate_outcomes";
}

/// Judges the next executions anew. `None` when all are done. Doing it again
/// changes nothing.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn reevaluate_outcomes(
    ctx: &Context,
    job: ReevaluateOutcomes,
    now: Timestamp,
) -> Result<Option<ReevaluateOutcomes>> {
    let since = job.since.unwrap_or(now.millis() - MAX_AGE_MS);
    let job = ReevaluateOutcomes { since: Some(since), ..job };
    let mut session = ctx.store.db().read().await?;
    let next = async |session: &mut _| next_project(session, job.project).await;
    let Some(project) = job.project else {
        let first = next(&mut session).await?;
        return Ok(first.map(|project| ReevaluateOutcomes { project: Some(project), ..job }));
    };
    let before = job.before.map_or((Timestamp(i64::MAX), RunId(i64::MAX)), |(at, run)| (Timestamp(at), run));
    let run = compared::before(&mut session, project, before, 1).await?.pop();
    let Some(run) = run.filter(|run| run.order_at.millis() >= since) else {
        let next = next(&mut session).await?;
        return Ok(next.map(|next| ReevaluateOutcomes {
            project: Some(next),
            before: None,
            after: None,
            ..job
        }));
    };
    let rows = executions::with_attempts_after(&mut session, project, run.id, job.after, PAGE).await?;
    drop(session);
    let is_last = i64::try_from(rows.len()).is_ok_and(|count| count < PAGE);
    let last = rows.last().map(|row| row.id);
    if !outdated(&run, rows)?.is_empty() {
        correct(ctx, &run, job.after, now).await?;
    }
    Ok(Some(match last.filter(|_| !is_last) {
        Some(last) => ReevaluateOutcomes { after: Some(last), ..job },
        None => ReevaluateOutcomes { before: Some((run.order_at.millis(), run.id)), after: None, ..job },
    }))
}

/// Whether the attempts of an execution decide otherwise than its row says.
fn is_outdated(run: &RunRow, row: &ExecutionRow) -> Result<bool> {
    let attempts = stored_attempts(row)?;
    let judged = decided(place_of(run), row.test_case, row.browser_id, Some(row), &attempts)?;
    let has_other_cost = row.retries_ms.is_some() && row.retries_ms != judged.retries_ms;
    Ok((row.outcome, row.duration_ms) != (judged.outcome, judged.duration_ms) || has_other_cost)
}

/// Those of some executions whose rows are outdated.
fn outdated(run: &RunRow, rows: Vec<ExecutionRow>) -> Result<Vec<ExecutionRow>> {
    let mut outdated = Vec::new();
    for row in rows {
        match is_outdated(run, &row) {
            Ok(true) => outdated.push(row),
            Ok(false) => {}
            // One row that cannot be read keeps none of the others from being judged.
            Err(QueryError::Store(error @ StoreError::Damaged(_))) => {
                tracing::warn!(run = %run.id, execution = %row.id, %error, "an execution is left as it is");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(outdated)
}

/// Judges the executions of a run behind one anew, and its status with them.
async fn correct(ctx: &Context, run: &RunRow, after: Option<ExecutionId>, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let mut locked = match LockedRun::lock(&mut session, run.project, run.id).await {
        Err(QueryError::Store(StoreError::RunGone)) => return Ok(()),
        locked => locked?,
    };
    // They may have changed since they were read.
    let rows = executions::with_attempts_after(&mut session, run.project, run.id, after, PAGE).await?;
    let rows = outdated(&locked.run, rows)?;
    let changed = redecide(&mut session, &mut locked, rows, |_: &mut AttemptSet| {}, now).await?;
    if changed > 0 {
        tracing::info!(run = %run.id, changed, "executions were judged anew");
        if locked.run.status.is_final() {
            locked.recompute_status(now, None, &ctx.patience);
        }
        locked.close(session, now).await?;
    }
    Ok(())
}
