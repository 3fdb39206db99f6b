//! From changed executions to the rollups of their tests.
//!
//! The results of a running client are counted many at a time: `counted_to` of
//! the run says up to which of its executions, and none beyond it is in any
//! state or day. A run that is over has none left.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::ids::TestCaseId;
use callboard_domain::test_state::{Applied, Observation, TestState, flags_for};
use callboard_domain::time::{Day, Timestamp};
use callboard_store::db::Session;
use callboard_store::executions::{self, ExecutionRow, RunPlace};
use callboard_store::rollups::{self, BrowserDays, FolderDays, States, TestDays};
use callboard_store::runs::RunRow;
use callboard_store::test_cases;

use crate::Result;

/// How many executions of a live run wait to be counted together. What costs
/// most about a result is not its row but the numbers of its test in four lanes,
/// and of each of these tables a hundred rows take little longer than five.
const TOGETHER: i64 = 100;
/// How long an execution of a live run waits to be counted, ms, as long as
/// its client gives signs of life.
pub(super) const COUNT_WITHIN_MS: i64 = 2_000;

/// Whether executions of a run have waited for long enough.
pub(super) fn is_due(run: &RunRow, now: Timestamp) -> bool {
    run.waiting() >= TOGETHER || has_waited(run, now)
}

/// Whether an execution of a run has waited to be counted for too long.
pub(super) fn has_waited(run: &RunRow, now: Timestamp) -> bool {
    run.uncounted_since.is_some_and(|since| since.millis() + COUNT_WITHIN_MS <= now.millis())
}

/// Counts what waits of a locked run; the caller writes the row of the run.
/// Answers how many executions were counted.
pub(super) async fn count_waiting(session: &mut Session, run: &mut RunRow, lanes: &[i64]) -> Result<i64> {
    count_up_to(session, run, lanes, run.next_ordinal - 1).await
}

/// [`count_waiting`] for those up to an ordinal.
pub(super) async fn count_up_to(
    session: &mut Session,
    run: &mut RunRow,
    lanes: &[i64],
    last: i64,
) -> Result<i64> {
    let first = run.counted_to + 1;
    run.uncounted_since = None;
    run.counted_to = last;
    if first > last {
        return Ok(0);
    }
    let project = run.project;
    let place = RunPlace { project, run: run.id, day: run.order_at.day(), lane_id: run.lane_id };
    let rows = executions::between(session, project, run.id, (first, last)).await?;
    let cases: BTreeSet<TestCaseId> = rows.iter().map(|row| row.test_case).collect();
    let cases: Vec<TestCaseId> = cases.into_iter().collect();
    let ids = cases.iter().map(|case| case.get()).collect();
    let paths = test_cases::file_paths(session, project, ids).await?;
    let states = rollups::lock_states(session, project, lanes, &cases).await?;
    let mut compared_anew = Vec::new();
    let mut changes = Vec::with_capacity(rows.len());
    for mut after in rows {
        // Runs before this one may have been counted since it came.
        let known = states.get(&(run.lane_id, after.test_case));
        let previous = known.and_then(|state| state.decided_before(after.browser_id, run.order_at, run.id));
        let flags = after.flags.compared(flags_for(previous, after.outcome));
        if previous.is_some() && flags != after.flags {
            after.flags = flags;
            compared_anew.push(after.clone());
        }
        let file_path = paths.get(&after.test_case).cloned().unwrap_or_default();
        changes.push(Change { before: None, after, file_path });
    }
    executions::upsert(session, place, &compared_anew).await?;
    fold_states(session, place, run, lanes, states, &changes.iter().collect::<Vec<_>>()).await?;
    Ok(i64::try_from(changes.len()).unwrap_or(i64::MAX))
}

/// An execution before and after a submission.
#[derive(Debug)]
pub(super) struct Change {
    /// As it was stored; `None` for a new one.
    pub(super) before: Option<ExecutionRow>,
    /// As it is now.
    pub(super) after: ExecutionRow,
    /// File of the test.
    pub(super) file_path: String,
}

