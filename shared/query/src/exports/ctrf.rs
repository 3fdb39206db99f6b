//! Common Test Report Format. Its schema forbids keys it does not know, so
//! everything here is named by it; ids of this service are in `extra`. The
//! format knows no errors of a run: each is a failed test of the suite `Run`,
//! before the tests.

use super::{ExportHead, ExportedTest};
use crate::run_errors::RunErrorItem;
use crate::shapes::AttemptView;
use callboard_domain::status::TestStatus;
use callboard_domain::time::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

/// Version of the format.
const SPEC_VERSION: &str = "0.0.0";

pub(super) fn head(head: &ExportHead) -> String {
    let (run, totals) = (&head.run, &head.totals);
    let start = run.brief.start_time.millis();
    let duration = run.brief.duration.unwrap_or(0);
    let mut tool = json!({ "name": "playwright" });
    if let Some(version) = &run.playwright_version {
        tool["version"] = json!(version);
    }
    let run_errors = i64::try_from(head.run_errors.len()).unwrap_or(i64::MAX);
    let summary = json!({
        "tests": totals.total_tests + run_errors,
        "passed": totals.passed_tests,
        "failed": totals.failed_tests + run_errors,
        "skipped": totals.skipped_tests,
        "pending": totals.did_not_run_tests,
        "other": totals.interrupted_tests,
        "flaky": totals.flaky_tests,
        "start": start,
        "stop": start + duration,
        "duration": duration,
    });
    let entries: Vec<String> =
        head.run_errors.iter().map(|error| format!("\n{}", run_error(head, error))).collect();
    format!(
        "{{\"reportFormat\":\"CTRF\",\"specVersion\":\"{SPEC_VERSION}\",\"generatedBy\":\"callboard\",\
         \"results\":{{\"tool\":{tool},\"summary\":{summary},\"tests\":[{}",
        entries.join(",")
    )
}

/// An error of the run as a failed test.
fn run_error(head: &ExportHead, error: &RunErrorItem) -> Value {
    let mut entry = json!({
        "name": error.headline,
        "status": "failed",
        "duration": 0,
        "suite": ["Run"],
        "message": error.headline,
        "rawStatus": head.run.brief.status.as_str(),
        "type": "run",
        "extra": {
            "runError": true, "phase": error.phase, "location": error.location, "shardIndex": error.shard_index,
        },
    });
    if !error.message.is_empty() {
        entry["trace"] = json!(callboard_domain::text::strip_ansi(&error.message));
    }
    entry
}

pub(super) fn tail(head: &ExportHead) -> String {
    let run = &head.run;
    let mut environment = serde_json::Map::new();
    for (key, value) in [
        ("reportName", run.brief.label.as_ref()),
        ("appName", Some(&run.project_name)),
        ("buildUrl", run.build_url.as_ref()),
        ("commit", run.brief.commit.as_ref()),
        ("branchName", run.brief.branch.as_ref()),
        ("testEnvironment", run.brief.environment.as_ref()),
    ] {
        if let Some(value) = value {
            environment.insert(key.to_owned(), json!(value));
        }
    }
    let extra = json!({
        "runId": run.brief.id,
        "url": run.url,
        "status": run.brief.status.as_str(),
        "statusReason": run.brief.status_reason,
    });
    environment.insert("extra".to_owned(), extra);
    format!("],\"environment\":{}}}}}\n", Value::Object(environment))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Test<'t> {
    name: &'t str,
    status: &'static str,
    duration: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<i64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    suite: &'t [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<i64>,
    raw_status: &'static str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tags: &'t [String],
    #[serde(rename = "type")]
    kind: &'static str,
    file_path: &'t str,
    retries: i64,
    flaky: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    browser: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retry_attempts: Vec<Attempt<'t>>,
    extra: Value,
}

#[derive(Serialize)]
struct Attempt<'t> {
    attempt: u32,
    status: &'static str,
    duration: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'t str>,
}

const fn status(status: TestStatus) -> &'static str {
    match status {
        TestStatus::Passed => "passed",
        TestStatus::Failed | TestStatus::TimedOut => "failed",
        TestStatus::Skipped => "skipped",
        TestStatus::DidNotRun => "pending",
        TestStatus::Interrupted => "other",
    }
}

/// The attempts besides the one that decided.
fn retried(attempts: Option<&Vec<AttemptView>>) -> Vec<Attempt<'_>> {
    let earlier = attempts.into_iter().flatten().filter(|attempt| !attempt.deciding && !attempt.superseded);
    earlier
        .map(|attempt| Attempt {
            attempt: attempt.retry.saturating_add(1),
            status: status(attempt.status),
            duration: attempt.duration,
            start: attempt.started_at.map(Timestamp::millis),
            message: attempt.error.as_deref(),
        })
        .collect()
}

pub(super) fn test(test: &ExportedTest, is_first: bool) -> String {
    let item = &test.item;
    let start = item.started_at.map(Timestamp::millis);
    let error = item.error.as_deref().map(|error| callboard_domain::text::strip_ansi(error).into_owned());
    let shown = Test {
        // The format knows no test without a name.
        name: if item.title.is_empty() { &item.file_path } else { &item.title },
        status: status(item.status),
        duration: item.duration,
        start,
        stop: start.map(|start| start + item.total_duration),
        suite: &item.suite_path,
        trace: error.filter(|error| error.contains('\n')),
        message: test.error_line.clone().or_else(|| item.skip_reason.clone()),
        line: item.line,
        raw_status: item.status.as_str(),
        tags: &item.tags,
        kind: "e2e",
        file_path: &item.file_path,
        retries: item.retries,
        flaky: item.flaky,
        browser: Some(item.browser_project.as_str())
            .filter(|name| !name.is_empty())
            .or(item.browser_name.as_deref()),
        thread_id: item.worker_index.map(|worker| worker.to_string()),
        retry_attempts: retried(test.attempts.as_ref()),
        extra: json!({
            "executionId": item.id, "testCaseId": item.test_case_id, "expectedFailure": item.expected_failure,
            "owner": item.owner,
        }),
    };
    let text = serde_json::to_string(&shown).unwrap_or_default();
    if is_first { format!("\n{text}") } else { format!(",\n{text}") }
}
