//! Executions of a run that turn out to be of another test: they are taken out of
//! what counts for the one and counted for the other, in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::ids::TestCaseId;
use callboard_domain::test_state::TestState;
use callboard_domain::time::Timestamp;
use callboard_store::clusters::counts::{self, CountedRun, Occurrence};
use callboard_store::db::Session;
use callboard_store::deletions::runs as doomed;
use callboard_store::executions::counting::{self, ToCount};
use callboard_store::executions::{self, ExecutionRow, RunPlace};
use callboard_store::lanes::OF_ALL_RUNS;
use callboard_store::projects::Growth;
use callboard_store::rollups::{self, TestDays};
use callboard_store::runs::RunRow;
use callboard_store::{clusters, jobs, quarantine, test_cases};

use crate::Result;
use crate::aggregate::aggregation;
use crate::aggregate::environment_change::by_lane;
use crate::aggregate::rollup::{observed, rebuild_histories};
use crate::apply::clusters::recount_new;
use crate::recompare::comparison::compared_anew;
use crate::recompare::following_runs::{Followed, queue_behind};
use crate::transaction::follow_up::Recompute;
use crate::transaction::run_lanes::{lanes_of_lane, lanes_of_run, place_of};

/// An execution before and after.
pub(super) struct Rekeyed {
    pub(super) before: ExecutionRow,
    pub(super) after: ExecutionRow,
}

/// Counts executions of a locked run for their other test. All of the run is counted.
pub(super) async fn rekey(
    session: &mut Session,
    run: &RunRow,
    rows: &[Rekeyed],
    now: Timestamp,
) -> Result<()> {
    let after: Vec<ExecutionRow> = rows.iter().map(|row| row.after.clone()).collect();
    let before: Vec<ExecutionRow> = rows.iter().map(|row| row.before.clone()).collect();
    executions::set_tests(session, place_of(run), &after).await?;
    let open_clusters = rekey_clusters(session, run, rows, now).await?;
    for (lane, after) in by_lane(&after) {
        // Some may still be counted where the run was before it was moved.
        let lanes = if lane == run.lane_id {
            lanes_of_run(session, run).await?
        } else {
            lanes_of_lane(session, run.project, lane, run.order_at).await?
        };
        let ids: BTreeSet<i64> = after.iter().map(|row| row.id.get()).collect();
        let before: Vec<&ExecutionRow> = before.iter().filter(|row| ids.contains(&row.id.get())).collect();
        rekey_lanes(session, run, (lane, &lanes), (&before, &after)).await?;
        let rows = before.into_iter().chain(&after);
        let followed: Vec<Followed> = rows.filter_map(Followed::from_row).collect();
        queue_behind(session, (run.project, lane), (run.order_at, run.id), &followed, now).await?;
    }
    for (rows, sign) in [(&before, 1), (&after, -1)] {
        rekey_quarantine(session, run, rows, sign).await?;
    }
    let job = Recompute { project: run.project, run: run.id };
    let key = format!("run:{}:recompute:joined:{}", run.id, now.millis());
    jobs::enqueue(session, &key, Some(run.project), &job, now).await?;
    aggregation::grow(session, run.project, Growth { open_clusters, ..Growth::default() }).await
}

/// `cluster_tests` of the clusters of the executions.
async fn rekey_clusters(
    session: &mut Session,
    run: &RunRow,
    rows: &[Rekeyed],
    now: Timestamp,
) -> Result<i64> {
    let occurrence = |row: &ExecutionRow, sign: i64| {
        let (test_case, execution, outcome) = (row.test_case, row.id, row.outcome);
        row.cluster.map(|cluster| Occurrence { cluster, test_case, execution, outcome, sign })
    };
    let both = rows.iter().flat_map(|row| [occurrence(&row.before, -1), occurrence(&row.after, 1)]);
    let occurrences: Vec<Occurrence> = both.flatten().collect();
    if occurrences.is_empty() {
        return Ok(0);
    }
    let ids: BTreeSet<i64> = occurrences.iter().map(|one| one.cluster.get()).collect();
    let locked = clusters::lock(session, run.project, ids.into_iter().collect()).await?;
    let counted = CountedRun {
        project: run.project,
        run: run.id,
        order_at: run.order_at,
        start: run.start_time,
        is_default_branch: false,
    };
    let counted = counts::apply(session, counted, locked, &occurrences, now).await?;
    recount_new(session, run.project, counted.first_shown_by, run.id, now).await?;
    Ok(counted.open)
}

