//! What a finished run says about its tests: whether it says anything at all,
//! and, in `causes`, why those are flaky that are.
//!
//! Everything is a function of rows, so a late shard or a repeated job gives
//! the same as if all had come at once.

use std::collections::BTreeSet;

use callboard_domain::flakiness;
use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::test_state::Applied;
use callboard_store::boxed;
use callboard_store::executions::{self, ExecutionFilter, ExecutionOrder, RunPlace};
use callboard_store::rollups;
use callboard_store::runs::{self, RunRow};

use super::causes::find_causes;
use super::counting;
use super::locked::LockedRun;
use super::rollup::{observed, rebuild_histories};
use crate::flakiness::settings::effective;
use crate::{Context, Result};

/// Executions that are judged by one transaction.
const BATCH: i64 = 200;

/// Judges a final run.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn judge_run(ctx: &Context, project: ProjectId, run: RunId) -> Result<()> {
    match mark_mass_failure(ctx, project, run).await? {
        Some(run) => find_causes(ctx, run).await,
        None => Ok(()),
    }
}

/// Notes whether the run failed as a whole, on its row and in the recent
/// history of each of its tests, a part of them at a time: nobody who writes
/// waits for all of them. Answers the run when it did not.
///
/// What breaks off in between is made good by the next call. A run is marked
/// before its tests, and each call goes over the tests of a marked run again; it
/// loses its mark after them, unless results came meanwhile.
async fn mark_mass_failure(ctx: &Context, project: ProjectId, id: RunId) -> Result<Option<RunRow>> {
    loop {
        let mut session = ctx.store.db().read().await?;
        let Some(run) = runs::get(&mut session, project, id).await? else { return Ok(None) };
        let may_be_one = run.status.is_final() && run.totals_from_rows && any_failed(&run);
        let is_one = may_be_one && {
            let rate = effective(&mut session, project).await?.mass_failure_rate;
            flakiness::is_mass_failure(&run.totals, rate)
        };
        drop(session);
        match (is_one, run.is_mass_failure) {
            (false, false) => return Ok(Some(run)),
            (true, is_marked) => {
                if is_marked || set_mass_failure(ctx, &run, true).await? {
                    remember_mass_failure(ctx, project, id, true).await?;
                    return Ok(None);
                }
            }
            // Looked at again without its mark.
            (false, true) => {
                remember_mass_failure(ctx, project, id, false).await?;
                set_mass_failure(ctx, &run, false).await?;
            }
        }
    }
}

/// Whether a test of a run failed.
fn any_failed(run: &RunRow) -> bool {
    run.totals.failed_tests + run.totals.timed_out_tests > 0
}

/// Writes whether a run failed as a whole; `false` when it changed since it
/// was read.
async fn set_mass_failure(ctx: &Context, read: &RunRow, is_mass_failure: bool) -> Result<bool> {
    let mut session = ctx.store.db().begin().await?;
    let run = runs::lock(&mut session, read.project, read.id).await?;
    if run.version != read.version {
        return Ok(false);
    }
    runs::set_mass_failure(&mut session, run.project, run.id, is_mass_failure).await?;
    session.commit().await?;
    Ok(true)
}

/// Notes in the recent history of the tests of a run whether it failed as a
/// whole. Doing it again changes nothing.
async fn remember_mass_failure(
    ctx: &Context,
    project: ProjectId,
    id: RunId,
    is_mass_failure: bool,
) -> Result<()> {
    let mut after: Option<i64> = None;
    loop {
        let mut session = ctx.store.db().begin().await?;
        let LockedRun { run: mut before, lanes, .. } = LockedRun::lock(&mut session, project, id).await?;
        let growth = counting::count_run(&mut session, &mut before, &lanes).await?;
        let run = RunRow { is_mass_failure, ..before.clone() };
        let (filter, order) = (ExecutionFilter::default(), ExecutionOrder::Id(after));
        let rows = executions::list(&mut session, project, id, &filter, &order, BATCH).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(last.id.get());
        let cases: BTreeSet<TestCaseId> = rows.iter().map(|row| row.test_case).collect();
        let cases: Vec<TestCaseId> = cases.into_iter().collect();
        let mut states = rollups::lock_states(&mut session, project, &lanes, &cases).await?;
        let (mut rebuild, mut again) = (BTreeSet::new(), Vec::new());
        for row in &rows {
            let (was, is) = (observed(row, &before), observed(row, &run));
            for lane in &lanes {
                let key = (*lane, row.test_case);
                let Some(state) = states.get_mut(&key) else { continue };
                if state.apply(Some(&was), &is) == Applied::NeedsRebuild {
                    rebuild.insert(key);
                    again.push((key, is));
                }
            }
        }
        let place = RunPlace { project, run: id, day: run.order_at.day(), lane_id: run.lane_id };
        rebuild_histories(&mut session, place, &mut states, &rebuild).await?;
        for (key, is) in again {
            if let Some(state) = states.get_mut(&key) {
                // What was read again carries the mark the run has now; beyond it there is nothing to note.
                let _is_recent = state.apply(Some(&is), &is);
            }
        }
        rollups::write_states(&mut session, project, &states).await?;
        counting::grow(&mut session, project, growth).await?;
        session.commit().await?;
    }
}
