//! The calls of reporters that are in use, in their order and with their
//! bodies: releases 0.23, 0.25 and newer ones. What they leave out and how
//! they send it is theirs; what is stored of it has to be the same.

use std::io::Write as _;

use bytes::Bytes;
use callboard_test_support::{Answer, Client, Form, Service, for_each_service};
use futures::stream;
use reqwest::{Body, Method};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::picked;
use crate::builders::with;

const STARTED: &str = "2026-01-01T10:00:00.000Z";
const AT: i64 = 1_767_261_600_000;
const TRACE: &[u8] = b"PK\x03\x04 what a browser did";
const SHOT: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR-of-a-failure";

/// Releases by what they send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Release {
    /// No history of attempts, nothing of models, `failed` for every bad end.
    V23,
    /// As before, with what models were asked.
    V25,
    /// With the history of attempts.
    Newer,
}

impl Release {
    const ALL: [Self; 3] = [Self::V23, Self::V25, Self::Newer];

    const fn version(self) -> &'static str {
        match self {
            Self::V23 => "0.23.0",
            Self::V25 => "0.25.0",
            Self::Newer => "0.27.1",
        }
    }

    /// A result as this release sends it, with every key it knows.
    fn complete(self, title: &str, line: u32, status: &str, retry: u32, before: &[&str]) -> Value {
        let failed = status != "passed";
        let mut event = json!({
            "type": "complete",
            "title": title,
            "location": format!("tests/cart.spec.ts:{line}:5"),
            "status": status,
            "duration": 800 + retry,
            "timeout": 30_000,
            "error": failed.then(|| format!("Error: {title}\n    at tests/cart.spec.ts:{line}:9")),
            "retries": retry,
            "workerIndex": retry,
            "parallelIndex": 0,
            "startedAt": AT + 1000 * i64::from(retry),
            "steps": [{ "title": "Before Hooks", "duration": 12, "category": "hook" }],
            "stepEvents": [],
            "slowestStep": null, "slowestStepDuration": null, "wastedTimeMs": null,
            "networkRequests": null, "consoleLogs": null, "webVitals": null, "pageState": null,
            "ariaSnapshot": null, "testSource": null, "testSourceFrames": null, "locatorSnapshots": null,
            "browser": { "projectName": "chromium", "browserName": "chromium", "viewport": { "width": 1280, "height": 720 } },
            "suitePath": ["Cart"],
            "suiteConfig": [{ "mode": "default", "annotations": [] }],
            "testAnnotations": [],
            "tags": ["@smoke"],
            "testMeta": null,
        });
        if self != Self::V23 {
            event["aiUsage"] = Value::Null;
        }
        if self == Self::Newer {
            let attempts = before.iter().chain([&status]).enumerate().map(|(at, status)| {
                json!({ "retry": at, "status": status, "duration": 800 + at, "startedAt": AT + 1000 * at as i64 })
            });
            event["attempts"] = attempts.collect();
            event["didNotRunReason"] = Value::Null;
            event["blockedBy"] = Value::Null;
        }
        event
    }

    /// What begins a test.
    fn begin(self, title: &str, line: u32) -> Value {
        json!({
            "type": "begin", "title": title, "location": format!("tests/cart.spec.ts:{line}:5"), "status": null,
            "startedAt": null, "suitePath": ["Cart"], "workerIndex": 0, "shardIndex": null,
            "browser": { "projectName": "chromium", "browserName": "chromium" },
        })
    }

    fn start(self, project: &str) -> Value {
        json!({
            "projectName": project, "startTime": STARTED, "environment": null, "label": null,
            "metadata": { "scm": { "branch": "main", "commit": "0123abc" } }, "instanceId": "0123456789abcdef",
            "playwrightVersion": "1.61.1", "reporterVersion": self.version(), "isFullRun": true, "filterDetails": null,
        })
    }
}

async fn post(client: &Client, path: &str, body: &Value) -> Answer {
    client.post(path, body).await.expect("an answer")
}

/// A form that nobody knows the length of, as these clients stream theirs.
async fn post_form(client: &Client, path: &str, form: Form) -> Answer {
    let body = form.into_body();
    let pieces: Vec<Result<Bytes, std::io::Error>> =
        body.chunks(700).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let request = client.request(Method::POST, path).header("content-type", Form::content_type());
    Answer::send(request.body(Body::wrap_stream(stream::iter(pieces)))).await.expect("an answer")
}

