//! Bodies without end, and bodies that are not as long as they say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callboard_store::Backend;
use callboard_test_support::{Runner, TestDatabase};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::settings;

const MIB: u64 = 1024 * 1024;
const GIB: u64 = 1024 * MIB;
/// What may be on its way when the service has had enough.
const UNDERWAY: u64 = 32 * MIB;

struct Told {
    /// The answer, head and body.
    answer: String,
    /// Bytes of body that were taken.
    taken: u64,
}

/// Sends a head and then pieces, until there are none, the service answers, or
/// it hangs up; then it waits for the rest of the answer.
async fn talk(address: &str, head: &str, mut pieces: impl Iterator<Item = Vec<u8>>) -> Told {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut answers, mut questions) = stream.into_split();
    let is_answered = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&is_answered);
    let reader = tokio::spawn(async move {
        let mut answer = Vec::new();
        // Whoever is refused in the middle of sending may also find the connection reset.
        while answers.read_buf(&mut answer).await.is_ok_and(|read| read > 0) {
            heard.store(true, Ordering::Relaxed);
        }
        heard.store(true, Ordering::Relaxed);
        String::from_utf8_lossy(&answer).into_owned()
    });
    let head = format!("{head}\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    questions.write_all(head.as_bytes()).await.expect("sent");
    let mut taken = 0;
    while !is_answered.load(Ordering::Relaxed) {
        let Some(piece) = pieces.next() else { break };
        let sent = tokio::time::timeout(Duration::from_secs(10), questions.write_all(&piece)).await;
        if !matches!(sent, Ok(Ok(()))) {
            break;
        }
        taken += piece.len() as u64;
        tokio::task::yield_now().await;
    }
    let _ = questions.shutdown().await;
    let answer =
        tokio::time::timeout(Duration::from_secs(30), reader).await.expect("an end").expect("an answer");
    Told { answer, taken }
}

/// Pieces of a gigabyte that look like the middle of a text.
fn gigabyte(is_chunked: bool) -> impl Iterator<Item = Vec<u8>> {
    let text = vec![b'a'; 64 * 1024];
    let piece = if is_chunked { [b"10000\r\n", text.as_slice(), b"\r\n"].concat() } else { text };
    (0..GIB / (64 * 1024)).map(move |_| piece.clone())
}

#[tokio::test]
async fn a_gigabyte_is_refused_early_and_takes_no_memory() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let mut settings =
        settings(&[("SERVICE_UPLOAD_MAX_BYTES", "8388608"), ("SERVICE_INGEST_MAX_SUBMIT_BYTES", "8388608")]);
    settings.extend([
        ("SERVICE_DATABASE_URL".to_owned(), database.url().to_owned()),
        ("SERVICE_STORAGE_URL".to_owned(), database.storage_url()),
        ("SERVICE_DATA_DIR".to_owned(), database.folder().display().to_string()),
    ]);
    let mut runner = Runner::start(&settings).await.expect("a service");
    let client = runner.client().clone();
    client.post_json("/api/projects", &json!({ "name": "shop" })).await.expect("a project");
    let before = runner.process().peak_bytes().expect("memory");
    let address = client.base_url().strip_prefix("http://").expect("an address").to_owned();

    for path in
        ["/api/test-runs/submit", "/api/test-runs/upload", "/api/test-runs/start", "/api/tags", "/mcp"]
    {
        let kind =
            if path.ends_with("upload") { "multipart/form-data; boundary=cut" } else { "application/json" };
        let head = format!("POST {path} HTTP/1.1\r\ncontent-type: {kind}");
        let begun = if path.ends_with("upload") {
            "--cut\r\nContent-Disposition: form-data; name=\"trace_0\"; filename=\"trace.zip\"\r\n\r\n"
        } else {
            "{\"projectName\":\""
        };
        let honest = format!("{head}\r\ncontent-length: {GIB}");
        let told =
            talk(&address, &honest, std::iter::once(begun.as_bytes().to_vec()).chain(gigabyte(false))).await;
        assert!(told.answer.starts_with("HTTP/1.1 413"), "{path}: {}", told.answer);
        assert!(told.taken < UNDERWAY, "{path} took {} MiB before it answered", told.taken / MIB);

        let chunked = format!("{head}\r\ntransfer-encoding: chunked");
        let first = format!("{:x}\r\n{begun}\r\n", begun.len());
        let told = talk(&address, &chunked, std::iter::once(first.into_bytes()).chain(gigabyte(true))).await;
        assert!(told.answer.starts_with("HTTP/1.1 413"), "{path}: {}", told.answer);
        assert!(told.taken < 8 * MIB + UNDERWAY, "{path} took {} MiB before it answered", told.taken / MIB);

        // Shorter than it says: the rest never comes, and nothing is stored of what did.
        let lying = format!("{head}\r\ncontent-length: 5000");
        let told = talk(&address, &lying, std::iter::once(begun.as_bytes().to_vec())).await;
        assert!(
            !told.answer.starts_with("HTTP/1.1 2") && !told.answer.starts_with("HTTP/1.1 5"),
            "{path}: {}",
            told.answer
        );
        // Longer than it says: what follows is no part of it.
        let lying = format!("{head}\r\ncontent-length: 2");
        let told =
            talk(&address, &lying, std::iter::once(b"{}".to_vec()).chain(gigabyte(false).take(200))).await;
        assert!(
            !told.answer.starts_with("HTTP/1.1 2") && !told.answer.starts_with("HTTP/1.1 5"),
            "{path}: {}",
            told.answer
        );
        // Two lengths, or a length and chunks, are how requests are smuggled past a proxy.
        for doubled in [
            "content-length: 2\r\ncontent-length: 3",
            "content-length: 2\r\ntransfer-encoding: identity, chunked, x",
        ] {
            let told =
                talk(&address, &format!("{head}\r\n{doubled}"), std::iter::once(b"{}1".to_vec())).await;
            assert!(told.answer.starts_with("HTTP/1.1 400"), "{path} {doubled}: {}", told.answer);
        }
    }
    let grown = runner.process().peak_bytes().expect("memory") - before;
    assert!(grown < 96 * MIB, "refusing took {} MiB", grown / MIB);
    let projects = client.json("/api/projects").await.expect("projects");
    assert_eq!(projects["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(client.json("/api/tags").await.expect("tags")["items"], json!([]));
}
