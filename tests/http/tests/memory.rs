//! What the service holds in memory while large files pass through it, seen
//! from outside: as a process of its own.

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

#[tokio::test]
async fn a_file_that_passes_through_takes_no_more_memory_than_a_small_one() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let settings = vec![
        ("SERVICE_DATABASE_URL".to_owned(), database.url().to_owned()),
        ("SERVICE_STORAGE_URL".to_owned(), database.storage_url()),
        ("SERVICE_DATA_DIR".to_owned(), database.folder().display().to_string()),
    ];
    let mut runner = Runner::start(&settings).await.expect("a service");
    let client = runner.client().clone();
    let small = run("large", "passed", vec![attempt("adds", "passed", 0)]);
    client.post_json("/api/test-runs/submit", &small).await.expect("a small run");
    let before = runner.process().peak_bytes().expect("memory");

    let request = client.request(Method::POST, "/api/test-runs/upload");
    let request = request.header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
    let stored = Answer::of(request.body(form())).await.expect("an answer").success().expect("stored");
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
