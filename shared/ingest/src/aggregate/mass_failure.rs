//! Runs that failed as a whole: what the recent history of their tests says of it.

use std::collections::BTreeSet;

use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::test_state::Applied;
use callboard_store::executions::{self, ExecutionFilter, ExecutionOrder, RunPlace};
use callboard_store::rollups;
use callboard_store::runs::RunRow;

use crate::aggregate::aggregation;
use crate::aggregate::rollup::{observed, rebuild_histories};
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, Result};

/// Executions of one transaction.
const BATCH: i64 = 200;

/// Notes in the recent history of the tests of a run whether it failed as a
/// whole. Doing it again changes nothing.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn remember_mass_failure(
    ctx: &Context,
    project: ProjectId,
    id: RunId,
    is_mass_failure: bool,
) -> Result<()> {
    let mut after: Option<i64> = None;
    loop {
        let mut session = ctx.store.db().begin().await?;
        let LockedRun { run: mut before, lanes, .. } = LockedRun::lock(&mut session, project, id).await?;
        let growth = aggregation::count_run(&mut session, &mut before, &lanes).await?;
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
        aggregation::grow(&mut session, project, growth).await?;
        session.commit().await?;
    }
}
