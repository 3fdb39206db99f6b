//! Days: what tests and projects did on each UTC day, added to and never
//! rewritten.

use std::collections::BTreeMap;

use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::time::Day;
use callboard_domain::totals::Totals;

use crate::Result;
use crate::db::{Bulk, Column, Reader, Session, args, statements};

/// The columns that [`read_sums`] reads, added up.
macro_rules! sums {
    () => {
        "CAST(SUM(runs) AS BIGINT), CAST(SUM(runs_passed) AS BIGINT), CAST(SUM(total) AS BIGINT), \
         CAST(SUM(passed) AS BIGINT), CAST(SUM(failed) AS BIGINT), CAST(SUM(flaky) AS BIGINT), CAST(SUM(skipped) AS BIGINT), \
         CAST(SUM(didnotrun) AS BIGINT), CAST(SUM(interrupted) AS BIGINT), CAST(SUM(timedout) AS BIGINT), CAST(SUM(run_ms) AS BIGINT), \
         CAST(SUM(tests_ms) AS BIGINT), CAST(SUM(wasted_ms) AS BIGINT), CAST(SUM(lost_ms) AS BIGINT), CAST(SUM(new_regressions) AS BIGINT), \
         CAST(SUM(new_flaky) AS BIGINT), CAST(SUM(new_clusters) AS BIGINT)"
    };
}
pub(super) use sums;

statements! {
    /// Days of one test. PK
    TEST_DAYS = "SELECT day, runs, passed, failed, flaky, dur_sum, dur_n FROM test_daily \
        WHERE project_id = $1 AND lane_id = $2 AND test_case_id = $3 AND day in_ints($4) ORDER BY day";
    /// What one run adds to a day of a project.
    ADD_PROJECT_DAY = "INSERT INTO project_daily AS d (project_id, lane_id, day, is_full, runs, runs_passed, total, passed, failed, \
        flaky, skipped, didnotrun, interrupted, timedout, run_ms, tests_ms, wasted_ms, lost_ms, new_regressions, new_flaky, new_clusters) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21) \
        ON CONFLICT (project_id, lane_id, day, is_full) DO UPDATE SET runs = d.runs + excluded.runs, \
        runs_passed = d.runs_passed + excluded.runs_passed, total = d.total + excluded.total, passed = d.passed + excluded.passed, \
        failed = d.failed + excluded.failed, flaky = d.flaky + excluded.flaky, skipped = d.skipped + excluded.skipped, \
        didnotrun = d.didnotrun + excluded.didnotrun, interrupted = d.interrupted + excluded.interrupted, \
        timedout = d.timedout + excluded.timedout, run_ms = d.run_ms + excluded.run_ms, tests_ms = d.tests_ms + excluded.tests_ms, \
        wasted_ms = d.wasted_ms + excluded.wasted_ms, lost_ms = d.lost_ms + excluded.lost_ms, \
        new_regressions = d.new_regressions + excluded.new_regressions, new_flaky = d.new_flaky + excluded.new_flaky, \
        new_clusters = d.new_clusters + excluded.new_clusters";
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
pub struct TestDays(BTreeMap<(i64, Day, TestCaseId), DayDelta>);

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
    /// Sum of durations of passed executions, ms: failed ones end early or in
    /// a timeout.
    pub dur_sum: i64,
    /// Number of passed executions.
    pub dur_n: i64,
}

impl DayDelta {
    /// Counts an execution (`sign` 1) or takes it back (`sign` -1).
    pub fn count(&mut self, outcome: Outcome, duration_ms: i64, sign: i64) {
        self.runs += sign;
        match outcome {
            Outcome::Passed | Outcome::Flaky => {
                self.passed += sign;
                self.flaky += if outcome == Outcome::Flaky { sign } else { 0 };
                self.dur_sum += sign * duration_ms;
                self.dur_n += sign;
            }
            Outcome::Failed | Outcome::TimedOut => self.failed += sign,
            Outcome::Interrupted | Outcome::Skipped | Outcome::DidNotRun => {}
        }
    }

