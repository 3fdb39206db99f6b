//! What comes before a run may change after the run was counted: an earlier one
//! arrives late, tells something else, moves or is deleted. The runs behind it
//! are then compared again, so that all stand as if they had come in their order.
//!
//! Invariant: a test is followed to the first run behind that decided it, and
//! from the default branch to the first such run of every other lane. What comes
//! after that run is compared with it, and stays as it is; so does what came so
//! long ago that nobody knows any more what was before it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use callboard_domain::ids::{ExecutionId, ProjectId, RunId};
use callboard_domain::lane::LaneKey;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::executions::ExecutionRow;
use callboard_store::jobs::{self, Payload};
use callboard_store::rollups;
use callboard_store::runs::compared;
use callboard_store::{Store, boxed, lanes};
use serde::{Deserialize, Serialize};

use crate::recompare::comparison::{Series, cases_of};
use crate::recompare::whole_runs::compare_tests;
use crate::transaction::baseline;
use crate::{Context, Result};

/// Runs of a lane that are looked through at a time. The next one mostly has the
/// tests.
const NEXT_RUNS: usize = 20;
/// Runs of all lanes that are looked through at a time.
const PAGE: usize = 50;
/// Tests of one job.
const MOST_TESTS: usize = 2_000;

/// Where a run stands among others: its order key, and the run.
type Place = (Timestamp, RunId);

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
    /// The last run that was looked at for other lanes.
    #[serde(default)]
    after: Option<(i64, RunId)>,
}

impl Payload for CompareBehind {
    const KIND: &'static str = "compare_behind";
}

/// An execution whose test is to be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Followed {
    pub(crate) id: ExecutionId,
    pub(crate) series: Series,
}

impl Followed {
    /// Of what is gone: only what was decided was compared with.
    #[must_use]
    pub fn from_row(row: &ExecutionRow) -> Option<Self> {
        row.outcome.is_decided().then_some(Self { id: row.id, series: (row.test_case, row.browser_id) })
    }
}

/// Queues [`CompareBehind`] in the transaction that changes what executions of a
/// run decided in a lane.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn queue_behind(
    session: &mut Session,
    (project, lane): (ProjectId, i64),
    (order_at, run): Place,
    followed: &[Followed],
    now: Timestamp,
) -> Result<()> {
    for part in followed.chunks(MOST_TESTS) {
        // The same execution may change, or leave a lane, more than once.
        let key = format!("lane:{lane}:behind:{id}:{now}", id = part[0].id.get(), now = now.millis());
        let tests = part.iter().map(|one| one.series).collect();
        let job = CompareBehind { project, lane, order_at: order_at.millis(), run, tests, after: None };
        jobs::enqueue(session, &key, Some(project), &job, now).await?;
    }
    Ok(())
}

/// Compares the runs behind a place again, those of the same lane together, those
/// of others some at a time. `None` when all are.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn compare_behind(ctx: &Context, job: CompareBehind) -> Result<Option<CompareBehind>> {
    let place = lanes::place_of(&mut ctx.store.db().read().await?, job.project, job.lane).await?;
    // A lane that is no more has no runs.
    let Some((branch, environment)) = place else { return Ok(None) };
    if job.after.is_none() {
        job.follow(&ctx.store, job.lane, (&branch, &environment)).await?;
        if !environment.is_empty() {
            // The lane of runs without an environment holds all others of their branch.
            let key = LaneKey::asked(Some(&branch), None);
            let all = lanes::find_lane(&mut ctx.store.db().read().await?, job.project, &key).await?;
            job.follow(&ctx.store, all.unwrap_or(job.lane), (&branch, "")).await?;
        }
    }
    if !baseline::is_default_branch(&mut ctx.store.db().read().await?, job.project, &branch).await? {
        return Ok(None);
    }
    let after = job.follow_elsewhere(&ctx.store).await?;
    Ok(after.map(|(order_at, run)| CompareBehind { after: Some((order_at.millis(), run)), ..job }))
}

impl CompareBehind {
    const fn at(&self) -> Place {
        (Timestamp(self.order_at), self.run)
    }

