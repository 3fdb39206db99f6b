//! From changed executions to the rollups of their tests.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::ids::TestCaseId;
use callboard_domain::test_state::{Applied, Observation, TestState};
use callboard_domain::time::Day;
use callboard_store::db::Session;
use callboard_store::executions::{ExecutionRow, RunPlace};
use callboard_store::rollups::{self, BrowserDays, FolderDays, States, TestDays};
use callboard_store::runs::RunRow;

use crate::Result;

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
    changes: &[Change],
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
            let mut found =
                rollups::newest_observations(session, place.project, lane, &cases, newest, first).await?;
            for case in cases {
                if let Some(state) = states.get_mut(&(lane, case)) {
                    state.rebuild_recent(found.remove(&case).unwrap_or_default());
                }
            }
        }
    }
    Ok(())
}
