//! What follows the end of a run: its numbers are counted anew from its rows,
//! and its feed is let go.

use callboard_domain::events::DomainEvent;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::branch_states::{self, BranchChange};
use callboard_store::{StoreError, boxed, executions, feed, intake as kept, outbox, storage};

use crate::aggregate::aggregation::{self, Priority};
use crate::apply::pending;
use crate::complete::cluster_verification::verify;
use crate::complete::expiry::date_run;
use crate::stage::write_queue;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, QueryError, Result};

/// How long the feed of a final run is kept, ms.
const FEED_AFTER_END_MS: i64 = 60 * 60 * 1000;

/// What a check of a run's numbers found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// There is no such run any more.
    Gone,
    /// The stored numbers are those of the rows.
    Right,
    /// They were not, and are now.
    Repaired,
}

/// Counts what waits of the run, counts the run from its rows and repairs what is stored when it differs,
/// while no results arrive as far as that can be waited for.
/// Once the run is final its feed is kept for one more hour, and the failures
/// that its tests no longer show are judged.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn check_run(ctx: &Context, project: ProjectId, run: RunId, now: Timestamp) -> Result<Checked> {
    pending::apply_pending_for_run(ctx, project, run).await?;
    aggregation::count_until(ctx, project, run, Priority::WhenIdle).await?;
    ctx.write_coalescer.wait_until_idle(write_queue::SHORT_IDLE_TIMEOUT).await;
    let checked = recount(ctx, project, run, now).await?;
    verify(ctx, project, run, now).await?;
    Ok(checked)
}

async fn recount(ctx: &Context, project: ProjectId, run: RunId, now: Timestamp) -> Result<Checked> {
    let mut session = ctx.store.db().begin().await?;
    let mut locked = match LockedRun::lock(&mut session, project, run).await {
        Err(QueryError::Store(StoreError::RunGone)) => return Ok(Checked::Gone),
        locked => locked?,
    };
    // What is asked comes first: what is written after it goes to the database together.
    let sums = executions::sums(&mut session, project, run).await?;
    // What a project keeps is locked before its days, as whoever attaches a report does.
    storage::recount_run(&mut session, project, run, now).await?;
    locked.compare(&mut session).await?;
    date_run(&mut session, &locked.run).await?;
    let is_over = locked.run.status.is_final();
    if is_over && locked.run.is_full {
        let changed = branch_states::update(&mut session, &locked.run, now).await?;
        let event = changed.map(|BranchChange { is_red, run }| {
            if is_red { DomainEvent::BranchWentRed { run } } else { DomainEvent::BranchRecovered { run } }
        });
        outbox::append(&mut session, project, event.as_slice(), now).await?;
    }
    if is_over {
        feed::keep_until(&mut session, project, run, Timestamp(now.millis() + FEED_AFTER_END_MS)).await?;
    }
    let is_counted = sums.totals.total_tests > 0;
    let stored = executions::RunSums {
        totals: locked.run.totals,
        tests_ms: locked.run.tests_ms,
        wasted_ms: locked.run.wasted_ms,
        lost_ms: locked.run.lost_ms,
        extra_repetitions: locked.run.extra_repetitions,
    };
    let checked = if !is_counted && !locked.run.totals_from_rows || stored == sums {
        session.commit().await?;
        Checked::Right
    } else {
        tracing::warn!(%run, ?stored, counted = ?sums, "the numbers of a run differed from its rows and were repaired");
        locked.run.totals = sums.totals;
        locked.run.tests_ms = sums.tests_ms;
        locked.run.wasted_ms = sums.wasted_ms;
        locked.run.lost_ms = sums.lost_ms;
        locked.run.extra_repetitions = sums.extra_repetitions;
        locked.run.totals_from_rows = true;
        locked.recompute_status(now, None, &ctx.patience);
        locked.close(session, now).await?;
        Checked::Repaired
    };
    if is_over {
        kept::forget(ctx.store.db(), project, run).await?;
    }
    Ok(checked)
}
