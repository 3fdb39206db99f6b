//! What the judgement of repairs reads.

use callboard_domain::ids::{ClusterId, ProjectId, RunId, TestCaseId};
use callboard_domain::time::Timestamp;

use super::{ClusterRow, read, select_cluster};
use crate::Result;
use crate::db::{Session, args, statements};

statements! {
    /// Clusters that wait for a repair and whose tests a run had. ix: cluster_tests_of_test
    OPEN_OF_RUN = select_cluster!("WHERE c.project_id = $1 AND c.status = 'open' AND c.occurrences > 0 AND c.last_seen_at < $5 \
        AND EXISTS (SELECT 1 FROM cluster_tests t WHERE t.project_id = $1 AND t.cluster_id = c.id AND EXISTS \
        (SELECT 1 FROM executions e WHERE e.project_id = $1 AND e.day = $2 AND e.test_case_id = t.test_case_id AND e.run_id = $3)) \
        ORDER BY c.last_seen_at DESC, c.id DESC LIMIT $4");
    /// Tests of a cluster. PK
    TESTS = "SELECT test_case_id, last_at FROM cluster_tests WHERE project_id = $1 AND cluster_id = $2 ORDER BY test_case_id LIMIT $3";
}

/// Open clusters that were last seen before a run which had tests of theirs:
/// those that the run may show to be repaired. At most `limit`, the newest
/// first.
///
/// # Errors
/// [`crate::StoreError::Database`] when the database refuses.
pub async fn open_of_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    order_at: Timestamp,
    limit: i64,
) -> Result<Vec<ClusterRow>> {
    let rows = session.all(&OPEN_OF_RUN, args![project, order_at.day(), run, limit, order_at]).await?;
    rows.iter().map(read).collect()
}

/// Tests of a cluster with the start of the last run in which each failed.
///
/// # Errors
/// [`crate::StoreError::Database`] when the database refuses.
pub async fn tests(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
    limit: i64,
) -> Result<Vec<(TestCaseId, Timestamp)>> {
    let rows = session.all(&TESTS, args![project, cluster, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((TestCaseId(r.int()?), r.time()?))
        })
        .collect()
}