/// A streamed run of two tests, one of them flaky with files; answers its id.
async fn stream_run(client: &Client, release: Release, project: &str) -> i64 {
    let started =
        post(client, "/api/test-runs/start", &release.start(project)).await.success().expect("started");
    let run = started["runId"].as_i64().expect("a positive number");
    let token = started["streamToken"].as_str().expect("a token").to_owned();
    assert_eq!(token.len(), 64);
    let call = |name: &str| format!("/api/test-runs/{run}/{name}");
    let batch = |events: Vec<Value>| json!({ "streamToken": token, "testCases": events });

    let began = batch(vec![release.begin("adds tea", 7), release.begin("pays", 12)]);
    post(client, &call("events"), &began).await.success().expect("begun");
    let first = vec![
        json!({
            "type": "step-begin", "title": "Before Hooks", "parentTitle": "pays", "stepCategory": "hook", "workerIndex": 0,
            "startedAt": AT, "location": null,
        }),
        release.complete("adds tea", 7, "passed", 0, &[]),
        release.complete("pays", 12, "failed", 0, &[]),
    ];
    post(client, &call("events"), &batch(first.clone())).await.success().expect("taken");
    post(client, &call("heartbeat"), &json!({ "streamToken": token })).await.success().expect("alive");
    // A batch whose answer got lost is sent again with the next events in it.
    let again = first.into_iter().chain([release.complete("pays", 12, "passed", 1, &["failed"])]).collect();
    post(client, &call("events"), &batch(again)).await.success().expect("taken");

    let hash = hex::encode(Sha256::digest(TRACE));
    let check = json!({ "projectName": project, "hashes": [hash] });
    let known = post(client, "/api/traces/check", &check).await.success().expect("checked");
    assert_eq!(picked(&known, ["existing", "missing"]), [json!([]), json!([hash])]);
    let case = json!({ "title": "pays", "location": "tests/cart.spec.ts:12:5", "retries": 0, "suitePath": ["Cart"] });
    let files = || {
        Form::new()
            .field("streamToken", &token)
            .field("testCase", case.to_string())
            .field("trace_hash", &hash)
    };
    let shots =
        json!([{ "name": "screenshot", "contentType": "image/png", "originalName": "test-failed-1.png" }]);
    let whole = files()
        .file("trace", "trace.zip", "application/zip", TRACE)
        .field("attach_meta", shots.to_string())
        .file("attach_file", "test-failed-1.png", "image/png", SHOT);
    let linked = post_form(client, &call("case-files"), whole).await.success().expect("linked");
    assert_eq!(picked(&linked, ["traces", "attachments"]), [json!(1), json!(1)]);
    let known = post(client, "/api/traces/check", &check).await.success().expect("checked");
    assert_eq!(picked(&known, ["existing", "missing"]), [json!([hash]), json!([])]);
    // A trace that is stored is only named.
    let named = post_form(client, &call("case-files"), files()).await.success().expect("known");
    assert_eq!(named["testRunsCaseId"], linked["testRunsCaseId"]);

    // Attempts are counted, not tests: three, one of them failed.
    let finish = json!({
        "streamToken": token, "status": "passed", "duration": 5000, "totalTests": 3, "passedTests": 2, "failedTests": 1,
        "skippedTests": 0, "durations": [800, 800, 801], "hasPendingUploads": true, "label": null,
        "playwrightVersion": "1.61.1", "reporterVersion": release.version(), "isFullRun": true, "filterDetails": null,
    });
    let finished = post(client, &call("finish"), &finish).await.success().expect("finished");
    assert_eq!(picked(&finished, ["testRunId", "status"]), [json!(run), json!("finalizing")]);
    let submitted = json!({
        "status": "already-submitted", "startTime": STARTED, "duration": 0, "totalTests": 0, "passedTests": 0,
        "failedTests": 0, "skippedTests": 0,
    });
    let attach = Form::new()
        .field("testRunId", run.to_string())
        .field("projectName", project)
        .field("testRun", submitted.to_string())
        .field("testCases", "[]")
        .file("report_html", "html-report.gz", "application/gzip", &report());
    let attached = post_form(client, "/api/test-runs/upload", attach).await.success().expect("attached");
    assert_eq!(picked(&attached["reports"][0], ["type", "label"]), [json!("html"), json!("HTML Report")]);
    run
}

fn report() -> Vec<u8> {
    callboard_test_support::report_archive(&[("index.html", b"<h1>report</h1>")]).expect("an archive")
}

