//! Days: what tests and projects did on each UTC day, added to and never
//! rewritten.

use std::collections::BTreeMap;

use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::time::Day;
use callboard_domain::totals::Totals;

use crate::Result;
use crate::db::{Bulk, Column, Session, args, statements};

statements! {
    /// Days of one test. PK
    TEST_DAYS = "SELECT day, runs, passed, failed, flaky, dur_sum, dur_n FROM test_daily \
        WHERE project_id = $1 AND lane_id = $2 AND test_case_id = $3 AND day in_ints($4) ORDER BY day";
    /// Days of a project. PK
    PROJECT_DAYS = "SELECT day, CAST(SUM(runs) AS BIGINT), CAST(SUM(runs_passed) AS BIGINT), CAST(SUM(total) AS BIGINT), \
        CAST(SUM(passed) AS BIGINT), CAST(SUM(failed) AS BIGINT), CAST(SUM(flaky) AS BIGINT), CAST(SUM(skipped) AS BIGINT), \
        CAST(SUM(didnotrun) AS BIGINT), CAST(SUM(interrupted) AS BIGINT) FROM project_daily WHERE project_id = $1 AND lane_id = $2 AND day >= $3 GROUP BY day ORDER BY day";
    /// What one run adds to a day of a project.
    ADD_PROJECT_DAY = "INSERT INTO project_daily AS d (project_id, lane_id, day, is_full, runs, runs_passed, total, passed, failed, \
        flaky, skipped, didnotrun, interrupted) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
        ON CONFLICT (project_id, lane_id, day, is_full) DO UPDATE SET runs = d.runs + excluded.runs, \
        runs_passed = d.runs_passed + excluded.runs_passed, total = d.total + excluded.total, passed = d.passed + excluded.passed, \
        failed = d.failed + excluded.failed, flaky = d.flaky + excluded.flaky, skipped = d.skipped + excluded.skipped, \
        didnotrun = d.didnotrun + excluded.didnotrun, interrupted = d.interrupted + excluded.interrupted";
}

static ADD_TEST_DAYS: Bulk = Bulk::new(
    "rollups::ADD_TEST_DAYS",
    1,
    "INSERT INTO test_daily AS d (project_id, lane_id, day, test_case_id, runs, passed, failed, flaky, dur_sum, dur_n) \
     SELECT $1, r.lane_id, r.day, r.test_case_id, r.runs, r.passed, r.failed, r.flaky, r.dur_sum, r.dur_n FROM",
    &[
        Column::Int("lane_id"),
        Column::Int("day"),
        Column::Int("test_case_id"),
        Column::Int("runs"),
        Column::Int("passed"),
        Column::Int("failed"),
        Column::Int("flaky"),
        Column::Int("dur_sum"),
        Column::Int("dur_n"),
    ],
    "WHERE true ON CONFLICT (project_id, lane_id, day, test_case_id) DO UPDATE SET runs = d.runs + excluded.runs, \
     passed = d.passed + excluded.passed, failed = d.failed + excluded.failed, flaky = d.flaky + excluded.flaky, \
     dur_sum = d.dur_sum + excluded.dur_sum, dur_n = d.dur_n + excluded.dur_n",
);

pub(crate) static BULKS: &[&Bulk] = &[&ADD_TEST_DAYS];

/// What a batch adds to days of tests; negative where it takes back.
#[derive(Debug, Default)]
pub struct TestDays(BTreeMap<(i64, TestCaseId), DayDelta>);

/// Counts of one test on one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DayDelta {
    /// Executions.
    pub runs: i64,
    /// Passed, flaky ones included.
    pub passed: i64,
    /// Failed, timed out ones included.
    pub failed: i64,
    /// Passed after a failed attempt.
    pub flaky: i64,
    /// Sum of durations of executions that ran, ms.
    pub dur_sum: i64,
    /// Number of executions that ran.
    pub dur_n: i64,
}

