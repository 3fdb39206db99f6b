//! Changed executions on their way into the database: compared with what came
//! before, written, and counted at once or later.

use std::collections::{BTreeSet, HashMap};

use callboard_domain::ids::{ExecutionId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::test_state::{Predecessors, flags_for};
use callboard_domain::totals::Totals;
use callboard_store::db::Session;
use callboard_store::executions::{self, ExecutionRow, RunPlace};
use callboard_store::rollups;
use callboard_store::runs::RunRow;

use super::chunk::Target;
use super::clusters::Counting;
use super::moving;
use super::rollup::{self, Change};
use crate::{Result, baseline};

/// What was written besides the rows.
pub(super) struct Written {
    /// How many more clusters of failures are open.
    pub(super) open_clusters: i64,
    /// Executions that are counted now and were not before.
    pub(super) counted: i64,
}

/// Writes changed rows and everything that summarises them, as far as that does
/// not wait.
pub(super) async fn write(
    session: &mut Session,
    target: &mut Target<'_>,
    place: RunPlace,
    changes: &mut [Change],
    predecessors: &HashMap<TestCaseId, Predecessors>,
) -> Result<Written> {
    let counting = Counting::lock(session, target.run, changes).await?;
    let known = changes.iter().filter_map(|change| change.before.as_ref());
    let elsewhere: Vec<ExecutionRow> =
        known.filter(|row| row.lane_id != target.run.lane_id).cloned().collect();
    moving::bring_along(session, target.run, target.lanes, &elsewhere).await?;
    let mut counted = 0;
    let open_clusters = if target.may_wait {
        let open_clusters = write_to_wait(session, target, place, (changes, predecessors), counting).await?;
        if rollup::is_due(target.run, target.now) {
            counted = rollup::count_waiting(session, target.run, target.lanes).await?;
        }
        open_clusters
    } else {
        let new = changes.iter().filter(|change| change.before.is_none()).count();
        let new = i64::try_from(new).unwrap_or(i64::MAX);
        // What waits of the run lies before what comes now.
        let last = target.run.next_ordinal - 1;
        counted = new + rollup::count_up_to(session, target.run, target.lanes, last - new).await?;
        target.run.counted_to = last;
        write_at_once(session, target, place, changes, counting).await?
    };
    add_to_totals(target.run, changes);
    Ok(Written { open_clusters, counted })
}

/// Writes rows and counts them.
async fn write_at_once(
    session: &mut Session,
    target: &mut Target<'_>,
    place: RunPlace,
    changes: &mut [Change],
    counting: Counting,
) -> Result<i64> {
    let run = &*target.run;
    let cases: BTreeSet<TestCaseId> = changes.iter().map(|change| change.after.test_case).collect();
    let cases: Vec<TestCaseId> = cases.into_iter().collect();
    let states = rollups::lock_states(session, place.project, target.lanes, &cases).await?;
    compare(session, run, changes, |case, browser| {
        states.get(&(run.lane_id, case))?.decided_before(browser, run.order_at, run.id)
    })
    .await?;
    upsert(session, place, changes).await?;
    let open_clusters = counting.apply(session, run, target.now).await?;
    let all: Vec<&Change> = changes.iter().collect();
    rollup::fold_states(session, place, run, target.lanes, states, &all).await?;
    Ok(open_clusters)
}

/// Writes rows; counted are those that change what is counted already.
async fn write_to_wait(
    session: &mut Session,
    target: &mut Target<'_>,
    place: RunPlace,
    (changes, known): (&mut [Change], &HashMap<TestCaseId, Predecessors>),
    counting: Counting,
) -> Result<i64> {
    let run = &*target.run;
    compare(session, run, changes, |case, browser| {
        known.get(&case)?.decided_before(browser, run.order_at, run.id)
    })
    .await?;
    upsert(session, place, changes).await?;
    let open_clusters = counting.apply(session, run, target.now).await?;
    let last_counted = ExecutionId::compose(run.id, run.counted_to);
    let (counted, waiting): (Vec<&Change>, Vec<&Change>) =
        changes.iter().partition(|change| change.before.is_some() && change.after.id <= last_counted);
    if !counted.is_empty() {
        let cases: BTreeSet<TestCaseId> = counted.iter().map(|change| change.after.test_case).collect();
        let cases: Vec<TestCaseId> = cases.into_iter().collect();
        let states = rollups::lock_states(session, place.project, target.lanes, &cases).await?;
        rollup::fold_states(session, place, run, target.lanes, states, &counted).await?;
    }
    if !waiting.is_empty() {
        target.run.uncounted_since.get_or_insert(target.now);
    }
    Ok(open_clusters)
}

/// Compares each test with its last decided outcome before the run, which
/// `previous` knows by test and browser project.
async fn compare(
    session: &mut Session,
    run: &RunRow,
    changes: &mut [Change],
    previous: impl Fn(TestCaseId, i64) -> Option<Outcome>,
) -> Result<()> {
    let mut unknown = Vec::new();
    for (at, change) in changes.iter_mut().enumerate() {
        let after = &mut change.after;
        let previous = previous(after.test_case, after.browser_id);
        after.flags = after.flags.compared(flags_for(previous, after.outcome));
        if previous.is_none() && after.outcome.is_decided() {
            unknown.push(at);
        }
    }
    compare_elsewhere(session, run, changes, unknown).await
}

async fn upsert(session: &mut Session, place: RunPlace, changes: &[Change]) -> Result<()> {
    let rows: Vec<ExecutionRow> = changes.iter().map(|change| change.after.clone()).collect();
    Ok(executions::upsert(session, place, &rows).await?)
}

fn add_to_totals(run: &mut RunRow, changes: &[Change]) {
    if !run.totals_from_rows {
        run.totals = Totals::default();
        run.totals_from_rows = true;
    }
    for change in changes.iter() {
        if let Some(before) = &change.before {
            run.totals.count(before.outcome, -1);
            run.tests_ms -= before.total_duration_ms;
            run.wasted_ms -= before.facts.wasted_ms;
            run.lost_ms -= before.lost_ms();
        }
        run.totals.count(change.after.outcome, 1);
        run.tests_ms += change.after.total_duration_ms;
        run.wasted_ms += change.after.facts.wasted_ms;
        run.lost_ms += change.after.lost_ms();
    }
}

/// Compares tests that never ended on this branch and in this environment with
/// what they did on the default branch.
async fn compare_elsewhere(
    session: &mut Session,
    run: &RunRow,
    changes: &mut [Change],
    mut unknown: Vec<usize>,
) -> Result<()> {
    if unknown.is_empty() {
        return Ok(());
    }
    for lane in baseline::other_lanes(session, run).await? {
        let cases: BTreeSet<i64> = unknown.iter().map(|at| changes[*at].after.test_case.get()).collect();
        let known = rollups::predecessors(session, run.project, lane, cases.into_iter().collect()).await?;
        unknown.retain(|at| {
            let after = &mut changes[*at].after;
            let known = known.get(&after.test_case);
            let previous = known.and_then(|of| of.decided_before(after.browser_id, run.order_at, run.id));
            after.flags = after.flags.compared(flags_for(previous, after.outcome));
            previous.is_none()
        });
    }
    Ok(())
}
