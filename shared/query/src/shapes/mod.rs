//! The answers: one struct per shape of the API, the same for REST, MCP and
//! pages. Durations are integer milliseconds, sizes bytes, rates 0..1, times
//! ISO-8601 UTC; nulls are written, never left out.

mod cluster;
mod execution;
mod file;
mod project;
mod run;
mod tag;
mod test_case;
mod user;
pub mod words;

pub use cluster::{
    AffectedTestCase, ClusterBrief, ClusterDay, ClusterDetail, ClusterItem, ClusterOfExecution,
    ClusterOfTest, ClusterTestCase, ClusterWithProject, CommonField,
};
pub use execution::{
    AttemptView, BlockingTest, ExecutionCounts, ExecutionDetail, ExecutionItem, ExecutionSummary,
    ExecutionWithRun, TestMetaView, Try, WebVitals, browser_label,
};
pub use file::{FileAttempt, FileItem, Report, TraceItem, part_of_comparison};
pub use project::{BranchFacet, Facets, Project, ProjectOverview, ProjectRef, Tendency};
pub use run::{GateBrief, PinItem, RunBrief, RunDetail, RunItem, RunStorage, ShardItem, StorageByKind};
pub use tag::Tag;
pub use test_case::{StabilityBucket, TestCaseDetail, TestCaseItem};
pub use user::{User, UserRef};

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

/// An empty stored word is "none recorded".
pub(crate) fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Cuts a text for a list to a number of characters.
pub(crate) fn shortened(text: Option<&String>, max_chars: usize) -> Option<String> {
    text.map(|text| match text.char_indices().nth(max_chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.clone(),
    })
}
