//! Applying what waits in the inbox to its runs.
//!
//! Pending results are visible to every process. The process that staged them applies
//! them a moment later. Requests that may depend on them apply them first
//! ([`apply_all_pending`]), and so do changes of their run
//! ([`apply_pending_for_run`]). So every reader sees all acknowledged results, and a
//! process that ends leaves nothing behind that others do not find.

use callboard_core::retry;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_store::intake as rows;
use callboard_store::{StoreError, boxed};

use crate::aggregate::aggregation;
use crate::apply::batch_prefetch::PendingBatch;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, QueryError, Result};

/// Rows that one transaction applies.
pub(crate) const MAX_ROWS: i64 = 128;
/// Attempts to apply the pending results of a run: each brings one broken row nearer to
/// being set aside.
const MAX_ATTEMPTS: u32 = 1_000;
/// Transactions after which the remaining rows of a run are checked.
const BATCHES: usize = 64;
/// Runs of one call of [`apply_all_pending`].
const MAX_RUNS: i64 = 200;

/// Applies all pending results.
///
/// # Errors
/// [`QueryError::Store`]; what could not be applied stays pending.
#[boxed]
pub async fn apply_all_pending(ctx: &Context) -> Result<()> {
    let waiting = rows::waiting(&mut ctx.store.db().read().await?, MAX_RUNS).await?;
    let mut settled = Ok(());
    for (project, run) in waiting {
        // One run that fails does not stop the others.
        if let Err(error) = apply_pending_once(ctx, project, run).await {
            settled = Err(error);
        }
    }
    settled
}

/// Applies the pending results of a run before it is changed. Rows that cannot be
/// applied are set aside.
///
/// # Errors
/// [`QueryError::Store`]; what could not be applied stays pending.
pub async fn apply_pending_for_run(ctx: &Context, project: ProjectId, run: RunId) -> Result<()> {
    let mut attempt: u32 = 1;
    loop {
        match apply_pending_once(ctx, project, run).await {
            Err(error) if is_refusal(&error) && attempt < MAX_ATTEMPTS => attempt += 1,
            folded => return folded.map(drop),
        }
    }
}

/// Whether the results are at fault, and not the database. A deleted project may be
/// restored.
fn is_refusal(error: &QueryError) -> bool {
    !matches!(error, QueryError::Store(error) if error.is_unavailable() || matches!(error, StoreError::ProjectGone))
}

/// One attempt of [`apply_pending_for_run`]; returns whether executions of the run have
/// waited for aggregation for long enough.
pub(crate) async fn apply_pending_once(ctx: &Context, project: ProjectId, run: RunId) -> Result<bool> {
    // After waiting for the lock, mostly nothing is left.
    let _turn = ctx.write_coalescer.apply_lock(run).await;
    let (mut attempt, mut most, mut is_due) = (1, MAX_ROWS, false);
    let (mut batches, mut left, mut tried) = (0, None, None);
    loop {
        match apply_some(ctx, project, run, most, &mut tried).await {
            Err(QueryError::Store(error)) if error.is_conflict() && attempt < retry::ATTEMPTS => {
                tracing::info!(%error, attempt, "a transaction gave way to another and is repeated");
                attempt += 1;
            }
            // One row is at fault: apply them one by one.
            Err(error) if is_refusal(&error) && most > 1 => most = 1,
            Err(error) if is_refusal(&error) => {
                if let Some(call) = tried {
                    refuse(ctx, run, call, &error).await?;
                }
                return Err(error);
            }
            Err(error) => return Err(error),
            Ok(folded) => {
                is_due |= folded.is_due;
                batches += 1;
                if !folded.is_more
                    || batches % BATCHES == 0 && !has_remaining(ctx, project, run, &mut left).await?
                {
                    break;
                }
            }
        }
    }
    Ok(is_due)
}

/// Whether rows are left that were pending at the first check; later ones are for the
/// requests that staged them. `left` holds the ids of the first and last row.
async fn has_remaining(
    ctx: &Context,
    project: ProjectId,
    run: RunId,
    left: &mut Option<(i64, i64)>,
) -> Result<bool> {
    let Some((first, last)) = rows::span(&mut ctx.store.db().read().await?, project, run).await? else {
        return Ok(false);
    };
    let has_remaining = match *left {
        None => true,
        // Without progress, another process is applying them.
        Some((before, newest)) => first <= newest && first != before,
    };
    *left = Some((first, left.map_or(last, |(_, newest)| newest)));
    Ok(has_remaining)
}

/// What one transaction did.
struct Passed {
    /// Whether more may wait.
    is_more: bool,
    /// Whether executions of the run have waited for aggregation for long enough.
    is_due: bool,
}

/// Counts a failed attempt of a row; sets it aside after enough of them.
async fn refuse(ctx: &Context, run: RunId, call: i64, error: &QueryError) -> Result<()> {
    if rows::refuse(ctx.store.db(), run, call).await? {
        tracing::error!(%error, %run, call, "acknowledged results are set aside: they cannot be applied to their run");
    }
    Ok(())
}

/// One transaction of at most `most` rows; `tried` is set to the id of the first row,
/// if there is any.
async fn apply_some(
    ctx: &Context,
    project: ProjectId,
    run: RunId,
    most: i64,
    tried: &mut Option<i64>,
) -> Result<Passed> {
    *tried = None;
    let found = match PendingBatch::load(ctx, project, run, most, tried).await? {
        PendingBatch::Empty => return Ok(Passed { is_more: false, is_due: false }),
        PendingBatch::Orphaned => return discard_all(ctx, project, run).await,
        PendingBatch::Found(found) => found,
    };
    let (is_more, at) = (!found.is_all(), found.at());
    let ready = found.prepare(ctx).await?;
    let mut session = ctx.store.db().begin().await?;
    let mut locked = match LockedRun::lock(&mut session, project, run).await {
        Err(QueryError::Store(StoreError::RunGone)) => {
            drop(session);
            return discard_all(ctx, project, run).await;
        }
        locked => locked?,
    };
    if !ready.fold(ctx, &mut session, &mut locked).await? {
        return Ok(Passed { is_more: true, is_due: false });
    }
    let is_due = aggregation::should_aggregate(&locked.run, at);
    locked.close(session, at).await?;
    clear(ctx, project, run).await;
    Ok(Passed { is_more, is_due })
}

/// Removes applied rows where the transaction that applied them did not (SQLite: the
/// inbox is another file). Errors are logged: the slot knows what is applied.
pub(crate) async fn clear(ctx: &Context, project: ProjectId, run: RunId) {
    if let Err(error) = rows::clear(ctx.store.db(), project, run).await {
        tracing::warn!(%error, %run, "applied results could not be removed from the inbox");
    }
}

/// Removes the pending results of a run that is gone.
async fn discard_all(ctx: &Context, project: ProjectId, run: RunId) -> Result<Passed> {
    let mut session = ctx.store.db().begin().await?;
    match LockedRun::lock(&mut session, project, run).await {
        Err(QueryError::Store(StoreError::RunGone)) => {}
        locked => return locked.map(|_| Passed { is_more: true, is_due: false }),
    }
    drop(session);
    rows::remove_all(ctx.store.db(), project, run).await?;
    Ok(Passed { is_more: false, is_due: false })
}
