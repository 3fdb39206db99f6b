//! A run fed through functions: every call may meet another instance, and the
//! streams are as short as the gateway's patience.

use anyhow::{Result, ensure};
use callboard_test_functions::both::{Both, get, post, request};
use callboard_test_support::Form;
use http::Method;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

async fn sent(both: &Both, path: &str, body: &Value) -> Result<Value> {
    both.functions.send(&post(path, body)?).await?.success()
}

/// The messages of a stream that has ended.
async fn stream(both: &Both, path: &str) -> Result<Vec<Value>> {
    let answer = both.functions.send(&get(path)?).await?;
    let text = answer.text();
    ensure!(
        answer.header("content-type") == "text/event-stream" && text.starts_with("retry: 2000\n"),
        "{text}"
    );
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| Ok(serde_json::from_str(data)?))
        .collect()
}

#[tokio::test]
async fn a_run_is_fed_watched_and_finished_by_functions() {
    let both = Both::start().await.unwrap();
    let opened = sent(
        &both,
        "/api/test-runs/start",
        &json!({ "projectName": "shop", "startTime": "2026-01-01T10:00:00.000Z", "totalTests": 1 }),
    )
    .await
    .unwrap();
    assert_eq!(opened["limits"]["requestMaxBytes"], 6 * 1024 * 1024);
    let (run, token) = (&opened["runId"], &opened["streamToken"]);
    let events = json!({ "streamToken": token, "testCases": [
        { "type": "begin", "title": "pays", "location": "tests/pay.spec.ts:9:5" },
        { "type": "complete", "title": "pays", "location": "tests/pay.spec.ts:9:5", "status": "passed", "duration": 80,
          "steps": [{ "title": "click", "duration": 12 }] },
    ] });
    let taken = sent(&both, &format!("/api/test-runs/{run}/events"), &events).await.unwrap();
    assert_eq!((&taken["processed"], &taken["inserted"]), (&json!(2), &json!(1)));

    let form = Form::new()
        .field("streamToken", token.as_str().unwrap())
        .field("testCase", json!({ "title": "pays", "location": "tests/pay.spec.ts:9:5" }).to_string())
        .file("attach_file", "note.txt", "text/plain", b"a note");
    let upload = request(Method::POST, &format!("/api/test-runs/{run}/case-files"))
        .header(CONTENT_TYPE, Form::content_type())
        .body(form.into_body())
        .unwrap();
    let linked = both.functions.send(&upload).await.unwrap().success().unwrap();
    assert_eq!(linked["attachments"], 1);

    let path = format!("/api/test-runs/{run}/stream");
    let watched = stream(&both, &path).await.unwrap();
    let kinds: Vec<&Value> = watched.iter().map(|message| &message["type"]).collect();
    assert_eq!(kinds, ["init", "test-completed"], "the stream ends while the run goes on");
    let last = &watched[0]["seq"];
    let finish = json!({ "streamToken": token, "status": "passed", "duration": 900 });
    let finished = sent(&both, &format!("/api/test-runs/{run}/finish"), &finish).await.unwrap();
    assert_eq!(finished["status"], "passed");
    let resumed = stream(&both, &format!("{path}?lastEventId={last}")).await.unwrap();
    assert_eq!(resumed.last().unwrap()["type"], "run-finished");
    let all = stream(&both, "/api/stream?lastEventId=0").await.unwrap();
    let kinds: Vec<&Value> = all.iter().map(|message| &message["type"]).collect();
    assert_eq!(kinds, ["run-started", "run-finished"]);

    let shown =
        both.ask_runner(&get(&format!("/api/test-runs/{run}")).unwrap()).await.unwrap().success().unwrap();
    assert_eq!((&shown["status"], &shown["totalTests"]), (&json!("passed"), &json!(1)));
}
