//! Executions as answers show them.

use callboard_domain::attempts::AttemptSet;
use callboard_domain::status::TestStatus;
use callboard_domain::test_state::ExecutionFlags;
use callboard_domain::time::Timestamp;
use callboard_store::executions::ExecutionRow;
use callboard_store::lanes::BrowserProject;
use callboard_store::test_cases::{TestCaseRow, TestMeta};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use utoipa::ToSchema;

use super::{ClusterOfExecution, FileItem, ProjectRef, RunBrief, non_empty, shortened};
use crate::failures::PassedBefore;
use crate::links::Link;
use crate::shapes::words::TestStatusWord;

/// One test case in one run in one browser project.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionItem {
    /// Execution id.
    pub id: i64,
    /// Project id.
    pub project_id: i64,
    /// Run id.
    pub run_id: i64,
    /// Test case id.
    pub test_case_id: i64,
    /// Title of the test.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// `file:line:column`, as far as known.
    #[schema(example = "tests/cart.spec.ts:7:5")]
    pub location: String,
    /// Line of the test.
    pub line: Option<i64>,
    /// Column of the test.
    pub column: Option<i64>,
    /// passed, failed, timedout, interrupted, skipped or didnotrun.
    #[schema(value_type = TestStatusWord)]
    pub status: TestStatus,
    /// Passed after a failed attempt.
    pub flaky: bool,
    /// Marked as expected to fail.
    pub expected_failure: bool,
    /// Duration of the deciding attempt.
    pub duration: i64,
    /// Sum over all attempts.
    pub total_duration: i64,
    /// Timeout of the test; 0 is none.
    pub timeout: Option<i64>,
    /// Start of the earliest attempt.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// Highest retry.
    pub retries: i64,
    /// Listed attempts, superseded ones included.
    pub attempt_count: i64,
    /// Its attempts where there are several that count, the first one first;
    /// for drawings.
    #[serde(skip)]
    pub tries: Vec<Try>,
    /// Worker of the deciding attempt.
    pub worker_index: Option<i64>,
    /// Parallel slot of the deciding attempt.
    pub parallel_index: Option<i64>,
    /// Shard of the deciding attempt.
    pub shard_index: Option<i64>,
    /// Name of the browser project; empty when there is none.
    pub browser_project: String,
    /// Browser engine.
    pub browser_name: Option<String>,
    /// First line of the error, at most 300 characters; of one execution the
    /// whole error as the client sent it, as long as its evidence is read.
    pub error: Option<String>,
    /// The failure cluster it counts for.
    pub cluster_id: Option<i64>,
    /// Passed last time, fails now.
    pub is_new_regression: bool,
    /// Was stable last time, flaky now.
    pub is_new_flaky: bool,
    /// Failed last time, passes now.
    pub is_fixed: bool,
    /// The test was in quarantine when this was stored.
    pub is_quarantined: bool,
    /// Longest step.
    pub slowest_step: Option<String>,
    /// Its duration.
    pub slowest_step_duration: Option<i64>,
    /// Sum of fixed waits.
    pub wasted_time_ms: i64,
    /// Web vitals of the page.
    pub web_vitals: Option<WebVitals>,
    /// How much evidence there is.
    pub counts: ExecutionCounts,
    /// Why it did not run.
    pub did_not_run_reason: Option<String>,
    /// Why its author skipped the test.
    #[schema(example = "waiting for SHOP-12")]
    pub skip_reason: Option<String>,
    /// Location of the failing test that blocked it.
    pub blocked_by: Option<String>,
    /// Tags of the test.
    pub tags: Vec<String>,
    /// Owner of the test.
    pub owner: Option<String>,
    /// Priority of the test.
    pub priority: Option<String>,
}

/// How one attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Try {
    /// Index of the attempt, from 0.
    pub retry: u32,
    /// Repetition (`--repeat-each`), from 0.
    pub repetition: u32,
    /// Status of this attempt.
    pub status: TestStatus,
}

/// Web vitals.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct WebVitals {
    /// Largest contentful paint, ms.
    pub lcp: Option<i64>,
    /// Interaction to next paint, ms.
    pub inp: Option<i64>,
    /// Cumulative layout shift.
    pub cls: Option<f64>,
    /// Time to first byte, ms.
    pub ttfb: Option<i64>,
}

/// How much evidence an execution has.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct ExecutionCounts {
    /// Steps.
    pub steps: i64,
    /// Console entries.
    pub console: i64,
    /// Network requests.
    pub network: i64,
    /// Traces.
    pub traces: i64,
    /// Other files.
    pub attachments: i64,
}