    /// The columns from `runs` to `dur_n`.
    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self> {
        Ok(Self {
            runs: r.int()?,
            passed: r.int()?,
            failed: r.int()?,
            flaky: r.int()?,
            dur_sum: r.int()?,
            dur_n: r.int()?,
        })
    }

    /// Adds what another counted.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.passed += other.passed;
        self.failed += other.failed;
        self.flaky += other.flaky;
        self.dur_sum += other.dur_sum;
        self.dur_n += other.dur_n;
    }
}

impl TestDays {
    /// Counts an execution in a lane on a day (`sign` 1), or takes it back
    /// (`sign` -1).
    pub fn count(
        &mut self,
        (lane, day): (i64, Day),
        test_case: TestCaseId,
        outcome: Outcome,
        duration_ms: i64,
        sign: i64,
    ) {
        self.0.entry((lane, day, test_case)).or_default().count(outcome, duration_ms, sign);
    }
}

/// Adds a batch to the days of its tests.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn add_test_days(session: &mut Session, project: ProjectId, days: TestDays) -> Result<()> {
    let mut rows = ADD_TEST_DAYS.rows();
    for ((lane, day, case), delta) in days.0 {
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
/// [`crate::StoreError::Database`].
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
            Ok((Day(r.int()?), DayDelta::read(&mut r)?))
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
    /// Wall clock, ms.
    pub run_ms: i64,
    /// Sum over all attempts, ms.
    pub tests_ms: i64,
    /// Sum of fixed waits, ms.
    pub wasted_ms: i64,
    /// Sum over attempts that did not decide, ms.
    pub lost_ms: i64,
    /// Tests that passed before and failed.
    pub new_regressions: i64,
    /// Tests that passed on the first attempt before and were flaky.
    pub new_flaky: i64,
    /// Clusters of failures it was the first to show.
    pub new_clusters: i64,
}

/// Replaces what a run contributed to a day of its project in some lanes.
///
/// # Errors
/// [`crate::StoreError::Database`].
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
            .write(
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
                    a.interrupted_tests - b.interrupted_tests,
                    a.timed_out_tests - b.timed_out_tests,
                    after.run_ms - before.run_ms,
                    after.tests_ms - before.tests_ms,
                    after.wasted_ms - before.wasted_ms,
                    after.lost_ms - before.lost_ms,
                    after.new_regressions - before.new_regressions,
                    after.new_flaky - before.new_flaky,
                    after.new_clusters - before.new_clusters
                ],
            )
            .await?;
    }
    Ok(())
}

/// Which days and runs are asked for.
#[derive(Debug, Clone, Copy)]
pub struct DaySpan {
    /// First day.
    pub since: Day,
    /// Last day.
    pub until: Day,
    /// Only full runs, only partial ones, or both.
    pub full: Option<bool>,
}

impl DaySpan {
    /// The values of `is_full` that are asked for.
    pub(super) fn full_or_partial(self) -> Vec<i64> {
        self.full.map_or_else(|| vec![0, 1], |full| vec![i64::from(full)])
    }
}

impl From<Day> for DaySpan {
    /// All runs from that day on.
    fn from(since: Day) -> Self {
        Self { since, until: Day(i64::from(i32::MAX)), full: None }
    }
}

/// Reads the columns of [`sums`].
pub(super) fn read_sums(r: &mut Reader<'_>) -> Result<RunContribution> {
    let (runs, runs_passed) = (r.int()?, r.int()?);
    let totals = Totals {
        total_tests: r.int()?,
        passed_tests: r.int()?,
        failed_tests: r.int()?,
        flaky_tests: r.int()?,
        skipped_tests: r.int()?,
        did_not_run_tests: r.int()?,
        interrupted_tests: r.int()?,
        timed_out_tests: r.int()?,
    };
    Ok(RunContribution {
        runs,
        runs_passed,
        totals,
        run_ms: r.int()?,
        tests_ms: r.int()?,
        wasted_ms: r.int()?,
        lost_ms: r.int()?,
        new_regressions: r.int()?,
        new_flaky: r.int()?,
        new_clusters: r.int()?,
    })
}
