//! Test-case objects: statuses, expectations, places, identity, evidence.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::ingest::test_values::json_value;
use crate::ingest::{Priority, SuiteMode};

fn parse(value: Value) -> (Result<TestCaseEntry, Warning>, Warnings) {
    let mut warnings = Warnings::default();
    let input = TestCaseInput::from_value(value).expect("is accepted");
    (TestCaseEntry::parse(input, 3, &Caps::default(), &mut warnings), warnings)
}

fn entry(value: Value) -> TestCaseEntry {
    let (parsed, warnings) = parse(value);
    assert!(warnings.is_empty(), "{warnings:?}");
    parsed.expect("is accepted")
}

/// A passing test with some fields more or other.
fn with(extra: Value) -> TestCaseEntry {
    entry(merged(extra))
}

fn merged(extra: Value) -> Value {
    let mut case = json!({"title": "pays", "status": "passed", "duration": 12.5, "location": "a.ts:9:5"});
    if let (Value::Object(case), Value::Object(extra)) = (&mut case, extra) {
        case.extend(extra);
    }
    case
}

#[test]
fn the_minimal_form_is_complete_and_has_no_evidence() {
    let minimal = with(json!({"retries": 1, "error": null}));
    assert_eq!((minimal.title.as_str(), minimal.file_path.as_str()), ("pays", "a.ts"));
    assert_eq!((minimal.line, minimal.column), (Some(9), Some(5)));
    assert_eq!((minimal.status, minimal.duration_ms, minimal.retry), (TestStatus::Passed, 13, 1));
    assert_eq!((minimal.index, minimal.browser_project.as_str()), (3, ""));
    assert_eq!(minimal.identity, identity_hash("a.ts", &[], "pays"));
    assert_eq!(minimal.evidence, None);
    assert_eq!(minimal.suite_path, None);
    assert_eq!(minimal.locator_snapshots, None);
}

#[test]
fn names_of_browsers_alone_are_no_evidence() {
    let named = with(json!({"browser": {"projectName": "chromium", "browserName": "chromium"}}));
    assert_eq!(named.evidence, None);
    assert_eq!(
        (named.browser_project.as_str(), named.browser_name.as_deref()),
        ("chromium", Some("chromium"))
    );
    let configured =
        with(json!({"browser": {"projectName": "", "viewport": {"width": 1, "height": 2}, "secret": 1}}));
    assert_eq!(configured.browser_project, "");
    let json = serde_json::to_value(configured.evidence.expect("is accepted")).expect("is accepted");
    assert_eq!(json, json!({"browser": {"projectName": "", "viewport": {"width": 1, "height": 2}}}));
    let plain = with(json!({"browser": "webkit"}));
    assert_eq!((plain.browser_project.as_str(), plain.browser_name.as_deref()), ("webkit", Some("webkit")));
    let alias = with(json!({"browser": {"browserName": "firefox"}, "browserProject": "ff"}));
    assert_eq!((alias.browser_project.as_str(), alias.browser_name.as_deref()), ("ff", Some("firefox")));
}

#[test]
fn entries_without_title_or_result_are_skipped() {
    for (case, code) in [
        (json!({"status": "passed"}), "missing_title"),
        (json!({"title": "  ", "status": "passed"}), "missing_title"),
        (json!({"title": "x"}), "missing_status"),
        (json!({"title": "x", "status": " "}), "missing_status"),
    ] {
        let warning = parse(case.clone()).0.expect_err("is refused");
        assert_eq!((warning.code, warning.index), (code, Some(3)), "{case}");
    }
    assert_eq!(entry(json!({"title": "x", "error": "Error: no"})).status, TestStatus::Failed);
    assert_eq!(entry(json!({"name": "x", "status": "ok"})).title, "x");
}

#[test]
fn an_unknown_status_counts_as_failed_and_is_remembered() {
    let (parsed, warnings) = parse(merged(json!({"status": format!("purple{}", "!".repeat(80))})));
    let odd = parsed.expect("is accepted");
    assert_eq!(odd.status, TestStatus::Failed);
    assert_eq!(odd.raw_status.map(|word| word.len()), Some(60));
    assert_eq!(warnings.as_slice()[0].code, "unknown_status");
    assert!(with(json!({"status": "Flaky"})).flaky_claimed);
}

