//! Changed executions on their way into the database: compared with what came
//! before and written. What is new is counted later, what changes something
//! that is counted immediately.

use std::collections::{BTreeSet, HashMap};

use callboard_domain::ids::{ExecutionId, TestCaseId};
use callboard_domain::test_state::{Predecessors, flags_for};
use callboard_domain::time::Timestamp;
use callboard_domain::totals::Totals;
use callboard_store::db::Session;
use callboard_store::executions::counting::{self, ToCount};
use callboard_store::executions::{self, ExecutionRow};
use callboard_store::rollups::{self, States};
use callboard_store::runs::RunRow;
use callboard_store::test_cases;

use crate::Result;
use crate::aggregate::environment_change;
use crate::aggregate::rollup::{AggregateDelta, Counted, observed};
use crate::apply::clusters::{self, ClusterChange};
use crate::apply::execution_change::ExecutionChange;
use crate::recompare::comparison;
use crate::transaction::run_lanes::place_of;

/// The run whose executions change.
pub(crate) struct WriteContext<'a> {
    /// It, locked; its totals are brought up to date.
    pub(crate) run: &'a mut RunRow,
    /// All lanes it counts in.
    pub(crate) lanes: &'a [i64],
    /// Clock.
    pub(crate) now: Timestamp,
}

/// Writes changed rows, with what came before their tests in the run's own
/// lane. Returns what changed about failure clusters.
pub(crate) async fn write(
    session: &mut Session,
    held: &mut WriteContext<'_>,
    changes: &mut [ExecutionChange],
    predecessors: &HashMap<TestCaseId, Predecessors>,
) -> Result<ClusterChange> {
    let place = place_of(held.run);
    let clusters = clusters::Counting::lock(session, held.run, changes).await?;
    let known = changes.iter().filter_map(|change| change.before.as_ref());
    let elsewhere: Vec<ExecutionRow> = known.filter(|row| row.lane_id != held.run.lane_id).cloned().collect();
    environment_change::bring_along(session, held.run, held.lanes, &elsewhere, held.now).await?;
    compare(session, held.run, changes, predecessors).await?;
    executions::upsert(session, place, changes.iter().map(|change| &change.after)).await?;
    let change = clusters.apply(session, held.run, held.now).await?;
    count_again(session, held, changes).await?;
    add_to_totals(held.run, changes);
    Ok(change)
}

/// Counts what changes executions that are counted already; the others wait.
async fn count_again(
    session: &mut Session,
    held: &mut WriteContext<'_>,
    changes: &[ExecutionChange],
) -> Result<()> {
    let last_counted = ExecutionId::compose(held.run.id, held.run.counted_to);
    let mut again = Vec::new();
    for change in changes {
        match &change.before {
            Some(before) if change.after.id <= last_counted => again.push((before, &change.after)),
            _ => {
                held.run.uncounted_since.get_or_insert(held.now);
            }
        }
    }
    if again.is_empty() {
        return Ok(());
    }
    let run = &*held.run;
    let cases: BTreeSet<TestCaseId> = again.iter().map(|(_, after)| after.test_case).collect();
    let cases: Vec<TestCaseId> = cases.into_iter().collect();
    let states = rollups::lock_states(session, run.project, held.lanes, &cases).await?;
    let came_as = again.iter().map(|(_, after)| after.came_as().get()).collect();
    let paths = test_cases::reported_paths(session, run.project, came_as).await?;
    let again: Vec<Counted<'_>> = again
        .into_iter()
        .map(|(before, after)| Counted {
            test_case: after.test_case,
            file_path: paths.get(&after.came_as()).map_or("", String::as_str),
            before: Some(observed(before, run)),
            after: observed(after, run),
        })
        .collect();
    let mut tally = AggregateDelta::over(states);
    // The states know further back than what the rows were compared with.
    let counted = changes.iter().map(|change| &change.after).filter(|row| row.id <= last_counted);
    let counted: Vec<ToCount> = counted.map(ToCount::from).collect();
    let anew = tally.compared_anew(session, run, &counted).await?;
    counting::set_flags(session, run.project, run.id, &anew).await?;
    tally.count(session, run, held.lanes, &again, held.now).await?;
    tally.write(session, run.project).await
}

/// Compares each test with its last decided outcome before the run, as far as
/// that is counted.
async fn compare(
    session: &mut Session,
    run: &RunRow,
    changes: &mut [ExecutionChange],
    predecessors: &HashMap<TestCaseId, Predecessors>,
) -> Result<()> {
    let mut unknown = BTreeSet::new();
    for change in changes.iter_mut() {
        let after = &mut change.after;
        let known = predecessors.get(&after.test_case);
        let previous = known.and_then(|of| of.decided_before(after.browser_id, run.order_at, run.id));
        after.flags = after.flags.compared(flags_for(previous, after.outcome));
        let is_first =
            known.is_none_or(|of| of.decided_nothing_before(after.browser_id, run.order_at, run.id));
        if is_first && after.outcome.is_decided() {
            unknown.insert((after.test_case, after.browser_id));
        }
    }
    let elsewhere = comparison::decided_elsewhere(session, run, unknown, &States::default()).await?;
    for change in changes.iter_mut() {
        let after = &mut change.after;
        if let Some(previous) = elsewhere.outcomes.get(&(after.test_case, after.browser_id)) {
            after.flags = after.flags.compared(flags_for(Some(*previous), after.outcome));
        }
    }
    Ok(())
}

fn add_to_totals(run: &mut RunRow, changes: &[ExecutionChange]) {
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
            run.extra_repetitions -= before.extra_repetitions;
        }
        run.totals.count(change.after.outcome, 1);
        run.tests_ms += change.after.total_duration_ms;
        run.wasted_ms += change.after.facts.wasted_ms;
        run.lost_ms += change.after.lost_ms();
        run.extra_repetitions += change.after.extra_repetitions;
    }
}
