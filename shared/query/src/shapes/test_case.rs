//! Test cases as answers show them.

use callboard_domain::status::{Outcome, TestStatus};
use callboard_domain::test_state::{TestCategory, TestState};
use callboard_domain::time::{Day, Timestamp};
use callboard_store::rollups::CatalogueRow;
use callboard_store::test_cases::OwnerSource;
use serde::Serialize;
use utoipa::ToSchema;

use super::{ClusterOfTest, ProjectRef};
use crate::links::Link;
use crate::shapes::words::{TestCategoryWord, TestStatusWord};

/// A test across runs, with its numbers in one lane (or in all of them).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestCaseItem {
    /// Test case id.
    pub id: i64,
    /// Project id.
    pub project_id: i64,
    /// File of the test.
    pub file_path: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// Title.
    pub title: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Owner.
    pub owner: Option<String>,
    /// Where the owner is named: `annotation` or `codeowners`.
    pub owner_source: Option<&'static str>,
    /// Priority.
    pub priority: Option<String>,
    /// Feature.
    pub feature: Option<String>,
    /// Link to a description.
    pub link: Option<String>,
    /// passed, failed, flaky, interrupted, skipped, didnotrun or never-run:
    /// how the last execution ended.
    #[schema(value_type = TestCategoryWord)]
    pub category: &'static str,
    /// Executions.
    pub total_runs: i64,
    /// Passed, flaky ones included.
    pub passed: i64,
    /// Failed, timed out ones included.
    pub failed: i64,
    /// Timed out.
    pub timed_out: i64,
    /// Interrupted.
    pub interrupted: i64,
    /// Passed after a failed attempt.
    pub flaky: i64,
    /// Skipped on purpose.
    pub skipped: i64,
    /// Planned, never started.
    pub did_not_run: i64,
    /// Flaky among the last 30 executions.
    pub recent_flaky: i64,
    /// Passed / (passed + failed).
    pub pass_rate: Option<f64>,
    /// Mean over the passed ones of the last 100 executions, ms.
    pub avg_duration: Option<i64>,
    /// 95th percentile (nearest rank) over the passed ones of the last 100 executions, ms.
    pub p95_duration: Option<i64>,
    /// One hundred times the probability that it fails by chance; 0 when nothing failed in the last 50 runs.
    #[schema(minimum = 0, maximum = 100)]
    pub flaky_score: i64,
    /// How the last execution ended.
    #[schema(value_type = Option<TestStatusWord>)]
    pub last_status: Option<TestStatus>,
    /// Start of the run of the last execution.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_run_at: Option<Timestamp>,
    /// Last execution.
    pub last_execution_id: Option<i64>,
    /// Start of the run it last passed in.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_passed_at: Option<Timestamp>,
    /// Failures in a row up to now.
    pub failing_streak: i64,
    /// Whether it is in quarantine.
    pub is_quarantined: bool,
}

impl TestCaseItem {
    /// Shows a test case with its state in the asked lane.
    #[must_use]
    pub fn from_row(row: &CatalogueRow) -> Self {
        let case = &row.case;
        let state = row.state.as_ref();
        let counts = state.map(|state| *state.counts()).unwrap_or_default();
        Self {
            id: case.id.get(),
            project_id: case.project.get(),
            file_path: case.file_path.clone(),
            suite_path: case.suite_path.clone(),
            title: case.title.clone(),
            tags: case.meta.tags.clone(),
            owner: case.meta.owner.clone(),
            owner_source: case.owner_source.map(OwnerSource::as_str),
            priority: case.meta.priority.clone(),
            feature: case.meta.feature.clone(),
            link: case.meta.link.clone(),
            category: state.map_or(TestCategory::NeverRun, TestState::category).as_str(),
            total_runs: counts.total_tests,
            passed: counts.passed_tests,
            failed: counts.failed_tests,
            timed_out: counts.timed_out_tests,
            interrupted: counts.interrupted_tests,
            flaky: counts.flaky_tests,
            skipped: counts.skipped_tests,
            did_not_run: counts.did_not_run_tests,
            recent_flaky: state.map_or(0, TestState::recent_flaky),
            pass_rate: counts.pass_rate(),
            avg_duration: state.and_then(TestState::avg_duration_ms),
            p95_duration: state.and_then(TestState::p95_duration_ms),
            last_status: state.and_then(TestState::last_outcome).map(Outcome::status),
            last_run_at: state.map(TestState::last_order_at),
            last_execution_id: state.map(|state| state.last_execution().get()),
            last_passed_at: state.and_then(|state| Some(state.last_passed()?.0)),
            failing_streak: state.map_or(0, TestState::failing_streak),
            flaky_score: row.flaky_score,
            is_quarantined: row.is_quarantined,
        }
    }
}

/// A test case with its project.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestCaseDetail {
    /// The list form.
    #[serde(flatten)]
    pub item: TestCaseItem,
    /// Project.
    pub project: ProjectRef,
    /// Failure clusters it failed for, the newest first, at most 10.
    pub clusters: Vec<ClusterOfTest>,
    /// Links at it, newest first.
    pub links: Vec<Link>,
}

/// Stability over consecutive executions or over one UTC day.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StabilityBucket {
    /// The day, else the day of the newest execution.
    #[schema(value_type = String, format = Date)]
    pub date: Day,
    /// Start of the day, else of the run of the oldest execution.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// End of the day, else start of the run of the newest execution.
    #[schema(value_type = String, format = DateTime)]
    pub to: Timestamp,
    /// Passed / (passed + failed).
    pub pass_rate: Option<f64>,
    /// Flaky / (passed + failed).
    pub flaky_rate: Option<f64>,
    /// Mean duration of passed executions, ms.
    pub avg_duration: Option<i64>,
    /// Executions.
    pub total_runs: i64,
}
