//! Rows that several tools answer with. Names and units are those of the
//! contract; what is null or empty is left out by `clean::tidy`.

use callboard_domain::run_errors::ErrorPhase;
use callboard_domain::status::{RunStatus, TestStatus};
use callboard_domain::time::Timestamp;
use callboard_query::run_attempts::RunAttempt;
use callboard_query::run_errors::RunErrorItem;
use callboard_query::shapes::{ClusterItem, ExecutionItem, RunItem, browser_label};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::clean::shortened;

/// Characters of an error in a list.
const ERROR_CHARS: usize = 400;
/// Digits of a commit in a summary.
const COMMIT_CHARS: usize = 8;

/// A page of rows.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where to read on; null at the end.
    pub next_cursor: Option<String>,
}

/// A run as it stood after one of its attempts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunAttemptLine {
    attempt: i64,
    #[schema(value_type = String)]
    status: RunStatus,
    total: i64,
    passed: i64,
    failed: i64,
    flaky: i64,
}

impl From<RunAttempt> for RunAttemptLine {
    fn from(attempt: RunAttempt) -> Self {
        Self {
            attempt: attempt.attempt,
            status: attempt.status,
            total: attempt.totals.total_tests,
            passed: attempt.totals.passed_tests,
            failed: attempt.totals.failed_tests,
            flaky: attempt.totals.flaky_tests,
        }
    }
}

/// A run in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunLine {
    run_id: i64,
    id: i64,
    project_id: i64,
    #[schema(value_type = String)]
    status: RunStatus,
    /// Why it is not green beyond its failed tests.
    status_reason: Option<String>,
    #[schema(value_type = String)]
    started_at: Timestamp,
    duration: Option<i64>,
    total: i64,
    passed: i64,
    failed: i64,
    flaky: i64,
    skipped: i64,
    did_not_run: i64,
    interrupted: i64,
    environment: Option<String>,
    label: Option<String>,
    branch: Option<String>,
    commit: Option<String>,
    /// Why it does not count as a full run: selection, rerun or fewer-tests.
    #[schema(value_type = Option<String>)]
    partial_reason: Option<&'static str>,
    /// The run that it repeats, where re-runs are kept apart.
    rerun_of: Option<i64>,
    /// Tests a full run was expected to have.
    expected_tests: Option<i64>,
    /// Uncommitted changes: never a baseline.
    dirty: bool,
    url: String,
}

impl From<RunItem> for RunLine {
    fn from(run: RunItem) -> Self {
        let brief = run.brief;
        Self {
            run_id: brief.id,
            id: brief.id,
            project_id: run.project_id,
            status: brief.status,
            status_reason: brief.status_reason,
            started_at: brief.start_time,
            duration: brief.duration,
            total: brief.totals.total_tests,
            passed: brief.totals.passed_tests,
            failed: brief.totals.failed_tests,
            flaky: brief.totals.flaky_tests,
            skipped: brief.totals.skipped_tests,
            did_not_run: brief.totals.did_not_run_tests,
            interrupted: brief.totals.interrupted_tests,
            environment: brief.environment,
            label: brief.label,
            branch: brief.branch,
            commit: short_commit(brief.commit),
            partial_reason: run.partial_reason,
            rerun_of: run.rerun_of,
            expected_tests: run.expected_tests,
            dirty: run.is_dirty,
            url: run.url,
        }
    }
}

/// An error of a run that belongs to no test.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunErrorLine {
    headline: String,
    message: String,
    location: Option<String>,
    #[schema(value_type = Option<String>)]
    phase: Option<ErrorPhase>,
    shard_index: Option<i64>,
}

impl From<RunErrorItem> for RunErrorLine {
    fn from(error: RunErrorItem) -> Self {
        Self {
            headline: error.headline,
            message: error.message,
            location: error.location,
            phase: error.phase,
            shard_index: error.shard_index,
        }
    }
}

/// An execution in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionLine {
    execution_id: i64,
    test_case_id: i64,
    title: String,
    file_path: String,
    #[schema(value_type = String)]
    status: TestStatus,
    flaky: bool,
    duration: i64,
    retries: i64,
    error: Option<String>,
    /// Why its author skipped it.
    skip_reason: Option<String>,
    cluster_id: Option<i64>,
    browser: Option<String>,
}

impl From<ExecutionItem> for ExecutionLine {
    fn from(item: ExecutionItem) -> Self {
        Self {
            browser: browser_label(&item),
            execution_id: item.id,
            test_case_id: item.test_case_id,
            title: item.title,
            file_path: item.file_path,
            status: item.status,
            flaky: item.flaky,
            duration: item.duration,
            retries: item.retries,
            error: short_error(item.error),
            skip_reason: item.skip_reason,
            cluster_id: item.cluster_id,
        }
    }
}

/// A failure cluster in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterLine {
    cluster_id: i64,
    id: i64,
    signature: String,
    title: Option<String>,
    error_type: &'static str,
    selector: Option<String>,
    status: &'static str,
    occurrences: i64,
    affected_tests: i64,
    first_seen_run_id: i64,
    last_seen_run_id: i64,
    last_seen_status: String,
    #[schema(value_type = String)]
    last_seen_at: Timestamp,
    sample_error: Option<String>,
    url: String,
}

impl From<ClusterItem> for ClusterLine {
    fn from(cluster: ClusterItem) -> Self {
        let brief = cluster.brief;
        Self {
            cluster_id: brief.id,
            id: brief.id,
            signature: brief.signature,
            title: brief.title,
            error_type: brief.error_type,
            selector: cluster.selector,
            status: brief.status,
            occurrences: brief.occurrences,
            affected_tests: brief.affected_tests,
            first_seen_run_id: cluster.first_seen_run_id,
            last_seen_run_id: cluster.last_seen_run_id,
            last_seen_status: cluster.last_seen_status,
            last_seen_at: cluster.last_seen_at,
            sample_error: short_error(cluster.sample_error),
            url: cluster.url,
        }
    }
}

/// An error as lists show it.
pub(crate) fn short_error(error: Option<String>) -> Option<String> {
    error.map(|error| shortened(&error, ERROR_CHARS).into_owned())
}

/// A commit as summaries show it.
pub(crate) fn short_commit(commit: Option<String>) -> Option<String> {
    commit.map(|commit| commit.chars().take(COMMIT_CHARS).collect())
}

/// Writes the times within captured evidence as every other time is written,
/// however deep they stand.
pub(crate) fn readable_times(captured: &mut Value) {
    const MOMENTS: [&str; 2] = ["timestamp", "startTime"];
    match captured {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_i64() {
                    Some(millis) if MOMENTS.contains(&name.as_str()) => {
                        *value = Timestamp(millis).to_iso().into()
                    }
                    _ => readable_times(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(readable_times),
        _ => {}
    }
}
