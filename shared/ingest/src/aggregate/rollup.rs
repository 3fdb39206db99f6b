//! From executions to the rollups of their tests.
//!
//! Executions are counted many at a time, after they were written: `counted_to`
//! of a run says up to which of its executions, and none beyond it is in any
//! state or day. What costs most about a result is not its row but the numbers
//! of its test in four lanes, and of each of these a hundred results of the
//! test cost hardly more than one ([`crate::aggregate::aggregation`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::ids::{ExecutionId, ProjectId, TestCaseId};
use callboard_domain::lane::LaneKey;
use callboard_domain::test_state::{Applied, ExecutionFlags, Observation, TestState};
use callboard_domain::time::{Day, Timestamp};
use callboard_store::db::Session;
use callboard_store::executions::counting::ToCount;
use callboard_store::executions::{ExecutionRow, RunPlace};
use callboard_store::lanes;
use callboard_store::rollups::{self, BrowserDays, FolderDays, States, TestDays};
use callboard_store::runs::RunRow;

use crate::Result;
use crate::recompare::comparison;
use crate::recompare::following_runs::{Followed, queue_behind};
use crate::transaction::baseline;
use crate::transaction::run_lanes::place_of;

/// An execution as its lanes count it.
pub(crate) fn observed(row: &ExecutionRow, run: &RunRow) -> Observation {
    seen(&row.into(), run.order_at, run.is_mass_failure)
}

/// The same by what is counted of it, and by what is known of its run.
pub(crate) fn seen(row: &ToCount, order_at: Timestamp, mass_failure: bool) -> Observation {
    Observation {
        execution: row.id,
        order_at,
        outcome: row.outcome,
        browser: row.browser_id,
        duration_ms: row.duration_ms,
        wasted_ms: row.wasted_ms,
        lost_ms: row.lost_ms,
        mass_failure,
    }
}

fn decided(seen: &Observation) -> bool {
    seen.outcome.is_decided()
}

/// One execution to be counted.
pub(crate) struct Counted<'a> {
    pub(crate) test_case: TestCaseId,
    /// File of the test.
    pub(crate) file_path: &'a str,
    /// As it was counted before.
    pub(crate) before: Option<Observation>,
    pub(crate) after: Observation,
}

/// What a transaction changes of the rollups of tests.
pub(crate) struct AggregateDelta {
    states: States,
    days: TestDays,
    folders: FolderDays,
    browsers: BrowserDays,
}

impl AggregateDelta {
    /// Begins with the locked states of all tests that will be counted.
    pub(crate) fn over(states: States) -> Self {
        Self {
            states,
            days: TestDays::default(),
            folders: FolderDays::default(),
            browsers: BrowserDays::default(),
        }
    }

    /// Whether a test appeared in a lane behind a run.
    fn ran_after(&self, run: &RunRow, lane: i64, case: TestCaseId) -> bool {
        self.states.get(&(lane, case)).is_some_and(|state| state.ran_after(run.order_at, run.id))
    }

    /// What is remarkable about those executions of a run that compare
    /// otherwise with what came before them than they were written with: runs
    /// before it may have been counted since they came, or are counted together
    /// with them.
    pub(crate) async fn compared_anew(
        &self,
        session: &mut Session,
        run: &RunRow,
        rows: &[ToCount],
    ) -> Result<Vec<(ExecutionId, ExecutionFlags)>> {
        comparison::compared_anew(session, run, rows, &self.states).await
    }

    /// Counts executions of a run in some lanes. Their rows must be written and
    /// the run must say that they are counted, because a late or changed
    /// earlier execution rebuilds the recent history from them. Runs that stand
    /// behind this one and were counted first are compared again later, those of
    /// other lanes when this one is on the default branch; `now` is when the
    /// executions came, or changed.
    pub(crate) async fn count(
        &mut self,
        session: &mut Session,
        run: &RunRow,
        lanes: &[i64],
        executions: &[Counted<'_>],
        now: Timestamp,
    ) -> Result<()> {
        let place = place_of(run);
        let day = place.day;
        let (mut rebuild, mut followed, mut others) = (BTreeSet::new(), Vec::new(), Vec::new());
        for Counted { test_case: case, file_path, before, after } in executions {
            let folder = rollups::folder_of(file_path);
            let was_decided = before.as_ref().is_some_and(decided);
            let is_other = before.as_ref().is_none_or(|before| before.outcome != after.outcome);
            if (decided(after) || was_decided) && is_other {
                let one = Followed { id: after.execution, series: (*case, after.browser) };
                if self.ran_after(run, run.lane_id, *case) {
                    followed.push(one);
                } else if self.ran_after(run, lanes::OF_ALL_RUNS, *case) {
                    others.push(one);
                }
            }
            if let Some(before) = before {
                self.folders.count((lanes, day), folder, before.outcome, before.duration_ms, -1);
                self.browsers.count(day, before.browser, before.outcome, -1);
            }
            self.browsers.count(day, after.browser, after.outcome, 1);
            self.folders.count((lanes, day), folder, after.outcome, after.duration_ms, 1);
            for lane in lanes {
                if let Some(before) = before {
                    self.days.count((*lane, day), *case, before.outcome, before.duration_ms, -1);
                }
                self.days.count((*lane, day), *case, after.outcome, after.duration_ms, 1);
                match self.states.get_mut(&(*lane, *case)) {
                    None => self.states.insert((*lane, *case), TestState::first(after)),
                    Some(state) => {
                        if state.apply(before.as_ref(), after) == Applied::NeedsRebuild {
                            rebuild.insert((*lane, *case));
                        }
                    }
                }
            }
        }
        rebuild_histories(session, place, &mut self.states, &rebuild).await?;
        if !others.is_empty() && !baseline::is_default_branch(session, run.project, &run.branch).await? {
            // Runs without an environment are compared with all of their branch.
            let branch = LaneKey::asked(Some(&run.branch), None);
            let lane = lanes::find_lane(session, run.project, &branch).await?;
            others.retain(|one| lane.is_some_and(|lane| self.ran_after(run, lane, one.series.0)));
        }
        followed.append(&mut others);
        let at = (run.order_at, run.id);
        queue_behind(session, (run.project, run.lane_id), at, &followed, now).await
    }

    /// Writes everything.
    pub(crate) async fn write(self, session: &mut Session, project: ProjectId) -> Result<()> {
        rollups::write_states(session, project, &self.states).await?;
        rollups::add_test_days(session, project, self.days).await?;
        rollups::add_folder_days(session, project, self.folders).await?;
        rollups::add_browser_days(session, project, self.browsers).await?;
        Ok(())
    }
}

/// How far apart the last days of tests may lie whose history is read together:
/// one walk over the days serves them all.
const READ_TOGETHER_DAYS: i64 = 28;

/// Reads the recent history of some tests again, those of a lane that ran last
/// at about the same time together.
pub(crate) async fn rebuild_histories(
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
