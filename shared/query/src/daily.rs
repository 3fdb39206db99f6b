//! What ran on each day and how it ended, from the stored daily counts. A
//! trend reads one row per project and day, however many runs there were.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Day;
use callboard_domain::totals::Totals as StoredTotals;
pub use callboard_store::rollups::DaySpan;
use callboard_store::rollups::{self, LaneOfEach, RunContribution};
use serde::Serialize;
use utoipa::ToSchema;

use crate::shapes::Totals;
use crate::test_cases::LaneQuery;
use crate::{Context, Result};

/// The runs of one UTC day.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DayCounts {
    /// Day.
    #[schema(value_type = String, format = Date)]
    pub date: Day,
    /// Runs that started on it.
    pub runs: i64,
    /// Those that passed.
    pub passed_runs: i64,
    /// Totals over these runs.
    #[serde(flatten)]
    pub totals: Totals,
    /// Passed / (passed + failed) tests.
    pub pass_rate: Option<f64>,
    /// Sum over all attempts of all tests, ms.
    pub tests_duration: i64,
    /// Sum of fixed waits, ms.
    pub wasted_time_ms: i64,
    /// Tests that passed before and failed.
    pub new_regressions: i64,
    /// Tests that passed on the first attempt before and were flaky.
    pub new_flaky: i64,
    /// Clusters of failures that were first seen in them.
    pub new_clusters: i64,
}

/// Days of some projects together, oldest first; days without runs are left
/// out.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
pub async fn counts(
    ctx: &Context,
    projects: &[Authorized<ProjectId>],
    lane: &LaneQuery,
    span: impl Into<DaySpan>,
) -> Result<Vec<DayCounts>> {
    let projects = projects.iter().map(|project| project.get().get()).collect();
    let lanes = LaneOfEach { projects, lane: lane.key() };
    let days = rollups::days_together(&mut ctx.store.db().read().await?, lanes, span.into()).await?;
    let shown = days.into_iter().filter(|(_, sums)| sums.runs > 0);
    Ok(shown
        .map(|(date, sums)| DayCounts {
            date,
            runs: sums.runs,
            passed_runs: sums.runs_passed,
            totals: sums.totals.into(),
            pass_rate: sums.totals.pass_rate(),
            tests_duration: sums.tests_ms,
            wasted_time_ms: sums.wasted_ms,
            new_regressions: sums.new_regressions,
            new_flaky: sums.new_flaky,
            new_clusters: sums.new_clusters,
        })
        .collect())
}

/// What two sets of runs contribute together.
pub(crate) fn sum(left: &RunContribution, right: &RunContribution) -> RunContribution {
    let (l, r) = (&left.totals, &right.totals);
    RunContribution {
        runs: left.runs + right.runs,
        runs_passed: left.runs_passed + right.runs_passed,
        totals: StoredTotals {
            total_tests: l.total_tests + r.total_tests,
            passed_tests: l.passed_tests + r.passed_tests,
            failed_tests: l.failed_tests + r.failed_tests,
            timed_out_tests: l.timed_out_tests + r.timed_out_tests,
            interrupted_tests: l.interrupted_tests + r.interrupted_tests,
            skipped_tests: l.skipped_tests + r.skipped_tests,
            did_not_run_tests: l.did_not_run_tests + r.did_not_run_tests,
            flaky_tests: l.flaky_tests + r.flaky_tests,
        },
        run_ms: left.run_ms + right.run_ms,
        tests_ms: left.tests_ms + right.tests_ms,
        wasted_ms: left.wasted_ms + right.wasted_ms,
        lost_ms: left.lost_ms + right.lost_ms,
        new_regressions: left.new_regressions + right.new_regressions,
        new_flaky: left.new_flaky + right.new_flaky,
        new_clusters: left.new_clusters + right.new_clusters,
    }
}