    /// Follows the tests in a lane, in those of its runs that are on a branch in an
    /// environment.
    async fn follow(&self, store: &Store, lane: i64, place: (&str, &str)) -> Result<()> {
        let mut ways = self.ways(&mut store.db().read().await?, lane, lane).await?;
        let mut asked: HashSet<Series> = ways.iter().map(|way| way.series).collect();
        let mut looked: Option<Place> = None;
        while let Some((after, last)) = left(&mut ways, looked) {
            let mut session = store.db().read().await?;
            let (project, most) = (self.project, limit_of(NEXT_RUNS));
            let runs = compared::of_place_up_to(&mut session, project, place, after, last, most).await?;
            drop(session);
            for run in &runs {
                compare_tests(store, run, &mut asked).await?;
            }
            let Some(last) = runs.last().filter(|_| runs.len() == NEXT_RUNS) else { break };
            looked = Some((last.order_at, last.id));
            ways.retain(|way| asked.contains(&way.series));
        }
        Ok(())
    }

    /// Follows the tests of the default branch in the next runs of other lanes
    /// that may be compared with it; answers the last run when there are more.
    async fn follow_elsewhere(&self, store: &Store) -> Result<Option<Place>> {
        let mut session = store.db().read().await?;
        let mut ways = self.ways(&mut session, self.lane, lanes::OF_ALL_RUNS).await?;
        let looked = self.after.map(|(at, run)| (Timestamp(at), run));
        let Some((after, last)) = left(&mut ways, looked) else { return Ok(None) };
        let runs = compared::up_to(&mut session, self.project, after, last, limit_of(PAGE)).await?;
        drop(session);
        let tests: Vec<Series> = ways.into_iter().map(|way| way.series).collect();
        let mut lanes: HashMap<i64, HashSet<Series>> = HashMap::new();
        for run in runs.iter().filter(|run| run.lane_id != self.lane) {
            let asked = match lanes.entry(run.lane_id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let mut session = store.db().read().await?;
                    new.insert(begun_behind(&mut session, (self.project, run.lane_id), after, &tests).await?)
                }
            };
            compare_tests(store, run, asked).await?;
        }
        Ok(runs.last().filter(|_| runs.len() == PAGE).map(|run| (run.order_at, run.id)))
    }

    /// How far each test has to be followed: up to the next run that decided it in
    /// a lane, or to the last one that had it in another, which holds the lane.
    /// Where the lane ran so often since that not all of that can be told any
    /// more, the way begins where it can.
    async fn ways(&self, session: &mut Session, lane: i64, within: i64) -> Result<Vec<Way>> {
        let cases = cases_of(&self.tests);
        let own = rollups::states_in(session, self.project, lane, cases.clone()).await?;
        let others = match within == lane {
            true => None,
            false => Some(rollups::states_in(session, self.project, within, cases).await?),
        };
        let all = others.as_ref().unwrap_or(&own);
        let ways = self.tests.iter().filter_map(|&series| {
            let (case, browser) = series;
            let (own, last) = (own.get(&case), all.get(&case)?.last_run());
            // The earliest run that can be told is one that may have to be compared.
            let told = own.and_then(|own| own.told_from(browser));
            let told = told.map(|(at, run)| (at, RunId(run.get() - 1)));
            let after = told.map_or(self.at(), |told| told.max(self.at()));
            let next = own.and_then(|own| own.decided_after(browser, self.at()));
            let to = next.map_or(last, |next| next.min(last));
            (after < to).then_some(Way { series, after, to })
        });
        Ok(ways.collect())
    }
}

/// Where a test is looked for.
struct Way {
    series: Series,
    /// Behind this place.
    after: Place,
    /// Up to this one.
    to: Place,
}

/// Keeps the ways that lead further than what was looked at; answers from where to
/// where they lead. `None` when all are at their ends.
fn left(ways: &mut Vec<Way>, looked: Option<Place>) -> Option<(Place, Place)> {
    ways.retain(|way| looked.is_none_or(|looked| way.to > looked));
    let first = ways.iter().map(|way| way.after).min()?;
    let last = ways.iter().map(|way| way.to).max()?;
    Some((looked.map_or(first, |looked| looked.max(first)), last))
}

fn limit_of(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Those of some tests that a lane may have decided for the first time behind a
/// place.
async fn begun_behind(
    session: &mut Session,
    (project, lane): (ProjectId, i64),
    place: Place,
    tests: &[Series],
) -> Result<HashSet<Series>> {
    let known = rollups::predecessors(session, project, lane, cases_of(tests)).await?;
    let begins = |(case, browser): &&Series| {
        known.get(case).is_some_and(|known| known.may_begin_behind(*browser, place))
    };
    Ok(tests.iter().filter(begins).copied().collect())
}