#[test]
fn expected_failures_are_turned_around() {
    let fail = json!([{"type": "fail"}]);
    for (status, extra, stored, expected_failure) in [
        ("failed", json!({"testAnnotations": fail}), TestStatus::Passed, true),
        ("passed", json!({"testAnnotations": fail}), TestStatus::Failed, false),
        ("timedOut", json!({"testAnnotations": fail}), TestStatus::TimedOut, false),
        ("skipped", json!({"expectedStatus": "failed"}), TestStatus::Skipped, false),
        ("failed", json!({"expectedStatus": "failed"}), TestStatus::Passed, true),
        ("failed", json!({"expectedStatus": "passed", "testAnnotations": fail}), TestStatus::Failed, false),
        ("failed", json!({"expectedStatus": "nonsense", "testAnnotations": fail}), TestStatus::Passed, true),
        ("failed", json!({"testAnnotations": [{"type": "failure"}]}), TestStatus::Failed, false),
    ] {
        let mut case = merged(extra);
        case["status"] = status.into();
        let (parsed, _) = parse(case.clone());
        let parsed = parsed.expect("is accepted");
        assert_eq!((parsed.status, parsed.expected_failure), (stored, expected_failure), "{case}");
    }
    let passed = with(json!({"testAnnotations": fail}));
    assert_eq!(passed.error.as_deref(), Some("Expected to fail, but passed."));
    let failed = with(json!({"status": "failed", "error": "Error: known", "testAnnotations": fail,
        "attempts": [{"retry": 0, "status": "failed", "duration": 1}]}));
    assert_eq!((failed.error.clone(), failed.error_summary.clone()), (None, None));
    assert_eq!(failed.evidence.clone().expect("is accepted").error.as_deref(), Some("Error: known"));
    assert_eq!(failed.history[0].status, TestStatus::Passed);
    assert_eq!(failed.annotations().len(), 1);
}

#[test]
fn errors_are_text_or_objects_and_summed_up_in_a_line() {
    let coloured =
        with(json!({"status": "failed", "error": "\u{1b}[31mError: no\u{1b}[39m\n    at a.ts:1:1"}));
    assert_eq!(coloured.error_summary.as_deref(), Some("Error: no"));
    assert!(coloured.error.is_some_and(|error| error.starts_with('\u{1b}')));
    for (error, expected) in [
        (json!({"message": "no", "stack": "Error: no\n at x"}), "Error: no\n at x"),
        (json!({"message": "no", "stack": "at x"}), "no\nat x"),
        (json!({"message": "no"}), "no"),
    ] {
        assert_eq!(with(json!({"error": error})).error.as_deref(), Some(expected));
    }
    assert_eq!(with(json!({"error": " "})).error, None);
}

#[test]
fn the_sample_of_a_failure_and_the_error_of_an_attempt_have_caps_of_their_own() {
    let failing = |chars: usize, caps: &Caps| {
        let error = format!("Error: expect(received).toBe(expected)\n{}", "x".repeat(chars));
        let error: String = error.chars().take(chars).collect();
        let case = merged(json!({"status": "failed", "error": error}));
        let input = TestCaseInput::from_value(case).expect("is accepted");
        let entry = TestCaseEntry::parse(input, 0, caps, &mut Warnings::default()).expect("is accepted");
        let evidence = entry.evidence.and_then(|evidence| evidence.error).expect("an error");
        (entry.error.expect("a sample"), evidence, entry.failure.expect("a failure"))
    };
    let is_cut = |text: &str| text.contains("… [truncated ");
    let usual = Caps::default();
    let (sample, evidence, _) = failing(50_000, &usual);
    assert_eq!((sample.chars().count(), is_cut(&sample), is_cut(&evidence)), (50_000, false, true));
    let (sample, ..) = failing(50_001, &usual);
    assert!(sample.contains("… [truncated 1 chars] …"), "{sample:.80}");
    // A sample can have less than an attempt. What failed does not depend on it.
    let short = Caps { sample_error_chars: 1_000, ..Caps::default() };
    for (chars, expected) in [(1_000, [false, false]), (1_001, [true, false]), (20_001, [true, true])] {
        let (sample, evidence, failure) = failing(chars, &short);
        assert_eq!([is_cut(&sample), is_cut(&evidence)], expected, "{chars}");
        assert_eq!(failure.fingerprint(), failing(chars, &usual).2.fingerprint(), "{chars}");
    }
}

#[test]
fn aliases_of_place_and_attempt_are_read() {
    let aliased =
        with(json!({"location": null, "filePath": "./x/b.ts", "line": "7", "column": 2, "retry": 2}));
    assert_eq!(
        (aliased.file_path.as_str(), aliased.line, aliased.column, aliased.retry),
        ("x/b.ts", Some(7), Some(2), 2)
    );
    let file = with(json!({"location": "", "file": "c.ts:4"}));
    assert_eq!((file.file_path.as_str(), file.line, file.column), ("c.ts", Some(4), None));
    assert_eq!(with(json!({"location": null})).file_path, "unknown");
    assert_eq!(with(json!({"retries": 5_000})).retry, 1_000);
}

