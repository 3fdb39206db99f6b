//! Runs as files: valid in their formats, complete, and without surprises for
//! whoever opens them.

use std::collections::BTreeSet;

use callboard_test_support::{Answer, Client, for_each_service};
use serde_json::{Value, json};

use crate::builders::{attempt, passing, run, with};
use crate::comparison::submit;

async fn export(client: &Client, run: i64, query: &str) -> Answer {
    let answer = client.get(&format!("/api/test-runs/{run}/export?{query}")).await.expect("an answer");
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    answer
}

/// A run with a test of every kind.
fn every_kind() -> Value {
    let hostile = with(
        attempt("=HYPERLINK(\"x\") <b>&amp; \u{1b}[31m\"q\"", "failed", 0),
        json!({ "error": "Error: \u{1b}[31mexpected <1> & \"2\"\u{1b}[0m\n    at tests/shop.spec.ts:9:3, second line", "tags": ["@smoke"] }),
    );
    let cases = vec![
        attempt("passes", "passed", 0),
        hostile,
        attempt("times out", "timedOut", 0),
        attempt("wobbles", "failed", 0),
        attempt("wobbles", "passed", 1),
        attempt("is skipped", "skipped", 0),
        attempt("is interrupted", "interrupted", 0),
        attempt("never ran", "didnotrun", 0),
        with(attempt("+1 in chromium", "passed", 0), json!({ "browser": { "projectName": "chromium" } })),
    ];
    with(run("shop", "failed", cases), json!({ "branch": "main", "commit": "0123456789abcdef" }))
}

#[tokio::test]
async fn every_format_holds_every_test_once() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submit(client, every_kind()).await;
        let summary = client.json(&format!("/api/test-runs/{run}")).await.expect("a run");
        assert_eq!(summary["totalTests"], 8);
        for (format, extension, kind) in [
            ("junit", "xml", "application/xml"),
            ("ctrf", "json", "application/json"),
            ("csv", "csv", "text/csv; charset=utf-8"),
            ("ndjson", "ndjson", "application/x-ndjson"),
        ] {
            let file = export(client, run, &format!("format={format}")).await;
            assert_eq!(file.header("content-type"), kind);
            let name = format!("attachment; filename=\"callboard-run-{run}.{extension}\"");
            assert_eq!(file.header("content-disposition"), name);
        }
        for wrong in ["", "format=pdf", "format=csv&status=red", "format=csv&include=videos"] {
            let answer =
                client.get(&format!("/api/test-runs/{run}/export?{wrong}")).await.expect("an answer");
            assert_eq!(
                (answer.status.as_u16(), &answer.json().expect("an error")["code"]),
                (400, &json!("invalid_query")),
                "{wrong}"
            );
        }

        let lines = export(client, run, "format=ndjson&include=attempts,errors,evidence").await.text();
        let tests: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(tests.len(), 8);
        assert!(tests[1]["error"].as_str().expect("an error").contains("second line"));
        assert_eq!(tests[3]["attempts"].as_array().map(Vec::len), Some(2));
        assert!(tests.iter().all(|test| test.get("evidence").is_some()));
        let failed = export(client, run, "format=ndjson&status=failed,timedout").await.text();
        assert_eq!(failed.lines().count(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_table_holds_no_formula() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submit(client, every_kind()).await;
        let table = export(client, run, "format=csv&include=errors").await.text();
        let rows = cells(&table);
        assert_eq!(rows.len(), 9);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:?}");
        for cell in rows.iter().flatten() {
            assert!(!cell.starts_with(['=', '+', '-', '@']), "{cell}");
        }
        assert!(rows[2][2].starts_with("'=HYPERLINK(\"x\")"), "{:?}", rows[2]);
        assert!(rows[2].iter().any(|cell| cell.contains("expected <1> & \"2\"\n")), "{:?}", rows[2]);
    })
    .await;
}

/// Takes a table apart as RFC 4180 says.
fn cells(table: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut letters = table.chars().peekable();
    let mut is_quoted = false;
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => cell.extend(letters.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !is_quoted => {}
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            other => cell.push(other),
        }
    }
    assert!(!is_quoted && cell.is_empty() && row.is_empty());
    rows
}

