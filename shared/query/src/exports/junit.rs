//! JUnit XML, in the form that both the schema of Apache Ant's reports and
//! that of Jenkins accept: one suite, whose numbers are known before its tests
//! are read; files as class names; no attribute that one of the two forbids.
//! What makes the run red beside its tests comes before them, in a suite of its
//! own: neither schema knows errors of a suite.
//! What both forbid is there only when it is asked for: every try of a test.

use std::fmt::Write as _;

use super::{ExportHead, ExportedTest};
use crate::shapes::RunItem;
use callboard_domain::run_errors::ErrorPhase;
use callboard_domain::status::TestStatus;

const END_OF_SUITE: &str = "<system-out></system-out>\n<system-err></system-err>\n</testsuite>\n";

/// Ends what [`head`] began.
pub(super) fn tail() -> String {
    format!("{END_OF_SUITE}</testsuites>\n")
}

/// Class name of what is no test but an error of the run.
const RUN_CLASS: &str = "run";

/// The numbers in the head of a suite.
struct Suite<'s> {
    name: &'s str,
    id: usize,
    tests: i64,
    failures: i64,
    errors: i64,
    skipped: i64,
    ms: i64,
}

fn begin_suite(text: &mut String, run: &RunItem, suite: &Suite<'_>) {
    let started = run.brief.start_time.to_iso();
    text.push_str("<testsuite");
    for (name, value) in [
        ("package", run.project_name.clone()),
        ("id", suite.id.to_string()),
        ("name", suite.name.to_owned()),
        // Without a zone; it is UTC.
        ("timestamp", started.chars().take(19).collect()),
        ("hostname", "localhost".to_owned()),
        ("tests", suite.tests.to_string()),
        ("failures", suite.failures.to_string()),
        ("errors", suite.errors.to_string()),
        ("skipped", suite.skipped.to_string()),
        ("time", seconds(suite.ms)),
    ] {
        attribute(text, name, &value);
    }
    text.push_str(">\n<properties>\n");
}

/// The suite of the run itself, where something beside its tests makes it red.
fn run_suite(text: &mut String, head: &ExportHead) {
    let count = i64::try_from(head.run_errors.len()).unwrap_or(i64::MAX);
    let name = format!("{} › run", head.run.project_name);
    let suite = Suite { name: &name, id: 0, tests: count, failures: 0, errors: count, skipped: 0, ms: 0 };
    begin_suite(text, &head.run, &suite);
    text.push_str("</properties>\n");
    for error in &head.run_errors {
        text.push_str("<testcase");
        attribute(text, "name", &error.headline);
        attribute(text, "classname", RUN_CLASS);
        attribute(text, "time", "0.000");
        text.push_str("><error");
        attribute(text, "message", &error.headline);
        attribute(text, "type", error.phase.map_or(head.run.brief.status.as_str(), ErrorPhase::as_str));
        text.push('>');
        escape_content(text, &callboard_domain::text::strip_ansi(&error.message));
        if let Some(location) = error.location.as_ref().filter(|location| !error.message.contains(*location))
        {
            escape_content(text, &format!("\n    at {location}"));
        }
        text.push_str("</error></testcase>\n");
    }
    text.push_str(END_OF_SUITE);
}

pub(super) fn head(head: &ExportHead) -> String {
    let (run, totals) = (&head.run, &head.totals);
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let is_red = !head.run_errors.is_empty();
    if is_red {
        run_suite(&mut text, head);
    }
    let of_tests = Suite {
        name: &run.project_name,
        id: usize::from(is_red),
        tests: totals.total_tests,
        failures: totals.failed_tests,
        errors: totals.interrupted_tests,
        skipped: totals.skipped_tests + totals.did_not_run_tests,
        ms: run.brief.duration.unwrap_or(run.tests_duration),
    };
    begin_suite(&mut text, run, &of_tests);
    for (name, value) in [
        ("run", Some(run.url.clone())),
        ("status", Some(run.brief.status.as_str().to_owned())),
        ("statusReason", run.brief.status_reason.clone()),
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
    // Strict schemas know properties of suites alone; the readers in use know those of tests.
    if let Some(owner) = &item.owner {
        inside.push_str("<properties><property");
        attribute(&mut inside, "name", "owner");
        attribute(&mut inside, "value", owner);
        inside.push_str("/></properties>");
    }
    match item.status {
        TestStatus::Passed => {}
        TestStatus::Failed | TestStatus::TimedOut => outcome(&mut inside, "failure", test),
        TestStatus::Interrupted => outcome(&mut inside, "error", test),
        TestStatus::Skipped | TestStatus::DidNotRun => {
            inside.push_str("<skipped");
            let reason = item.skip_reason.as_deref().or(item.did_not_run_reason.as_deref());
            let reason = reason.unwrap_or(item.status.as_str());
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
    escape_content(text, &plain);
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

/// Escapes a text for an attribute, where a reader would take the ends of lines
/// for blanks.
fn escape(text: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\n' => text.push_str("&#10;"),
            '\t' => text.push_str("&#9;"),
            letter => push_escaped(text, letter),
        }
    }
}

/// Escapes a text for the content of an element.
fn escape_content(text: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\n' | '\t' => text.push(letter),
            letter => push_escaped(text, letter),
        }
    }
}

/// What XML 1.0 cannot hold becomes U+FFFD.
fn push_escaped(text: &mut String, letter: char) {
    match letter {
        '&' => text.push_str("&amp;"),
        '<' => text.push_str("&lt;"),
        '>' => text.push_str("&gt;"),
        '"' => text.push_str("&quot;"),
        '\r' => text.push_str("&#13;"),
        '\u{fffe}' | '\u{ffff}' => text.push('\u{fffd}'),
        letter if letter < ' ' => text.push('\u{fffd}'),
        letter => text.push(letter),
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
        let mut text = String::new();
        escape_content(&mut text, "a\n\tb\r<\u{1b}");
        assert_eq!(text, "a\n\tb&#13;&lt;\u{fffd}");
    }

    #[test]
    fn durations_are_seconds() {
        assert_eq!(
            [seconds(0), seconds(7), seconds(61_042), seconds(-1)],
            ["0.000", "0.007", "61.042", "0.000"]
        );
    }
}
