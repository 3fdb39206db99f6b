//! What is asked about one cluster, about one test and about one run.

use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::time::{Day, Timestamp};

use crate::Result;
use crate::db::{Backend, Filter, Session, args, statements};
use crate::executions::{ExecutionRow, read_occurrence};

/// A worker of a run: its parallel slot, which stays the same when Playwright
/// replaces a process after a failure, on its shard; no number where none is
/// known.
macro_rules! worker {
    () => {
        "CASE WHEN COALESCE(parallel_index, worker_index) >= 0 \
         THEN COALESCE(shard_index, 0) * 1000000 + COALESCE(parallel_index, worker_index) END"
    };
}

statements! {
    /// The newest days of a cluster. PK
    DAYS = "SELECT day, n FROM cluster_daily WHERE project_id = $1 AND cluster_id = $2 ORDER BY day DESC LIMIT $3";
    /// Tests of a cluster by id. PK
    TESTS = "SELECT t.test_case_id, c.title, c.file_path, COALESCE(c.owner, c.code_owner), t.n, t.first_at, t.last_at, t.last_execution_id FROM cluster_tests t \
        JOIN test_cases c ON c.project_id = t.project_id AND c.id = t.test_case_id \
        WHERE t.project_id = $1 AND t.cluster_id = $2 AND t.test_case_id > $3 ORDER BY t.test_case_id LIMIT $4";
    /// Tests of a cluster that fail most. PK, bounded by the tests of the cluster
    MOST_AFFECTED = "SELECT t.test_case_id, c.title, c.file_path, COALESCE(c.owner, c.code_owner), t.n, t.first_at, t.last_at, t.last_execution_id FROM cluster_tests t \
        JOIN test_cases c ON c.project_id = t.project_id AND c.id = t.test_case_id \
        WHERE t.project_id = $1 AND t.cluster_id = $2 ORDER BY t.n DESC, t.test_case_id LIMIT $3";
    /// Where a cluster was seen last. ix: executions_cluster
    SIGHTINGS = "SELECT id, run_id, test_case_id, day, lane_id, browser_id, line FROM executions \
        WHERE project_id = $1 AND cluster_id = $2 AND cluster_id IS NOT NULL ORDER BY day DESC, id DESC LIMIT $3";
    /// Whether a test failed for a cluster. PK
    HAS_TEST = "SELECT n FROM cluster_tests WHERE project_id = $1 AND cluster_id = $2 AND test_case_id = $3";
    /// Which of some tests failed for which of some clusters. PK
    TESTS_AMONG = "SELECT cluster_id, test_case_id FROM cluster_tests WHERE project_id = $1 AND cluster_id in_ints($2) \
        AND test_case_id in_ints($3)";
    /// Clusters of a test, the newest first. ix: cluster_tests_of_test
    OF_TEST = "SELECT cluster_id, n FROM cluster_tests WHERE project_id = $1 AND test_case_id = $2 ORDER BY last_at DESC, cluster_id DESC LIMIT $3";
    /// Branches of the newest runs that show a cluster, also of runs that retention deleted. ix: cluster_runs_of_cluster, PK
    BRANCHES = "SELECT branch FROM (SELECT branch, id FROM (SELECT r.branch, r.id FROM cluster_runs k JOIN test_runs r \
        ON r.project_id = k.project_id AND r.id = k.run_id WHERE k.project_id = $1 AND k.cluster_id = $2 ORDER BY k.run_id DESC LIMIT 100) kept \
        UNION ALL SELECT branch, last_run_id FROM expired_cluster_branches WHERE project_id = $1 AND cluster_id = $2) newest \
        WHERE branch <> '' GROUP BY branch ORDER BY MAX(id) DESC LIMIT $3";
    /// The first run after a moment that shows a cluster; the day narrows it down. ix: executions_cluster
    FIRST_AFTER = "SELECT r.id, r.order_at FROM executions e JOIN test_runs r ON r.project_id = e.project_id AND r.id = e.run_id \
        WHERE e.project_id = $1 AND e.cluster_id = $2 AND e.cluster_id IS NOT NULL AND e.day >= $3 AND r.order_at > $4 \
        ORDER BY e.day, e.id LIMIT 1";
    /// Clusters of a run that fail most. PK, bounded by the clusters of the run
    OF_RUN = "SELECT cluster_id, n, flaky_n FROM cluster_runs WHERE project_id = $1 AND run_id = $2 AND (n < $3 OR (n = $3 AND cluster_id > $4)) \
        ORDER BY n DESC, cluster_id LIMIT $5";
    /// How many clusters a run has, and how often flaky tests are seen in them. PK
    SUMS_OF_RUN = "SELECT COUNT(*), CAST(COALESCE(SUM(flaky_n), 0) AS BIGINT) FROM cluster_runs WHERE project_id = $1 AND run_id = $2";
    /// How often a cluster is seen in a run. PK
    IN_RUN = "SELECT n FROM cluster_runs WHERE project_id = $1 AND run_id = $2 AND cluster_id = $3";
    /// Clusters that a run is the first to show. PK, bounded by the clusters of the run
    NEW_OF_RUN = "SELECT k.cluster_id FROM cluster_runs k JOIN failure_clusters c ON c.project_id = k.project_id AND c.id = k.cluster_id \
        WHERE k.project_id = $1 AND k.run_id = $2 AND c.first_run_id = $2 ORDER BY k.n DESC, k.cluster_id LIMIT $3";
    /// Clusters of some projects that were resolved between two moments. ix: failure_clusters_by_count
    COUNT_RESOLVED = "SELECT COUNT(*) FROM failure_clusters WHERE project_id in_ints($1) AND status = 'resolved' AND status_at >= $2 AND status_at < $3";
    /// Failing and flaky executions of a run without a cluster. ix: executions_rank
    COUNT_UNCLUSTERED = "SELECT COUNT(*) FROM executions WHERE project_id = $1 AND rank in_ints($2) AND rank < 6 AND id > $3 AND id <= $4 \
        AND cluster_id IS NULL";
    /// The workers on which the executions of some clusters of a run failed. ix: executions_cluster
    WORKERS_OF_CLUSTERS = concat!("SELECT cluster_id, ", worker!(), ", COUNT(*) FROM executions WHERE project_id = $1 AND cluster_id in_ints($2) \
        AND day = $3 AND id > $4 AND id <= $5 AND cluster_id IS NOT NULL GROUP BY cluster_id, ", worker!());
    /// How many tests each worker of a run had. Bounded by the run
    WORKERS_OF_RUN = concat!("SELECT ", worker!(), ", COUNT(*) FROM executions WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4 \
        AND COALESCE(parallel_index, worker_index) >= 0 GROUP BY ", worker!());
}