/// `test_state` and `test_daily` of some lanes.
async fn rekey_lanes(
    session: &mut Session,
    run: &RunRow,
    (lane_id, lanes): (i64, &[i64]),
    (before, after): (&[&ExecutionRow], &[ExecutionRow]),
) -> Result<()> {
    let project = run.project;
    let of = |rows: &mut dyn Iterator<Item = TestCaseId>| rows.collect::<BTreeSet<_>>();
    let (left, joined) =
        (of(&mut before.iter().map(|row| row.test_case)), of(&mut after.iter().map(|row| row.test_case)));
    let cases: Vec<TestCaseId> = left.union(&joined).copied().collect();
    let ids = |cases: &BTreeSet<TestCaseId>| cases.iter().map(|case| case.get()).collect::<Vec<i64>>();
    // What they are compared with elsewhere does not change while the lane of all runs is locked.
    let locked: BTreeSet<i64> = lanes.iter().copied().chain([lane_id, OF_ALL_RUNS]).collect();
    let locked: Vec<i64> = locked.into_iter().collect();
    let mut states = rollups::lock_states(session, project, &locked, &cases).await?;
    let is_new = |case: &TestCaseId| {
        states.get(&(OF_ALL_RUNS, *case)).is_none_or(|state| state.counts().total_tests == 0)
    };
    let new: Vec<i64> = joined.iter().filter(|case| is_new(case)).map(|case| case.get()).collect();
    let mut rebuild = BTreeSet::new();
    for lane in lanes {
        for row in before {
            let key = (*lane, row.test_case);
            if let Some(state) = states.get_mut(&key) {
                state.retract(&observed(row, run));
                rebuild.insert(key);
            }
        }
        for row in after {
            let (key, seen) = ((*lane, row.test_case), observed(row, run));
            match states.get_mut(&key) {
                None => states.insert(key, TestState::first(&seen)),
                Some(state) => {
                    // Whatever it answers: the history is read again.
                    let _applied = state.apply(None, &seen);
                    rebuild.insert(key);
                }
            }
        }
    }
    let day = run.order_at.day();
    let place = RunPlace { project, run: run.id, day, lane_id };
    rebuild_histories(session, place, &mut states, &rebuild).await?;
    let counted: Vec<ToCount> = after.iter().map(ToCount::from).collect();
    let anew = compared_anew(session, run, &counted, &states).await?;
    counting::set_flags(session, project, run.id, &anew).await?;
    rollups::write_states(session, project, &states).await?;
    doomed::delete_empty_states(session, project, lanes, ids(&left)).await?;
    // Days of folders count them under the path they came with, before and after.
    let mut days = TestDays::default();
    let both = before.iter().map(|row| (*row, -1)).chain(after.iter().map(|row| (row, 1)));
    for (row, sign) in both {
        for lane in lanes {
            days.count((*lane, day), row.test_case, row.outcome, row.duration_ms, sign);
        }
    }
    rollups::add_test_days(session, project, days).await?;
    let back = test_cases::take_back(session, project, new, run.order_at).await?;
    let test_cases = i64::try_from(back).unwrap_or(i64::MAX);
    aggregation::grow(session, project, Growth { test_cases, ..Growth::default() }).await
}

/// How many executions of a test are counted towards the end of its quarantine.
async fn rekey_quarantine(
    session: &mut Session,
    run: &RunRow,
    rows: &[ExecutionRow],
    sign: i64,
) -> Result<()> {
    let mut numbers: BTreeMap<TestCaseId, i64> = BTreeMap::new();
    for row in rows {
        *numbers.entry(row.test_case).or_default() += 1;
    }
    let mut by_number: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (case, number) in numbers {
        by_number.entry(number).or_default().push(case.get());
    }
    for (number, cases) in by_number {
        quarantine::take_back(session, run.project, cases, run.order_at, sign * number).await?;
    }
    Ok(())
}
