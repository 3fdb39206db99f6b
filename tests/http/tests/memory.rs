//! What the service holds in memory while large files pass through it, seen
//! from outside: as a process of its own.

use std::io::Write as _;

use bytes::Bytes;
use callboard_http::Clock;
use callboard_store::Backend;
use callboard_test_support::{Answer, Runner, TestDatabase};
use futures::{StreamExt as _, stream};
use reqwest::{Body, Method};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::builders::{attempt, run, with};

const MIB: u64 = 1024 * 1024;
/// A large trace, below the limit of an upload.
const TRACE_BYTES: u64 = 450 * MIB;
const BOUNDARY: &str = "boundary-of-a-large-form";
/// What a file that passes through may take: one held in memory breaks it several times over.
const EXTRA_BYTES: u64 = 64 * MIB;
/// A body of very many small values, below the limit of every call.
const WIDE_BYTES: u64 = 14 * MIB;
/// What such a body may take: its bytes, its text and what is kept of it; each of its values takes sixteen times its text.
const WIDE_ROOM_BYTES: u64 = 96 * MIB;
/// What showing an image may take.
const IMAGE_BYTES: u64 = 256 * MIB;

/// The trace piece by piece; no two pieces are alike.
fn pieces() -> impl Iterator<Item = Bytes> {
    (0..TRACE_BYTES / MIB).map(|number| {
        let mut piece = vec![0_u8; MIB as usize];
        if number == 0 {
            piece[..4].copy_from_slice(b"PK\x03\x04");
        }
        piece[8..16].copy_from_slice(&number.to_le_bytes());
        piece.into()
    })
}

fn form() -> Body {
    // Traces of long ago are let go of.
    let begun = json!({ "startTime": Clock::system().now().to_iso() });
    let submission = with(run("large", "failed", vec![attempt("pays", "failed", 0)]), begun);
    let fields = [
        ("projectName", "large".to_owned()),
        ("testRun", submission.to_string()),
        ("testCases", submission["testCases"].to_string()),
    ];
    let mut head = String::new();
    for (name, value) in fields {
        head +=
            &format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    head += &format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"trace_0\"; filename=\"trace.zip\"\r\n\
         Content-Type: application/zip\r\n\r\n"
    );
    let tail = format!("\r\n--{BOUNDARY}--\r\n");
    // Chunked: nobody is told how long it will be.
    let parts = std::iter::once(head.into()).chain(pieces()).chain(std::iter::once(tail.into()));
    Body::wrap_stream(stream::iter(parts.map(Ok::<Bytes, std::io::Error>)))
}

/// A service as a process of its own, on a database that lives as long.
async fn service() -> (TestDatabase, Runner) {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let settings = vec![
        ("SERVICE_DATABASE_URL".to_owned(), database.url().to_owned()),
        ("SERVICE_STORAGE_URL".to_owned(), database.storage_url()),
        ("SERVICE_DATA_DIR".to_owned(), database.folder().display().to_string()),
    ];
    let runner = Runner::start(&settings).await.expect("a service");
    (database, runner)
}

#[tokio::test]
async fn a_file_that_passes_through_takes_no_more_memory_than_a_small_one() {
    let (_database, mut runner) = service().await;
    let client = runner.client().clone();
    let small = run("large", "passed", vec![attempt("adds", "passed", 0)]);
    client.post_json("/api/test-runs/submit", &small).await.expect("a small run");
    let before = runner.process().peak_bytes().expect("memory");

    let request = client.request(Method::POST, "/api/test-runs/upload");
    let request = request.header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
    let stored = Answer::send(request.body(form())).await.expect("an answer").success().expect("stored");
    let uploaded = runner.process().peak_bytes().expect("memory");
    assert!(uploaded - before < EXTRA_BYTES, "the upload took {} MiB", (uploaded - before) / MIB);

    let executions = format!("/api/test-runs/{}/executions", stored["runId"]);
    let execution = client.json(&executions).await.expect("executions")["items"][0]["id"].clone();
    let traces = client.json(&format!("/api/test-run-cases/{execution}/traces")).await.expect("traces");
    let trace = &traces["items"][0];
    assert_eq!(trace["size"], json!(TRACE_BYTES));
    let path = format!("/api/files/{}", trace["id"]);
    let mut body = client.request(Method::GET, &path).send().await.expect("an answer").bytes_stream();
    let mut hasher = Sha256::new();
    while let Some(piece) = body.next().await {
        hasher.update(piece.expect("bytes"));
    }
    let sent = pieces().fold(Sha256::new(), |hasher, piece| hasher.chain_update(piece)).finalize();
    assert_eq!(hasher.finalize(), sent);
    let downloaded = runner.process().peak_bytes().expect("memory");
    assert!(downloaded - before < EXTRA_BYTES, "the download took {} MiB", (downloaded - before) / MIB);
}

