//! Executions that change their lane: those of a run that is said to have run
//! in another environment; and those that turn out to be of another test.

use callboard_domain::ids::{ExecutionId, ProjectId, RunId, TestCaseId};

use super::{ExecutionRow, RunPlace, read};
use crate::Result;
use crate::db::{Bulk, Column, Session, args, statements};

statements! {
    /// Executions of a run outside of a lane, a batch. PK
    OUTSIDE_LANE = concat!("SELECT ", columns!(), " FROM executions e WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 \
        AND e.lane_id <> $5 ORDER BY e.id LIMIT $6");
    /// Executions of some tests in a run. ix: executions_history
    OF_TESTS = concat!("SELECT ", columns!(), " FROM executions e WHERE e.project_id = $1 AND e.day = $2 AND e.run_id = $3 \
        AND e.test_case_id in_ints($4) ORDER BY e.id");
    /// Who read the run before does not write by it. PK
    NEW_VERSION = "UPDATE test_runs SET version = version + 1 WHERE project_id = $1 AND id = $2";
    /// Puts executions into a lane. PK
    SET_LANE = "UPDATE executions SET lane_id = $3 WHERE project_id = $1 AND run_id = $2 AND id in_ints($4)";
}

static SET_TEST: Bulk = Bulk::new(
    "executions::SET_TEST",
    2,
    "UPDATE executions SET test_case_id = r.test_case_id, reported_as = r.reported_as FROM",
    &[Column::Int("id"), Column::Int("test_case_id"), Column::Int("reported_as")],
    "WHERE executions.project_id = $1 AND executions.run_id = $2 AND executions.id = r.id",
);

pub(crate) static BULKS: &[&Bulk] = &[&SET_TEST];

/// The executions of some tests in a run, by id.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn of_tests(session: &mut Session, place: RunPlace, tests: Vec<i64>) -> Result<Vec<ExecutionRow>> {
    let args = args![place.project, place.day, place.run, tests];
    session.all(&OF_TESTS, args).await?.iter().map(read).collect()
}

/// Writes of which tests some executions of a run are, and under which identity
/// they came.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn set_tests(session: &mut Session, place: RunPlace, executions: &[ExecutionRow]) -> Result<()> {
    let mut rows = SET_TEST.rows();
    for row in executions {
        rows.push([row.id.into(), row.test_case.into(), row.reported_as.map(TestCaseId::get).into()]);
    }
    session.execute_bulk(&SET_TEST, args![place.project, place.run], rows).await?;
    session.execute(&NEW_VERSION, args![place.project, place.run]).await?;
    Ok(())
}

/// At most `limit` executions of a run behind `after` that are not in a lane,
/// by id.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn outside_lane(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    lane: i64,
    after: i64,
    limit: i64,
) -> Result<Vec<ExecutionRow>> {
    let (low, high) = ExecutionId::range_of(run);
    let args = args![project, run, low.max(after), high, lane, limit];
    session.all(&OUTSIDE_LANE, args).await?.iter().map(read).collect()
}

/// Puts executions of a run into a lane.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn set_lane(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    lane: i64,
    ids: Vec<i64>,
) -> Result<()> {
    session.execute(&SET_LANE, args![project, run, lane, ids]).await?;
    Ok(())
}
