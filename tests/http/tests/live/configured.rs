//! What settings bound of what a run sends: how much is kept of an attempt, and
//! how large a body may be.

use std::io::Error;

use callboard_store::Backend;
use callboard_test_support::databases::for_each_backend;
use callboard_test_support::{Answer, Form, Service, Settings, TestDatabase};
use futures::stream;
use reqwest::{Body, Method};
use serde_json::{Value, json};

use super::{code, complete, picked, start};
use crate::builders::{attempt, run, with};

#[tokio::test]
async fn what_is_kept_of_an_attempt_is_configured_for_every_way_it_comes() {
    for_each_backend(async |backend| {
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let caps = [
            ("SERVICE_INGEST_MAX_STEPS", "20"),
            ("SERVICE_INGEST_MAX_SAMPLE_ERROR_CHARS", "1000"),
            ("SERVICE_INGEST_MAX_CONSOLE_ENTRIES", "30"),
            ("SERVICE_INGEST_MAX_CONSOLE_ENTRY_CHARS", "200"),
        ];
        let caps: Settings = caps.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let service = Service::over(database, &caps).await.expect("a service");
        let client = service.client();
        for more in [0, 1] {
            let steps: Vec<Value> = (0..20 + more)
                .map(|n| json!({ "title": format!("step {n}"), "duration": 5, "category": "action" }))
                .collect();
            let console: Vec<Value> = (0..30 + more)
                .map(|n| {
                    let text = format!("{n} {}", "é".repeat(200 + more));
                    let text: String = text.chars().take(200 + more).collect();
                    json!({ "type": "log", "text": text, "timestamp": 1_767_261_600_000_i64 })
                })
                .collect();
            // A cause of its own, so that each way is seen first.
            let case = |way: &str| {
                let error = format!("Error: {way} {}\n", ["whole", "cut"][more]);
                let error = format!("{error}{}", "x".repeat(1_000 + more - error.len()));
                with(
                    attempt(&format!("{way} {more}"), "failed", 0),
                    json!({ "steps": steps, "consoleLogs": console, "error": error }),
                )
            };
            let feeder = start(client, json!({ "clientRunId": format!("fed-with-{more}-more") })).await;
            feeder.results(vec![case("events")]).await;
            client
                .post_json("/api/test-runs/submit", &run("shop", "failed", vec![case("submit")]))
                .await
                .expect("stored");
            let form = Form::new()
                .field("projectName", "shop")
                .field("testRun", run("shop", "failed", Vec::new()).to_string())
                .field("testCases", json!([case("upload")]).to_string());
            let request = client.request(Method::POST, "/api/test-runs/upload");
            let request = request.header("content-type", Form::content_type()).body(form.into_body());
            Answer::send(request).await.expect("an answer").success().expect("stored");
        }
        let runs = client.json("/api/test-runs").await.expect("runs");
        for shown in runs["items"].as_array().expect("runs") {
            let executions =
                client.json(&format!("/api/test-runs/{}/executions", shown["id"])).await.expect("executions");
            for execution in executions["items"].as_array().expect("executions") {
                let told = client
                    .json(&format!("/api/test-run-cases/{}", execution["id"]))
                    .await
                    .expect("an execution");
                let is_cut = told["title"].as_str().expect("a title").ends_with('1');
                let steps = told["evidence"]["steps"].as_array().expect("steps");
                assert_eq!(
                    (steps.len(), told["error"].as_str().map(str::len)),
                    (20, Some(1_000 + usize::from(is_cut))),
                    "{told}"
                );
                let console = told["evidence"]["consoleLogs"].as_array().expect("a console");
                let is_marked = console.iter().any(|entry| entry["text"] == "[1 console entries dropped]");
                assert_eq!((console.len(), is_marked), (30 + usize::from(is_cut), is_cut), "{told}");
                let last = console.last().and_then(|entry| entry["text"].as_str()).expect("a text");
                let kept = last.strip_suffix(" [truncated]").unwrap_or(last);
                assert_eq!((kept.chars().count(), kept.len() < last.len()), (200, is_cut), "{last}");
                let cluster = client
                    .json(&format!("/api/failure-clusters/{}", execution["clusterId"]))
                    .await
                    .expect("a cluster");
                let sample = cluster["sampleError"].as_str().expect("a sample");
                assert_eq!(sample.contains("… [truncated 1 chars] …"), is_cut, "{sample}");
            }
        }
        assert_eq!(runs["items"].as_array().map(Vec::len), Some(6));
    })
    .await;
}

