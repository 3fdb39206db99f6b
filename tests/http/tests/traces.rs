//! Traces as they were recorded, read where they are stored.

use callboard_test_support::{Answer, Client, Form, Service, for_each_service};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::builders::{attempt, run};

const VERSIONS: [(&str, u32); 3] = [("1.40", 6), ("1.46", 7), ("1.65", 10)];

fn recorded(version: &str, name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/traces");
    std::fs::read(format!("{folder}/playwright-{version}/{name}.zip")).expect("a recorded trace")
}

/// Uploads a failing test with this trace and answers its execution.
async fn upload(client: &Client, trace: Option<&[u8]>) -> i64 {
    let submission = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
    let form = Form::new()
        .field("projectName", "shop")
        .field("testRun", submission.to_string())
        .field("testCases", submission["testCases"].to_string());
    let form = match trace {
        Some(trace) => form.file("trace_0", "trace.zip", "application/zip", trace),
        None => form,
    };
    let request = client.request(Method::POST, "/api/test-runs/upload");
    let request = request.header("content-type", Form::content_type()).body(form.into_body());
    let stored = Answer::send(request).await.expect("an answer").success().expect("stored");
    let executions =
        client.json(&format!("/api/test-runs/{}/executions", stored["runId"])).await.expect("executions");
    executions["items"][0]["id"].as_i64().expect("an execution")
}

async fn ask(client: &Client, execution: i64, what: &str) -> Value {
    client.json(&format!("/api/test-run-cases/{execution}/{what}")).await.expect("an answer")
}

#[tokio::test]
async fn every_recorded_version_tells_where_and_on_which_page_a_test_failed() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        for (version, format) in VERSIONS {
            let execution = upload(client, Some(&recorded(version, "renamed-button"))).await;
            let stacks = ask(client, execution, "trace-stacks").await;
            assert_eq!(
                (&stacks["status"], &stacks["version"], &stacks["warning"]),
                (&json!("ok"), &json!(format), &Value::Null)
            );
            assert_eq!(stacks["action"]["api"], "click", "{stacks:#}");
            assert_eq!(stacks["action"]["locator"], "getByRole('button', { name: 'Log in' })");
            let frame = &stacks["frames"][0];
            assert_eq!((&frame["line"], &frame["column"]), (&json!(26), &json!(56)));
            let failing = frame["source"]
                .as_array()
                .expect("source")
                .iter()
                .find(|line| line["line"] == 26)
                .expect("the line");
            assert_eq!(
                failing["text"],
                "    await page.getByRole('button', { name: 'Log in' }).click({ timeout: 700 });"
            );
            let dom = ask(client, execution, "dom-snapshot").await;
            let html = dom["html"].as_str().expect("html");
            assert!(
                html.contains("<button>Sign in</button>") && html.contains("<form aria-label=\"Sign in\">"),
                "{html}"
            );
            assert_eq!(dom["url"], "http://127.0.0.1:4400/account");
        }
        // The newest one has the accessibility tree too.
        let execution = upload(client, Some(&recorded("1.65", "renamed-button"))).await;
        let aria = ask(client, execution, "dom-snapshot?source=aria").await;
        assert!(aria["aria"].as_str().is_some_and(|aria| aria.contains("- button \"Sign in\"")), "{aria:#}");
    })
    .await;
}

#[tokio::test]
async fn requests_and_console_lines_of_a_failure_are_told_with_their_bodies() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        for (version, _) in VERSIONS {
            let execution = upload(client, Some(&recorded(version, "cart-request-fails"))).await;
            let network = ask(client, execution, "trace-network").await;
            let requests = network["requests"].as_array().expect("a list");
            let broken =
                requests.iter().find(|request| request["status"] == 503).expect("the request that failed");
            assert_eq!(
                (&broken["method"], &broken["url"], &broken["failed"]),
                (&json!("POST"), &json!("http://127.0.0.1:4400/api/cart"), &json!(true))
            );
            assert!(
                network["console"]
                    .as_array()
                    .expect("a list")
                    .iter()
                    .any(|line| line["text"] == "cart failed 503")
            );
            let sha1 = broken["responseBody"]["sha1"].as_str().expect("a body");
            let body = ask(client, execution, &format!("trace-network-body?sha1={sha1}")).await;
            assert_eq!(
                (&body["status"], &body["size"], &body["contentType"]),
                (&json!("ok"), &json!(11), &json!("text/plain")),
                "{body:#}"
            );
            assert!(body["content"].is_string());
            for odd in ["..%2F..%2Fetc%2Fpasswd", "test.trace", "0000000000000000000000000000000000000000"] {
                assert_eq!(
                    ask(client, execution, &format!("trace-network-body?sha1={odd}")).await["status"],
                    "no-data"
                );
            }
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_no_trace_is_told_with_a_status() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        let none = upload(client, None).await;
        let noise = upload(client, Some(&[b"PK\x03\x04".to_vec(), vec![7; 5_000]].concat())).await;
        let passed = upload(client, Some(&recorded("1.65", "adds-tea-to-the-cart"))).await;
        for (execution, status) in [(none, "no-trace"), (noise, "unsupported"), (passed, "no-data")] {
            assert_eq!(ask(client, execution, "trace-stacks").await["status"], status);
        }
        for what in ["trace-network", "dom-snapshot", "dom-snapshot?source=aria", "trace-network-body?sha1=a"]
        {
            assert_eq!(ask(client, none, what).await["status"], "no-trace", "{what}");
            assert_eq!(ask(client, noise, what).await["status"], "unsupported", "{what}");
        }
        assert_eq!(ask(client, passed, "trace-stacks?attempt=3").await["status"], "no-trace");
        for wrong in
            ["dom-snapshot?source=pdf", "trace-network-body", "trace-stacks?attempt=x", "explain?detail=more"]
        {
            let answer = client.get(&format!("/api/test-run-cases/{none}/{wrong}")).await.expect("an answer");
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}");
        }
        // Whoever has the answer about a trace does not get it again.
        let path = format!("/api/test-run-cases/{passed}/trace-network");
        let first = client.get(&path).await.expect("an answer");
        let tag = first.header("etag").to_owned();
        assert!(!tag.is_empty());
        let again = Answer::send(client.request(Method::GET, &path).header("if-none-match", &tag))
            .await
            .expect("an answer");
        assert_eq!((again.status, again.header("etag")), (StatusCode::NOT_MODIFIED, tag.as_str()));
    })
    .await;
}
