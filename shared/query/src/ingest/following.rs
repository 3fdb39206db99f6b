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
use callboard_store::jobs::{self, Payload};
use callboard_store::rollups::{self, States};
use callboard_store::runs::{RunRow, compared};
use callboard_store::{Store, StoreError, lanes};
use serde::{Deserialize, Serialize};

use super::changing::decided_elsewhere;
use super::locked::LockedRun;
use super::rollup::compared_with;
use crate::{Context, QueryError, Result};

/// Runs behind one that are looked through. The next one mostly has its tests.
const MOST_RUNS: i64 = 20;
/// Executions that are compared at a time.
const STEP: i64 = 500;
/// Tests of one job.
const MOST_TESTS: usize = 2_000;

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

/// What tests of a lane decided at the place of a run has changed: the runs
/// behind it are compared again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CompareBehind {
    project: ProjectId,
    lane: i64,
    /// Order key of the run, ms.
    order_at: i64,
    run: RunId,
    tests: Vec<Series>,
}

impl Payload for CompareBehind {
    const KIND: &'static str = "compare_behind";
}

/// An execution whose test is to be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Followed {
    pub(crate) id: ExecutionId,
    pub(crate) series: Series,
}

impl Followed {
    /// Of what is gone: only what was decided was compared with.
    pub(crate) fn of(row: &ExecutionRow) -> Option<Self> {
        row.outcome.is_decided().then_some(Self { id: row.id, series: (row.test_case, row.browser_id) })
    }
}

/// Queues [`CompareBehind`] in the transaction that changes what executions of a
/// run decided in a lane.
pub(crate) async fn queue_behind(
    session: &mut Session,
    (project, lane): (ProjectId, i64),
    (order_at, run): (Timestamp, RunId),
    followed: &[Followed],
    now: Timestamp,
) -> Result<()> {
    for part in followed.chunks(MOST_TESTS) {
        // The same execution may change, or leave a lane, more than once.
        let key = format!("lane:{lane}:behind:{id}:{now}", id = part[0].id.get(), now = now.millis());
        let tests = part.iter().map(|one| one.series).collect();
        let job = CompareBehind { project, lane, order_at: order_at.millis(), run, tests };
        jobs::enqueue(session, &key, Some(project), &job, now).await?;
    }
    Ok(())
}

/// Compares the runs behind a place again.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn compare_behind(ctx: &Context, job: CompareBehind) -> Result<()> {
    let CompareBehind { project, lane, order_at, run, tests } = job;
    let place = lanes::place_of(&mut ctx.store.db().read().await?, project, lane).await?;
    // A lane that is no more has no runs.
    let Some((branch, environment)) = place else { return Ok(()) };
    let at = (Timestamp(order_at), run);
    Place { project, branch, environment, at }.follow(&ctx.store, tests.into_iter().collect()).await
}

impl Place {
    async fn follow(&self, store: &Store, mut asked: HashSet<Series>) -> Result<()> {
        let place = (self.branch.as_str(), self.environment.as_str());
        let mut session = store.db().read().await?;
        let behind = compared::behind(&mut session, self.project, place, self.at, MOST_RUNS).await?;
        drop(session);
        for run in behind {
            if asked.is_empty() {
                break;
            }
            compare_again(store, &run, &mut asked).await?;
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
