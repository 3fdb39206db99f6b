//! What the feeds say: the events of a run as JSON.

use callboard_domain::evidence::{Browser, StepEvent};
use callboard_domain::ids::{ExecutionId, TestCaseId};
use callboard_domain::ingest::{BegunTest, StepNote, TestCaseEntry};
use callboard_domain::run_life::EndReason;
use callboard_domain::status::{Outcome, RunStatus, TestStatus};
use callboard_domain::time::Timestamp;
use callboard_store::executions::ExecutionRow;
use callboard_store::feed::NewEvent;
use callboard_store::runs::RunRow;
use serde::{Deserialize, Serialize};
use serde_json::json;

use callboard_core::Totals;

/// Longest error in the feed, in characters.
pub const MAX_ERROR_CHARS: usize = 2_000;
/// Where tests lie that are no tests: steps of hooks outside of one.
const HOOKS: &str = "hooks";

fn event(kind: &'static str, data: &impl Serialize, is_passing: bool) -> NewEvent {
    // Maps and structs of texts and numbers always have a JSON text.
    let data = serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned());
    NewEvent { kind: kind.into(), data, is_passing }
}

/// What changed about the numbers of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    #[serde(flatten)]
    totals: Totals,
    /// As the plan counts: every repetition of a test.
    repetitions: i64,
    planned_tests: Option<i64>,
    shards_finished: i64,
    shard_total: Option<i64>,
}

/// The numbers of a run as its feed tells them.
#[must_use]
pub fn progress_of(run: &RunRow) -> Progress {
    Progress {
        totals: run.totals.into(),
        repetitions: run.totals.total_tests + run.extra_repetitions,
        planned_tests: run.planned_tests,
        shards_finished: run.shards_finished,
        shard_total: run.shard_total,
    }
}

pub(crate) fn run_progress(run: &RunRow) -> NewEvent {
    event("run-progress", &progress_of(run), false)
}

/// The run stands elsewhere than before, and why.
pub(crate) fn run_status(run: &RunRow, reason: &str) -> NewEvent {
    event("run-status", &json!({ "status": run.status, "reason": reason }), false)
}

/// The run is about to end by something else than its results.
pub(crate) fn ended_by(status: RunStatus, reason: EndReason) -> NewEvent {
    let word = if status == RunStatus::Cancelled { "cancelled" } else { "interrupted" };
    event("run-status", &json!({ "status": status, "reason": word, "endReason": reason.as_str() }), false)
}

/// The run ended, or waits for files only.
pub(crate) fn run_ended(kind: &'static str, run: &RunRow) -> NewEvent {
    let totals = Totals::from(run.totals);
    event(kind, &json!({ "status": run.status, "duration": run.duration_ms, "totals": totals }), false)
}

pub(crate) fn test_begun(begun: &BegunTest) -> NewEvent {
    event("test-begin", begun, true)
}

/// A step of a test; outside of a test it stands for a test of its own.
pub(crate) fn step(step: &StepNote) -> NewEvent {
    if step.parent_title.is_some() {
        return event(if step.is_end { "step-end" } else { "step-begin" }, step, true);
    }
    let kind = if step.is_end { "test-completed" } else { "test-begin" };
    let data = json!({
        "title": step.title, "filePath": HOOKS, "suitePath": [], "location": step.location,
        "workerIndex": step.worker_index, "startedAt": step.started_at,
        "status": step.status, "duration": step.duration, "stepCategory": step.step_category,
    });
    event(kind, &data, true)
}

/// What the feed tells of an attempt out of its evidence, which goes its own way.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Preview {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    step_events: Vec<StepEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    browser: Option<Browser>,
}

impl Preview {
    /// Of an entry; `None` when its evidence tells nothing.
    pub(crate) fn from_entry(entry: &TestCaseEntry) -> Option<Self> {
        let evidence = entry.evidence.as_deref()?;
        let shown = Self { step_events: evidence.step_events.clone(), browser: evidence.browser.clone() };
        (!shown.step_events.is_empty() || shown.browser.is_some()).then_some(shown)
    }
}

/// What the feed tells of an attempt beyond its row.
#[derive(Debug)]
pub(crate) struct Told {
    title: String,
    file_path: String,
    suite_path: Vec<String>,
    location: String,
    error: Option<String>,
    shown: Preview,
}

impl Told {
    pub(crate) fn from_entry(entry: &TestCaseEntry, shown: Option<Preview>) -> Self {
        let mut location = entry.file_path.clone();
        for number in [entry.line, entry.column].into_iter().flatten() {
            location.push(':');
            location.push_str(&number.to_string());
        }
        Self {
            title: entry.title.clone(),
            file_path: entry.file_path.clone(),
            suite_path: entry.suite_path.clone().unwrap_or_default(),
            location,
            error: entry.error.as_ref().map(|error| error.chars().take(MAX_ERROR_CHARS).collect()),
            shown: shown.unwrap_or_default(),
        }
    }
}

/// What is told of a test that has a result. There are more of these than of all
/// other events together, so they are written without a tree of values.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TestCompleted<'a> {
    execution_id: ExecutionId,
    test_case_id: TestCaseId,
    title: &'a str,
    file_path: &'a str,
    suite_path: &'a [String],
    status: TestStatus,
    flaky: bool,
    retries: i64,
    duration: i64,
    location: &'a str,
    error: Option<&'a str>,
    step_events: &'a [StepEvent],
    wasted_time_ms: i64,
    worker_index: Option<i64>,
    shard_index: Option<i64>,
    started_at: Option<i64>,
    browser: Option<&'a Browser>,
    did_not_run_reason: Option<&'a str>,
    skip_reason: Option<&'a str>,
    blocked_by: Option<&'a str>,
}

/// A test has a result, or another one than before.
pub(crate) fn test_completed(row: &ExecutionRow, told: &Told) -> NewEvent {
    let Told { title, file_path, suite_path, location, error, shown } = told;
    let status = row.outcome.status();
    let data = TestCompleted {
        execution_id: row.id,
        test_case_id: row.test_case,
        title,
        file_path,
        suite_path,
        status,
        flaky: row.outcome == Outcome::Flaky,
        retries: row.retries,
        duration: row.duration_ms,
        location,
        error: error.as_deref().filter(|_| status != TestStatus::Passed),
        step_events: &shown.step_events,
        wasted_time_ms: row.facts.wasted_ms,
        worker_index: row.facts.worker_index,
        shard_index: row.facts.shard_index,
        started_at: row.started_at.map(Timestamp::millis),
        browser: shown.browser.as_ref(),
        did_not_run_reason: row.facts.did_not_run_reason.as_deref(),
        skip_reason: row.facts.skip_reason.as_deref(),
        blocked_by: row.facts.blocked_by.as_deref(),
    };
    event("test-completed", &data, false)
}

/// Files of a test have come.
pub(crate) fn case_files(
    row: &ExecutionRow,
    title: &str,
    location: &str,
    traces: i64,
    attachments: i64,
) -> NewEvent {
    let data = json!({
        "executionId": row.id, "testRunsCaseId": row.id, "title": title, "location": location,
        "traces": traces, "attachments": attachments,
    });
    event("case-files", &data, false)
}
