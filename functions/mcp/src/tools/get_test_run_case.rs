//! `get_test_run_case`: one execution, with the parts of its evidence that
//! were asked for.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ExecutionId;
use callboard_domain::status::TestStatus;
use callboard_domain::time::Timestamp;
use callboard_query::executions::{self, Part as EvidencePart, Parts, WantedAttempt};
use callboard_query::shapes::{AttemptView, ExecutionDetail, browser_label};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::clean::shortened;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::readable_times;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

/// Characters of the complete error.
const ERROR_CHARS: usize = 20_000;
/// Characters of the accessibility tree.
const ARIA_CHARS: usize = 8_000;
/// Parts one can ask for.
const PARTS: [&str; 6] = ["steps", "console", "network", "webVitals", "aria", "source"];

pub(super) static TOOL: Tool = Tool {
    name: "get_test_run_case",
    title: "Get execution",
    description: "One execution: complete error, attempts, location. include adds steps, console, network, webVitals, \
                  aria, source; available says how many characters each has. Of a flaky one, of the attempt that \
                  failed: evidenceRetry.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("executionId", "get_run or list_failed_cases").also(&["id"]),
        Parameter::choices("include", &PARTS),
    ],
    sections: Sections {
        optional: &[
            ("network", "network"),
            ("console", "console"),
            ("stdout", "console"),
            ("stderr", "console"),
            ("webVitals", "webVitals"),
            ("testSourceFrames", "source"),
            ("testSource", "source"),
            ("ariaSnapshot", "aria"),
            ("steps", "steps"),
        ],
        chronological: &["steps", "console", "network"],
    },
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    execution_id: ExecutionId,
    include: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    execution_id: i64,
    test_case_id: i64,
    run_id: i64,
    project_id: i64,
    title: String,
    file_path: String,
    line: Option<i64>,
    column: Option<i64>,
    #[schema(value_type = String)]
    status: TestStatus,
    flaky: bool,
    duration: i64,
    retries: i64,
    attempts: Vec<Attempt>,
    /// The attempt that error and parts are of, where there are several.
    evidence_retry: Option<u64>,
    error: Option<String>,
    /// Why its author skipped the test.
    skip_reason: Option<String>,
    /// Why it did not run.
    did_not_run_reason: Option<String>,
    cluster_id: Option<i64>,
    worker_index: Option<i64>,
    browser: Option<String>,
    #[schema(value_type = Option<Vec<Object>>)]
    annotations: Option<Value>,
    #[schema(value_type = Option<String>)]
    started_at: Option<Timestamp>,
    slowest_step: Option<String>,
    slowest_step_duration: Option<i64>,
    is_new_regression: bool,
    is_new_flaky: bool,
    #[schema(value_type = Option<Vec<Object>>)]
    steps: Option<Vec<Value>>,
    #[schema(value_type = Option<Vec<Object>>)]
    console: Option<Vec<Value>>,
    stdout: Option<String>,
    stderr: Option<String>,
    #[schema(value_type = Option<Vec<Object>>)]
    network: Option<Vec<Value>>,
    #[schema(value_type = Option<Object>)]
    web_vitals: Option<Value>,
    aria_snapshot: Option<String>,
    test_source: Option<String>,
    #[schema(value_type = Option<Vec<Object>>)]
    test_source_frames: Option<Vec<Value>>,
    #[schema(value_type = Object)]
    available: Map<String, Value>,
    url: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Attempt {
    retry: u32,
    /// Repetition (`--repeat-each`), beyond the first.
    repetition: Option<u32>,
    /// Replaced, as by a re-run of its shard: it does not count.
    superseded: bool,
    #[schema(value_type = String)]
    status: TestStatus,
    duration: i64,
    #[schema(value_type = Option<String>)]
    started_at: Option<Timestamp>,
    /// What failed in it, in one line.
    error: Option<String>,
}

async fn get(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let context = asked.context;
    let project = context.execution(input.execution_id).await?;
    // The complete error and the annotations lie with the evidence, so one
    // range is read whatever was asked for.
    let parts = Parts::Only(input.include.iter().filter_map(|part| EvidencePart::parse(part)).collect());
    let read = |attempt| executions::detail(&context.query, project, input.execution_id, &parts, attempt);
    let mut detail = read(WantedAttempt::default()).await?;
    // How a flaky test passed explains nothing.
    if let Some(failed) = detail.failed_attempt_of_flaky() {
        let wanted = WantedAttempt { retry: Some(failed.retry), repetition: Some(failed.repetition) };
        detail = read(wanted).await?;
    }
    answer(&Output::from_detail(detail))
}

impl Output {
    fn from_detail(detail: ExecutionDetail) -> Self {
        let item = detail.item;
        let error = detail.error_plain.or_else(|| item.error.clone());
        let mut evidence = match detail.evidence {
            Some(Value::Object(evidence)) => evidence,
            _ => Map::new(),
        };
        let mut part = |key: &str| evidence.remove(key);
        let attempt = part("attempt").filter(|_| detail.attempts.len() > 1);
        let (stdout, stderr) = (part("stdout").and_then(text), part("stderr").and_then(text));
        let aria = part("ariaSnapshot").and_then(text);
        Self {
            browser: browser_label(&item),
            execution_id: item.id,
            test_case_id: item.test_case_id,
            run_id: item.run_id,
            project_id: item.project_id,
            title: item.title,
            file_path: item.file_path,
            line: item.line,
            column: item.column,
            status: item.status,
            flaky: item.flaky,
            duration: item.duration,
            retries: item.retries,
            attempts: detail.attempts.into_iter().map(Attempt::from).collect(),
            evidence_retry: attempt.and_then(|attempt| attempt["retry"].as_u64()),
            error: error.map(|error| shortened(&error, ERROR_CHARS).into_owned()),
            skip_reason: item.skip_reason,
            did_not_run_reason: item.did_not_run_reason,
            cluster_id: item.cluster_id,
            worker_index: item.worker_index,
            annotations: detail.annotations,
            started_at: item.started_at,
            slowest_step: item.slowest_step,
            slowest_step_duration: item.slowest_step_duration,
            is_new_regression: item.is_new_regression,
            is_new_flaky: item.is_new_flaky,
            steps: part("steps").and_then(entries),
            console: part("consoleLogs").and_then(entries),
            stdout,
            stderr,
            network: part("networkRequests").and_then(entries),
            web_vitals: part("webVitals"),
            aria_snapshot: aria.map(|aria| shortened(&aria, ARIA_CHARS).into_owned()),
            test_source: part("testSource").and_then(text),
            test_source_frames: part("testSourceFrames").and_then(entries),
            available: available(detail.evidence_available),
            url: detail.url,
        }
    }
}

impl From<AttemptView> for Attempt {
    fn from(view: AttemptView) -> Self {
        Self {
            retry: view.retry,
            repetition: Some(view.repetition).filter(|repetition| *repetition > 0),
            superseded: view.superseded,
            status: view.status,
            duration: view.duration,
            started_at: view.started_at,
            error: view.error,
        }
    }
}

/// Entries of a list, with times that can be read.
fn entries(list: Value) -> Option<Vec<Value>> {
    let Value::Array(mut entries) = list else { return None };
    entries.iter_mut().for_each(readable_times);
    Some(entries)
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Characters of every part there is, of those one can ask for.
fn available(sizes: Value) -> Map<String, Value> {
    let Value::Object(mut sizes) = sizes else { return Map::new() };
    sizes.retain(|part, _| PARTS.contains(&part.as_str()));
    sizes
}