/// The days on which a cluster was seen, oldest first, at most `limit`.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn days(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
    limit: i64,
) -> Result<Vec<(Day, i64)>> {
    let rows = session.all(&DAYS, args![project, cluster, limit]).await?;
    let days = rows.iter().rev().map(|row| {
        let mut r = row.reader();
        Ok((Day(r.int()?), r.int()?))
    });
    days.collect()
}

/// A test that fails for a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AffectedTest {
    /// Test.
    pub test_case: TestCaseId,
    /// Title.
    pub title: String,
    /// Its file.
    pub file_path: String,
    /// Its owner.
    pub owner: Option<String>,
    /// How often it failed so.
    pub occurrences: i64,
    /// Start of the first run in which it did.
    pub first_at: Timestamp,
    /// Start of the last one.
    pub last_at: Timestamp,
    /// The execution there.
    pub last_execution: ExecutionId,
}

/// In which order the tests of a cluster are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestsOrder {
    /// By id, behind this one.
    IdAfter(i64),
    /// Those that failed most first.
    MostAffected,
}

/// Tests that fail for a cluster.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn tests(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
    order: TestsOrder,
    limit: i64,
) -> Result<Vec<AffectedTest>> {
    let rows = match order {
        TestsOrder::IdAfter(id) => session.all(&TESTS, args![project, cluster, id, limit]).await?,
        TestsOrder::MostAffected => session.all(&MOST_AFFECTED, args![project, cluster, limit]).await?,
    };
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(AffectedTest {
                test_case: TestCaseId(r.int()?),
                title: r.text()?,
                file_path: r.text()?,
                owner: r.opt_text()?,
                occurrences: r.int()?,
                first_at: r.time()?,
                last_at: r.time()?,
                last_execution: ExecutionId(r.int()?),
            })
        })
        .collect()
}

/// Whether a test failed for a cluster.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn of_cluster(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
    test_case: TestCaseId,
) -> Result<bool> {
    Ok(session.first(&HAS_TEST, args![project, cluster, test_case]).await?.is_some())
}

