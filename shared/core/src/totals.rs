//! The totals of a run as answers and feeds write them.

use callboard_domain::totals::Totals as StoredTotals;

/// Totals of a run: `total = passed + failed + interrupted + skipped + did not
/// run`; timed out is part of failed, flaky part of passed.
#[derive(Debug, Clone, Copy, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// All tests.
    #[schema(example = 42)]
    pub total_tests: i64,
    /// Passed, flaky ones included.
    pub passed_tests: i64,
    /// Failed, timed out ones included.
    pub failed_tests: i64,
    /// Timed out.
    pub timed_out_tests: i64,
    /// Interrupted.
    pub interrupted_tests: i64,
    /// Skipped on purpose.
    pub skipped_tests: i64,
    /// Planned, never started.
    pub did_not_run_tests: i64,
    /// Passed after a failed attempt.
    pub flaky_tests: i64,
}

impl From<StoredTotals> for Totals {
    fn from(t: StoredTotals) -> Self {
        Self {
            total_tests: t.total_tests,
            passed_tests: t.passed_tests,
            failed_tests: t.failed_tests,
            timed_out_tests: t.timed_out_tests,
            interrupted_tests: t.interrupted_tests,
            skipped_tests: t.skipped_tests,
            did_not_run_tests: t.did_not_run_tests,
            flaky_tests: t.flaky_tests,
        }
    }
}
