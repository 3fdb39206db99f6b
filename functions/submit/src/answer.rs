//! What clients are told about their submission.

use callboard_domain::ingest::Warnings;
use callboard_domain::status::RunStatus;
use callboard_http::ingest_warnings::{WarningView, warnings};
use callboard_ingest::Submitted;
use callboard_store::reports::ReportRow;
use serde::Serialize;
use utoipa::ToSchema;

/// A stored run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubmitAnswer {
    /// Always true.
    success: bool,
    /// The run.
    #[schema(example = 41)]
    test_run_id: i64,
    /// The run, under the name other calls use.
    #[schema(example = 41)]
    run_id: i64,
    /// Its project.
    #[schema(example = 3)]
    project_id: i64,
    /// Its status now.
    #[schema(value_type = String, example = "failed")]
    status: RunStatus,
    /// Its page.
    #[schema(example = "http://localhost:3000/test-runs/41")]
    run_url: String,
    /// Tests, never attempts.
    total_tests: i64,
    /// Passed, flaky ones included.
    passed_tests: i64,
    /// Failed, timed out ones included.
    failed_tests: i64,
    /// Skipped on purpose.
    skipped_tests: i64,
    /// Passed after a failed attempt.
    flaky_tests: i64,
    /// Whether the run was known and this call was merged into it.
    duplicate: bool,
    /// What was read leniently, at most 20 entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    warnings: Option<Vec<WarningView>>,
}

impl SubmitAnswer {
    pub(crate) fn from_submitted(submitted: &Submitted, found: &Warnings) -> Self {
        Self {
            success: true,
            test_run_id: submitted.run.get(),
            run_id: submitted.run.get(),
            project_id: submitted.project.get(),
            status: submitted.status,
            run_url: submitted.url.clone(),
            total_tests: submitted.totals.total_tests,
            passed_tests: submitted.totals.passed_tests,
            failed_tests: submitted.totals.failed_tests,
            skipped_tests: submitted.totals.skipped_tests,
            flaky_tests: submitted.totals.flaky_tests,
            duplicate: submitted.duplicate,
            warnings: warnings(found),
        }
    }
}

/// Stored files of a run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UploadAnswer {
    /// Always true.
    pub(crate) success: bool,
    /// The run.
    #[schema(example = 41)]
    pub(crate) test_run_id: i64,
    /// The run, under the name other calls use.
    #[schema(example = 41)]
    pub(crate) run_id: i64,
    /// Its project.
    #[schema(example = 3)]
    pub(crate) project_id: i64,
    /// Reports of this call.
    pub(crate) reports: Vec<ReportView>,
    /// Status of the run now.
    #[schema(value_type = String, example = "failed")]
    pub(crate) status: RunStatus,
    /// Page of the run.
    pub(crate) run_url: String,
    /// What was read leniently, at most 20 entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) warnings: Option<Vec<WarningView>>,
}

/// A stored report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReportView {
    /// Type word.
    #[serde(rename = "type")]
    #[schema(example = "html")]
    kind: String,
    /// Display label.
    label: String,
    /// Stored name of its entry page.
    #[schema(example = "project-3/reports/41/7/index.html")]
    path: String,
}

impl From<ReportRow> for ReportView {
    fn from(report: ReportRow) -> Self {
        Self { path: report.path(), kind: report.kind, label: report.label }
    }
}