/// Which of some tests failed for which of some clusters.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn tests_among(
    session: &mut Session,
    project: ProjectId,
    clusters: Vec<i64>,
    tests: Vec<i64>,
) -> Result<Vec<(ClusterId, TestCaseId)>> {
    let rows = session.all(&TESTS_AMONG, args![project, clusters, tests]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ClusterId(r.int()?), TestCaseId(r.int()?)))
        })
        .collect()
}

/// Clusters a test failed for, the newest first, each with how often it did.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn of_test(
    session: &mut Session,
    project: ProjectId,
    test_case: TestCaseId,
    limit: i64,
) -> Result<Vec<(ClusterId, i64)>> {
    let rows = session.all(&OF_TEST, args![project, test_case, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ClusterId(r.int()?), r.int()?))
        })
        .collect()
}

/// Branches on which a cluster was seen of late, newest first.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn branches(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
    limit: i64,
) -> Result<Vec<String>> {
    let rows = session.all(&BRANCHES, args![project, cluster, limit]).await?;
    rows.iter().map(|row| row.reader().text()).collect()
}

/// The first run that shows a cluster and began after a moment, with its
/// beginning.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn first_after(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
    moment: Timestamp,
) -> Result<Option<(RunId, Timestamp)>> {
    let found = session.first(&FIRST_AFTER, args![project, cluster, moment.day(), moment]).await?;
    found
        .map(|row| {
            let mut r = row.reader();
            Ok((RunId(r.int()?), r.time()?))
        })
        .transpose()
}

/// A cluster in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterInRun {
    /// Cluster.
    pub cluster: ClusterId,
    /// Executions of the run that count for it.
    pub n: i64,
    /// Those of them that passed in the end.
    pub flaky: i64,
}

/// What the clusters of a run come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterSums {
    /// Clusters.
    pub clusters: i64,
    /// Failures of flaky tests in them.
    pub flaky: i64,
}

/// What the clusters of a run come to.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn sums_of_run(session: &mut Session, project: ProjectId, run: RunId) -> Result<ClusterSums> {
    let row = session.one(&SUMS_OF_RUN, args![project, run]).await?;
    let mut r = row.reader();
    Ok(ClusterSums { clusters: r.int()?, flaky: r.int()? })
}

/// Clusters of a run, the largest first. `after` is size and id of the last
/// one of the page before.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn of_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    after: Option<(i64, i64)>,
    limit: i64,
) -> Result<Vec<ClusterInRun>> {
    let (n, id) = after.unwrap_or((i64::from(i32::MAX), 0));
    let rows = session.all(&OF_RUN, args![project, run, n, id, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(ClusterInRun { cluster: ClusterId(r.int()?), n: r.int()?, flaky: r.int()? })
        })
        .collect()
}

/// How many executions of a run count for a cluster.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn in_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    cluster: ClusterId,
) -> Result<i64> {
    let row = session.first(&IN_RUN, args![project, run, cluster]).await?;
    row.map_or(Ok(0), |row| row.reader().int())
}

/// Clusters that a run was the first to show, the largest first.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn new_of_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    limit: i64,
) -> Result<Vec<ClusterId>> {
    let rows = session.all(&NEW_OF_RUN, args![project, run, limit]).await?;
    rows.iter().map(|row| row.reader().int().map(ClusterId)).collect()
}

/// How many clusters of some projects were resolved between two moments, the later
/// one excluded, and still are.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn count_resolved(
    session: &mut Session,
    projects: Vec<i64>,
    since: Timestamp,
    until: Timestamp,
) -> Result<i64> {
    session.one(&COUNT_RESOLVED, args![projects, since, until]).await?.reader().int()
}

/// How many failing executions of a run have no cluster.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn unclustered(session: &mut Session, project: ProjectId, run: RunId) -> Result<i64> {
    let (low, high) = ExecutionId::range_of(run);
    session.one(&COUNT_UNCLUSTERED, args![project, vec![1_i64], low, high]).await?.reader().int()
}

/// On which workers the executions of some clusters of a run failed, and how
/// often: cluster, worker, count.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn workers_of_clusters(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    day: Day,
    clusters: Vec<i64>,
) -> Result<Vec<(ClusterId, Option<i64>, i64)>> {
    let (low, high) = ExecutionId::range_of(run);
    let rows = session.all(&WORKERS_OF_CLUSTERS, args![project, clusters, day, low, high]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ClusterId(r.int()?), r.opt_int()?, r.int()?))
        })
        .collect()
}

