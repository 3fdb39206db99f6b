//! What comes before a run may change after the run was counted: an earlier one
//! arrives late, tells something else, moves or is deleted. The runs behind it
//! are then compared again, so that all stand as if they had come in their order.
//!
//! Invariant: a test is followed to the first run behind that decided it. What
//! comes after that run is compared with it, and stays as it is.

use std::collections::{BTreeSet, HashSet};

use callboard_domain::ids::{ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::test_state::{ExecutionFlags, RecentOutcome, TestState};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::executions::ExecutionRow;
use callboard_store::executions::counting::{self, ToCount};
use callboard_store::rollups::{self, States};
use callboard_store::runs::{self, RunRow, compared};
use callboard_store::{Store, StoreError, lanes};

use super::changing::decided_elsewhere;
use super::locked::{LockedRun, lanes_of_run};
use super::rollup::compared_with;
use crate::comparison::each_step;
use crate::{QueryError, Result};

/// Runs behind one that are looked through. The next one mostly has its tests.
const MOST_RUNS: i64 = 20;
/// Executions that are compared at a time.
const STEP: i64 = 500;

/// A test in one browser project.
type Series = (TestCaseId, i64);

/// The place of a run among those of its branch and environment.
struct Place {
    project: ProjectId,
    branch: String,
    environment: String,
    /// Its order key, and the run.
    at: (Timestamp, RunId),
}

/// Compares the runs behind a counted one again with what it decided.
pub(super) async fn follow_run(store: &Store, project: ProjectId, run: RunId) -> Result<()> {
    let mut session = store.db().read().await?;
    let Some(run) = runs::get(&mut session, project, run).await? else { return Ok(()) };
    let at = (run.order_at, run.id);
    let place = Place { project, branch: run.branch.clone(), environment: run.environment.clone(), at };
    // Where its lane let go of its numbers, nothing says what came before.
    if place.behind(&mut session, 1).await?.is_empty()
        || !lanes_of_run(&mut session, &run).await?.contains(&run.lane_id)
    {
        return Ok(());
    }
    let mut decided = HashSet::new();
    each_step(&mut session, &run, |row| decided.extend(row.outcome.is_decided().then(|| row.series())))
        .await?;
    drop(session);
    place.follow(store, decided).await
}

/// The same for executions of a run that a lane does not count any more.
pub(crate) async fn follow_gone(
    store: &Store,
    project: ProjectId,
    lane: i64,
    at: (Timestamp, RunId),
    gone: &[ExecutionRow],
) -> Result<()> {
    let place = lanes::place_of(&mut store.db().read().await?, project, lane).await?;
    let Some((branch, environment)) = place else { return Ok(()) };
    let decided = gone.iter().filter(|row| row.outcome.is_decided());
    let decided = decided.map(|row| (row.test_case, row.browser_id)).collect();
    Place { project, branch, environment, at }.follow(store, decided).await
}

impl Place {
    async fn behind(&self, session: &mut Session, most: i64) -> Result<Vec<RunRow>> {
        let place = (self.branch.as_str(), self.environment.as_str());
        Ok(compared::behind(session, self.project, place, self.at, most).await?)
    }

    async fn follow(&self, store: &Store, mut decided: HashSet<Series>) -> Result<()> {
        let behind = self.behind(&mut store.db().read().await?, MOST_RUNS).await?;
        for run in behind {
            if decided.is_empty() {
                break;
            }
            compare_again(store, &run, &mut decided).await?;
        }
        Ok(())
    }
}

/// Compares those executions of a run again whose tests are asked for, and
/// leaves those tests to be asked for that it did not decide.
async fn compare_again(store: &Store, run: &RunRow, asked: &mut HashSet<Series>) -> Result<()> {
    let mut first = 1;
    while first <= run.counted_to {
        let last = run.counted_to.min(first + STEP - 1);
        let mut session = store.db().read().await?;
        let rows = rows_of(&mut session, run, (first, last), asked).await?;
        let differs = !anew(&mut session, run, &rows).await?.is_empty();
        drop(session);
        if differs && !write_anew(store, run, (first, last), asked).await? {
            return Ok(());
        }
        for row in rows.iter().filter(|row| row.outcome.is_decided()) {
            asked.remove(&row.series());
        }
        first = last + 1;
    }
    Ok(())
}

/// Writes how a part of a run compares now, and counts that for the run; of one
/// that goes on its end does. `false` when the run is gone.
async fn write_anew(store: &Store, run: &RunRow, part: (i64, i64), asked: &HashSet<Series>) -> Result<bool> {
    let mut session = store.db().begin().await?;
    let mut locked = match LockedRun::lock(&mut session, run.project, run.id).await {
        Err(QueryError::Store(StoreError::RunGone)) => return Ok(false),
        locked => locked?,
    };
    // They may have changed since they were read.
    let rows = rows_of(&mut session, &locked.run, part, asked).await?;
    let anew = anew(&mut session, &locked.run, &rows).await?;
    counting::set_flags(&mut session, run.project, run.id, &anew).await?;
    if locked.run.status.is_final() {
        locked.compare(&mut session).await?;
    }
    session.commit().await?;
    Ok(true)
}

async fn rows_of(
    session: &mut Session,
    run: &RunRow,
    part: (i64, i64),
    asked: &HashSet<Series>,
) -> Result<Vec<ToCount>> {
    let mut rows = counting::to_count(session, run.project, run.id, part).await?;
    rows.retain(|row| asked.contains(&row.series()));
    Ok(rows)
}

/// What is remarkable about executions of a run, where it is other than what is
/// written of them. Of one that came so long ago that nobody knows any more what
/// was before it, what is written stays.
async fn anew(
    session: &mut Session,
    run: &RunRow,
    rows: &[ToCount],
) -> Result<Vec<(ExecutionId, ExecutionFlags)>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let cases: BTreeSet<i64> = rows.iter().map(|row| row.test_case.get()).collect();
    let states = rollups::states_in(session, run.project, run.lane_id, cases.into_iter().collect()).await?;
    let (mut compared, mut unknown) = (Vec::new(), BTreeSet::new());
    for row in rows {
        let state = states.get(&row.test_case);
        let known = state.and_then(|state| state.decided_before(row.browser_id, run.order_at, run.id));
        if known.is_some() {
            compared.push((row, known));
        } else if state.is_none_or(|state| has_none_before(state, row.browser_id, run)) {
            compared.push((row, None));
            unknown.extend(row.outcome.is_decided().then(|| row.series()));
        }
    }
    let elsewhere = decided_elsewhere(session, run, unknown, &States::default()).await?;
    let changed = compared.into_iter().filter_map(|(row, known)| {
        compared_with(known.or_else(|| elsewhere.get(&row.series()).copied()), row)
    });
    Ok(changed.collect())
}

/// Whether it is certain that a test was not decided in a browser project before
/// a run.
fn has_none_before(state: &TestState, browser: i64, run: &RunRow) -> bool {
    let slot = RecentOutcome::slot_of(browser);
    let mut before = state.before(run.order_at, run.id);
    state.knows_before(run.order_at, run.id)
        && !before.any(|seen| seen.browser_slot == slot && seen.outcome.is_decided())
}
