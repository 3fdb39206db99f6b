//! Whether what a cluster is about has been repaired: judged after every run
//! that had some of its tests.
//!
//! One clean run is no proof. A test that failed with probability r stays clean
//! for m runs by luck with probability (1 − r)^m; over all tests of a cluster
//! the logarithms add up to Λ. At [`QUIET`] the failure has fallen quiet, at
//! [`proof_asked`] it has stopped. A test that the run repeated passed as often
//! as it was repeated. What the run proves is told by its own branch and
//! environment; where the failure was seen in other environments of the branch,
//! every test has to have passed there too.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_domain::attempts::AttemptSet;
use callboard_domain::events::DomainEvent;
use callboard_domain::ids::{ClusterId, ProjectId, RunId, TestCaseId};
use callboard_domain::repair::{Series, evidence, proof_asked};
use callboard_domain::test_state::{RecentOutcome, TestState};
use callboard_domain::time::Timestamp;
use callboard_store::clusters::{self, ClusterRow, ClusterStatus, counts, routes, verify as store};
use callboard_store::db::Session;
use callboard_store::runs::{self, RunRow};
use callboard_store::{StoreError, lanes, outbox, rollups};

use crate::{Context, Result};

/// Clusters judged after one run.
const MOST_CLUSTERS: usize = 500;
/// Tests of a cluster that are looked at; one that affects more is judged by these.
const MOST_TESTS: i64 = 500;
/// Tests of clusters that are judged together.
const TOGETHER: i64 = 2_000;
/// Newest failures of a cluster by which it is told where it fails.
const MOST_FAILURES: i64 = 500;
/// Λ from which a failure has fallen quiet.
const QUIET: f64 = 1.0;

/// What is said of a failure that has stopped.
const STOPPED: &str = "stopped-failing";

/// Judges the open clusters whose tests a final run had. Everything is a
/// function of stored rows, so doing it again changes nothing.
pub(crate) async fn verify(ctx: &Context, project: ProjectId, run: RunId, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().read().await?;
    let Some(run) = runs::get(&mut session, project, run).await? else { return Ok(()) };
    if !run.status.is_final() {
        return Ok(());
    }
    let open = store::open_of_run(&mut session, project, run.id, run.order_at, MOST_CLUSTERS).await?;
    let mut judged = BTreeMap::new();
    let repeated = if open.is_empty() { Repeated::new() } else { repeated_in(&mut session, &run).await? };
    for group in groups(&open) {
        judged.extend(judge(&mut session, &run, group, &repeated).await?);
    }
    drop(session);
    // What others said before, as most clean runs do, needs no transaction. Where a late failure takes it back meanwhile,
    // the next clean run says it again.
    for row in &open {
        if judged.get(&row.id).is_some_and(|verdict| noted(row, &run, *verdict) == *row) {
            judged.remove(&row.id);
        }
    }
    if judged.is_empty() {
        return Ok(());
    }
    let mut session = ctx.store.db().begin().await?;
    routes::keep_shape(&mut session, project).await?;
    let ids = judged.keys().map(|id: &ClusterId| id.get()).collect();
    let (mut changed, mut fixed_before) = (Vec::new(), BTreeSet::new());
    for row in clusters::lock(&mut session, project, ids).await? {
        if is_told(&row) {
            fixed_before.insert(row.id);
        }
        // It may have been seen again meanwhile, or a person was faster.
        if row.status == ClusterStatus::Open && row.last_seen_at < run.order_at {
            changed.extend(Some(noted(&row, &run, judged[&row.id])).filter(|noted| *noted != row));
        }
    }
    let newly_fixed = changed.iter().filter(|row| is_told(row) && !fixed_before.contains(&row.id));
    let events: Vec<DomainEvent> =
        newly_fixed.map(|row| DomainEvent::ClusterVerified { cluster: row.id, run: run.id }).collect();
    counts::write(&mut session, project, &changed, now).await?;
    outbox::append(&mut session, project, &events, now).await?;
    session.commit().await?;
    Ok(())
}

/// What the clean runs since the last occurrence prove.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Verdict {
    lambda: f64,
    /// Every test of the cluster ran at least once.
    is_complete: bool,
}

impl Verdict {
    /// Whether it shows that the failure of a cluster has stopped.
    fn proves(&self, cluster: &ClusterRow) -> bool {
        self.is_complete && self.lambda >= proof_asked(cluster.false_quiets)
    }
}

/// Passes of a test beyond the first, by test case and browser slot.
type Repeated = BTreeMap<(TestCaseId, u8), usize>;

/// Tests that passed in a run each time they were repeated.
async fn repeated_in(session: &mut Session, run: &RunRow) -> Result<Repeated> {
    let mut repeated = Repeated::new();
    for passed in store::passed_with_attempts(session, run.project, run.id).await? {
        let attempts = AttemptSet::from_json(&passed.attempts);
        let attempts = attempts.map_err(|_| StoreError::Damaged("the attempts of an execution"))?;
        let more = attempts.decide().map_or(0, |decision| decision.repetitions.saturating_sub(1));
        if more > 0 {
            let slot = RecentOutcome::slot_of(passed.browser_id);
            repeated.insert((passed.test_case, slot), more);
        }
    }
    Ok(repeated)
}

/// How a test of a cluster did in a lane up to the newest failure of the
/// cluster, and since; `was_here` tells whether that failure was in the lane.
///
/// Of a long history only the newest executions have a time. Behind a failure in
/// the same lane every pass is later all the same; behind one elsewhere only the
/// passes that have a time are known to be.
#[must_use]
pub fn series_since(state: &TestState, cluster: &ClusterRow, was_here: bool) -> Vec<Series> {
    let (at, run) = (cluster.last_seen_at, cluster.last_run);
    let is_all = was_here && !state.knows_before(at, run);
    let since = if is_all { state.recent().len() } else { state.count_after(at, run) };
    Series::from_outcomes(state.recent(), since)
}

