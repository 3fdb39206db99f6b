//! What request bodies take in memory, together and however many come at a time,
//! seen from outside: the service is a process of its own.

use std::io::Write as _;

use callboard_store::Backend;
use callboard_test_support::{Answer, Client, Runner, TestDatabase, for_each_database};
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::builders::{attempt, run, telling, with};

pub(crate) const MIB: u64 = 1024 * 1024;
/// What a body may take, however large it is.
pub(crate) const EXTRA_BYTES: u64 = 64 * MIB;
/// Lines of a test that make some 64 KiB of JSON.
pub(crate) const LINES: u64 = 88;
/// The smallest budget, and limits that fit into it.
pub(crate) const SMALLEST: [(&str, &str); 2] =
    [("SERVICE_BODY_MEMORY_BYTES", "67108864"), ("SERVICE_INGEST_MAX_SUBMIT_BYTES", "67108864")];

pub(crate) async fn runner(database: &TestDatabase, more: &[(&str, &str)]) -> Runner {
    let mut settings = vec![
        ("SERVICE_DATABASE_URL".to_owned(), database.url().to_owned()),
        ("SERVICE_STORAGE_URL".to_owned(), database.storage_url()),
        ("SERVICE_DATA_DIR".to_owned(), database.folder().display().to_string()),
    ];
    settings.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Runner::start(&settings).await.expect("a service")
}

pub(crate) fn gzip<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for piece in pieces {
        encoder.write_all(piece).expect("written");
    }
    encoder.finish().expect("compressed")
}

/// Tests with much evidence, two of which share a title and begin on two lines.
pub(crate) fn telling_tests(count: u64) -> Vec<Value> {
    let mut tests: Vec<Value> = (0..count).map(|n| telling(n, LINES)).collect();
    for line in [9, 30] {
        let mut twin = attempt("twin", "failed", 0);
        twin["location"] = json!(format!("tests/twins.spec.ts:{line}:1"));
        twin.as_object_mut().expect("an object").remove("suitePath");
        tests.push(twin);
    }
    tests
}

pub(crate) async fn post(client: &Client, path: &str, gzip: Vec<u8>) -> Answer {
    let request = client.request(Method::POST, path).header("content-type", "application/json");
    Answer::send(request.header("content-encoding", "gzip").body(gzip)).await.expect("an answer")
}

/// What more the process took than before.
pub(crate) fn took(runner: &mut Runner, before: u64) -> u64 {
    runner.process().peak_bytes().expect("memory") - before
}

/// A service that has stored something small, and its peak since.
pub(crate) async fn warm(database: &TestDatabase, more: &[(&str, &str)]) -> (Runner, u64) {
    let mut runner = runner(database, more).await;
    let small = run("warm", "passed", vec![attempt("adds", "passed", 0)]);
    runner.client().post_json("/api/test-runs/submit", &small).await.expect("a small run");
    let before = runner.process().peak_bytes().expect("memory");
    (runner, before)
}

#[tokio::test]
async fn a_large_submission_takes_little_memory_and_is_stored_whole() {
    const TESTS: u64 = 750;
    let named = json!({ "clientRunId": "0123456789abcdef" });
    let body = with(run("large", "failed", telling_tests(TESTS)), named).to_string();
    assert!(body.len() as u64 > 40 * MIB, "{} bytes", body.len());
    let packed = gzip(body.as_bytes().chunks(1 << 20));
    drop(body);
    for_each_database(async |database| {
        let (mut runner, before) = warm(database, &[]).await;
        let client = runner.client().clone();
        let first = post(&client, "/api/test-runs/submit", packed.clone()).await.success().expect("stored");
        let (total, failed) = (&first["totalTests"], &first["failedTests"]);
        assert_eq!((total, failed), (&json!(TESTS + 2), &json!(2)), "twins are two tests: {first}");
        let took = took(&mut runner, before);
        assert!(took < EXTRA_BYTES, "it took {} MiB", took / MIB);

        let list = format!("/api/test-runs/{}/executions?sort=id&limit=200", first["runId"]);
        let executions = client.json(&list).await.expect("executions");
        for execution in [&executions["items"][0], &executions["items"][150]] {
            let path = format!("/api/test-run-cases/{}?include=console", execution["id"]);
            let told = client.json(&path).await.expect("the execution");
            let told = told["evidence"]["consoleLogs"].as_array().map_or(0, Vec::len);
            assert_eq!(told as u64, LINES, "{execution}");
        }
        let again = post(&client, "/api/test-runs/submit", packed.clone()).await.success().expect("known");
        assert_eq!((&again["duplicate"], &again["runId"]), (&json!(true), &first["runId"]));
        assert_eq!(again["totalTests"], first["totalTests"]);
    })
    .await;
}