impl ExecutionItem {
    /// Shows a stored execution with its test case and browser project.
    #[must_use]
    pub fn new(row: &ExecutionRow, case: &TestCaseRow, browser: Option<&BrowserProject>) -> Self {
        let f = &row.facts;
        let vitals = [f.lcp, f.inp, f.ttfb, f.cls_milli].iter().any(Option::is_some);
        let flag = |bit: ExecutionFlags| row.flags.contains(bit);
        Self {
            id: row.id.get(),
            project_id: row.project.get(),
            run_id: row.run.get(),
            test_case_id: row.test_case.get(),
            title: case.title.clone(),
            file_path: case.file_path.clone(),
            suite_path: case.suite_path.clone(),
            location: location(&case.file_path, f.line, f.column),
            line: f.line,
            column: f.column,
            status: row.outcome.status(),
            flaky: row.outcome == callboard_domain::status::Outcome::Flaky,
            expected_failure: flag(ExecutionFlags::EXPECTED_FAILURE),
            duration: row.duration_ms,
            total_duration: row.total_duration_ms,
            timeout: f.timeout_ms,
            started_at: row.started_at,
            retries: row.retries,
            attempt_count: attempt_count(row.attempts.as_deref()),
            tries: row.attempts.as_deref().map(tries).unwrap_or_default(),
            worker_index: f.worker_index,
            parallel_index: f.parallel_index,
            shard_index: f.shard_index,
            browser_project: browser.map(|b| b.name.clone()).unwrap_or_default(),
            browser_name: browser.and_then(|b| b.browser_name.clone()),
            error: shortened(f.error_summary.as_ref(), 300),
            cluster_id: row.cluster.map(|cluster| cluster.get()),
            is_new_regression: flag(ExecutionFlags::NEW_REGRESSION),
            is_new_flaky: flag(ExecutionFlags::NEW_FLAKY),
            is_fixed: flag(ExecutionFlags::FIXED),
            is_quarantined: flag(ExecutionFlags::QUARANTINED),
            slowest_step: f.slowest_step.clone(),
            slowest_step_duration: f.slowest_ms,
            wasted_time_ms: f.wasted_ms,
            web_vitals: vitals.then(|| WebVitals {
                lcp: f.lcp,
                inp: f.inp,
                #[expect(clippy::cast_precision_loss, reason = "thousandths of a small ratio")]
                cls: f.cls_milli.map(|milli| milli as f64 / 1000.0),
                ttfb: f.ttfb,
            }),
            counts: ExecutionCounts {
                steps: f.steps,
                console: f.console,
                network: f.network,
                traces: row.traces,
                attachments: row.files,
            },
            did_not_run_reason: f.did_not_run_reason.clone(),
            skip_reason: f.skip_reason.clone(),
            blocked_by: f.blocked_by.clone(),
            tags: case.meta.tags.clone(),
            owner: case.meta.owner.clone(),
            priority: case.meta.priority.clone(),
        }
    }
}

fn tries(stored: &str) -> Vec<Try> {
    let decision = AttemptSet::from_json(stored).ok().and_then(|attempts| attempts.decide());
    let counting =
        decision.into_iter().flat_map(|decision| decision.attempts).filter(|view| !view.superseded);
    let tries: Vec<Try> = counting
        .map(|view| Try {
            retry: view.attempt.retry,
            repetition: view.repetition,
            status: view.attempt.status,
        })
        .collect();
    if tries.len() > 1 { tries } else { Vec::new() }
}

/// The attempts are stored as a list when there is more than the row says.
fn attempt_count(stored: Option<&str>) -> i64 {
    let list = stored.and_then(|json| serde_json::from_str::<Vec<IgnoredAny>>(json).ok());
    list.map_or(1, |list| i64::try_from(list.len()).unwrap_or(i64::MAX))
}

fn location(file: &str, line: Option<i64>, column: Option<i64>) -> String {
    match (line, column) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column}"),
        (Some(line), None) => format!("{file}:{line}"),
        _ => file.to_owned(),
    }
}

/// The light form of an execution, for scripts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionSummary {
    /// Execution id.
    pub id: i64,
    /// Test case id.
    pub test_case_id: i64,
    /// Title of the test.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// Name of the browser project.
    pub browser_project: String,
    /// Status.
    #[schema(value_type = TestStatusWord)]
    pub status: TestStatus,
    /// Passed after a failed attempt.
    pub flaky: bool,
    /// Duration of the deciding attempt.
    pub duration: i64,
    /// `file:line:column`, as far as known.
    pub location: String,
}

impl From<ExecutionItem> for ExecutionSummary {
    fn from(item: ExecutionItem) -> Self {
        Self {
            id: item.id,
            test_case_id: item.test_case_id,
            title: item.title,
            file_path: item.file_path,
            suite_path: item.suite_path,
            browser_project: item.browser_project,
            status: item.status,
            flaky: item.flaky,
            duration: item.duration,
            location: item.location,
        }
    }
}

