//! What is not as it was when the test passed.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::evidence::{ConsoleEntry, Evidence, NetworkRequest};
use callboard_domain::explain::{compared_titles, failing_step, first_divergence, received};
use callboard_domain::text::cut;
use callboard_playwright::healing::rewrite::numbered_lines;
use callboard_store::executions::ExecutionRow;

use super::{ChangeKind, ChangeSince, ExplainedLine, MAX_VALUE_CHARS};
use crate::failures::failed_requests::{answered, endpoint, new_broken_request, new_failures, request_name};

/// From this factor on a longer duration is told.
const SLOWER: i64 = 2;

/// Steps, requests and page errors that the last pass did not have.
pub(super) fn changes(failing: &Evidence, passed: Option<&Evidence>) -> Vec<ChangeSince> {
    let Some(passed) = passed else { return Vec::new() };
    let mut found = Vec::new();
    let failed_at = failing_step(&failing.steps, failing.error.as_deref());
    let now = compared_titles(&failing.steps, &passed.steps, failed_at);
    let then = compared_titles(&passed.steps, &failing.steps, None);
    let now: Vec<&str> = now.iter().map(AsRef::as_ref).collect();
    let then: Vec<&str> = then.iter().map(AsRef::as_ref).collect();
    if let Some(divergence) = first_divergence(&now, &then) {
        found.push(ChangeSince {
            kind: ChangeKind::Step,
            label: "First step that differs".to_owned(),
            before: divergence.passed.map(|at| short(then[at])),
            after: divergence.failing.map(|at| short(now[at])),
            evidence: "steps",
        });
    }
    let before: BTreeMap<(&str, &str), &NetworkRequest> =
        passed.network_requests.iter().map(|request| (endpoint(request), request)).collect();
    let mut told = BTreeSet::new();
    for request in new_failures(failing, passed) {
        if !told.insert(answered(request)) {
            continue;
        }
        found.push(ChangeSince {
            kind: ChangeKind::FailedRequest,
            label: request_name(request),
            before: before.get(&endpoint(request)).map(|request| short(&request.outcome())),
            after: Some(short(&request.outcome())),
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

/// Whether the page lacked an answer or threw as it did not when the test
/// passed. What pages write to the console as errors is often none.
pub(super) fn has_new_error(failing: &Evidence, passed: &Evidence) -> bool {
    let thrown = |evidence: &Evidence| -> BTreeSet<String> {
        let errors = evidence.console_logs.iter().filter(|entry| entry.is_page_error());
        errors.map(ConsoleEntry::without_numbers).collect()
    };
    new_broken_request(failing, passed).is_some() || !thrown(failing).is_subset(&thrown(passed))
}

/// The failing request to name: one that did not fail like that when the test
/// passed, else the first. One that was still waited for is only named where no
/// other failed.
pub(super) fn telling_failure<'e>(
    failing: &'e Evidence,
    passed: Option<&Evidence>,
) -> Option<&'e NetworkRequest> {
    let new = passed.into_iter().flat_map(|passed| new_failures(failing, passed));
    let all = failing.network_requests.iter().filter(|request| request.is_failing());
    new.min_by_key(|request| request.pending).or_else(|| all.min_by_key(|request| request.pending))
}

fn short(text: &str) -> String {
    let masked = callboard_domain::secrets::masked(text).into_owned();
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

/// The failing line as it was when the test passed, when it was another one.
/// `now` and `then` are pieces of the file it stands in.
pub(super) fn source_changed(line: &ExplainedLine, now: &str, then: &str) -> Option<ChangeSince> {
    let (now, then) = (numbered_lines(now), numbered_lines(then));
    // Moved lines are no change of the line.
    if then.iter().any(|(_, text)| text.trim() == line.text.trim()) {
        return None;
    }
    // Where lines were put in or taken out above, another line has this number.
    if above(&now, line.line) != above(&then, line.line) {
        return None;
    }
    let (_, before) = then.iter().find(|(number, _)| *number == line.line)?;
    Some(ChangeSince {
        kind: ChangeKind::SourceLine,
        label: format!("{}:{}", line.file_path, line.line),
        before: Some(short(before.trim())),
        after: Some(short(line.text.trim())),
        evidence: "testSource",
    })
}

/// The nearest line above that says something.
fn above<'l>(lines: &[(u32, &'l str)], number: u32) -> Option<&'l str> {
    let above = lines.iter().rev().filter(|(other, _)| *other < number);
    above.map(|(_, text)| text.trim()).find(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use callboard_domain::evidence::{ResourceType, Step, StepCategory};

    fn request(url: &str, status: i64) -> NetworkRequest {
        let method = "GET".to_owned();
        NetworkRequest { method, normalized_url: url.to_owned(), status, ..NetworkRequest::default() }
    }

    fn asking(requests: &[(&str, i64)]) -> Evidence {
        let network_requests = requests.iter().map(|(url, status)| request(url, *status)).collect();
        Evidence { network_requests, ..Evidence::default() }
    }

    fn told(failing: &Evidence, passed: &Evidence) -> Vec<(String, Option<String>, Option<String>)> {
        let changes = changes(failing, Some(passed)).into_iter();
        changes.map(|change| (change.label, change.before, change.after)).collect()
    }

    #[test]
    fn what_a_pass_asked_again_until_it_worked_is_not_new() {
        let passed = asking(&[("/cart", 500), ("/cart", 200), ("/pay", 200)]);
        let failing = asking(&[("/cart", 500), ("/pay", 503), ("/pay", 503)]);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(told(&failing, &passed), [("GET /pay".to_owned(), text("200"), text("503"))]);
        assert!(has_new_error(&failing, &passed));
        let named = |passed| telling_failure(&failing, passed).map(|request| request.normalized_url.as_str());
        assert_eq!((named(Some(&passed)), named(None)), (Some("/pay"), Some("/cart")));

        let again = asking(&[("/cart", 500)]);
        assert_eq!(told(&again, &passed), []);
        assert!(!has_new_error(&again, &passed));
        let named = telling_failure(&again, Some(&passed)).map(|request| request.status);
        assert_eq!(named, Some(500), "there is no other");
        assert!(has_new_error(&asking(&[("/cart", 502)]), &passed), "another failure than before");
    }

    #[test]
    fn what_did_not_load_is_told_before_what_is_waited_for() {
        let waiting = |duration| NetworkRequest { pending: true, duration, ..request("/poll", 0) };
        let refused = NetworkRequest {
            failure_text: Some("net::ERR_CONNECTION_REFUSED".to_owned()),
            resource_type: Some(ResourceType::Script),
            ..request("/vendor.js", 0)
        };
        let with = |network_requests| Evidence { network_requests, ..Evidence::default() };
        let passed = with(vec![waiting(20), request("/cart", 200)]);
        let failing = with(vec![waiting(5_000), refused]);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            told(&failing, &passed),
            [("GET /vendor.js".to_owned(), None, text("net::ERR_CONNECTION_REFUSED"))],
            "a pass waits for /poll too"
        );
        assert!(has_new_error(&failing, &passed));
        let named = |failing, passed| telling_failure(failing, passed).map(|one| one.normalized_url.as_str());
        assert_eq!(
            (named(&failing, Some(&passed)), named(&failing, None)),
            (Some("/vendor.js"), Some("/vendor.js"))
        );

        let stuck = with(vec![NetworkRequest { pending: true, duration: 5_000, ..request("/cart", 0) }]);
        assert_eq!(told(&stuck, &passed), [("GET /cart".to_owned(), text("200"), text("no response"))]);
        assert!(!has_new_error(&stuck, &passed), "it may be slow");
        assert_eq!(named(&stuck, Some(&passed)), Some("/cart"));
    }

    #[test]
    fn what_a_worker_does_once_is_no_step_that_differs() {
        let doing = |steps: &[(&str, StepCategory, bool)]| {
            let step = |&(title, category, failed): &(&str, StepCategory, bool)| {
                let title = title.to_owned();
                Step { title, category, failed, ..Step::default() }
            };
            Evidence { steps: steps.iter().map(step).collect(), ..Evidence::default() }
        };
        let (open, click) =
            (("goto", StepCategory::Navigation, false), ("click", StepCategory::Action, true));
        let passed = doing(&[open, ("click", StepCategory::Action, false)]);
        let browser = ("Fixture \"browser\"", StepCategory::Fixture, false);
        assert_eq!(told(&doing(&[browser, open, click]), &passed), []);
        let labels =
            |failing| told(&failing, &passed).into_iter().map(|(label, ..)| label).collect::<Vec<_>>();
        let broken = ("Fixture \"browser\"", StepCategory::Fixture, true);
        assert_eq!(labels(doing(&[broken])), ["First step that differs"]);
        assert_eq!(
            labels(doing(&[("open", StepCategory::Navigation, false), click])),
            ["First step that differs"]
        );
    }

    #[test]
    fn a_line_is_changed_only_where_the_one_above_is_not() {
        let line = |number: u32, text: &str| ExplainedLine {
            file_path: "a.spec.ts".to_owned(),
            line: number,
            text: text.to_owned(),
        };
        let then = "    3 | await open();\n    4 | \n    5 | await pay();\n    6 | });";
        let now = "    3 | await open();\n    4 | \n>   5 | await buy();\n    6 | });";
        let change = source_changed(&line(5, "await buy();"), now, then).expect("a change");
        assert_eq!(change.before.as_deref(), Some("await pay();"));
        let moved = "    4 | await open();\n    5 | \n>   6 | await buy();\n    7 | });";
        assert_eq!(source_changed(&line(6, "await buy();"), moved, then), None);
        assert_eq!(source_changed(&line(5, "await pay();"), then, then), None);
        assert_eq!(source_changed(&line(9, "await buy();"), "    9 | await buy();", then), None);
    }
}