#[tokio::test]
async fn a_planned_file_is_received_and_committed_within_the_same_memory() {
    let (_database, mut runner) = service().await;
    let client = runner.client().clone();
    let failed = run("large", "failed", vec![attempt("pays", "failed", 0)]);
    let run = client.post_json("/api/test-runs/submit", &failed).await.expect("a run")["runId"].clone();
    let sha256 =
        hex::encode(pieces().fold(Sha256::new(), |hasher, piece| hasher.chain_update(piece)).finalize());
    let file = json!({ "sha256": sha256, "size": TRACE_BYTES, "kind": "trace" });
    let plan = json!({ "projectName": "large", "runId": run, "files": [file] });
    let plan = client.post_json("/api/uploads/plan", &plan).await.expect("a plan");
    let upload = &plan["files"][0]["upload"];
    let before = runner.process().peak_bytes().expect("memory");
    let body = Body::wrap_stream(stream::iter(pieces().map(Ok::<Bytes, std::io::Error>)));
    let put = client.request(Method::PUT, upload["url"].as_str().expect("an address")).body(body);
    Answer::send(put).await.expect("an answer").success().expect("received");
    let link = json!({ "type": "trace", "testCase": {
        "title": "pays", "location": "tests/shop.spec.ts:7:5", "retries": 0, "suitePath": ["Shop"],
    } });
    let item = json!({ "sha256": sha256, "kind": "trace", "ticket": upload["ticket"], "link": link });
    let commit = json!({ "projectName": "large", "runId": run, "items": [item] });
    let commit = client.post_json("/api/uploads/commit", &commit).await.expect("committed");
    assert_eq!(commit["items"][0]["status"], "linked", "{commit}");
    let took = runner.process().peak_bytes().expect("memory") - before;
    assert!(took < EXTRA_BYTES, "the upload took {} MiB", took / MIB);
}

/// A picture of 49 megapixels in four colours, all of one.
fn large_picture() -> Vec<u8> {
    const SIDE: u32 = 7_000;
    let chunk = |kind: &[u8], data: &[u8]| {
        let named = [kind, data].concat();
        let length = u32::try_from(data.len()).expect("a length").to_be_bytes();
        [length.as_slice(), &named, &crc32fast::hash(&named).to_be_bytes()].concat()
    };
    let row = vec![0; 1 + SIDE as usize * 4];
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    (0..SIDE).for_each(|_| encoder.write_all(&row).expect("written"));
    let pixels = encoder.finish().expect("compressed");
    let head = [SIDE.to_be_bytes().as_slice(), &SIDE.to_be_bytes(), &[8, 6, 0, 0, 0]].concat();
    [b"\x89PNG\r\n\x1a\n".as_slice(), &chunk(b"IHDR", &head), &chunk(b"IDAT", &pixels), &chunk(b"IEND", &[])]
        .concat()
}

#[tokio::test]
async fn a_large_screenshot_is_shown_within_the_memory_for_images() {
    let (_database, mut runner) = service().await;
    let client = runner.client().clone();
    let submission = run("pictures", "failed", vec![attempt("pays", "failed", 0)]);
    let meta = json!([{ "name": "screenshot", "contentType": "image/png", "originalName": "full.png" }]);
    let form = reqwest::multipart::Form::new()
        .text("projectName", "pictures")
        .text("testRun", submission.to_string())
        .text("testCases", submission["testCases"].to_string())
        .text("attach_meta_0", meta.to_string())
        .part("attach_file_0", reqwest::multipart::Part::bytes(large_picture()).file_name("full.png"));
    let request = client.request(Method::POST, "/api/test-runs/upload").multipart(form);
    let stored = Answer::send(request).await.expect("an answer").success().expect("stored");
    let executions = format!("/api/test-runs/{}/executions", stored["runId"]);
    let execution = client.json(&executions).await.expect("executions")["items"][0]["id"].clone();
    let before = runner.process().peak_bytes().expect("memory");
    let arguments = json!({ "executionId": execution, "content": true });
    let params = json!({ "name": "get_case_screenshots", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let answer = client.post_json("/mcp", &call).await.expect("an answer");
    let is_shown = answer["result"]["content"]
        .as_array()
        .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "image"));
    assert!(is_shown, "{answer}");
    let took = runner.process().peak_bytes().expect("memory") - before;
    assert!(took < IMAGE_BYTES, "it took {} MiB", took / MIB);
}

#[tokio::test]
async fn a_body_takes_memory_by_its_length_and_not_by_how_many_values_are_in_it() {
    let (_database, mut runner) = service().await;
    let client = runner.client().clone();
    let small = run("wide", "passed", vec![attempt("adds", "passed", 0)]).to_string();
    let send = async |path: &str, body: String| {
        let request = client.request(Method::POST, path).header("content-type", "application/json");
        Answer::send(request.body(body)).await.expect("an answer").status.as_u16()
    };
    assert_eq!(send("/api/test-runs/submit", small.clone()).await, 200);
    let before = runner.process().peak_bytes().expect("memory");

    let ones = format!("[{}1]", "1,".repeat(usize::try_from(WIDE_BYTES / 2).expect("a length")));
    let ignored = small.replacen('{', &format!("{{\"ignored\":{ones},"), 1);
    let repeated = format!(r#"{{"testCases":[{{"type":"complete","title":"a","title":"b","x":{ones}}}]}}"#);
    // Nobody has said yet who they are when these are read.
    let list = format!(r#"{{"testCases":{ones}}}"#);
    let beat = format!(r#"{{"ignored":{ones}}}"#);
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let deeper = "[".repeat(usize::try_from(WIDE_BYTES).expect("a length"));
    for (path, body, status) in [
        ("/api/test-runs/submit", ignored, 200),
        ("/api/test-runs/1/events", list, 413),
        ("/api/test-runs/1/events", repeated, 401),
        ("/api/test-runs/1/heartbeat", beat, 401),
        ("/api/test-runs/submit", deep(10_000), 400),
        ("/api/test-runs/1/events", deep(10_000), 400),
        ("/api/test-runs/submit", deeper.clone(), 400),
        ("/api/test-runs/1/events", deeper, 400),
    ] {
        assert_eq!(send(path, body).await, status, "{path}");
        let took = runner.process().peak_bytes().expect("memory") - before;
        assert!(took < WIDE_ROOM_BYTES, "{path} took {} MiB", took / MIB);
    }
}
