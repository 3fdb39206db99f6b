//! Executions on their way into the states and days of their tests: what is
//! counted of them, and what counting them tells.

use callboard_domain::ids::{ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::test_state::ExecutionFlags;

use super::{ExecutionRow, lost_ms};
use crate::db::{Bulk, Column, Row, Session, args, statements};
use crate::{Result, StoreError};

statements! {
    /// What is counted of the executions of a run between two ids. PK
    TO_COUNT = "SELECT id, test_case_id, browser_id, outcome, flags, duration, total_duration, wasted_ms, lost_ms, reported_as FROM executions \
        WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4 ORDER BY id", whole "vvvvvvvvvv";
    /// The tests of the executions of a run behind an id. PK
    TESTS_BEHIND = "SELECT test_case_id, browser_id FROM executions WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4", whole "vv";
}

static SET_FLAGS: Bulk = Bulk::new(
    "executions::SET_FLAGS",
    2,
    "UPDATE executions SET flags = r.flags FROM",
    &[Column::Int("id"), Column::Int("flags")],
    "WHERE executions.project_id = $1 AND executions.run_id = $2 AND executions.id = r.id",
);

pub(crate) static BULKS: &[&Bulk] = &[&SET_FLAGS];

/// What is counted of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToCount {
    /// Id.
    pub id: ExecutionId,
    /// Test case.
    pub test_case: TestCaseId,
    /// Browser project within the project.
    pub browser_id: i64,
    /// Outcome.
    pub outcome: Outcome,
    /// What is remarkable about it.
    pub flags: ExecutionFlags,
    /// Duration of the deciding attempt, ms.
    pub duration_ms: i64,
    /// Sum of fixed waits, ms.
    pub wasted_ms: i64,
    /// As [`super::ExecutionRow::lost_ms`].
    pub lost_ms: i64,
    /// As [`super::ExecutionRow::reported_as`].
    pub reported_as: Option<TestCaseId>,
}

impl ToCount {
    /// What tells it from the others of its run.
    #[must_use]
    pub const fn series(&self) -> (TestCaseId, i64) {
        (self.test_case, self.browser_id)
    }

    /// The test under whose path it came.
    #[must_use]
    pub fn came_as(&self) -> TestCaseId {
        self.reported_as.unwrap_or(self.test_case)
    }
}

impl From<&ExecutionRow> for ToCount {
    fn from(row: &ExecutionRow) -> Self {
        Self {
            id: row.id,
            test_case: row.test_case,
            browser_id: row.browser_id,
            outcome: row.outcome,
            flags: row.flags,
            duration_ms: row.duration_ms,
            wasted_ms: row.facts.wasted_ms,
            lost_ms: row.lost_ms(),
            reported_as: row.reported_as,
        }
    }
}

/// Executions of a run that are counted, and what waits behind them.
#[derive(Debug)]
pub struct Part {
    /// Those that are counted, by id.
    pub executions: Vec<ToCount>,
    /// The tests of those behind them, each with its browser project.
    pub behind: Vec<(TestCaseId, i64)>,
}

/// What is counted of the executions of a run between two ordinals, both
/// included, by id. The caller knows that they are few.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn to_count(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    (first, last): (i64, i64),
) -> Result<Vec<ToCount>> {
    let (after, last) = (ExecutionId::compose(run, first - 1), ExecutionId::compose(run, last));
    executions(&session.all(&TO_COUNT, args![project, run, after, last]).await?)
}

/// [`to_count`], with the tests of what is behind them.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn part(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    (first, last): (i64, i64),
) -> Result<Part> {
    let (after, last) = (ExecutionId::compose(run, first - 1), ExecutionId::compose(run, last));
    let wanted = (&TO_COUNT, args![project, run, after, last]);
    let (_, end) = ExecutionId::range_of(run);
    let [rows, behind] = session.each([wanted, (&TESTS_BEHIND, args![project, run, last, end])]).await?;
    let series = |row: &Row| {
        let mut r = row.reader();
        Ok((TestCaseId(r.int()?), r.int()?))
    };
    Ok(Part { executions: executions(&rows)?, behind: behind.iter().map(series).collect::<Result<_>>()? })
}

fn executions(rows: &[Row]) -> Result<Vec<ToCount>> {
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let (id, test_case, browser_id) = (ExecutionId(r.int()?), TestCaseId(r.int()?), r.int()?);
            let outcome = Outcome::from_code(r.int()?).ok_or(StoreError::Damaged("an unknown outcome"))?;
            let flags = ExecutionFlags::from_bits(r.int()?);
            let (duration_ms, total_ms, wasted_ms) = (r.int()?, r.int()?, r.int()?);
            let lost_ms = lost_ms(outcome, r.opt_int()?, total_ms - duration_ms);
            let reported_as = r.opt_int()?.map(TestCaseId);
            Ok(ToCount {
                id,
                test_case,
                browser_id,
                outcome,
                flags,
                duration_ms,
                wasted_ms,
                lost_ms,
                reported_as,
            })
        })
        .collect()
}

/// Writes what is remarkable about some executions of a run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn set_flags(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    flags: &[(ExecutionId, ExecutionFlags)],
) -> Result<()> {
    let mut rows = SET_FLAGS.rows();
    for (id, flags) in flags {
        rows.push([(*id).into(), flags.bits().into()]);
    }
    session.execute_bulk(&SET_FLAGS, args![project, run], rows).await
}
