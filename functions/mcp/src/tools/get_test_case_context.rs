//! `get_test_case_context`: everything an execution left behind as one text to
//! reason about.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ExecutionId;
use callboard_domain::status::TestStatus;
use callboard_query::failures::{
    self, FailureRecord, console_lines, page_lines, request_lines, source_text, step_lines,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::budget::{RESULT_CHARS, Sections};
use crate::clean::shortened;
use crate::error::ToolError;
use crate::evidence_text::{Outline, Section, compose};
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

/// Characters of the error, so that it leaves room for what explains it.
const ERROR_CHARS: usize = 6_000;
/// Characters of source around the failure.
const SOURCE_CHARS: usize = 6_000;
/// Characters of the accessibility tree.
const ARIA_CHARS: usize = 8_000;
/// Characters of what the test wrote.
const OUTPUT_CHARS: usize = 3_000;
/// Characters of error and tree where there is no text at all.
const RAW_ERROR_CHARS: usize = 1_500;

pub(super) static TOOL: Tool = Tool {
    name: "get_test_case_context",
    title: "Get evidence text",
    description: "Everything captured of an execution as one text: error, steps, source, requests, console, page, output, \
                  attempts, most important first. For a flaky one, its failed attempt.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("executionId", "get_run or list_failed_cases").also(&["id"]),
        Parameter::count("maxChars", 2_000, 100_000, 24_000),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    execution_id: ExecutionId,
    max_chars: usize,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    execution_id: i64,
    text: String,
    sections: Vec<Outline>,
    token_estimate: usize,
    cluster: Option<Cluster>,
    raw_execution: Option<RawExecution>,
    url: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    cluster_id: i64,
    signature: String,
    occurrences: i64,
    pattern: &'static str,
}

/// What there is to say of an execution without evidence.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RawExecution {
    #[schema(value_type = String)]
    status: TestStatus,
    error: Option<String>,
    #[schema(value_type = Object)]
    web_vitals: Value,
}

async fn get(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let context = asked.context;
    let project = context.execution(input.execution_id).await?;
    let record = failures::failure_record(&context.query, project, input.execution_id).await?;
    // Quotes and line breaks take a second character each in JSON.
    let room = if input.max_chars > RESULT_CHARS / 2 { input.max_chars * 4 / 5 } else { input.max_chars };
    let composed = compose(sections(&record), room);
    let raw_execution = composed.sections.is_empty().then(|| RawExecution {
        status: record.status,
        error: record.error.as_deref().map(|error| shortened(error, RAW_ERROR_CHARS).into_owned()),
        web_vitals: serde_json::to_value(&record.evidence.web_vitals).unwrap_or_default(),
    });
    let pattern = record.recurrence.as_str();
    answer(&Output {
        execution_id: input.execution_id.get(),
        text: composed.text,
        sections: composed.sections,
        token_estimate: composed.token_estimate,
        cluster: record.cluster.map(|cluster| Cluster {
            cluster_id: cluster.id,
            signature: cluster.signature,
            occurrences: cluster.occurrences,
            pattern,
        }),
        raw_execution,
        url: record.url,
    })
}

/// The parts of the text, the weightiest first.
fn sections(record: &FailureRecord) -> Vec<Section> {
    let evidence = &record.evidence;
    let text = |id, title, text: Option<&String>| Section::text(id, title, text.cloned().unwrap_or_default());
    // One attempt that passed says nothing the status does not.
    let has_history = record.attempts.len() > 1 || record.error.is_some();
    let attempts = record.attempts.iter().filter(|_| has_history).map(|attempt| {
        let repetition = match attempt.repetition {
            0 => String::new(),
            further => format!(" of repetition {further}"),
        };
        let counts = if attempt.superseded { ", replaced: it does not count" } else { "" };
        let (retry, status) = (attempt.retry, attempt.status.as_str());
        format!("retry {retry}{repetition}: {status}, {} ms{counts}", attempt.duration)
    });
    vec![
        text("error", "Error", record.error.as_ref()).at_most(ERROR_CHARS),
        Section::last_of("steps", "Steps", step_lines(evidence)),
        Section::text("source", "Source around the failure", source_text(evidence)).at_most(SOURCE_CHARS),
        Section::last_of("requests", "Requests, the failed ones last", request_lines(evidence)),
        Section::last_of("console", "Console of the page", console_lines(evidence)),
        text("aria", "Accessibility tree at the failure", evidence.aria_snapshot.as_ref())
            .at_most(ARIA_CHARS),
        text("stderr", "Standard error of the test", evidence.stderr.as_ref()).at_most(OUTPUT_CHARS),
        text("stdout", "Standard output of the test", evidence.stdout.as_ref()).at_most(OUTPUT_CHARS),
        Section::list("page", "Page", page_lines(evidence)),
        Section::list("attempts", "Attempts", attempts.collect()),
    ]
}
