//! Stored files over HTTP. Here: a run with a file of every kind, and how it
//! is asked for.

mod bytes;
mod holders;
mod isolation;

pub(crate) use isolation::listener_of;

use callboard_test_support::{Answer, Client, Form, Service, report_archive};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::builders::{attempt, run};

const PAGE: &str = "\n<!DOCTYPE html>\n<title>report</title>";
const DRAWING: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>1</script></svg>";

/// A run with a file of every kind.
pub(crate) struct Stored {
    /// Ids of its files by the name their test gave them.
    ids: Vec<(String, i64)>,
    /// Stored name of its report, with a slash at the end.
    pub(crate) report: String,
    trace: Vec<u8>,
    shot: Vec<u8>,
    table: Vec<u8>,
}

impl Stored {
    pub(crate) fn id(&self, name: &str) -> i64 {
        self.ids.iter().find(|(known, _)| known == name).expect(name).1
    }
}

fn noise(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed).collect()
}

pub(crate) async fn store(service: &Service, project: &str) -> Stored {
    let trace = [b"PK\x03\x04".to_vec(), noise(1, 300_000)].concat();
    let shot = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec(), noise(2, 900)].concat();
    let table = noise(3, 70_000);
    let attachments: [(&str, &str, &str, &[u8]); 5] = [
        ("shot", "shot.png", "image/png", &shot),
        ("page", "Übersicht.html", "text/html", PAGE.as_bytes()),
        ("drawing", "drawing.svg", "image/svg+xml", DRAWING.as_bytes()),
        ("unknown", "evil.png", "image/png", b"<script>1</script>"),
        ("note", "note.txt", "text/plain", b"a note"),
    ];
    let meta: Vec<_> = attachments
        .iter()
        .map(|(name, file, kind, _)| json!({ "name": name, "originalName": file, "contentType": kind }))
        .collect();
    let report = report_archive(&[
        ("index.html", PAGE.as_bytes()),
        ("data/table.bin", &table),
        ("data/shot.png", &shot),
        ("app.js", b"1"),
        ("drawing.svg", DRAWING.as_bytes()),
        ("odd #1; 100%.txt", b"odd"),
        ("empty.txt", b""),
    ]);
    let submission = run(project, "failed", vec![attempt("pays", "failed", 0)]);
    let mut form = Form::new()
        .field("projectName", project)
        .field("testRun", submission.to_string())
        .field("testCases", submission["testCases"].to_string())
        .field("attach_meta_0", json!(meta).to_string())
        .file("trace_0", "trace.zip", "application/zip", &trace)
        .file("report_html", "report.gz", "application/gzip", &report.expect("an archive"));
    for (_, file, kind, bytes) in &attachments {
        form = form.file("attach_file_0", file, kind, bytes);
    }
    let request = service.client().request(Method::POST, "/api/test-runs/upload");
    let request = request.header("content-type", Form::content_type()).body(form.into_body());
    let answer = Answer::send(request).await.expect("an answer").success().expect("stored");
    let entry = answer["reports"][0]["path"].as_str().expect("a report");
    let report = entry.strip_suffix("index.html").expect("an entry page").to_owned();
    let executions = format!("/api/test-runs/{}/executions", answer["runId"]);
    let execution = service.client().json(&executions).await.expect("executions")["items"][0]["id"].clone();
    let files =
        service.client().json(&format!("/api/test-run-cases/{execution}/files")).await.expect("files");
    let ids = files["items"].as_array().expect("a list").iter();
    let ids = ids
        .map(|file| (file["name"].as_str().expect("a name").to_owned(), file["id"].as_i64().expect("an id")));
    Stored { ids: ids.collect(), report, trace, shot, table }
}

pub(crate) async fn ask(client: &Client, path: &str, headers: &[(HeaderName, &str)]) -> Answer {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).expect("a value")))
        .collect();
    Answer::send(client.request(Method::GET, path).headers(headers)).await.expect("an answer")
}

async fn head(client: &Client, path: &str) -> Answer {
    Answer::send(client.request(Method::HEAD, path)).await.expect("an answer")
}

/// Where the service sends a browser that asks for active content.
pub(crate) async fn sent_to(service: &Service, path: &str) -> String {
    let answer = ask(service.client(), path, &[]).await;
    assert_eq!(answer.status, StatusCode::FOUND, "{path}: {}", answer.text());
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.body.len(), 0);
    answer.header("location").to_owned()
}

/// The path of an address, with its slash.
pub(crate) fn path_of(address: &str) -> &str {
    let (_, rest) = address.split_once("//").expect("an address");
    &rest[rest.find('/').expect("a path")..]
}

/// Sends a path exactly as it stands; clients tidy paths up.
async fn raw(service: &Service, path: &str) -> String {
    let address = service.base_url().strip_prefix("http://").expect("an address");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}