/// Clusters in groups of not too many tests; one that affects more of them
/// than are looked at is alone.
fn groups(mut clusters: &[ClusterRow]) -> Vec<&[ClusterRow]> {
    let mut groups = Vec::new();
    while !clusters.is_empty() {
        let mut tests = 0;
        let fits = |cluster: &&ClusterRow| {
            tests += cluster.affected_tests;
            cluster.affected_tests <= MOST_TESTS && tests <= TOGETHER
        };
        let (group, rest) = clusters.split_at(clusters.iter().take_while(fits).count().max(1));
        groups.push(group);
        clusters = rest;
    }
    groups
}

/// Judges some clusters by what their tests did.
async fn judge(
    session: &mut Session,
    run: &RunRow,
    clusters: &[ClusterRow],
    repeated: &Repeated,
) -> Result<Vec<(ClusterId, Verdict)>> {
    let tests = match clusters {
        [cluster] => {
            let tests = store::tests(session, run.project, cluster.id, MOST_TESTS).await?;
            HashMap::from([(cluster.id, tests)])
        }
        _ => {
            let ids = clusters.iter().map(|cluster| cluster.id.get()).collect();
            store::tests_of(session, run.project, ids).await?
        }
    };
    let cases: BTreeSet<i64> = tests.values().flatten().map(|case| case.get()).collect();
    let states = rollups::states_in(session, run.project, run.lane_id, cases.into_iter().collect()).await?;
    let last: BTreeSet<i64> = clusters.iter().map(|cluster| cluster.last_run.get()).collect();
    let last = runs::get_many(session, run.project, last.into_iter().collect()).await?;
    let last_lanes: HashMap<RunId, i64> = last.iter().map(|last| (last.id, last.lane_id)).collect();
    let mut judged = Vec::new();
    for cluster in clusters {
        let tests = tests.get(&cluster.id).map_or(&[][..], Vec::as_slice);
        let last_lane = last_lanes.get(&cluster.last_run).copied();
        let was_here = last_lane == Some(run.lane_id);
        let Some(mut verdict) = verdict(cluster, tests, &states, was_here, repeated) else { continue };
        // Few get as far, so the others cost nothing more.
        if verdict.proves(cluster) && !is_told(cluster) {
            verdict.is_complete = passes_elsewhere(session, run, cluster, last_lane).await?;
        }
        judged.push((cluster.id, verdict));
    }
    Ok(judged)
}

/// Whether every test passed since in every other environment of the branch in
/// which it failed for the cluster.
async fn passes_elsewhere(
    session: &mut Session,
    run: &RunRow,
    cluster: &ClusterRow,
    last_lane: Option<i64>,
) -> Result<bool> {
    let of_branch = lanes::specific(session, run.project, std::slice::from_ref(&run.branch), &[]).await?;
    let mut elsewhere: BTreeMap<(i64, TestCaseId), BTreeSet<u8>> = BTreeMap::new();
    for failed in store::failed_in(session, run.project, cluster.id, MOST_FAILURES).await? {
        if failed.lane != run.lane_id && of_branch.contains(&failed.lane) {
            let slots = elsewhere.entry((failed.lane, failed.test_case)).or_default();
            slots.insert(RecentOutcome::slot_of(failed.browser_id));
        }
    }
    let states = rollups::states_of(session, run.project, &elsewhere.keys().copied().collect()).await?;
    Ok(elsewhere.iter().all(|(key, slots)| {
        let Some(state) = states.get(key) else { return true };
        let mut since = series_since(state, cluster, last_lane == Some(key.0)).into_iter();
        !since.any(|series| series.clean == 0 && slots.contains(&series.browser_slot))
    }))
}

/// Whether it is said already that the failure has stopped.
fn is_told(cluster: &ClusterRow) -> bool {
    cluster.fix_verification.as_deref() == Some(STOPPED)
}

/// What the states of its tests in a lane prove of a cluster; `was_here` tells
/// whether its newest failure was in the lane.
fn verdict(
    cluster: &ClusterRow,
    tests: &[TestCaseId],
    states: &HashMap<TestCaseId, TestState>,
    was_here: bool,
    repeated: &Repeated,
) -> Option<Verdict> {
    let mut lambda = 0.0;
    let mut is_complete = true;
    for case in tests {
        // What never ran on this lane says nothing about it.
        let Some(state) = states.get(case) else { continue };
        let mut all = series_since(state, cluster, was_here);
        for series in all.iter_mut().filter(|series| series.clean > 0) {
            series.clean += repeated.get(&(*case, series.browser_slot)).copied().unwrap_or(0);
        }
        is_complete &= all.iter().all(|series| series.clean > 0 || series.failures == 0);
        lambda += all.iter().map(evidence).sum::<f64>();
    }
    (lambda > 0.0).then_some(Verdict { lambda, is_complete })
}

/// A cluster with the first clean run, and the proof once there is enough of it.
fn noted(row: &ClusterRow, run: &RunRow, verdict: Verdict) -> ClusterRow {
    let mut row = row.clone();
    if row.fix_at.is_none_or(|at| run.order_at < at) {
        row.fix_run = Some(run.id);
        row.fix_at = Some(run.order_at);
        row.fix_commit.clone_from(&run.commit_sha);
    }
    row.is_quiet = verdict.lambda >= QUIET;
    if verdict.proves(&row) {
        row.fix_verification = Some(STOPPED.to_owned());
        row.ttr_ms = row.fix_at.map(|at| (at.millis() - row.first_seen_at.millis()).max(0));
    }
    row
}
