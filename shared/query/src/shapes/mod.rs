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
pub use project::{BranchFacet, Facets, Project, ProjectOverview, ProjectRef, RunCounts, Tendency};
pub use run::{GateBrief, PinItem, RunBrief, RunDetail, RunItem, RunStorage, ShardItem, StorageByKind};
pub use tag::Tag;
pub use test_case::{StabilityBucket, TestCaseDetail, TestCaseItem};
pub use user::{User, UserRef};

pub use callboard_core::Totals;

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