/// An execution with the run it belongs to.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ExecutionWithRun {
    /// The execution.
    #[serde(flatten)]
    pub execution: ExecutionItem,
    /// Its run.
    pub run: RunBrief,
}

/// One attempt of an execution.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    /// Index of the attempt.
    pub retry: u32,
    /// Repetition (`--repeat-each`).
    pub repetition: u32,
    /// Status of this attempt.
    #[schema(value_type = TestStatusWord)]
    pub status: TestStatus,
    /// Duration.
    pub duration: i64,
    /// Start.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// First line of its error.
    pub error: Option<String>,
    /// Replaced by a re-run of its shard.
    pub superseded: bool,
    /// Whether this attempt gave the execution its status.
    pub deciding: bool,
    /// Whether there is evidence of it.
    pub has_evidence: bool,
}

/// What authors say about a test, besides its tags.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct TestMetaView {
    /// Owner.
    pub owner: Option<String>,
    /// critical, high, medium or low.
    #[schema(example = "high")]
    pub priority: Option<String>,
    /// Feature.
    pub feature: Option<String>,
    /// Link to a description.
    pub link: Option<String>,
}

impl TestMetaView {
    /// Shows what is stored.
    #[must_use]
    pub fn from_meta(meta: &TestMeta) -> Self {
        let TestMeta { owner, priority, feature, link, .. } = meta.clone();
        Self { owner, priority, feature, link }
    }
}

/// A test of the same run that waited for another one, or was waited for.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BlockingTest {
    /// Execution id.
    pub id: i64,
    /// Title of the test.
    pub title: String,
    /// Status.
    #[schema(value_type = TestStatusWord)]
    pub status: TestStatus,
}

impl BlockingTest {
    /// The short form of an execution.
    #[must_use]
    pub fn from_item(item: &ExecutionItem) -> Self {
        Self { id: item.id, title: item.title.clone(), status: item.status }
    }
}

/// An execution with everything its page shows.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionDetail {
    /// The list form, with the whole error.
    #[serde(flatten)]
    pub item: ExecutionItem,
    /// Project.
    pub project: ProjectRef,
    /// Run.
    pub run: RunBrief,
    /// The error without terminal colours.
    pub error_plain: Option<String>,
    /// The failure cluster it counts for.
    pub cluster: Option<ClusterOfExecution>,
    /// Attempts, oldest first.
    pub attempts: Vec<AttemptView>,
    /// Annotations of the test; left out where its evidence was not asked for or is gone.
    #[schema(value_type = Option<Vec<Object>>, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// What its authors say about the test.
    pub test_meta: TestMetaView,
    /// The execution that kept it from running.
    pub blocked_by_execution: Option<BlockingTest>,
    /// Executions it kept from running; at most 20.
    pub blocks: Vec<BlockingTest>,
    /// Links of the execution, in the order they were made; at most 50.
    pub links: Vec<Link>,
    /// Links of its test; at most 50.
    pub test_case_links: Vec<Link>,
    /// The last time the test passed in this browser project before this run.
    pub baseline: Option<PassedBefore>,
    /// Files that are not traces.
    pub attachments: Vec<FileItem>,
    /// Traces.
    pub traces: Vec<FileItem>,
    /// Evidence of the attempt asked for, else of the deciding one; null when
    /// there is none or none was asked for.
    #[schema(value_type = Option<Object>)]
    pub evidence: Option<Value>,
    /// Size in bytes, as JSON, of every part there is of that evidence.
    #[schema(value_type = Object)]
    pub evidence_available: Value,
    /// When the evidence goes; null where it is kept or there is none.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub evidence_expires_at: Option<Timestamp>,
    /// Page of the execution.
    pub url: String,
}

impl ExecutionDetail {
    /// Of a flaky execution the last failed attempt that left evidence: what
    /// people and agents come for. `None` for any other execution.
    #[must_use]
    pub fn failed_attempt_of_flaky(&self) -> Option<&AttemptView> {
        let failed = |view: &&AttemptView| view.status.is_failing() && !view.superseded && view.has_evidence;
        self.attempts.iter().rfind(failed).filter(|_| self.item.flaky)
    }
}

/// The browser as one word: `project/engine`, as far as known.
#[must_use]
pub fn browser_label(item: &ExecutionItem) -> Option<String> {
    match (non_empty(&item.browser_project), &item.browser_name) {
        (Some(project), Some(name)) => Some(format!("{project}/{name}")),
        (Some(project), None) => Some(project),
        (None, Some(name)) => Some(name.clone()),
        (None, None) => None,
    }
}