/// The keys that the schema of the format knows, by place; it forbids others.
const CTRF_KEYS: [(&str, &[&str]); 7] = [
    (
        "",
        &[
            "reportFormat",
            "specVersion",
            "reportId",
            "timestamp",
            "generatedBy",
            "extra",
            "results",
            "insights",
            "baseline",
        ],
    ),
    ("results", &["tool", "summary", "tests", "environment", "extra"]),
    ("results.tool", &["name", "version", "extra"]),
    (
        "results.summary",
        &[
            "tests", "passed", "failed", "skipped", "pending", "other", "flaky", "suites", "start", "stop",
            "duration", "extra",
        ],
    ),
    (
        "results.environment",
        &[
            "reportName",
            "appName",
            "appVersion",
            "buildId",
            "buildName",
            "buildNumber",
            "buildUrl",
            "repositoryName",
            "repositoryUrl",
            "commit",
            "branchName",
            "osPlatform",
            "osRelease",
            "osVersion",
            "testEnvironment",
            "healthy",
            "extra",
        ],
    ),
    (
        "test",
        &[
            "id",
            "name",
            "status",
            "duration",
            "start",
            "stop",
            "suite",
            "message",
            "trace",
            "snippet",
            "ai",
            "line",
            "rawStatus",
            "tags",
            "labels",
            "type",
            "filePath",
            "retries",
            "retryAttempts",
            "flaky",
            "stdout",
            "stderr",
            "threadId",
            "browser",
            "device",
            "screenshot",
            "attachments",
            "parameters",
            "steps",
            "insights",
            "extra",
        ],
    ),
    (
        "attempt",
        &[
            "attempt",
            "status",
            "duration",
            "message",
            "trace",
            "line",
            "snippet",
            "stdout",
            "stderr",
            "start",
            "stop",
            "attachments",
            "extra",
        ],
    ),
];

fn knows(place: &str, object: &Value) {
    let (_, known) = CTRF_KEYS.iter().find(|(at, _)| *at == place).expect("a place");
    let unknown: Vec<_> = object
        .as_object()
        .expect("an object")
        .iter()
        .filter(|(key, value)| !known.contains(&key.as_str()) || value.is_null())
        .collect();
    assert!(unknown.is_empty(), "{place}: {unknown:?}");
}

#[tokio::test]
async fn ctrf_says_what_its_schema_allows_and_its_numbers_add_up() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submit(client, every_kind()).await;
        let report = export(client, run, "format=ctrf&include=attempts,errors").await.json().expect("JSON");
        for place in ["", "results", "results.tool", "results.summary", "results.environment"] {
            let pointer =
                if place.is_empty() { String::new() } else { format!("/{}", place.replace('.', "/")) };
            knows(place, report.pointer(&pointer).expect("there"));
        }
        assert_eq!(
            (&report["reportFormat"], &report["results"]["tool"]["name"]),
            (&json!("CTRF"), &json!("playwright"))
        );
        assert!(
            report["specVersion"]
                .as_str()
                .expect("a version")
                .split('.')
                .all(|part| part.parse::<u32>().is_ok())
        );
        let tests = report["results"]["tests"].as_array().expect("tests");
        for test in tests {
            knows("test", test);
            assert!(!test["name"].as_str().expect("a name").is_empty());
            assert!(
                test["duration"].is_i64()
                    && test.get("suite").is_none_or(|suite| !suite.as_array().expect("a list").is_empty())
            );
            for attempt in test.get("retryAttempts").and_then(Value::as_array).into_iter().flatten() {
                knows("attempt", attempt);
                assert!(attempt["attempt"].as_i64().expect("a number") >= 1);
            }
        }
        let summary = &report["results"]["summary"];
        let count = |status: &str| tests.iter().filter(|test| test["status"] == status).count();
        for status in ["passed", "failed", "skipped", "pending", "other"] {
            assert_eq!(summary[status], count(status), "{status}");
        }
        assert_eq!(
            (&summary["tests"], &summary["flaky"], &summary["failed"]),
            (&json!(8), &json!(1), &json!(2))
        );
        assert!(summary["stop"].as_i64() >= summary["start"].as_i64());
        let flaky = tests.iter().find(|test| test["flaky"] == true).expect("the flaky test");
        assert_eq!((&flaky["retries"], &flaky["retryAttempts"][0]["status"]), (&json!(1), &json!("failed")));
    })
    .await;
}