#[tokio::test]
async fn each_body_is_bounded_where_it_is_configured() {
    const MIB: usize = 1024 * 1024;
    let setting = |name: &str| (name.to_owned(), MIB.to_string());
    let settings = vec![
        setting("SERVICE_INGEST_MAX_EVENTS_BYTES"),
        setting("SERVICE_INGEST_MAX_SUBMIT_BYTES"),
        setting("SERVICE_UPLOAD_MAX_BYTES"),
    ];
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let service = Service::over(database, &settings).await.expect("a service");
    let feeder = start(service.client(), json!({})).await;
    let opened = service
        .client()
        .post_json("/api/test-runs/start", &super::fields(json!({ "clientRunId": "its-limits" })))
        .await;
    let limits = &opened.expect("started")["limits"];
    assert_eq!(
        picked(limits, ["eventsMaxBytes", "submitMaxBytes", "uploadMaxBytes"]),
        [json!(MIB), json!(MIB), json!(MIB)]
    );
    let sized = |body: &Value, bytes: usize| {
        let text = body.to_string();
        format!("{text}{}", " ".repeat(bytes - text.len()))
    };
    let send = async |path: &str, body: Body| {
        let request = service.client().request(Method::POST, path).header("content-type", "application/json");
        code(&Answer::send(request.body(body)).await.expect("an answer"))
    };
    let post = async |path: &str, body: String| send(path, body.into()).await;
    // Its length is told by nothing but its end.
    let post_in_pieces = async |path: &str, body: String| {
        let pieces: Vec<_> =
            body.into_bytes().chunks(64_000).map(|piece| Ok::<_, Error>(piece.to_vec())).collect();
        send(path, Body::wrap_stream(stream::iter(pieces))).await
    };
    let events =
        json!({ "streamToken": feeder.token, "testCases": [complete(attempt("pays", "passed", 0))] });
    let submission = run("shop", "passed", vec![attempt("pays", "passed", 0)]);
    let path = format!("/api/test-runs/{}", feeder.run);
    for (path, body, most) in [
        (format!("{path}/events"), &events, MIB),
        ("/api/test-runs/submit".to_owned(), &submission, MIB),
        (format!("{path}/heartbeat"), &events, 16 * MIB),
    ] {
        assert_eq!(post(&path, sized(body, most)).await.0, 200, "{path}");
        let too_large = (413, "body_too_large".to_owned());
        assert_eq!(post(&path, sized(body, most + 1)).await, too_large, "{path}");
        assert_eq!(post_in_pieces(&path, sized(body, most)).await.0, 200, "{path}");
        assert_eq!(post_in_pieces(&path, sized(body, most + 1)).await, too_large, "{path}");
    }
    let case = json!({ "title": "pays", "location": "tests/shop.spec.ts:7:5", "suitePath": ["Shop"] });
    let form = |bytes: usize| {
        let form = Form::new().field("streamToken", &feeder.token).field("testCase", case.to_string());
        form.file("trace", "trace.zip", "application/zip", &vec![b'x'; bytes]).into_body()
    };
    let around = form(0).len();
    for (bytes, status) in [(MIB - around, 200), (MIB - around + 1, 413)] {
        let request = service.client().request(Method::POST, &format!("{path}/case-files"));
        let request = request.header("content-type", Form::content_type());
        let answer = Answer::send(request.body(form(bytes))).await.expect("an answer");
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
    }
}

#[tokio::test]
async fn live_streams_are_counted_for_each_address_where_nobody_signs_in() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let limit: Settings = [("SERVICE_SSE_MAX_PER_IDENTITY".to_owned(), "1".to_owned())].into();
    let service = Service::over(database, &limit).await.expect("a service");
    let client = service.client();
    let first = client.request(Method::GET, "/api/stream").send().await.expect("an answer");
    assert_eq!(first.status(), 200);
    let refused = client.get("/api/stream").await.expect("an answer");
    assert_eq!(code(&refused), (429, "too_many_streams".to_owned()));
    assert!(!refused.header("retry-after").is_empty());
    drop(first);
}