/// What is stored of a run, without what differs between two equal runs.
async fn rows(client: &Client, run: i64) -> Value {
    let shown = client.json(&format!("/api/test-runs/{run}")).await.expect("the run");
    let keys = [
        "status",
        "totalTests",
        "passedTests",
        "failedTests",
        "flakyTests",
        "skippedTests",
        "branch",
        "commit",
    ];
    let page = client.json(&format!("/api/test-runs/{run}/executions?sort=file")).await.expect("executions");
    let items = page["items"].as_array().expect("a list").iter().map(|item| {
        let keys = [
            "title",
            "filePath",
            "suitePath",
            "location",
            "status",
            "flaky",
            "retries",
            "duration",
            "totalDuration",
            "browserProject",
            "browserName",
            "tags",
            "counts",
            "workerIndex",
        ];
        json!(picked(item, keys))
    });
    json!({ "run": picked(&shown, keys), "rows": items.collect::<Vec<_>>() })
}

#[tokio::test]
async fn every_release_leaves_the_same_rows() {
    for_each_service(async |service| {
        let mut stored = Vec::new();
        for release in Release::ALL {
            let project = format!("shop of {}", release.version());
            let run = stream_run(service.client(), release, &project).await;
            stored.push(rows(service.client(), run).await);
        }
        assert_eq!(stored[0]["run"], json!(["passed", 2, 2, 0, 1, 0, "main", "0123abc"]));
        assert_eq!(stored[0]["rows"].as_array().expect("rows").len(), 2);
        assert_eq!(stored[0], stored[1]);
        assert_eq!(stored[0], stored[2]);
    })
    .await;
}

#[tokio::test]
async fn a_client_that_signs_in_with_a_password_is_served_while_nobody_has_to() {
    for_each_service(async |service| {
        let login = json!({ "username": "ci", "password": "whatever it was configured with" });
        let answer = post(service.client(), "/api/auth/login", &login).await;
        let cookie = answer.header("set-cookie").split(';').next().expect("a pair").to_owned();
        assert!(cookie.contains('='), "{cookie}");
        let client = service.client().with_header("cookie", &cookie).expect("a header");
        let run = stream_run(&client, Release::V25, "shop").await;
        assert_eq!(rows(&client, run).await["run"][0], json!("passed"));
    })
    .await;
}

/// The whole run at once, as a client sends it that could not stream it.
async fn submit(service: &Service, release: Release, more: Value) -> Value {
    let cases: Vec<Value> = [
        release.complete("adds tea", 7, "passed", 0, &[]),
        release.complete("pays", 12, "failed", 0, &[]),
        release.complete("pays", 12, "passed", 1, &["failed"]),
    ]
    .into();
    let counted = json!({
        "status": "passed", "duration": 5000, "totalTests": 3, "passedTests": 2, "failedTests": 1, "skippedTests": 0,
        "testCases": cases,
    });
    let body = with(with(release.start("shop"), counted), more);
    post(service.client(), "/api/test-runs/submit", &body).await.success().expect("stored")
}

#[tokio::test]
async fn a_batch_is_what_the_streamed_run_would_have_been() {
    for_each_service(async |service| {
        let streamed = stream_run(service.client(), Release::V23, "streamed").await;
        let streamed = rows(service.client(), streamed).await;
        for (at, release) in Release::ALL.into_iter().enumerate() {
            let start = format!("2026-01-02T1{at}:00:00.000Z");
            let stored = submit(service, release, json!({ "startTime": start })).await;
            assert_eq!(stored["testRunId"], stored["runId"]);
            let mut stored = rows(service.client(), stored["runId"].as_i64().expect("a number")).await;
            // Nobody sent files with it.
            for (row, with_files) in stored["rows"]
                .as_array_mut()
                .expect("rows")
                .iter_mut()
                .zip(streamed["rows"].as_array().expect("rows"))
            {
                row[12] = with_files[12].clone();
            }
            assert_eq!(stored, streamed, "{release:?}");
        }
        // Sent again by a recovery that knows no instance, it is the same run.
        let first = submit(service, Release::V25, json!({ "startTime": "2026-01-03T10:00:00.000Z" })).await;
        let again = submit(
            service,
            Release::V25,
            json!({ "startTime": "2026-01-03T10:00:00.000Z", "instanceId": null }),
        )
        .await;
        assert_eq!(picked(&again, ["runId", "duplicate"]), [first["runId"].clone(), json!(true)]);
    })
    .await;
}