/// How many executions each worker of a run had.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn workers_of_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
) -> Result<Vec<(i64, i64)>> {
    let (low, high) = ExecutionId::range_of(run);
    let rows = session.all(&WORKERS_OF_RUN, args![project, run, low, high]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((r.int()?, r.int()?))
        })
        .collect()
}

/// Which occurrences of a cluster are asked for.
#[derive(Debug, Clone, Default)]
pub struct OccurrenceFilter {
    /// Only runs of these branches.
    pub branches: Option<Vec<String>>,
    /// Only runs of these environments.
    pub environments: Option<Vec<String>>,
    /// Only runs that started at this moment or later.
    pub from: Option<Timestamp>,
    /// Only runs that started at this moment or earlier.
    pub to: Option<Timestamp>,
    /// Only this run, with the day it counts on.
    pub run: Option<(RunId, Day)>,
    /// Key of the last row of the page before: day and id.
    pub after: Option<(i64, i64)>,
}

/// Where and when a test failed for a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Sighting {
    /// The execution.
    pub execution: ExecutionId,
    /// Its run.
    pub run: RunId,
    /// Its test case.
    pub test_case: TestCaseId,
    /// The day its run counts for.
    pub day: Day,
    /// The most specific lane of its run.
    pub lane_id: i64,
    /// Its browser project.
    pub browser_id: i64,
    /// Line of the test.
    pub line: Option<i64>,
}

/// The newest executions that count for a cluster, at most `limit`, without
/// what explains them.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn sightings(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
    limit: i64,
) -> Result<Vec<Sighting>> {
    let rows = session.all(&SIGHTINGS, args![project, cluster, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(Sighting {
                execution: ExecutionId(r.int()?),
                run: RunId(r.int()?),
                test_case: TestCaseId(r.int()?),
                day: Day(r.int()?),
                lane_id: r.int()?,
                browser_id: r.int()?,
                line: r.opt_int()?,
            })
        })
        .collect()
}

/// Executions that count for a cluster, the newest first.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn occurrences(
    session: &mut Session,
    project: ProjectId,
    cluster: Option<ClusterId>,
    wanted: &OccurrenceFilter,
    limit: i64,
) -> Result<Vec<ExecutionRow>> {
    let filter = occurrence_filter(session.backend(), project, cluster, wanted, limit);
    session.list(filter).await?.iter().map(read_occurrence).collect()
}

fn occurrence_filter(
    backend: Backend,
    project: ProjectId,
    cluster: Option<ClusterId>,
    wanted: &OccurrenceFilter,
    limit: i64,
) -> Filter {
    let filter = match cluster {
        Some(cluster) => Filter::new(backend, crate::executions::OCCURRENCES, args![project, cluster]),
        // ix: executions_rank
        None => Filter::new(backend, crate::executions::UNCLUSTERED, args![project]),
    };
    let filter = filter
        .and_if("r.branch in_texts(?)", wanted.branches.clone())
        .and_if("r.environment in_texts(?)", wanted.environments.clone())
        .and_if("e.day >= ?", wanted.from.map(|from| from.day().0))
        .and_if("e.day <= ?", wanted.to.map(|to| to.day().0))
        .and_if("r.order_at >= ?", wanted.from)
        .and_if("r.order_at <= ?", wanted.to);
    let filter = match wanted.run {
        Some((run, day)) => {
            let (low, high) = ExecutionId::range_of(run);
            filter.and("e.day = ? AND e.id > ? AND e.id <= ?", args![day, low, high])
        }
        None => filter,
    };
    let filter = match wanted.after {
        Some((day, id)) => filter.and("(e.day, e.id) < (?, ?)", args![day, id]),
        None => filter,
    };
    filter.end("ORDER BY e.day DESC, e.id DESC LIMIT ?", args![limit])
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let all = OccurrenceFilter {
        branches: Some(Vec::new()),
        environments: Some(Vec::new()),
        from: Some(Timestamp(0)),
        to: Some(Timestamp(0)),
        run: Some((RunId(1), Day(0))),
        after: Some((0, 0)),
    };
    let mut shapes = Vec::new();
    for wanted in [OccurrenceFilter::default(), all] {
        for cluster in [Some(ClusterId(1)), None] {
            shapes.push(occurrence_filter(backend, ProjectId(1), cluster, &wanted, 1));
        }
    }
    shapes
}
