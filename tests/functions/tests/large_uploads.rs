//! A function receives no large file: the client sends it to the bucket, and
//! the function verifies and links what is there.

use anyhow::Result;
use callboard_test_functions::both::{Both, get, post};
use callboard_test_support::Client;
use http::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const TRACE_BYTES: usize = 7_000_000;

async fn sent(both: &Both, path: &str, body: &Value) -> Result<Value> {
    both.functions.send(&post(path, body)?).await?.success()
}

#[tokio::test]
async fn a_trace_beyond_the_request_limit_comes_in_through_the_bucket() {
    let both = Both::start().await.unwrap();
    let start = json!({ "projectName": "shop", "startTime": "2026-01-01T10:00:00.000Z" });
    let opened = sent(&both, "/api/test-runs/start", &start).await.unwrap();
    assert!(opened["capabilities"].as_array().unwrap().contains(&json!("uploads.plan")), "{opened}");
    assert!(opened["limits"]["requestMaxBytes"].as_u64().unwrap() < TRACE_BYTES as u64);
    let (run, token) = (&opened["runId"], &opened["streamToken"]);
    let case = json!({ "title": "pays", "location": "tests/pay.spec.ts:9:5", "retries": 0 });
    let mut result = case.clone();
    result["type"] = json!("complete");
    result["status"] = json!("failed");
    let events = json!({ "streamToken": token, "testCases": [result] });
    sent(&both, &format!("/api/test-runs/{run}/events"), &events).await.unwrap();

    let mut trace = b"PK\x03\x04".to_vec();
    trace.extend((trace.len()..TRACE_BYTES).map(|at| u8::try_from(at % 251).unwrap()));
    let sha256 = hex::encode(Sha256::digest(&trace));
    let file = json!({ "sha256": sha256, "size": trace.len(), "kind": "trace" });
    let plan = json!({ "runId": run, "streamToken": token, "files": [file] });
    let planned = sent(&both, "/api/uploads/plan", &plan).await.unwrap();
    let upload = &planned["files"][0]["upload"];
    assert_eq!(upload["direct"], true, "{planned}");
    let address = upload["url"].as_str().unwrap().strip_prefix(both.bucket.endpoint()).unwrap();
    let bucket = Client::new(both.bucket.endpoint().to_owned()).unwrap();
    let put = bucket.send(bucket.request(Method::PUT, address).body(trace.clone())).await.unwrap();
    assert_eq!(put.status.as_u16(), 200, "{}", put.text());

    let item = json!({ "sha256": sha256, "kind": "trace", "ticket": upload["ticket"], "link": { "type": "trace", "testCase": case } });
    let commit = json!({ "runId": run, "streamToken": token, "items": [item] });
    let committed = sent(&both, "/api/uploads/commit", &commit).await.unwrap();
    assert_eq!(committed["items"][0]["status"], "linked", "{committed}");
    let path = format!("/api/files/{}", committed["items"][0]["fileId"]);
    let read = both.ask_runner(&get(&path).unwrap()).await.unwrap();
    assert_eq!((read.status.as_u16(), read.body == trace), (200, true));

    // What fits into a request may come through the function.
    let note = b"a note".as_slice();
    let sha256 = hex::encode(Sha256::digest(note));
    let file = json!({ "sha256": sha256, "size": note.len(), "kind": "attachment" });
    let plan = json!({ "runId": run, "streamToken": token, "files": [file] });
    let planned = sent(&both, "/api/uploads/plan", &plan).await.unwrap();
    let path = format!("/api/uploads/{}", planned["files"][0]["upload"]["ticket"].as_str().unwrap());
    let put = callboard_test_functions::both::request(Method::PUT, &path).body(note.into()).unwrap();
    let received = both.functions.send(&put).await.unwrap().success().unwrap();
    assert_eq!(received["sha256"], json!(sha256));
}
