//! What is not as it was when the test passed.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::evidence::{ConsoleEntry, Evidence, NetworkRequest, Step};
use callboard_domain::explain::{first_divergence, received};
use callboard_domain::text::cut;
use callboard_store::executions::ExecutionRow;

use super::{ChangeKind, ChangeSince, ExplainedLine, MAX_VALUE_CHARS};

/// From this factor on a longer duration is told.
const SLOWER: i64 = 2;

/// Steps, requests and page errors that the last pass did not have.
pub(super) fn changes(failing: &Evidence, passed: Option<&Evidence>) -> Vec<ChangeSince> {
    let Some(passed) = passed else { return Vec::new() };
    let mut found = Vec::new();
    let (now, then) = (titles(&failing.steps), titles(&passed.steps));
    if let Some(divergence) = first_divergence(&now, &then) {
        found.push(ChangeSince {
            kind: ChangeKind::Step,
            label: "First step that differs".to_owned(),
            before: divergence.passed.map(|at| short(then[at])),
            after: divergence.failing.map(|at| short(now[at])),
            evidence: "steps",
        });
    }
    let before: BTreeMap<(&str, &str), i64> = passed
        .network_requests
        .iter()
        .map(|request| ((request.method.as_str(), request.normalized_url.as_str()), request.status))
        .collect();
    let mut told = BTreeSet::new();
    for request in failing.network_requests.iter().filter(|request| has_failed(request)) {
        let key = (request.method.as_str(), request.normalized_url.as_str());
        let then = before.get(&key).copied();
        if then == Some(request.status) || !told.insert(key) {
            continue;
        }
        found.push(ChangeSince {
            kind: ChangeKind::FailedRequest,
            label: request_name(request),
            before: then.map(status_text),
            after: Some(status_text(request.status)),
            evidence: "networkRequests",
        });
    }
    let errors = passed.console_logs.iter().filter(|entry| entry.is_error());
    let known: BTreeSet<String> = errors.map(ConsoleEntry::without_numbers).collect();
    let mut told = BTreeSet::new();
    for entry in failing.console_logs.iter().filter(|entry| entry.is_error()) {
        let text = entry.without_numbers();
        if !known.contains(&text) && told.insert(text) {
            found.push(ChangeSince {
                kind: ChangeKind::PageError,
                label: if entry.kind == "pageerror" { "Uncaught error" } else { "Console error" }.to_owned(),
                before: None,
                after: Some(short(&entry.text)),
                evidence: "consoleLogs",
            });
        }
    }
    found
}

/// Whether a server failed or the page threw as it did not when the test
/// passed. What pages write to the console as errors is often none.
pub(super) fn has_new_error(failing: &Evidence, passed: &Evidence) -> bool {
    let failures = |evidence: &Evidence| -> BTreeSet<(String, String)> {
        let failed = evidence.network_requests.iter().filter(|request| request.status >= 500);
        failed.map(|request| (request.method.clone(), request.normalized_url.clone())).collect()
    };
    let thrown = |evidence: &Evidence| -> BTreeSet<String> {
        let errors = evidence.console_logs.iter().filter(|entry| entry.is_page_error());
        errors.map(ConsoleEntry::without_numbers).collect()
    };
    !failures(failing).is_subset(&failures(passed)) || !thrown(failing).is_subset(&thrown(passed))
}

fn titles(steps: &[Step]) -> Vec<&str> {
    steps.iter().map(|step| step.title.as_str()).collect()
}

pub(super) fn has_failed(request: &NetworkRequest) -> bool {
    request.status == 0 || request.status >= 400
}

pub(super) fn request_name(request: &NetworkRequest) -> String {
    short(&format!("{} {}", request.method, request.normalized_url))
}

fn status_text(status: i64) -> String {
    if status == 0 { "no response".to_owned() } else { status.to_string() }
}

fn short(text: &str) -> String {
    let masked = callboard_domain::trace::mask::masked(text).into_owned();
    cut(masked, MAX_VALUE_CHARS)
}

pub(super) fn received_value(error: &str) -> Option<ChangeSince> {
    let (expected, received) = received(error)?;
    Some(ChangeSince {
        kind: ChangeKind::ReceivedValue,
        label: match expected {
            Some(expected) => format!("Received instead of {expected}"),
            None => "Received value".to_owned(),
        },
        before: None,
        after: Some(received),
        evidence: "error",
    })
}

pub(super) fn slower(failing: &ExecutionRow, passed: &ExecutionRow) -> Option<ChangeSince> {
    let (now, then) = (failing.duration_ms, passed.duration_ms);
    (then > 0 && now >= SLOWER * then).then(|| ChangeSince {
        kind: ChangeKind::Duration,
        label: "Duration".to_owned(),
        before: Some(format!("{then} ms")),
        after: Some(format!("{now} ms")),
        evidence: "duration",
    })
}

/// The same line as it was when the test passed, when it was another one.
pub(super) fn source_changed(line: &ExplainedLine, passed: &Evidence) -> Option<ChangeSince> {
    let source = passed.test_source.as_deref()?;
    let lines = callboard_domain::healing::rewrite::numbered_lines(source);
    // Moved lines are no change of the line.
    if lines.is_empty() || lines.iter().any(|(_, text)| text.trim() == line.text.trim()) {
        return None;
    }
    let (_, before) = lines.iter().find(|(number, _)| *number == line.line)?;
    Some(ChangeSince {
        kind: ChangeKind::SourceLine,
        label: format!("{}:{}", line.file_path, line.line),
        before: Some(short(before.trim())),
        after: Some(short(line.text.trim())),
        evidence: "testSource",
    })
}
