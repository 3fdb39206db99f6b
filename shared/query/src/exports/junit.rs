//! JUnit XML, in the form that both the schema of Apache Ant's reports and
//! that of Jenkins accept: one suite, whose numbers are known before its tests
//! are read; files as class names; no attribute that one of the two forbids.
//! What both forbid is there only when it is asked for: every try of a test.

use std::fmt::Write as _;

use super::{ExportHead, ExportedTest};
use callboard_domain::status::TestStatus;

/// Ends what [`head`] began.
pub(super) const TAIL: &str =
    "<system-out></system-out>\n<system-err></system-err>\n</testsuite>\n</testsuites>\n";

pub(super) fn head(head: &ExportHead) -> String {
    let (run, totals) = (&head.run, &head.totals);
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite");
    let started = run.brief.start_time.to_iso();
    for (name, value) in [
        ("package", run.project_name.clone()),
        ("id", "0".to_owned()),
        ("name", run.project_name.clone()),
        // Without a zone; it is UTC.
        ("timestamp", started.chars().take(19).collect()),
        ("hostname", "localhost".to_owned()),
        ("tests", totals.total_tests.to_string()),
        ("failures", totals.failed_tests.to_string()),
        ("errors", totals.interrupted_tests.to_string()),
        ("skipped", (totals.skipped_tests + totals.did_not_run_tests).to_string()),
        ("time", seconds(run.brief.duration.unwrap_or(run.tests_duration))),
    ] {
        attribute(&mut text, name, &value);
    }
    text.push_str(">\n<properties>\n");
    for (name, value) in [
        ("run", Some(run.url.clone())),
        ("status", Some(run.brief.status.as_str().to_owned())),
        ("branch", run.brief.branch.clone()),
        ("commit", run.brief.commit.clone()),
        ("environment", run.brief.environment.clone()),
        ("flaky", Some(totals.flaky_tests.to_string())),
    ] {
        let Some(value) = value else { continue };
        text.push_str("<property");
        attribute(&mut text, "name", name);
        attribute(&mut text, "value", &value);
        text.push_str("/>\n");
    }
    text.push_str("</properties>\n");
    text
}

pub(super) fn test(test: &ExportedTest) -> String {
    let item = &test.item;
    let mut name = item.suite_path.clone();
    name.push(item.title.clone());
    let mut name = name.join(" › ");
    if !item.browser_project.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(name, " [{}]", item.browser_project);
    }
    let mut text = String::from("<testcase");
    attribute(&mut text, "name", &name);
    attribute(&mut text, "classname", &item.file_path);
    attribute(&mut text, "time", &seconds(item.duration));
    let mut inside = String::new();
    match item.status {
        TestStatus::Passed => {}
        TestStatus::Failed | TestStatus::TimedOut => outcome(&mut inside, "failure", test),
        TestStatus::Interrupted => outcome(&mut inside, "error", test),
        TestStatus::Skipped | TestStatus::DidNotRun => {
            inside.push_str("<skipped");
            let reason = item.did_not_run_reason.as_deref().unwrap_or(item.status.as_str());
            attribute(&mut inside, "message", reason);
            inside.push_str("/>");
        }
    }
    tries(&mut inside, test);
    if inside.is_empty() {
        text.push_str("/>\n");
    } else {
        let _ = writeln!(text, ">{inside}</testcase>");
    }
    text
}

/// The tries that did not decide, as the reports of Maven Surefire tell of them:
/// of a test that passed in the end they are flaky ones. Neither schema knows
/// them, so they are there only when they are asked for.
fn tries(text: &mut String, test: &ExportedTest) {
    let elements = match test.item.status {
        TestStatus::Passed => ["flakyFailure", "flakyError"],
        _ => ["rerunFailure", "rerunError"],
    };
    for attempt in test.attempts.iter().flatten().filter(|attempt| !attempt.deciding && !attempt.superseded) {
        let element = match attempt.status {
            TestStatus::Failed | TestStatus::TimedOut => elements[0],
            TestStatus::Interrupted => elements[1],
            TestStatus::Passed | TestStatus::Skipped | TestStatus::DidNotRun => continue,
        };
        let plain = callboard_domain::text::strip_ansi(attempt.error.as_deref().unwrap_or_default());
        let _ = write!(text, "<{element}");
        attribute(text, "message", &plain);
        attribute(text, "type", attempt.status.as_str());
        text.push_str("/>");
    }
}

fn outcome(text: &mut String, element: &str, test: &ExportedTest) {
    let plain = callboard_domain::text::strip_ansi(test.item.error.as_deref().unwrap_or_default());
    let _ = write!(text, "<{element}");
    attribute(text, "message", test.error_line.as_deref().unwrap_or_default());
    attribute(text, "type", test.item.status.as_str());
    text.push('>');
    escape(text, &plain);
    let _ = write!(text, "</{element}>");
}

/// Milliseconds as seconds.
fn seconds(ms: i64) -> String {
    let ms = ms.max(0);
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

fn attribute(text: &mut String, name: &str, value: &str) {
    let _ = write!(text, " {name}=\"");
    escape(text, value);
    text.push('"');
}

/// Escapes a text for content and attributes alike. What XML 1.0 cannot hold
/// becomes U+FFFD.
fn escape(text: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\n' => text.push_str("&#10;"),
            '\t' => text.push_str("&#9;"),
            '\r' => text.push_str("&#13;"),
            '\u{fffe}' | '\u{ffff}' => text.push('\u{fffd}'),
            letter if letter < ' ' => text.push('\u{fffd}'),
            letter => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_replaced_and_the_rest_is_escaped() {
        let mut text = String::new();
        attribute(&mut text, "name", "a\u{1b}[31m<b> & \"c\"\u{0}\n");
        assert_eq!(text, " name=\"a\u{fffd}[31m&lt;b&gt; &amp; &quot;c&quot;\u{fffd}&#10;\"");
    }

    #[test]
    fn durations_are_seconds() {
        assert_eq!(
            [seconds(0), seconds(7), seconds(61_042), seconds(-1)],
            ["0.000", "0.007", "61.042", "0.000"]
        );
    }
}