#[tokio::test]
async fn large_events_take_little_memory_and_are_known_again() {
    const TESTS: u64 = 600;
    let mut events: Vec<Value> =
        telling_tests(TESTS).into_iter().map(|test| with(test, json!({ "type": "complete" }))).collect();
    events.push(json!({ "type": "begin", "title": "goes on", "location": "tests/a.spec.ts:1:1" }));
    events.push(json!({ "type": "unheard of" }));
    let events = Value::from(events).to_string();
    for_each_database(async |database| {
        let (mut runner, before) = warm(database, &[]).await;
        let client = runner.client().clone();
        let started = client
            .post_json(
                "/api/test-runs/start",
                &json!({ "projectName": "live", "startTime": "2026-01-01T10:00:00.000Z" }),
            )
            .await
            .expect("started");
        let token = format!("],\"streamToken\":{}}}", started["streamToken"]);
        let body = [b"{\"testCases\":", &events.as_bytes()[..events.len() - 1], token.as_bytes()];
        let packed = gzip(body.into_iter());
        let path = format!("/api/test-runs/{}/events", started["runId"]);
        let taken = post(&client, &path, packed.clone()).await.success().expect("taken");
        let counts = ["processed", "inserted", "ignored"].map(|key| taken[key].clone());
        assert_eq!(counts, [json!(TESTS + 3), json!(TESTS + 2), json!(1)]);
        let took = took(&mut runner, before);
        assert!(took < EXTRA_BYTES, "they took {} MiB", took / MIB);
        let again = post(&client, &path, packed).await.success().expect("known");
        assert_eq!(again["inserted"], json!(0));
        let run = client.json(&format!("/api/test-runs/{}", started["runId"])).await.expect("the run");
        assert_eq!(run["totalTests"], json!(TESTS + 2), "{run}");
    })
    .await;
}

#[tokio::test]
async fn large_and_small_results_that_wait_are_applied_in_their_order_and_take_little_memory() {
    for_each_database(async |database| {
        let (mut runner, before) = warm(database, &SMALLEST).await;
        let client = runner.client().clone();
        let begin = json!({ "projectName": "mixed", "startTime": "2026-01-01T10:00:00.000Z" });
        let started = client.post_json("/api/test-runs/start", &begin).await.expect("started");
        let (run, token) = (started["runId"].as_i64().expect("a run"), &started["streamToken"]);
        // Errors that do not compress: more than is read together with others, up to more than all of them may take.
        let text = |n: u64, lines: u64| telling(n, lines)["consoleLogs"].to_string();
        let of = |n: u64, lines: u64| {
            let test = with(attempt(&format!("test {n}"), "failed", 0), json!({ "type": "complete" }));
            with(test, json!({ "error": format!("Error: {}", text(n, lines)) }))
        };
        let batches = [(0..2, 1), (2..102, 40), (102..104, 1), (104..110, 20), (110..112, 1)];
        for (tests, lines) in batches {
            let events: Vec<Value> = tests.map(|n| of(n, lines)).collect();
            let body = json!({ "streamToken": token, "testCases": events });
            client.post_json(&format!("/api/test-runs/{run}/events"), &body).await.expect("taken");
        }
        let end = json!({ "streamToken": token, "status": "failed", "duration": 1000 });
        let ended = client.post_json(&format!("/api/test-runs/{run}/finish"), &end).await.expect("ended");
        assert_eq!(ended["status"], "failed");
        let shown = client.json(&format!("/api/test-runs/{run}")).await.expect("the run");
        assert_eq!((&shown["totalTests"], &shown["failedTests"]), (&json!(112), &json!(112)), "{shown}");
        let took = took(&mut runner, before);
        assert!(took < EXTRA_BYTES, "they took {} MiB", took / MIB);
    })
    .await;
}

/// Text of so many characters that no compressor makes much of.
fn noise(length: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state = 1_u64;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(LETTERS[usize::try_from(state >> 58).expect("six bits")])
    };
    (0..length).map(letter).collect()
}

