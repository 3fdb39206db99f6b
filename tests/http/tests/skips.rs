//! Why tests were skipped, and how often they were repeated, wherever a run is
//! read.

use callboard_test_support::{Client, for_each_service};
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::comparison::submit;

/// A run with a skipped test, and two tests that ran twice.
fn repeated_run() -> Value {
    let noted = |kind: &str, text: &str| json!([{ "type": "tag", "description": "x" }, { "type": kind, "description": text }]);
    let repetition = |title: &str, status: &str, index: u32| {
        with(
            attempt(title, status, 0),
            json!({ "repeatEachIndex": index, "startedAt": 1_767_261_600_000_i64 + i64::from(index) }),
        )
    };
    let cases = vec![
        with(
            attempt("prints", "skipped", 0),
            json!({ "testAnnotations": noted("skip", "the printer is out of paper") }),
        ),
        with(
            attempt("ships", "skipped", 0),
            json!({ "testAnnotations": noted("fixme", "waiting for SHOP-12") }),
        ),
        // Only what was skipped has a reason for it.
        with(attempt("pays", "passed", 0), json!({ "testAnnotations": noted("skip", "on Windows") })),
        repetition("looks", "passed", 0),
        repetition("looks", "passed", 1),
        repetition("counts", "passed", 0),
        repetition("counts", "didnotrun", 1),
    ];
    with(run("shop", "passed", cases), json!({ "plannedTests": 7 }))
}

async fn text(client: &Client, path: &str) -> String {
    let answer = client.get(path).await.expect("an answer");
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.text()
}

#[tokio::test]
async fn the_reason_of_a_skip_is_readable_wherever_the_test_is() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submit(client, repeated_run()).await;
        let listed = client.json(&format!("/api/test-runs/{run}/executions?sort=id")).await.expect("a list");
        let rows = listed["items"].as_array().expect("rows");
        let reasons: Vec<_> =
            rows.iter().map(|row| (row["title"].clone(), row["skipReason"].clone())).collect();
        let expected = [
            ("prints", json!("the printer is out of paper")),
            ("ships", json!("waiting for SHOP-12")),
            ("pays", Value::Null),
            ("looks", Value::Null),
            ("counts", Value::Null),
        ];
        assert_eq!(reasons, expected.map(|(title, reason)| (json!(title), reason)));
        assert!(rows.iter().all(|row| row["error"].is_null()));

        let id = &rows[0]["id"];
        let whole = client.json(&format!("/api/test-run-cases/{id}")).await.expect("a test");
        assert_eq!(whole["annotations"].as_array().map(Vec::len), Some(2));
        let bare = client.json(&format!("/api/test-run-cases/{id}?include=none")).await.expect("a test");
        assert_eq!(bare["skipReason"], "the printer is out of paper");
        assert!(bare.get("annotations").is_none(), "what was not asked for is not empty");

        for path in [
            format!("/test-runs/{run}"),
            format!("/test-run-cases/{id}"),
            format!("/test-cases/{}", rows[0]["testCaseId"]),
            format!("/api/test-runs/{run}/export?format=csv"),
            format!("/api/test-runs/{run}/export?format=ctrf"),
        ] {
            assert!(text(client, &path).await.contains("the printer is out of paper"), "{path}");
        }
        let junit = text(client, &format!("/api/test-runs/{run}/export?format=junit")).await;
        assert!(junit.contains("<skipped message=\"waiting for SHOP-12\"/>"), "{junit}");
    })
    .await;
}

#[tokio::test]
async fn repetitions_are_counted_beside_tests() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submit(client, repeated_run()).await;
        let counted = async || {
            let run = client.json(&format!("/api/test-runs/{run}")).await.expect("a run");
            (run["totalTests"].clone(), run["repetitions"].clone())
        };
        assert_eq!(counted().await, (json!(5), json!(7)));
        assert!(text(client, &format!("/test-runs/{run}")).await.contains("7 with repetitions"));
        // The same again adds nothing.
        submit(client, repeated_run()).await;
        assert_eq!(counted().await, (json!(5), json!(7)));
    })
    .await;
}
