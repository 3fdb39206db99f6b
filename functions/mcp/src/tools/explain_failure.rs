//! `explain_failure`: why an execution failed, from what is stored.

use callboard_auth::routes::Roles;
use callboard_domain::evidence::NetworkRequest;
use callboard_domain::ids::{ClusterId, ExecutionId};
use callboard_domain::status::TestStatus;
use callboard_query::executions::{self, Parts, WantedAttempt};
use callboard_query::failures::{self, ChangeSince, Detail, ExplainedStep};
use futures::try_join;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::budget::{self, Sections};
use crate::clean::shortened;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::readable_times;
use crate::suspects::{self, Suspects};
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

const ERROR_CHARS: usize = 1_500;
const ARIA_CHARS: usize = 3_000;
/// Console entries and requests shown: the last of each, what failed before others.
const ENTRIES: usize = 10;

pub(super) static TOOL: Tool = Tool {
    name: "explain_failure",
    title: "Explain failure",
    description: "Why an execution failed, without a model: headline, verdict, what changed since the last pass, \
                  failing step and line, cluster, a locator that works, evidence. Start here.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("executionId", "get_run or list_failed_cases").also(&["id"]),
        Parameter::choice("detail", Detail::WORDS, Some("default")),
    ],
    sections: Sections {
        optional: &[("ariaExcerpt", "aria"), ("network", "network"), ("console", "console")],
        chronological: &["console", "network"],
    },
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(explain(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    execution_id: ExecutionId,
    detail: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    execution_id: i64,
    test_case_id: i64,
    run_id: i64,
    title: String,
    file_path: String,
    #[schema(value_type = String)]
    status: TestStatus,
    /// Passed at a later attempt.
    flaky: bool,
    headline: Option<String>,
    verdict: &'static str,
    confidence: f64,
    error: Option<String>,
    failing_step: Option<ExplainedStep>,
    source_line: Option<String>,
    locator_fix: Option<LocatorFix>,
    changed: Vec<ChangeSince>,
    is_new_regression: bool,
    is_new_flaky: bool,
    last_passed: Option<LastPassed>,
    cluster: Option<Cluster>,
    /// Commits and files that may be the cause; null until get_cluster_context or a page asked for them.
    suspects: Option<Suspects>,
    #[schema(value_type = Vec<Object>)]
    console: Vec<Value>,
    #[schema(value_type = Vec<Object>)]
    network: Vec<Value>,
    aria_excerpt: Option<String>,
    screenshot_count: usize,
    trace_count: usize,
    next: Vec<String>,
    url: String,
}

#[derive(Serialize, ToSchema)]
struct LocatorFix {
    locator: String,
    method: String,
    score: u8,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LastPassed {
    run_id: i64,
    execution_id: i64,
    commit: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    cluster_id: i64,
    signature: String,
    status: &'static str,
    occurrences: i64,
}

async fn explain(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let detail = Detail::parse(&input.detail).unwrap_or_default();
    let context = asked.context;
    let project = context.execution(input.execution_id).await?;
    let id = input.execution_id;
    // All that is told is of one attempt: of a flaky test, the one that failed.
    let (shown, record, found) = try_join!(
        Box::pin(executions::detail(&context.query, project, id, &Parts::None, WantedAttempt::default())),
        Box::pin(failures::failure_record(&context.query, project, id)),
        Box::pin(failures::explain(&context.query, project, id, detail)),
    )?;
    let item = shown.item;
    let has_evidence = detail != Detail::Summary;
    let is_told = has_evidence && (item.status.is_failing() || item.flaky);
    let evidence = record.evidence;
    // What the backend logged may name the cause, whatever it answered.
    let is_telling = |request: &NetworkRequest| request.is_failing() || !request.server_logs.is_empty();
    let mut requests: Vec<NetworkRequest> =
        evidence.network_requests.into_iter().filter(is_telling).collect();
    requests.sort_by_key(NetworkRequest::is_failing);
    let is_screenshot = |kind: &str| kind == executions::FileKind::Screenshot.as_str();
    let screenshot_count = shown.attachments.iter().filter(|file| is_screenshot(file.kind)).count();
    // Other files than pictures are no reason to look at any.
    let is_of_use = |step: &String| screenshot_count > 0 || !step.starts_with("get_case_screenshots");
    let suspects = match &found.cluster {
        Some(cluster) if has_evidence => suspects::stored(context, project, ClusterId(cluster.id)).await?,
        _ => None,
    };
    let output = Output {
        suspects,
        execution_id: item.id,
        test_case_id: item.test_case_id,
        run_id: item.run_id,
        file_path: item.file_path.clone(),
        status: item.status,
        flaky: item.flaky,
        headline: found.headline,
        verdict: found.verdict,
        confidence: found.confidence,
        error: record.error.map(|error| shortened(&error, ERROR_CHARS).into_owned()),
        failing_step: found.failing_step,
        source_line: found
            .source_line
            .map(|line| format!("{}:{}  {}", line.file_path, line.line, line.text.trim())),
        locator_fix: found.healing.map(|healing| LocatorFix {
            locator: healing.locator,
            method: healing.method,
            score: healing.score,
        }),
        changed: found.changed,
        is_new_regression: item.is_new_regression,
        is_new_flaky: item.is_new_flaky,
        last_passed: found.last_passed.map(|last| LastPassed {
            run_id: last.run_id,
            execution_id: last.execution_id,
            commit: last.commit.map(|commit| commit.chars().take(8).collect()),
        }),
        cluster: found.cluster.map(|cluster| Cluster {
            cluster_id: cluster.id,
            signature: cluster.signature,
            status: cluster.status,
            occurrences: cluster.occurrences,
        }),
        next: found.next.into_iter().filter(is_of_use).collect(),
        screenshot_count,
        trace_count: shown.traces.len(),
        url: shown.url,
        console: if is_told { last_entries(evidence.console_logs.into_iter()) } else { Vec::new() },
        network: if is_told { last_entries(requests.into_iter()) } else { Vec::new() },
        aria_excerpt: evidence
            .aria_snapshot
            .filter(|_| has_evidence)
            .map(|aria| shortened(&aria, ARIA_CHARS).into_owned()),
        title: item.title,
    };
    let limit = match detail {
        Detail::Summary => 4_000,
        Detail::Default => 16_000,
        Detail::Full => 40_000,
    };
    Ok(answer(&output)?.within(limit))
}

/// The last entries of a part, as they are captured.
fn last_entries(entries: impl Iterator<Item = impl Serialize>) -> Vec<Value> {
    let entries: Vec<Value> = entries.map(|entry| json!(entry)).collect();
    let mut last = budget::last(&entries, ENTRIES);
    last.iter_mut().for_each(readable_times);
    last
}