#[test]
fn numbers_are_clamped_and_nonsense_is_nothing() {
    let odd = with(
        json!({"duration": -5, "timeout": 1e300, "workerIndex": -1, "parallelIndex": -2, "shardIndex": 0,
        "startedAt": 1_767_261_600_123.0, "wastedTimeMs": "30.5", "repeatEachIndex": 99_999}),
    );
    assert_eq!((odd.duration_ms, odd.timeout_ms), (0, Some(10_000_000_000)));
    assert_eq!((odd.worker_index, odd.parallel_index, odd.shard_index), (Some(-1), None, None));
    assert_eq!(odd.started_at, Some(Timestamp(1_767_261_600_123)));
    assert_eq!((odd.wasted_ms, odd.repeat_each_index), (Some(31), Some(10_000)));
}

#[test]
fn fixed_waits_are_added_up_for_clients_that_do_not() {
    let steps = json!([
        {"title": "Before Hooks", "duration": 9_000, "category": "hook"},
        {"title": "page.waitForTimeout(500)", "duration": 501, "category": "wait"},
        {"title": "Wait for timeout", "duration": 250},
        {"title": "page.waitForSelector('#pay')", "duration": 70, "category": "wait"},
    ]);
    assert_eq!(with(json!({"steps": steps, "wastedTimeMs": null})).wasted_ms, Some(751));
    assert_eq!(with(json!({"steps": steps, "wastedTimeMs": 3})).wasted_ms, Some(3), "the client knows best");
    assert_eq!(with(json!({"steps": [{"title": "click", "duration": 5}]})).wasted_ms, None);
}

#[test]
fn fields_of_a_wrong_type_are_left_out_and_noted() {
    let (parsed, warnings) = parse(merged(json!({
        "duration": "infinity", "steps": "none", "tags": {}, "webVitals": [], "stdout": 7, "suitePath": "x", "anything": [],
    })));
    let parsed = parsed.expect("is accepted");
    assert_eq!((parsed.duration_ms, parsed.evidence, parsed.suite_path), (0, None, None));
    assert_eq!(warnings.as_slice().len(), 6, "{warnings:?}");
    assert_eq!(warnings.as_slice()[0].index, Some(3));
}

#[test]
fn identity_is_on_full_names_and_storage_on_short_ones() {
    let title = "t".repeat(2_001);
    let path = format!("{}.ts", "p".repeat(1_000));
    let long = with(json!({"title": title, "location": path, "suitePath": ["a", " ", 7, "b"],
        "suiteConfig": [{"mode": "serial"}, {"mode": "parallel"}, {}, {"mode": "parallel", "annotations": [{"type": "slow"}]}]}));
    assert_eq!((long.title.len(), long.file_path.len()), (2_000, 1_000));
    let wide = format!("{}.ts", "\u{1f600}".repeat(700));
    let of_wide = with(json!({"title": title, "location": wide}));
    assert_eq!(of_wide.file_path, "\u{1f600}".repeat(600));
    assert_eq!(of_wide.identity, identity_hash(&wide, &[], &title));
    let suites = ["a".to_owned(), "b".to_owned()];
    assert_eq!(long.suite_path.as_deref(), Some(&suites[..]));
    assert_eq!(
        long.suite_config.iter().map(|suite| suite.mode).collect::<Vec<_>>(),
        [SuiteMode::Serial, SuiteMode::Parallel]
    );
    assert_eq!(long.identity, identity_hash(&path, &suites, &title));
    let mut moved = long.clone();
    moved.set_suite_path(vec!["#2".into()]);
    assert_eq!(moved.identity, identity_hash(&path, &["#2".into()], &title));
}

#[test]
fn hot_columns_are_taken_from_the_evidence() {
    let rich = with(json!({
        "webVitals": {"navigation": {"url": "https://a.test/x?q=s3cret", "ttfb": 12.4}, "paint": {}, "vitals": {"lcp": 800.5, "cls": 0.0625, "inp": null}},
        "steps": [{"title": "click", "duration": 5, "category": "action"}, {"duration": 1}],
        "consoleLogs": (0..203).map(|n| json!({"type": "error", "text": n.to_string()})).collect::<Vec<_>>(),
        "networkRequests": [{"method": "GET", "url": "https://a.test/api?x=1", "status": 500, "duration": 3, "resourceType": "fetch"}],
        "slowestStep": "click", "slowestStepDuration": 5, "tags": ["@a"], "testMeta": {"priority": "high"},
        "didNotRunReason": " previous-failure ", "blockedBy": r".\b.ts:1:2",
    }));
    let vitals =
        VitalsSummary { lcp_ms: Some(801), inp_ms: None, ttfb_ms: Some(12), cls_thousandths: Some(63) };
    assert_eq!(rich.vitals, vitals);
    assert_eq!(rich.counts, EvidenceCounts { steps: 1, console: 200, network: 1 });
    assert_eq!((rich.slowest_step.as_deref(), rich.slowest_step_ms), (Some("click"), Some(5)));
    assert_eq!((rich.tags, rich.meta.priority), (vec!["a".to_owned()], Some(Priority::High)));
    assert_eq!(rich.did_not_run_reason.as_deref(), Some("previous-failure"));
    assert_eq!(rich.blocked_by.as_deref(), Some("b.ts:1:2"));
}