#[tokio::test]
async fn many_attempts_of_one_test_take_little_memory_and_the_worst_keeps_its_details() {
    const ATTEMPTS: u64 = 1_000;
    const LOGS: usize = 60;
    // Each attempt is compressed by itself.
    let noise = noise(LOGS * 1_000);
    let log = |at: usize| json!({ "type": "log", "text": &noise[at * 1_000..][..1_000] });
    let logs = Value::from((0..LOGS).map(log).collect::<Vec<_>>()).to_string();
    let attempt = |number: u64| {
        let status = if number == ATTEMPTS - 1 { "failed" } else { "passed" };
        let start = 1_767_261_600_000 + number;
        format!(
            r#"{{"type":"complete","title":"repeated","location":"tests/a.spec.ts:3:1","status":"{status}",
            "retries":0,"startedAt":{start},"duration":1,"consoleLogs":{logs}}}"#
        )
    };
    let attempts = (0..ATTEMPTS).map(attempt).collect::<Vec<_>>().join(",");
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let (mut runner, before) = warm(&database, &[]).await;
    let client = runner.client().clone();
    let begin = json!({ "projectName": "live", "startTime": "2026-01-01T10:00:00.000Z" });
    let started = client.post_json("/api/test-runs/start", &begin).await.expect("started");
    let batch =
        r#"{"projectName":"batch","status":"failed","startTime":"2026-01-01T10:00:00.000Z","testCases":["#;
    let token = format!("],\"streamToken\":{}}}", started["streamToken"]);
    let events = format!("/api/test-runs/{}/events", started["runId"]);
    for (path, head, end) in [("/api/test-runs/submit", batch, "]}"), (&*events, "{\"testCases\":[", &*token)]
    {
        let packed = gzip([head.as_bytes(), attempts.as_bytes(), end.as_bytes()].into_iter());
        let taken = post(&client, path, packed).await.success().expect("taken");
        assert_eq!(taken["warnings"][0]["code"], "entry_cut", "{path}: {}", taken["warnings"]);
        let run = if path == events { &started["runId"] } else { &taken["runId"] };
        let list = client.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
        assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
        let execution = format!("/api/test-run-cases/{}?include=console", list["items"][0]["id"]);
        let told = client.json(&execution).await.expect("the execution");
        assert_eq!(told["status"], "failed");
        assert_eq!(told["evidence"]["consoleLogs"].as_array().map(Vec::len), Some(LOGS), "{path}");
        let took = took(&mut runner, before);
        assert!(took < EXTRA_BYTES, "{path} took {} MiB", took / MIB);
    }
}

/// Sends pieces of a body, as often as they come, until there is an answer, and
/// answers its head. A client that wrote all of it first could be cut off before
/// it reads what it is told.
async fn refused<'p>(
    client: &Client,
    path: &str,
    headers: &str,
    pieces: impl Iterator<Item = &'p [u8]>,
) -> String {
    let address = client.base_url().strip_prefix("http://").expect("an address").to_owned();
    let (mut reading, mut writing) = TcpStream::connect(&address).await.expect("a connection").into_split();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: {address}\r\n{headers}\r\ntransfer-encoding: chunked\r\n\r\n");
    writing.write_all(head.as_bytes()).await.expect("sent");
    let sending = async {
        for piece in pieces {
            let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n".as_slice()].concat();
            if writing.write_all(&chunk).await.is_err() {
                break;
            }
        }
        let _ = writing.write_all(b"0\r\n\r\n").await;
        std::future::pending::<()>().await
    };
    let answered = async {
        let mut answer = vec![0; 256];
        let length = reading.read(&mut answer).await.expect("an answer");
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };
    tokio::select! {
        answer = answered => answer,
        () = sending => String::new(),
    }
}

#[tokio::test]
async fn a_bomb_is_refused_and_takes_little_memory() {
    let blanks = vec![b' '; 1 << 20];
    let packed = gzip(std::iter::repeat_n(&*blanks, 1024));
    let form = b"--b\r\ncontent-disposition: form-data; name=\"projectName\"\r\n\r\nbomb\r\n\
        --b\r\ncontent-disposition: form-data; name=\"testRun\"\r\n\r\n{}\r\n\
        --b\r\ncontent-disposition: form-data; name=\"testCases\"\r\n\r\n";
    let form: Vec<&[u8]> =
        std::iter::once(form.as_slice()).chain(std::iter::repeat_n(&*blanks, 200)).collect();
    let json = "content-type: application/json\r\ncontent-encoding: gzip";
    let packed: Vec<&[u8]> = packed.chunks(64 << 10).collect();
    for (path, headers, body) in [
        ("/api/test-runs/upload", "content-type: multipart/form-data; boundary=b", form),
        ("/api/test-runs/submit", json, packed.clone()),
        ("/api/test-runs/1/events", json, packed.clone()),
        ("/api/test-runs/setup", json, packed),
    ] {
        // Each meets a process of its own: what the one before left behind is given back a second later.
        let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
        let (mut runner, before) = warm(&database, &[]).await;
        let client = runner.client().clone();
        let answer = refused(&client, path, headers, body.into_iter()).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{path}: {answer}");
        let took = took(&mut runner, before);
        assert!(took < EXTRA_BYTES, "{path} took {} MiB", took / MIB);
    }
}
