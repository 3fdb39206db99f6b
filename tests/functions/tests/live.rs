//! A run fed through functions: every call may meet another instance, and the
//! streams are as short as the gateway's patience.

use anyhow::{Result, ensure};
use bytes::Bytes;
use callboard_test_functions::both::{Both, get, post, request, settings};
use callboard_test_support::{Form, Function};
use http::header::CONTENT_TYPE;
use http::{Method, Request};
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
    assert_eq!(opened["limits"]["requestMaxBytes"], 4 * 1024 * 1024);
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

/// A form with a file for a test of a run.
fn file_of(path: &str, fields: &[(&str, &str)]) -> Result<Request<Bytes>> {
    let form = fields.iter().fold(Form::new(), |form, (name, value)| form.field(name, *value));
    let form = form.file("attach_file", "note.txt", "text/plain", b"a note");
    let upload = request(Method::POST, path).header(CONTENT_TYPE, Form::content_type());
    Ok(upload.body(form.into_body())?)
}

#[tokio::test]
async fn what_opens_a_run_is_in_no_log_of_a_function() {
    let both = Both::start().await.unwrap();
    let mut asking = settings(&both.database, &both.bucket);
    asking.push(("SERVICE_LOG".to_owned(), "trace".to_owned()));
    let live = Function::start("live", &asking).await.unwrap();
    let call = async |name: &str, run: &Value, body: &Value| -> Result<Value> {
        let path =
            format!("/api/test-runs/{}{name}", run.as_i64().map_or(String::new(), |run| format!("{run}/")));
        live.invoke(&format!("ANY {}", path.replace(&run.to_string(), "{id}")), &post(&path, body)?)
            .await?
            .json()
    };
    let opening = json!({ "projectName": "shop", "startTime": "2026-01-01T10:00:00.000Z" });
    let set_up = call("setup", &Value::Null, &opening).await.unwrap();
    let (run, set_up) = (&set_up["runId"], &set_up["setupToken"]);
    let begun = call("begin", run, &json!({ "setupToken": set_up })).await.unwrap();
    let token = &begun["streamToken"];
    let case = json!({ "title": "pays", "location": "tests/pay.spec.ts:9:5" });
    let events = json!({ "streamToken": token, "testCases": [
        { "type": "complete", "title": "pays", "location": "tests/pay.spec.ts:9:5", "status": "passed" },
    ] });
    assert_eq!(call("events", run, &events).await.unwrap()["inserted"], 1);
    assert_eq!(call("heartbeat", run, &json!({ "streamToken": token })).await.unwrap()["status"], "running");
    // Refused calls are told of, too, and what the sender holds beside the token.
    let invented = "5".repeat(64);
    let refused = call("events", run, &json!({ "streamToken": invented, "testCases": [] })).await.unwrap();
    assert_eq!(refused["code"], "invalid_token");
    let path = format!("/api/test-runs/{run}/case-files");
    let fields = [("streamToken", token.as_str().unwrap()), ("testCase", &case.to_string())];
    let key = format!("pd_{}", "e".repeat(64));
    let mut upload = file_of(&path, &fields).unwrap();
    upload.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    let linked = live.invoke("ANY /api/test-runs/{id}/case-files", &upload).await.unwrap();
    assert_eq!(linked.success().unwrap()["attachments"], 1);
    let mut watch = get(&format!("/api/test-runs/{run}/stream")).unwrap();
    watch.headers_mut().insert("x-stream-token", token.as_str().unwrap().parse().unwrap());
    assert_eq!(live.invoke("ANY /api/test-runs/{id}/stream", &watch).await.unwrap().status, 200);
    let finish = json!({ "streamToken": token, "status": "passed", "duration": 900 });
    assert_eq!(call("finish", run, &finish).await.unwrap()["status"], "passed");

    let submit = Function::start("submit", &asking).await.unwrap();
    let whole = json!({ "projectName": "shop", "status": "passed", "startTime": "2026-01-01T11:00:00.000Z", "testCases": [] });
    let mut sent = post("/api/test-runs/submit", &whole).unwrap();
    sent.headers_mut().insert("x-api-key", key.parse().unwrap());
    sent.headers_mut().insert("cookie", "svc_session=a-session-of-mine".parse().unwrap());
    let stored = submit.invoke("ANY /api/test-runs/submit", &sent).await.unwrap();
    assert_eq!(stored.success().unwrap()["status"], "passed");

    for (function, told) in [(&live, "/finish"), (&submit, "/submit")] {
        let log = function.output();
        assert!(log.contains(told) && log.contains("\"level\":\"TRACE\""), "everything is told: {log}");
        let secrets = [set_up, token].map(|token| token.as_str().unwrap());
        for secret in secrets.into_iter().chain([invented.as_str(), &key, "a-session-of-mine"]) {
            assert_eq!(log.lines().find(|line| line.contains(secret)), None);
        }
    }
}