impl TestDays {
    /// Counts an execution (`sign` 1) or takes it back (`sign` -1).
    pub fn count(&mut self, lane: i64, test_case: TestCaseId, outcome: Outcome, duration_ms: i64, sign: i64) {
        let day = self.0.entry((lane, test_case)).or_default();
        day.runs += sign;
        match outcome {
            Outcome::Passed => day.passed += sign,
            Outcome::Flaky => {
                day.passed += sign;
                day.flaky += sign;
            }
            Outcome::Failed | Outcome::TimedOut => day.failed += sign,
            Outcome::Interrupted | Outcome::Skipped | Outcome::DidNotRun => {}
        }
        if !matches!(outcome, Outcome::Skipped | Outcome::DidNotRun) {
            day.dur_sum += sign * duration_ms;
            day.dur_n += sign;
        }
    }
}

/// Adds a batch to the days of its tests.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn add_test_days(
    session: &mut Session,
    project: ProjectId,
    day: Day,
    days: TestDays,
) -> Result<()> {
    let mut rows = ADD_TEST_DAYS.rows();
    for ((lane, case), delta) in days.0 {
        if delta == DayDelta::default() {
            continue;
        }
        rows.push([
            lane.into(),
            day.into(),
            case.into(),
            delta.runs.into(),
            delta.passed.into(),
            delta.failed.into(),
            delta.flaky.into(),
            delta.dur_sum.into(),
            delta.dur_n.into(),
        ]);
    }
    session.execute_bulk(&ADD_TEST_DAYS, args![project], rows).await?;
    Ok(())
}

/// Days of one test in one lane, oldest first; days without executions are
/// left out.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn test_days(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    test_case: TestCaseId,
    days: Vec<i64>,
) -> Result<Vec<(Day, DayDelta)>> {
    let rows = session.all(&TEST_DAYS, args![project, lane, test_case, days]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let day = Day(r.int()?);
            Ok((
                day,
                DayDelta {
                    runs: r.int()?,
                    passed: r.int()?,
                    failed: r.int()?,
                    flaky: r.int()?,
                    dur_sum: r.int()?,
                    dur_n: r.int()?,
                },
            ))
        })
        .collect()
}

/// What a run contributes to a day of its project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunContribution {
    /// 1 once the run exists.
    pub runs: i64,
    /// 1 when it passed.
    pub runs_passed: i64,
    /// Totals of the run.
    pub totals: Totals,
}

/// Replaces what a run contributed to a day of its project in some lanes.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn add_project_day(
    session: &mut Session,
    project: ProjectId,
    lanes: &[i64],
    day: Day,
    is_full: bool,
    before: &RunContribution,
    after: &RunContribution,
) -> Result<()> {
    let (b, a) = (&before.totals, &after.totals);
    for lane in lanes {
        session
            .execute(
                &ADD_PROJECT_DAY,
                args![
                    project,
                    *lane,
                    day,
                    is_full,
                    after.runs - before.runs,
                    after.runs_passed - before.runs_passed,
                    a.total_tests - b.total_tests,
                    a.passed_tests - b.passed_tests,
                    a.failed_tests - b.failed_tests,
                    a.flaky_tests - b.flaky_tests,
                    a.skipped_tests - b.skipped_tests,
                    a.did_not_run_tests - b.did_not_run_tests,
                    a.interrupted_tests - b.interrupted_tests
                ],
            )
            .await?;
    }
    Ok(())
}

/// One day of a project.
#[derive(Debug, Clone, Copy)]
pub struct ProjectDay {
    /// Day.
    pub day: Day,
    /// Runs.
    pub runs: i64,
    /// Runs that passed.
    pub runs_passed: i64,
    /// Totals over these runs; timed out is not told apart.
    pub totals: Totals,
}

/// Days of a project in one lane from `since` on, oldest first.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn project_days(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    since: Day,
) -> Result<Vec<ProjectDay>> {
    let rows = session.all(&PROJECT_DAYS, args![project, lane, since]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(ProjectDay {
                day: Day(r.int()?),
                runs: r.int()?,
                runs_passed: r.int()?,
                totals: Totals {
                    total_tests: r.int()?,
                    passed_tests: r.int()?,
                    failed_tests: r.int()?,
                    flaky_tests: r.int()?,
                    skipped_tests: r.int()?,
                    did_not_run_tests: r.int()?,
                    interrupted_tests: r.int()?,
                    timed_out_tests: 0,
                },
            })
        })
        .collect()
}
