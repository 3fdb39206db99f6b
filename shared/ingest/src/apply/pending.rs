//! Applying what waits in the inbox to its runs.
//!
//! What waits is visible to every process: the process that staged it applies it
//! a moment later, and before that whoever reads anything that may depend on it
//! ([`apply_all_pending`]), or wants to change its run ([`apply_pending_for_run`]). So nobody sees less than
//! was acknowledged, and a process that ends leaves nothing behind that others do
//! not find.

use callboard_core::retry;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_store::intake as rows;
use callboard_store::{StoreError, boxed};

use crate::aggregate::aggregation;
use crate::apply::batch_prefetch::PendingBatch;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, QueryError, Result};

/// Rows that one transaction folds.
pub(crate) const MAX_ROWS: i64 = 128;
/// How often somebody who wants to go on with a run tries: each time, one call at
/// most comes nearer to being set aside.
const MAX_ATTEMPTS: u32 = 1_000;
/// Transactions after which one look at a run asks what of it is left.
const BATCHES: usize = 64;
/// Runs that are folded by one look at what waits.
const MAX_RUNS: i64 = 200;

/// Works everything in that waits.
///
/// # Errors
/// [`QueryError::Store`]; what could not be worked in goes on waiting.
#[boxed]
pub async fn apply_all_pending(ctx: &Context) -> Result<()> {
    let waiting = rows::waiting(&mut ctx.store.db().read().await?, MAX_RUNS).await?;
    let mut settled = Ok(());
    for (project, run) in waiting {
        // One that cannot be worked in keeps no other from it.
        if let Err(error) = apply_pending_once(ctx, project, run).await {
            settled = Err(error);
        }
    }
    settled
}

/// Works in what waits of a run, for somebody who wants to go on with it: what
/// cannot be worked in is set aside.
///
/// # Errors
/// [`QueryError::Store`]; what could not be worked in goes on waiting.
pub async fn apply_pending_for_run(ctx: &Context, project: ProjectId, run: RunId) -> Result<()> {
    let mut attempt: u32 = 1;
    loop {
        match apply_pending_once(ctx, project, run).await {
            Err(error) if is_refusal(&error) && attempt < MAX_ATTEMPTS => attempt += 1,
            folded => return folded.map(drop),
        }
    }
}

/// Whether something is wrong with what was to be written, and not with where it
/// was to be written to. A deleted project may be restored.
fn is_refusal(error: &QueryError) -> bool {
    !matches!(error, QueryError::Store(error) if error.is_unavailable() || matches!(error, StoreError::ProjectGone))
}

/// [`apply_pending_for_run`] as far as it goes, once; answers whether results of the run have waited
/// to be counted for long enough.
pub(crate) async fn apply_pending_once(ctx: &Context, project: ProjectId, run: RunId) -> Result<bool> {
    // Who waited here for the turn finds nothing left, mostly.
    let _turn = ctx.write_coalescer.apply_lock(run).await;
    let (mut attempt, mut most, mut is_due) = (1, MAX_ROWS, false);
    let (mut batches, mut left, mut tried) = (0, None, None);
    loop {
        match apply_some(ctx, project, run, most, &mut tried).await {
            Err(QueryError::Store(error)) if error.is_conflict() && attempt < retry::ATTEMPTS => {
                tracing::info!(%error, attempt, "a transaction gave way to another and is repeated");
                attempt += 1;
            }
            // One of them is to blame.
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

/// Whether some of what waits of a run waited already when this was asked first:
/// what came since is for whoever brought it. `left` is between which places that
/// is.
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
        // Where nothing got on, somebody else is at it.
        Some((before, newest)) => first <= newest && first != before,
    };
    *left = Some((first, left.map_or(last, |(_, newest)| newest)));
    Ok(has_remaining)
}

/// What one transaction did.
struct Passed {
    /// Whether more may wait.
    is_more: bool,
    /// Whether results of the run have waited to be counted for long enough.
    is_due: bool,
}

/// Notes that a call that waits of a run could not be worked in.
async fn refuse(ctx: &Context, run: RunId, call: i64, error: &QueryError) -> Result<()> {
    if rows::refuse(ctx.store.db(), run, call).await? {
        tracing::error!(%error, %run, call, "results that were acknowledged are set aside: they cannot be worked into their run");
    }
    Ok(())
}

/// One transaction of at most so many calls; `tried` is set to the id of the first
/// of them, if it came to any.
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

/// Removes calls that are worked in, where they did not go with that. What fails here is
/// logged: they are known by their slot.
pub(crate) async fn clear(ctx: &Context, project: ProjectId, run: RunId) {
    if let Err(error) = rows::clear(ctx.store.db(), project, run).await {
        tracing::warn!(%error, %run, "results that were worked into their run are still kept beside it");
    }
}

/// Nobody asks for the results of a run that is gone.
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
