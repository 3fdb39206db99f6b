//! Runs with executions that wait to be counted in the states and days of
//! their tests.

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;

use super::row::{RunRow, read, select_run};
use crate::Result;
use crate::db::{Session, args, statements};

statements! {
    /// Whether executions of runs that are over wait in a project. ix: test_runs_uncounted
    IS_WAITING = "SELECT 1 FROM test_runs WHERE project_id = $1 AND uncounted_since IS NOT NULL \
        AND status NOT IN ('initializing', 'running', 'finalizing') LIMIT 1";
    /// Projects in which executions of runs that are over wait. ix: test_runs_uncounted
    WAITING_PROJECTS = "SELECT DISTINCT project_id FROM test_runs WHERE uncounted_since IS NOT NULL \
        AND status NOT IN ('initializing', 'running', 'finalizing')";
    /// Projects in which executions have waited since a moment. ix: test_runs_uncounted
    WAITING_SINCE = "SELECT DISTINCT project_id FROM test_runs WHERE uncounted_since IS NOT NULL AND uncounted_since <= $1";
    /// How many executions of runs that are over wait in a project. ix: test_runs_uncounted
    WAITING_EXECUTIONS = "SELECT CAST(COALESCE(SUM(next_ordinal - 1 - counted_to), 0) AS BIGINT) FROM test_runs \
        WHERE project_id = $1 AND uncounted_since IS NOT NULL AND status NOT IN ('initializing', 'running', 'finalizing')";
    /// Runs with executions that wait, locked in the order of their ids. ix: test_runs_uncounted
    LOCK_WAITING = select_run!("WHERE project_id = $1 AND uncounted_since IS NOT NULL ORDER BY id LIMIT $2 for_update()");
    /// Of those, the ones that are over. ix: test_runs_uncounted
    LOCK_WAITING_OVER = select_run!("WHERE project_id = $1 AND uncounted_since IS NOT NULL \
        AND status NOT IN ('initializing', 'running', 'finalizing') ORDER BY id LIMIT $2 for_update()");
    /// How far the executions of a run are counted.
    SET_COUNTED = "UPDATE test_runs SET counted_to = $3, uncounted_since = $4 WHERE project_id = $1 AND id = $2";
}

/// Which runs are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Those that are over.
    Over,
    /// Those that go on as well.
    All,
}

/// Whether executions of runs that are over wait in a project.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn is_waiting(session: &mut Session, project: ProjectId) -> Result<bool> {
    Ok(session.first(&IS_WAITING, args![project]).await?.is_some())
}

/// How many executions of runs that are over wait in a project.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn waiting_executions(session: &mut Session, project: ProjectId) -> Result<i64> {
    session.one(&WAITING_EXECUTIONS, args![project]).await?.reader().int()
}

/// The projects in which executions of runs that are over wait.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn waiting_projects(session: &mut Session) -> Result<Vec<ProjectId>> {
    let rows = session.all(&WAITING_PROJECTS, args![]).await?;
    rows.iter().map(|row| row.reader().int().map(ProjectId)).collect()
}

/// The projects in which executions have waited since a moment.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn waiting_since(session: &mut Session, since: Timestamp) -> Result<Vec<ProjectId>> {
    let rows = session.all(&WAITING_SINCE, args![since]).await?;
    rows.iter().map(|row| row.reader().int().map(ProjectId)).collect()
}

/// At most `limit` runs of a project with executions that wait, locked until
/// the transaction ends.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn lock_waiting(
    session: &mut Session,
    project: ProjectId,
    which: Waiting,
    limit: i64,
) -> Result<Vec<RunRow>> {
    let statement = match which {
        Waiting::Over => &LOCK_WAITING_OVER,
        Waiting::All => &LOCK_WAITING,
    };
    session.all(statement, args![project, limit]).await?.iter().map(read).collect()
}

/// Writes how far the executions of a locked run are counted.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn set_counted(session: &mut Session, run: &RunRow) -> Result<()> {
    session.write(&SET_COUNTED, args![run.project, run.id, run.counted_to, run.uncounted_since]).await
}