/// An execution as its lanes count it.
pub(super) fn observed(row: &ExecutionRow, run: &RunRow) -> Observation {
    Observation {
        execution: row.id,
        order_at: run.order_at,
        outcome: row.outcome,
        browser: row.browser_id,
        duration_ms: row.duration_ms,
        wasted_ms: row.facts.wasted_ms,
        lost_ms: row.lost_ms(),
        mass_failure: run.is_mass_failure,
    }
}

/// Counts changed executions in every lane of their run. `states` are the
/// locked states of the tests; the rows must be written already, because a
/// late or changed earlier execution rebuilds the recent history from them.
pub(super) async fn fold_states(
    session: &mut Session,
    place: RunPlace,
    run: &RunRow,
    lanes: &[i64],
    mut states: States,
    changes: &[&Change],
) -> Result<()> {
    let mut rebuild = BTreeSet::new();
    let (mut days, mut folders) = (TestDays::default(), FolderDays::default());
    let mut browsers = BrowserDays::default();
    for change in changes {
        let before = change.before.as_ref().map(|row| observed(row, run));
        let after = observed(&change.after, run);
        let case = change.after.test_case;
        let folder = rollups::folder_of(&change.file_path);
        if let Some(before) = &before {
            folders.count(folder, before.outcome, before.duration_ms, -1);
            browsers.count(before.browser, before.outcome, -1);
        }
        browsers.count(after.browser, after.outcome, 1);
        folders.count(folder, after.outcome, after.duration_ms, 1);
        for lane in lanes {
            if let Some(before) = &before {
                days.count(*lane, case, before.outcome, before.duration_ms, -1);
            }
            days.count(*lane, case, after.outcome, after.duration_ms, 1);
            match states.get_mut(&(*lane, case)) {
                None => {
                    states.insert((*lane, case), TestState::first(&after));
                }
                Some(state) => {
                    if state.apply(before.as_ref(), &after) == Applied::NeedsRebuild {
                        rebuild.insert((*lane, case));
                    }
                }
            }
        }
    }
    rebuild_histories(session, place, &mut states, &rebuild).await?;
    rollups::write_states(session, place.project, &states).await?;
    rollups::add_test_days(session, place.project, place.day, days).await?;
    rollups::add_folder_days(session, place.project, lanes, place.day, folders).await?;
    rollups::add_browser_days(session, place.project, place.day, browsers).await?;
    Ok(())
}

/// How far apart the last days of tests may lie whose history is read together:
/// one walk over the days serves them all.
const READ_TOGETHER_DAYS: i64 = 28;

/// Reads the recent history of some tests again, those of a lane that ran last
/// at about the same time together.
pub(super) async fn rebuild_histories(
    session: &mut Session,
    place: RunPlace,
    states: &mut States,
    tests: &BTreeSet<(i64, TestCaseId)>,
) -> Result<()> {
    let mut lanes: BTreeMap<i64, Vec<(Day, Day, TestCaseId)>> = BTreeMap::new();
    for &(lane, case) in tests {
        let Some(state) = states.get(&(lane, case)) else { continue };
        let (newest, first) = (state.last_day().max(place.day), state.first_seen_at().day());
        lanes.entry(lane).or_default().push((newest, first, case));
    }
    for (lane, mut cases) in lanes {
        cases.sort_unstable_by_key(|&(newest, _, case)| (Reverse(newest), case));
        let mut rest = cases.as_slice();
        while let Some(&(newest, ..)) = rest.first() {
            let close = rest.partition_point(|(own, ..)| newest.0 - own.0 < READ_TOGETHER_DAYS);
            let (walk, further) = rest.split_at(close);
            rest = further;
            let first = walk.iter().map(|(_, first, _)| *first).min().unwrap_or(newest);
            let cases: Vec<TestCaseId> = walk.iter().map(|(.., case)| *case).collect();
            let mut found = rollups::newest_observations(
                session,
                (place.project, place.run),
                lane,
                &cases,
                newest,
                first,
            )
            .await?;
            for case in cases {
                if let Some(state) = states.get_mut(&(lane, case)) {
                    state.rebuild_recent(found.remove(&case).unwrap_or_default());
                }
            }
        }
    }
    Ok(())
}
