//! Ending what nobody ends: runs whose clients fell silent, set-ups that never
//! began, shards that never came, files that never followed.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::run_life::EndReason;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::{StoreError, boxed, runs};

use crate::aggregate::aggregation::{self, COUNT_WITHIN_MS};
use crate::apply::pending;
use crate::apply::shard_retry;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, QueryError, Result};

/// Runs looked at by one statement.
const PAGE: i64 = 100;

/// What one sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Runs that were silent for long enough to be looked at.
    pub looked_at: usize,
    /// Runs that ended.
    pub ended: usize,
}

/// Ends runs that nobody feeds any more. Several at the same time do no harm: each run
/// is judged while it is locked.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn sweep_stale_runs(ctx: &Context, now: Timestamp) -> Result<Swept> {
    let patience = &ctx.patience;
    let shortest = patience.stale_ms.min(patience.finalizing_ms).min(patience.shard_wait_ms);
    let since = Timestamp(now.millis() - shortest);
    // What a process left that has ended is a sign of life as well.
    if let Err(error) = pending::apply_all_pending(ctx).await {
        tracing::warn!(%error, "results that wait could not be worked into their runs");
    }
    // Nobody else counts what clients left that give no sign of life.
    aggregation::count_since(ctx, Timestamp(now.millis() - COUNT_WITHIN_MS)).await?;
    let mut swept = Swept::default();
    let (mut after, mut failed) = (None, Ok(()));
    loop {
        let page = runs::silent(&mut ctx.store.db().read().await?, since, after, PAGE).await?;
        let Some((_, last)) = page.last() else { return failed.map(|()| swept) };
        after = Some(*last);
        for (project, run) in page {
            swept.looked_at += 1;
            match judge(ctx, project, run, now).await {
                Ok(has_ended) => swept.ended += usize::from(has_ended),
                // One that cannot be judged does not keep the others from ending.
                Err(error) => {
                    tracing::warn!(run = run.get(), %error, "a silent run could not be judged");
                    failed = Err(error);
                }
            }
        }
    }
}

/// Judges one run; whether it ended.
async fn judge(ctx: &Context, project: ProjectId, run: RunId, now: Timestamp) -> Result<bool> {
    let patience = ctx.patience;
    let is_silent = |since: Timestamp, ms: i64| since.millis() <= now.millis() - ms;
    let mut session = ctx.store.db().begin().await?;
    let mut locked = match LockedRun::lock(&mut session, project, run).await {
        Err(QueryError::Store(StoreError::RunGone)) => return Ok(false),
        locked => locked?,
    };
    if locked.run.status.is_final() {
        return Ok(false);
    }
    let stood = locked.run.status;
    let has_lost = locked.mark_stale_slots(now, &patience);
    if has_lost {
        shard_retry::take_places(&mut session, &mut locked, now).await?;
    }
    locked.recompute_status(now, None, &patience);
    let is_idle = !locked.judge(|slots| slots.any_live() || slots.any_setting_up(now, &patience));
    let last = locked.run.last_activity_at;
    match locked.run.status {
        RunStatus::Finalizing if is_silent(last, patience.finalizing_ms) => locked.finish_finalizing(now),
        RunStatus::Initializing if is_idle => {
            locked.abort(RunStatus::Interrupted, EndReason::SetupTimeout, now);
        }
        RunStatus::Running if is_idle && locked.judge(|slots| slots.all_have_begun()) => {
            locked.abort(RunStatus::Interrupted, EndReason::Stale, now);
        }
        RunStatus::Running if is_idle && is_silent(last, patience.shard_wait_ms) => {
            locked.abort(RunStatus::Interrupted, EndReason::ShardsMissing, now);
        }
        _ => {}
    }
    let has_ended = locked.run.status.is_final();
    if has_lost || locked.run.status != stood {
        locked.close(session, now).await?;
    }
    Ok(has_ended)
}