#[test]
fn what_waits_is_read_as_it_was() {
    let mut rich = with(json!({
        "status": "failed", "error": "Error: locator.click: Timeout 5000ms exceeded.\nwaiting for getByRole('button')",
        "suitePath": ["Cart", "Sum"], "suiteConfig": [{"mode": "serial"}, {"mode": "parallel", "annotations": [{"type": "slow"}]}],
        "retries": 1, "attempts": [{"retry": 0, "status": "timedOut", "duration": 7, "startedAt": 1_767_261_600_000_i64}],
        "startedAt": 1_767_261_601_000_i64, "workerIndex": -1, "parallelIndex": 2, "shardIndex": 3, "repeatEachIndex": 1,
        "tags": ["@a"], "testMeta": {"owner": "ada", "priority": "high", "link": "https://a.test/1"},
        "webVitals": {"navigation": {"url": "https://a.test", "ttfb": 12.4}, "paint": {}, "vitals": {"lcp": 800.5, "cls": 0.0625}},
        "browser": {"projectName": "chromium", "browserName": "chromium"},
        "locatorSnapshots": [{"location": "a.ts:9:5", "used": {"method": "getByRole", "args": ["button", {"name": "Pay"}], "raw": "getByRole('button')"},
            "element": {"tag": "button"}, "alternatives": [{"locator": "getByTestId('pay')", "method": "getByTestId", "args": ["pay"], "score": 90}]}],
        "timeout": 30_000, "slowestStep": "click", "slowestStepDuration": 5, "wastedTimeMs": 3,
        "didNotRunReason": "previous-failure", "blockedBy": "b.ts:1:2",
    }));
    rich.evidence = None;
    let json = serde_json::to_string(&rich).expect("is accepted");
    assert_eq!(serde_json::from_str::<TestCaseEntry>(&json).expect("is accepted"), rich);
}

#[test]
fn what_waits_says_only_what_was_told() {
    let lean = with(json!({}));
    let mut stored = serde_json::to_value(&lean).expect("is accepted");
    assert!(stored.as_object().expect("an object").values().all(|value| !value.is_null()), "{stored}");
    assert_eq!(serde_json::from_value::<TestCaseEntry>(stored.clone()).expect("is accepted"), lean);
    // As it was stored when nothing was left out.
    for (field, nothing) in [
        ("flaky_claimed", json!(false)),
        ("retry", json!(0)),
        ("history", json!([])),
        ("started_at", Value::Null),
        ("meta", json!({"owner": null, "feature": null, "priority": null, "link": null})),
        ("counts", json!({"steps": 0, "console": 0, "network": 0})),
    ] {
        assert!(stored.get(field).is_none(), "{field}");
        stored[field] = nothing;
    }
    assert_eq!(serde_json::from_value::<TestCaseEntry>(stored).expect("is accepted"), lean);
}

proptest! {
    #[test]
    fn any_object_is_an_entry_or_a_warning(case in prop::collection::btree_map(
        prop::sample::select(vec!["title", "name", "location", "file", "line", "status", "expectedStatus", "duration", "timeout",
            "error", "retries", "attempts", "workerIndex", "shardIndex", "startedAt", "browser", "browserProject", "suitePath",
            "suiteConfig", "testAnnotations", "tags", "testMeta", "blockedBy", "slowestStep", "wastedTimeMs", "steps", "stepEvents",
            "networkRequests", "consoleLogs", "webVitals", "pageState", "locatorSnapshots", "aiUsage", "ariaSnapshot",
            "testSource", "testSourceFrames", "stdout", "repeatEachIndex"]).prop_map(str::to_owned),
        json_value(), 0..20)) {
        let case = Value::Object(case.into_iter().collect::<Map<_, _>>());
        let _ = parse(case.clone());
        let mut titled = case;
        titled["title"] = "x".into();
        titled["status"] = "failed".into();
        let (parsed, _) = parse(titled);
        let mut entry = parsed.expect("is accepted");
        let evidence = entry.evidence.take().unwrap_or_default();
        let json = serde_json::to_string(&evidence).expect("is accepted");
        let read: Evidence = serde_json::from_str(&json).expect("is accepted");
        prop_assert_eq!(serde_json::to_string(&read).expect("is accepted"), json);
        let json = serde_json::to_string(&entry).expect("is accepted");
        let read: TestCaseEntry = serde_json::from_str(&json).expect("is accepted");
        prop_assert_eq!(serde_json::to_string(&read).expect("is accepted"), json);
    }
}
