//! How many flaky tests each of several projects has: as many statements for
//! one project as for a page of them.

use std::collections::{BTreeSet, HashMap};

use callboard_auth::scope::Authorized;
use callboard_domain::flakiness::{DEFAULT_WINDOW, assess};
use callboard_domain::ids::ProjectId;
use callboard_store::boxed;
use callboard_store::db::Session;
use callboard_store::lanes;
use callboard_store::rollups::scores::{self, FlakyLane};

use super::{ENOUGH_RUNS, JudgedLane, LEAST_COUNTED, MOST_COUNTED, is_listed, settings, speaking_branch};
use crate::test_cases::LaneQuery;
use crate::{Context, Result};

/// How many tests of some projects are flaky with a probability of nine in
/// ten; projects without any are left out.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn counts(ctx: &Context, projects: &[Authorized<ProjectId>]) -> Result<HashMap<ProjectId, i64>> {
    let ids: Vec<ProjectId> = projects.iter().map(|project| project.get()).collect();
    // Nobody waits for a list of projects until the last run is counted.
    let mut session = ctx.store.db().read().await?;
    counts_in(&mut session, &ids, &LaneQuery::default()).await
}

/// The same in one lane of each project.
pub(crate) async fn counts_in(
    session: &mut Session,
    projects: &[ProjectId],
    lane: &LaneQuery,
) -> Result<HashMap<ProjectId, i64>> {
    let ids = projects.iter().map(|project| project.get()).collect();
    let flaky: Vec<ProjectId> = scores::with_flaky(session, ids, LEAST_COUNTED).await?.into_iter().collect();
    if flaky.is_empty() {
        return Ok(HashMap::new());
    }
    let mut counted = of_judged_lanes(session, &flaky, lane, (LEAST_COUNTED, MOST_COUNTED)).await?;
    recount_by_runs(session, &flaky, &mut counted).await?;
    leave_out_broken(session, &mut counted).await?;
    let tests = counted.into_iter().map(|(project, Counted { tests, .. })| (project, tests));
    Ok(tests.filter(|(_, tests)| *tests > 0).collect())
}

/// The flaky tests of a project in the lane that speaks for what is asked.
struct Counted {
    lane: JudgedLane,
    tests: i64,
    /// Whether each of them was judged, and not only its stored score read.
    is_judged: bool,
}

/// The lane each of some projects is judged by, where there is one with a test of
/// at least a stored score.
pub(super) async fn judged_lanes(
    session: &mut Session,
    projects: &[ProjectId],
    asked: &LaneQuery,
    least: i64,
) -> Result<HashMap<ProjectId, JudgedLane>> {
    let ids = projects.iter().map(|project| project.get()).collect();
    let flaky: Vec<ProjectId> = scores::with_flaky(session, ids, least).await?.into_iter().collect();
    if flaky.is_empty() {
        return Ok(HashMap::new());
    }
    let lanes = of_judged_lanes(session, &flaky, asked, (least, 1)).await?;
    let lanes = lanes.into_iter().filter(|(_, of_project)| of_project.tests > 0);
    Ok(lanes.map(|(project, Counted { lane, .. })| (project, lane)).collect())
}

/// By the stored scores: tests with at least one, up to a number of them.
async fn of_judged_lanes(
    session: &mut Session,
    projects: &[ProjectId],
    asked: &LaneQuery,
    (least, most): (i64, i64),
) -> Result<HashMap<ProjectId, Counted>> {
    let environment = asked.environment.as_deref();
    let ids = || projects.iter().map(|project| project.get()).collect::<Vec<i64>>();
    let speaking: HashMap<ProjectId, String> = match &asked.branch {
        Some(branch) => projects.iter().map(|project| (*project, branch.clone())).collect(),
        None => {
            let told = lanes::speaking(session, ids(), environment, ENOUGH_RUNS).await?;
            told.into_iter().filter_map(|(project, told)| Some((project, speaking_branch(told)?))).collect()
        }
    };
    let branches: BTreeSet<String> = speaking.values().cloned().collect();
    let branches = branches.into_iter().collect();
    let lanes = scores::count_flaky_in(session, ids(), branches, environment, least, most).await?;
    let mut counted = HashMap::new();
    for FlakyLane { project, lane, branch, tests } in lanes {
        let lane = JudgedLane { id: lane, believes_failures: branch.is_some() };
        if branch.is_none() {
            // The lane of all branches stands in where the one that speaks has none.
            if asked.branch.is_none() {
                counted.entry(project).or_insert(Counted { lane, tests, is_judged: false });
            }
        } else if branch.as_ref() == speaking.get(&project) {
            counted.insert(project, Counted { lane, tests, is_judged: false });
        }
    }
    Ok(counted)
}

/// Tests that are broken are not flaky, whatever their score. Those are judged
/// that passed no more when they ran last: one that is broken in a browser
/// project which that run left out is counted.
async fn leave_out_broken(session: &mut Session, counted: &mut HashMap<ProjectId, Counted>) -> Result<()> {
    // Where more are flaky than are counted, some that are broken make no difference.
    let counts = |of_project: &Counted| of_project.tests > 0 && of_project.tests < MOST_COUNTED;
    let by_score = counted.iter().filter(|(_, of_project)| !of_project.is_judged && counts(of_project));
    let places: (Vec<i64>, Vec<i64>) =
        by_score.map(|(project, of_project)| (project.get(), of_project.lane.id)).unzip();
    if places.0.is_empty() {
        return Ok(());
    }
    for (project, lane, row) in scores::unwell_flaky_in(session, places, LEAST_COUNTED).await? {
        let Some(of_project) = counted.get_mut(&project).filter(|of_project| of_project.lane.id == lane)
        else {
            continue;
        };
        let found = assess(row.state.recent(), of_project.lane.window(DEFAULT_WINDOW));
        of_project.tests -= i64::from(!found.is_some_and(|found| is_listed(&found, LEAST_COUNTED, 0)));
    }
    Ok(())
}

/// Counts again where a test has to have run several times before it is called
/// flaky: how often it ran is not among what is stored to be counted.
async fn recount_by_runs(
    session: &mut Session,
    projects: &[ProjectId],
    counted: &mut HashMap<ProjectId, Counted>,
) -> Result<()> {
    let (mut min_runs, mut places) = (HashMap::new(), (Vec::new(), Vec::new()));
    for (project, settings) in settings::effective_of(session, projects).await? {
        if let Some(of_project) = counted.get_mut(&project).filter(|_| settings.min_runs > 1) {
            (of_project.tests, of_project.is_judged) = (0, true);
            places.0.push(project.get());
            places.1.push(of_project.lane.id);
            min_runs.insert(project, settings.min_runs);
        }
    }
    if min_runs.is_empty() {
        return Ok(());
    }
    for (project, lane, row) in scores::flaky_in(session, places, LEAST_COUNTED).await? {
        let of_project = counted.get_mut(&project).filter(|of_project| of_project.lane.id == lane);
        let (Some(Counted { lane, tests, .. }), Some(min_runs)) = (of_project, min_runs.get(&project)) else {
            continue;
        };
        let found = assess(row.state.recent(), lane.window(DEFAULT_WINDOW));
        let counts = found.is_some_and(|found| is_listed(&found, LEAST_COUNTED, *min_runs));
        *tests = (*tests + i64::from(counts)).min(MOST_COUNTED);
    }
    Ok(())
}
