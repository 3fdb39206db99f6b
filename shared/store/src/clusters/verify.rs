//! What the judgement of repairs reads.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::time::Timestamp;

use super::{ClusterRow, ClusterStatus, read, select_cluster};
use crate::Result;
use crate::db::{Session, args, statements};

statements! {
    /// Tests a run had. PK
    TESTS_OF_RUN = "SELECT test_case_id, outcome FROM executions WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4",
        whole "vv";
    /// Passed executions of a run that have more than one attempt to tell of. PK
    PASSED_WITH_ATTEMPTS = "SELECT test_case_id, browser_id, attempts FROM executions WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4 \
        AND outcome = 7 AND attempts IS NOT NULL";
    /// Clusters that some tests ever counted for. ix: cluster_tests_of_test
    OF_TESTS = "SELECT DISTINCT cluster_id FROM cluster_tests WHERE project_id = $1 AND test_case_id in_ints($2)", whole "v";
    /// Those of some clusters that something counts for. PK
    OCCURRING = select_cluster!("WHERE c.project_id = $1 AND c.id in_ints($2) AND c.occurrences > 0");
    /// Tests of a cluster. PK
    TESTS = "SELECT test_case_id FROM cluster_tests WHERE project_id = $1 AND cluster_id = $2 ORDER BY test_case_id LIMIT $3";
    /// Lanes, tests and browser projects of the newest failures of a cluster. ix: executions_cluster
    FAILED_IN = "SELECT DISTINCT lane_id, test_case_id, browser_id FROM (SELECT lane_id, test_case_id, browser_id FROM executions \
        WHERE project_id = $1 AND cluster_id = $2 AND cluster_id IS NOT NULL ORDER BY day DESC, id DESC LIMIT $3) newest";
    /// Tests of some clusters. PK
    TESTS_OF = "SELECT cluster_id, test_case_id FROM cluster_tests WHERE project_id = $1 AND cluster_id in_ints($2)",
        postgres "SELECT asked.id, t.test_case_id FROM unnest($2::bigint[]) AS asked(id) CROSS JOIN LATERAL \
        (SELECT x.test_case_id FROM cluster_tests x WHERE x.project_id = $1 AND x.cluster_id = asked.id OFFSET 0) AS t";
}

/// Open clusters that were last seen before a run which had tests of theirs:
/// those that the run may show to be repaired. At most `limit`, the newest
/// first.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn open_of_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    order_at: Timestamp,
    limit: usize,
) -> Result<Vec<ClusterRow>> {
    // From the run to its clusters: those that its tests have nothing to do with are never looked at.
    let (low, high) = ExecutionId::range_of(run);
    let rows = session.all(&TESTS_OF_RUN, args![project, run, low, high]).await?;
    let tests = rows.iter().map(|row| row.reader().int()).collect::<Result<BTreeSet<i64>>>()?;
    let rows = session.all(&OF_TESTS, args![project, tests.into_iter().collect::<Vec<i64>>()]).await?;
    let ids = rows.iter().map(|row| row.reader().int()).collect::<Result<Vec<i64>>>()?;
    let rows = session.all(&OCCURRING, args![project, ids]).await?;
    let mut open = rows.iter().map(read).collect::<Result<Vec<ClusterRow>>>()?;
    open.retain(|cluster| cluster.status == ClusterStatus::Open && cluster.last_seen_at < order_at);
    open.sort_unstable_by_key(|cluster| Reverse((cluster.last_seen_at, cluster.id)));
    open.truncate(limit);
    Ok(open)
}

/// Tests of a cluster, `limit` at most.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn tests(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
    limit: i64,
) -> Result<Vec<TestCaseId>> {
    let rows = session.all(&TESTS, args![project, cluster, limit]).await?;
    rows.iter().map(|row| Ok(TestCaseId(row.reader().int()?))).collect()
}

/// A test in a browser project that failed for a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedIn {
    /// The most specific lane of its run.
    pub lane: i64,
    /// Test case.
    pub test_case: TestCaseId,
    /// Browser project within the project.
    pub browser_id: i64,
}

/// Where the newest failures of a cluster were, `limit` of which are looked at.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn failed_in(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
    limit: i64,
) -> Result<Vec<FailedIn>> {
    let rows = session.all(&FAILED_IN, args![project, cluster, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(FailedIn { lane: r.int()?, test_case: TestCaseId(r.int()?), browser_id: r.int()? })
        })
        .collect()
}

/// All tests of some clusters.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn tests_of(
    session: &mut Session,
    project: ProjectId,
    clusters: Vec<i64>,
) -> Result<HashMap<ClusterId, Vec<TestCaseId>>> {
    let mut tests: HashMap<ClusterId, Vec<TestCaseId>> = HashMap::new();
    for row in session.all(&TESTS_OF, args![project, clusters]).await? {
        let mut r = row.reader();
        tests.entry(ClusterId(r.int()?)).or_default().push(TestCaseId(r.int()?));
    }
    Ok(tests)
}

/// A passed execution with its attempts.
#[derive(Debug, Clone)]
pub struct PassedExecution {
    /// Test case.
    pub test_case: TestCaseId,
    /// Browser project within the project.
    pub browser_id: i64,
    /// Its attempts as JSON.
    pub attempts: String,
}

/// Executions of a run that passed at each of several attempts: those whose
/// test was repeated are among them.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn passed_with_attempts(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
) -> Result<Vec<PassedExecution>> {
    let (low, high) = ExecutionId::range_of(run);
    let rows = session.all(&PASSED_WITH_ATTEMPTS, args![project, run, low, high]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(PassedExecution { test_case: TestCaseId(r.int()?), browser_id: r.int()?, attempts: r.text()? })
        })
        .collect()
}