#[tokio::test]
async fn junit_is_well_formed_and_keeps_to_what_both_schemas_know() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submit(client, every_kind()).await;
        let text = export(client, run, "format=junit&include=errors").await.text();
        let elements = elements(&text);
        let allowed = |name: &str| -> (&[&str], &[&str]) {
            match name {
                "testsuites" => (&[], &[]),
                "testsuite" => (
                    &[
                        "package",
                        "id",
                        "name",
                        "timestamp",
                        "hostname",
                        "tests",
                        "failures",
                        "errors",
                        "time",
                    ],
                    &["skipped"],
                ),
                "property" => (&["name", "value"], &[]),
                "testcase" => (&["name", "classname", "time"], &[]),
                "failure" | "error" => (&["type"], &["message"]),
                "skipped" => (&[], &["message"]),
                "properties" | "system-out" | "system-err" => (&[], &[]),
                other => panic!("{other} is in no schema"),
            }
        };
        for (name, attributes) in &elements {
            let (required, optional) = allowed(name);
            let found: BTreeSet<&str> = attributes.iter().map(|(key, _)| key.as_str()).collect();
            assert!(required.iter().all(|key| found.contains(key)), "{name}: {found:?}");
            assert!(
                found.iter().all(|key| required.contains(key) || optional.contains(key)),
                "{name}: {found:?}"
            );
        }
        let count = |wanted: &str| elements.iter().filter(|(name, _)| name == wanted).count().to_string();
        let suite = &elements.iter().find(|(name, _)| name == "testsuite").expect("a suite").1;
        let value = |key: &str| suite.iter().find(|(name, _)| name == key).expect("the attribute").1.clone();
        assert_eq!((value("tests"), value("failures")), (count("testcase"), count("failure")));
        assert_eq!((value("errors"), value("skipped")), (count("error"), count("skipped")));
        assert_eq!(value("timestamp"), "2026-01-01T10:00:00");
        assert!(text.contains("Shop › +1 in chromium [chromium]"));
        assert!(!text.contains('\u{1b}'));
    })
    .await;
}

#[tokio::test]
async fn junit_tells_of_every_try_where_it_is_asked_for_them() {
    for_each_service(async |service| {
        let client = service.client();
        let cases = vec![
            attempt("wobbles", "failed", 0),
            attempt("wobbles", "passed", 1),
            attempt("breaks", "failed", 0),
            attempt("breaks", "interrupted", 1),
            attempt("breaks", "timedOut", 2),
            attempt("passes", "passed", 0),
        ];
        let run = submit(client, run("shop", "failed", cases)).await;
        let text = export(client, run, "format=junit&include=attempts").await.text();
        let told: Vec<(String, String)> = elements(&text)
            .into_iter()
            .filter(|(name, _)| {
                ["testcase", "failure", "error"].contains(&name.as_str())
                    || name.contains("run")
                    || name.contains("flaky")
            })
            .map(|(name, attributes)| {
                let wanted = if name == "testcase" { "name" } else { "type" };
                let value = attributes.into_iter().find(|(key, _)| key == wanted).expect(wanted).1;
                (name, value)
            })
            .collect();
        let told: Vec<(&str, &str)> =
            told.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            told,
            [
                ("testcase", "Shop › wobbles"),
                ("flakyFailure", "failed"),
                ("testcase", "Shop › breaks"),
                ("failure", "timedout"),
                ("rerunFailure", "failed"),
                ("rerunError", "interrupted"),
                ("testcase", "Shop › passes"),
            ]
        );
        assert!(text.contains("<flakyFailure message=\"Error: wobbles went wrong"), "{text}");
        assert!(!export(client, run, "format=junit").await.text().contains("rerun"));
    })
    .await;
}

/// Takes XML apart strictly enough to notice what is not well formed: elements
/// in order, with their attributes.
fn elements(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut rest = text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").expect("a declaration");
    let (mut open, mut found) = (Vec::new(), Vec::new());
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'));
        let end = start + rest[start..].find('>').expect("an end");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut read = Vec::new();
        while let Some((key, after)) = attributes.split_once("=\"") {
            let (value, after) = after.split_once('"').expect("a closing quote");
            read.push((key.trim().to_owned(), value.to_owned()));
            attributes = after;
        }
        assert!(attributes.trim().is_empty(), "{tag}");
        found.push((name.to_owned(), read));
        if !is_empty {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty());
    found
}

#[tokio::test]
async fn a_long_run_is_exported_whole() {
    const TESTS: usize = 1203;
    for_each_service(async |service| {
        let client = service.client();
        let run = submit(client, run("shop", "passed", passing(TESTS))).await;
        let lines = export(client, run, "format=ndjson").await.text();
        let ids: BTreeSet<i64> = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].as_i64().expect("an id"))
            .collect();
        assert_eq!((lines.lines().count(), ids.len()), (TESTS, TESTS));
        let report = export(client, run, "format=ctrf").await.json().expect("JSON");
        assert_eq!(report["results"]["tests"].as_array().map(Vec::len), Some(TESTS));
        assert_eq!(
            elements(&export(client, run, "format=junit").await.text())
                .iter()
                .filter(|(name, _)| name == "testcase")
                .count(),
            TESTS
        );
        assert_eq!(cells(&export(client, run, "format=csv").await.text()).len(), TESTS + 1);
    })
    .await;
}
