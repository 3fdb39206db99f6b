//! Payloads that read like the domain.

use serde_json::{Value, json};

/// A submission of a run with these test cases.
pub(crate) fn run(project: &str, status: &str, cases: Vec<Value>) -> Value {
    json!({
        "projectName": project,
        "status": status,
        "startTime": "2026-01-01T10:00:00.000Z",
        "duration": 5000,
        "totalTests": 99,
        "passedTests": 99,
        "failedTests": 99,
        "skippedTests": 99,
        "testCases": cases,
    })
}

/// One attempt of a test of `tests/shop.spec.ts`.
pub(crate) fn attempt(title: &str, status: &str, retry: u32) -> Value {
    let mut case = json!({
        "title": title,
        "status": status,
        "duration": 100 + retry,
        "location": "tests/shop.spec.ts:7:5",
        "retries": retry,
        "suitePath": ["Shop"],
    });
    if status == "failed" || status == "timedOut" {
        case["error"] = json!(format!("Error: {title} went wrong\n    at tests/shop.spec.ts:9:3"));
    }
    case
}

/// A value with some keys set.
pub(crate) fn with(mut value: Value, set: Value) -> Value {
    if let (Some(fields), Value::Object(set)) = (value.as_object_mut(), set) {
        fields.extend(set);
    }
    value
}

/// `count` passing tests in files of twenty.
pub(crate) fn passing(count: usize) -> Vec<Value> {
    (0..count)
        .map(|n| {
            json!({
                "title": format!("test {n}"), "status": "passed", "duration": 10, "retries": 0,
                "location": format!("tests/file-{}.spec.ts:{}:1", n / 20, n % 20 + 1),
            })
        })
        .collect()
}

/// A test with so many lines of console, none of which says what another one
/// says: a compressor makes little of them.
pub(crate) fn telling(n: u64, lines: u64) -> Value {
    let line = |line: u64| {
        let mut state = n * 1_000_003 + line + 1;
        let words = (0..60).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{:x}", state >> 16)
        });
        json!({ "type": "log", "text": words.collect::<String>() })
    };
    let console: Vec<Value> = (0..lines).map(line).collect();
    with(attempt(&format!("test {n}"), "passed", 0), json!({ "consoleLogs": console }))
}
