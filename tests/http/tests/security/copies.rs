//! The same bytes from many at once.

use std::path::Path;

use callboard_test_support::{Answer, Form, Service, for_each_service};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::rows::texts;

const TRACE: &[u8] = b"PK\x03\x04 the one trace of twenty runs";

async fn upload(service: &Service, number: usize) -> Value {
    // Traces of long ago are let go of.
    let begun = service.state().now().to_iso();
    let submission = with(
        run("shop", "failed", vec![attempt("pays", "failed", 0)]),
        json!({ "clientRunId": format!("run-{number}-of-twenty"), "startTime": begun }),
    );
    let form = Form::new()
        .field("projectName", "shop")
        .field("testRun", submission.to_string())
        .field("testCases", submission["testCases"].to_string())
        .file("trace_0", "trace.zip", "application/zip", TRACE);
    let request = service.client().request(Method::POST, "/api/test-runs/upload");
    let request = request.header("content-type", Form::content_type()).body(form.into_body());
    Answer::send(request).await.and_then(|answer| answer.success()).expect("stored")
}

/// How many stored objects have these bytes.
fn objects(service: &Service) -> usize {
    fn count(folder: &Path) -> usize {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let has_them = |path: &Path| std::fs::read(path).is_ok_and(|bytes| bytes == TRACE);
        let of = |path: &Path| if path.is_dir() { count(path) } else { usize::from(has_them(path)) };
        entries.map(|entry| of(&entry.path())).sum()
    }
    let folder = service.database().storage_url();
    count(Path::new(folder.strip_prefix("file://").expect("a folder")))
}

#[tokio::test]
async fn a_trace_that_twenty_send_at_once_is_one_object_with_twenty_references() {
    for_each_service(async |service| {
        let stored = join_all((0..20).map(|number| upload(service, number))).await;
        assert_eq!(objects(service), 1);
        let hash = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(TRACE));
        let references = match service.state().store().db() {
            callboard_store::Db::Sqlite { .. } => {
                format!("SELECT CAST(refs AS text) FROM blobs WHERE lower(hex(sha256)) = '{hash}'")
            }
            callboard_store::Db::Postgres(_) => {
                format!("SELECT refs::text FROM blobs WHERE encode(sha256, 'hex') = '{hash}'")
            }
        };
        assert_eq!(texts(service, &references).await, ["20"]);
        for run in &stored {
            let list = format!("/api/test-runs/{}/executions", run["runId"]);
            let execution = service.client().json(&list).await.expect("executions")["items"][0]["id"].clone();
            let traces = format!("/api/test-run-cases/{execution}/traces");
            let listed = service.client().json(&traces).await.expect("traces");
            let trace = listed["items"][0]["id"].clone();
            assert!(trace.is_number(), "{run}: {listed}");
            let bytes = service.client().get(&format!("/api/files/{trace}")).await.expect("the trace").body;
            assert_eq!(bytes, TRACE);
        }
    })
    .await;
}

#[tokio::test]
async fn a_hash_of_another_project_brings_no_bytes() {
    for_each_service(async |service| {
        upload(service, 0).await;
        let hash = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(TRACE));
        let start = json!({ "projectName": "bank" });
        let feeder = crate::live::start(service.client(), start).await;
        feeder.results(vec![attempt("pays", "failed", 0)]).await;
        let case = json!({ "title": "pays", "location": "tests/shop.spec.ts:7:5", "suitePath": ["Shop"] });
        let form = Form::new()
            .field("streamToken", &feeder.token)
            .field("testCase", case.to_string())
            .field("trace_hash", &hash);
        let path = format!("/api/test-runs/{}/case-files", feeder.run);
        let request = service.client().request(Method::POST, &path);
        let request = request.header("content-type", Form::content_type()).body(form.into_body());
        let answer = Answer::send(request).await.expect("an answer");
        assert_eq!(super::refusal(&answer), super::refused(422, "blob_missing"));
        let list = format!("/api/test-runs/{}/executions", feeder.run);
        let found = service.client().json(&list).await.expect("executions");
        assert_eq!(found["items"][0]["counts"]["traces"], 0, "{found}");
        let asked = json!({ "projectName": "bank", "hashes": [hash] });
        let known = service.client().post_json("/api/traces/check", &asked).await.expect("an answer");
        assert_eq!(known["existing"], json!([]));
    })
    .await;
}
