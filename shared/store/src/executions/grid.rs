//! How some tests ended in some runs: the cells of a grid.

use callboard_domain::ids::{ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::status::Outcome;

use crate::db::{Session, args, statements};
use crate::{Result, StoreError};

statements! {
    /// Executions of some tests in some runs, whose days are given. One range per day and test; which runs of it are
    /// wanted is looked up afterwards, hence the sign in front of their id. ix: executions_history
    OF_TESTS_IN_RUNS = "SELECT e.id, e.run_id, e.test_case_id, e.outcome, e.duration FROM executions e \
        WHERE e.project_id = $1 AND e.day in_ints($2) AND e.test_case_id in_ints($3) AND +e.run_id in_ints($4)";
}

/// One execution of a test in a run, in any browser project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Execution.
    pub id: ExecutionId,
    /// Run.
    pub run: RunId,
    /// Test case.
    pub test_case: TestCaseId,
    /// How it ended.
    pub outcome: Outcome,
    /// Duration of the deciding attempt, ms.
    pub duration_ms: i64,
}

/// Executions of tests in runs; `days` are the days of the runs' order keys.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_tests_in_runs(
    session: &mut Session,
    project: ProjectId,
    days: Vec<i64>,
    test_cases: Vec<i64>,
    runs: Vec<i64>,
) -> Result<Vec<Cell>> {
    let rows = session.all(&OF_TESTS_IN_RUNS, args![project, days, test_cases, runs]).await?;
    let mut cells = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut r = row.reader();
        cells.push(Cell {
            id: ExecutionId(r.int()?),
            run: RunId(r.int()?),
            test_case: TestCaseId(r.int()?),
            outcome: Outcome::from_code(r.int()?).ok_or(StoreError::Damaged("an unknown outcome"))?,
            duration_ms: r.int()?,
        });
    }
    Ok(cells)
}