#[tokio::test]
async fn a_set_up_goes_before_and_a_second_begin_starts_anew() {
    for_each_service(async |service| {
        let client = service.client();
        let set_up = json!({
            "projectName": "shop", "startTime": STARTED, "instanceId": "00112233445566aa", "playwrightVersion": "1.61.1",
            "reporterVersion": "0.25.0", "isFullRun": true, "filterDetails": null,
        });
        let set_up = post(client, "/api/test-runs/setup", &set_up).await.success().expect("set up");
        let begin = json!({
            "setupToken": set_up["setupToken"], "totalTests": 2, "metadata": { "scm": { "branch": "main" } },
            "playwrightVersion": "1.61.1", "reporterVersion": "0.25.0", "isFullRun": true, "filterDetails": null,
        });
        let path = format!("/api/test-runs/{}/begin", set_up["runId"]);
        let begun = post(client, &path, &begin).await.success().expect("begun");
        assert_eq!(begun["runId"], set_up["runId"]);
        let refused = post(client, &path, &begin).await;
        assert_eq!(refused.status.as_u16(), 409);
        assert_eq!(refused.json().expect("json")["code"], json!("begin_not_possible"));
    })
    .await;
}

#[tokio::test]
async fn a_client_that_asks_for_a_step_is_told_that_there_is_no_model() {
    for_each_service(async |service| {
        let body = json!({ "step": "adds the first article to the basket" });
        let answer = post(service.client(), "/api/ai/step-resolution", &body).await;
        assert_eq!(answer.status.as_u16(), 503);
        assert_eq!(answer.json().expect("json")["code"], json!("ai_not_configured"));
    })
    .await;
}

#[tokio::test]
async fn a_batch_of_eleven_megabytes_is_taken_as_it_is_and_compressed() {
    for_each_service(async |service| {
        let client = service.client();
        for (number, is_compressed) in [false, true].into_iter().enumerate() {
            let start = with(Release::V25.start("large"), json!({ "instanceId": format!("large-batch-{number}") }));
            let started = post(client, "/api/test-runs/start", &start).await.success().expect("started");
            let console: Vec<Value> = (0..100)
                .map(|at| json!({ "type": "error", "text": format!("{at} {}", "x".repeat(1800)), "timestamp": AT, "location": null }))
                .collect();
            let events: Vec<Value> = (0..62)
                .map(|at| with(Release::V25.complete(&format!("test {at}"), at + 1, "passed", 0, &[]), json!({ "consoleLogs": console })))
                .collect();
            let body = json!({ "streamToken": started["streamToken"], "testCases": events }).to_string();
            assert!(body.len() > 11_000_000);
            let path = format!("/api/test-runs/{}/events", started["runId"]);
            let request = client.request(Method::POST, &path).header("content-type", "application/json");
            let request = if is_compressed {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(body.as_bytes()).expect("written");
                request.header("content-encoding", "gzip").body(encoder.finish().expect("compressed"))
            } else {
                request.body(body)
            };
            let answer = Answer::send(request).await.expect("an answer").success().expect("taken");
            assert_eq!(picked(&answer, ["processed", "inserted"]), [json!(62), json!(62)]);
        }
    })
    .await;
}

#[tokio::test]
async fn nobody_learns_of_traces_that_are_not_theirs() {
    for_each_service(async |service| {
        let client = service.client();
        stream_run(client, Release::Newer, "shop").await;
        let hash = hex::encode(Sha256::digest(TRACE));
        let ask = async |project: &str| {
            let hashes = json!([hash.to_uppercase(), "no hash", 7, hash]);
            let answer =
                post(client, "/api/traces/check", &json!({ "projectName": project, "hashes": hashes })).await;
            picked(&answer.success().expect("checked"), ["existing", "missing"])
        };
        assert_eq!(ask("shop").await, [json!([hash]), json!([])]);
        for other in ["a project of others", ""] {
            assert_eq!(ask(other).await, [json!([]), json!([hash])]);
        }
        for broken in [
            json!({}),
            json!({ "projectName": "shop" }),
            json!({ "projectName": "shop", "hashes": "no list" }),
        ] {
            let answer = post(client, "/api/traces/check", &broken).await;
            assert_eq!(answer.status.as_u16(), 400, "{}", answer.text());
        }
    })
    .await;
}
