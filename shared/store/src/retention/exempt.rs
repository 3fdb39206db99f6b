//! What is kept although its time is over, told from a few indexed rows.

use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId};
use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Session, args, statements};

statements! {
    /// The newest green run of a lane. ix: test_runs_green
    LAST_GREEN = "SELECT id FROM test_runs WHERE project_id = $1 AND lane_id = $2 AND is_green = 1 ORDER BY order_at DESC, id DESC LIMIT 1";
    /// How many runs of a project are newer, up to a number. ix: test_runs_by_time
    NEWER = "SELECT COUNT(*) FROM (SELECT 1 FROM test_runs WHERE project_id = $1 AND (order_at, id) > ($2, $3) \
        ORDER BY order_at DESC, id DESC LIMIT $4) newer";
    /// First failures of clusters in a run. cluster_runs PK
    FIRST_FAILURES = "SELECT c.first_execution_id FROM cluster_runs k JOIN failure_clusters c ON c.project_id = k.project_id AND c.id = k.cluster_id \
        WHERE k.project_id = $1 AND k.run_id = $2 AND c.first_run_id = $2 AND c.status <> 'merged'";
    /// Open clusters of a run. cluster_runs PK
    OPEN_CLUSTERS = "SELECT c.id FROM cluster_runs k JOIN failure_clusters c ON c.project_id = k.project_id AND c.id = k.cluster_id \
        WHERE k.project_id = $1 AND k.run_id = $2 AND c.status = 'open'";
    /// The newest failures of a cluster. ix: executions_cluster
    SAMPLES = "SELECT id FROM executions WHERE project_id = $1 AND cluster_id = $2 AND cluster_id IS NOT NULL ORDER BY day DESC, id DESC LIMIT $3";
}

/// The newest green run of a lane.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn last_green(session: &mut Session, project: ProjectId, lane: i64) -> Result<Option<RunId>> {
    let row = session.first(&LAST_GREEN, args![project, lane]).await?;
    row.map(|row| row.reader().int().map(RunId)).transpose()
}

/// Whether a run is among the `count` newest of its project.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn is_among_newest(
    session: &mut Session,
    project: ProjectId,
    (order_at, run): (Timestamp, RunId),
    count: i64,
) -> Result<bool> {
    if count == 0 {
        return Ok(false);
    }
    let row = session.one(&NEWER, args![project, order_at, run, count]).await?;
    Ok(row.reader().int()? < count)
}

/// The executions of a run in which clusters were first seen.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn first_failures(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
) -> Result<Vec<ExecutionId>> {
    let rows = session.all(&FIRST_FAILURES, args![project, run]).await?;
    rows.iter().map(|row| row.reader().int().map(ExecutionId)).collect()
}

/// Those executions of a run that are among the `count` newest failures of an
/// open cluster.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn samples(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    count: i64,
) -> Result<Vec<ExecutionId>> {
    let mut found = Vec::new();
    if count == 0 {
        return Ok(found);
    }
    for row in session.all(&OPEN_CLUSTERS, args![project, run]).await? {
        let cluster = ClusterId(row.reader().int()?);
        for row in session.all(&SAMPLES, args![project, cluster, count]).await? {
            let execution = ExecutionId(row.reader().int()?);
            if execution.run() == run {
                found.push(execution);
            }
        }
    }
    Ok(found)
}
