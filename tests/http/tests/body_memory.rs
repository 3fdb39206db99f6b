//! What request bodies take in memory, together and however many come at a time,
//! seen from outside: the service is a process of its own.

use std::io::Write as _;

use callboard_store::Backend;
use callboard_test_support::accounts::{PASSWORD, secured_settings};
use callboard_test_support::{Answer, Client, Runner, TestDatabase, for_each_database};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::future::{join_all, select_all};
use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::builders::{attempt, passing, run, telling, with};

const MIB: u64 = 1024 * 1024;
/// What a body may take, however large it is.
const EXTRA_BYTES: u64 = 64 * MIB;
/// Lines of a test that make some 64 KiB of JSON.
const LINES: u64 = 88;
/// The smallest budget, and limits that fit into it.
const SMALLEST: [(&str, &str); 2] =
    [("SERVICE_BODY_MEMORY_BYTES", "67108864"), ("SERVICE_INGEST_MAX_SUBMIT_BYTES", "67108864")];
const SMALLEST_BYTES: u64 = 64 * MIB;
/// Clients of the crowded test.
const CLIENTS: usize = 50;

async fn runner(database: &TestDatabase, more: &[(&str, &str)]) -> Runner {
    let mut settings = vec![
        ("SERVICE_DATABASE_URL".to_owned(), database.url().to_owned()),
        ("SERVICE_STORAGE_URL".to_owned(), database.storage_url()),
        ("SERVICE_DATA_DIR".to_owned(), database.folder().display().to_string()),
    ];
    settings.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Runner::start(&settings).await.expect("a service")
}

fn gzip(pieces: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for piece in pieces {
        encoder.write_all(&piece).expect("written");
    }
    encoder.finish().expect("compressed")
}

/// Tests with much evidence, two of which share a title and begin on two lines.
fn telling_tests(count: u64) -> Vec<Value> {
    let mut tests: Vec<Value> = (0..count).map(|n| telling(n, LINES)).collect();
    for line in [9, 30] {
        let mut twin = attempt("twin", "failed", 0);
        twin["location"] = json!(format!("tests/twins.spec.ts:{line}:1"));
        twin.as_object_mut().expect("an object").remove("suitePath");
        tests.push(twin);
    }
    tests
}

async fn post(client: &Client, path: &str, gzip: Vec<u8>) -> Answer {
    let request = client.request(Method::POST, path).header("content-type", "application/json");
    Answer::of(request.header("content-encoding", "gzip").body(gzip)).await.expect("an answer")
}

/// What more the process took than before.
fn took(runner: &mut Runner, before: u64) -> u64 {
    runner.process().peak_bytes().expect("memory") - before
}

/// A service that has stored something small, and its peak since.
async fn warm(database: &TestDatabase, more: &[(&str, &str)]) -> (Runner, u64) {
    let mut runner = runner(database, more).await;
    let small = run("warm", "passed", vec![attempt("adds", "passed", 0)]);
    runner.client().post_json("/api/test-runs/submit", &small).await.expect("a small run");
    let before = runner.process().peak_bytes().expect("memory");
    (runner, before)
}

#[tokio::test]
async fn a_large_submission_takes_little_memory_and_is_stored_whole() {
    for_each_database(async |database| {
        let (mut runner, before) = warm(database, &[]).await;
        let client = runner.client().clone();
        const TESTS: u64 = 750;
        let named = json!({ "clientRunId": "0123456789abcdef" });
        let body = with(run("large", "failed", telling_tests(TESTS)), named).to_string();
        assert!(body.len() as u64 > 40 * MIB, "{} bytes", body.len());
        let packed = gzip(body.as_bytes().chunks(1 << 20).map(<[u8]>::to_vec));
        drop(body);
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
        let again = post(&client, "/api/test-runs/submit", packed).await.success().expect("known");
        assert_eq!((&again["duplicate"], &again["runId"]), (&json!(true), &first["runId"]));
        assert_eq!(again["totalTests"], first["totalTests"]);
    })
    .await;
}

#[tokio::test]
async fn large_events_take_little_memory_and_are_known_again() {
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
        const TESTS: u64 = 600;
        let mut events: Vec<Value> =
            telling_tests(TESTS).into_iter().map(|test| with(test, json!({ "type": "complete" }))).collect();
        events.push(json!({ "type": "begin", "title": "goes on", "location": "tests/a.spec.ts:1:1" }));
        events.push(json!({ "type": "unheard of" }));
        let body = json!({ "testCases": events, "streamToken": started["streamToken"] }).to_string();
        let packed = gzip(body.as_bytes().chunks(1 << 20).map(<[u8]>::to_vec));
        drop((body, events));
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

#[tokio::test]
async fn a_bomb_is_refused_and_takes_little_memory() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let (mut runner, before) = warm(&database, &[]).await;
    let bomb = gzip(std::iter::repeat_n(vec![b' '; 1 << 20], 1024));
    let client = runner.client().clone();
    let form = Form::new()
        .text("projectName", "bomb")
        .text("testRun", "{}")
        .part("testCases", Part::bytes(vec![b' '; 130 << 20]));
    let upload = client.request(Method::POST, "/api/test-runs/upload").multipart(form);
    assert_eq!(Answer::of(upload).await.expect("an answer").status.as_u16(), 413);
    for path in ["/api/test-runs/submit", "/api/test-runs/1/events", "/api/test-runs/setup"] {
        assert_eq!(post(&client, path, bomb.clone()).await.status.as_u16(), 413, "{path}");
        let took = took(&mut runner, before);
        assert!(took < EXTRA_BYTES, "{path} took {} MiB", took / MIB);
    }
}

/// Sends until there was room for it, as clients do.
async fn until_admitted(send: impl AsyncFn() -> Answer) -> Answer {
    loop {
        let answer = send().await;
        if answer.status.as_u16() != 503 {
            return answer;
        }
        assert_eq!(answer.json().expect("JSON")["code"], "busy", "{}", answer.text());
        assert!(answer.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds > 0));
    }
}

async fn submit_one(client: &Client, number: usize) -> i64 {
    // Some bodies are larger than what is held of one.
    let tests = if number.is_multiple_of(10) { telling_tests(150) } else { passing(100) };
    let count = tests.len();
    let body = run(&format!("batch {number}"), "failed", tests).to_string();
    let packed = gzip(body.as_bytes().chunks(1 << 20).map(<[u8]>::to_vec));
    let answer = until_admitted(async || post(client, "/api/test-runs/submit", packed.clone()).await).await;
    let stored = answer.success().expect("stored");
    assert_eq!(stored["totalTests"], json!(count), "{stored}");
    stored["runId"].as_i64().expect("a run")
}

async fn upload_one(client: &Client, number: usize) -> i64 {
    let body = run(&format!("files {number}"), "failed", telling_tests(8));
    let trace = [b"PK\x03\x04".as_slice(), &vec![u8::try_from(number).expect("small"); 2 << 20]].concat();
    let answer = until_admitted(async || {
        let form = Form::new()
            .text("projectName", format!("files {number}"))
            .text("testRun", body.to_string())
            .text("testCases", body["testCases"].to_string())
            .part("trace_0", Part::bytes(trace.clone()).file_name("trace.zip"));
        Answer::of(client.request(Method::POST, "/api/test-runs/upload").multipart(form))
            .await
            .expect("an answer")
    });
    answer.await.success().expect("stored")["runId"].as_i64().expect("a run")
}

async fn live_one(client: &Client, number: usize) -> i64 {
    let call = async |path: String, body: Value| {
        until_admitted(async || client.post(&path, &body).await.expect("an answer"))
            .await
            .success()
            .expect("taken")
    };
    let begin = json!({ "projectName": format!("live {number}"), "startTime": "2026-01-01T10:00:00.000Z" });
    let started = call("/api/test-runs/start".to_owned(), begin).await;
    let (run, token) = (started["runId"].as_i64().expect("a run"), &started["streamToken"]);
    for part in 0..3 {
        let tests = (0..4).map(|n| with(telling(part * 4 + n, LINES), json!({ "type": "complete" })));
        let events = json!({ "streamToken": token, "testCases": tests.collect::<Vec<_>>() });
        call(format!("/api/test-runs/{run}/events"), events).await;
    }
    let end = json!({ "streamToken": token, "status": "passed", "duration": 1000 });
    assert_eq!(call(format!("/api/test-runs/{run}/finish"), end).await["status"], "passed");
    run
}

#[tokio::test]
async fn fifty_clients_share_the_smallest_budget_and_lose_nothing() {
    for_each_database(async |database| {
        let (mut runner, before) = warm(database, &SMALLEST).await;
        let client = runner.client().clone();
        let all = (0..CLIENTS).map(async |number| match number % 3 {
            0 => submit_one(&client, number).await,
            1 => upload_one(&client, number).await,
            _ => live_one(&client, number).await,
        });
        let runs = join_all(all).await;
        let took = took(&mut runner, before);
        assert!(took < SMALLEST_BYTES + EXTRA_BYTES, "all of them took {} MiB", took / MIB);
        for (number, run) in runs.into_iter().enumerate() {
            let shown = client.json(&format!("/api/test-runs/{run}")).await.expect("the run");
            let (count, status) = match number % 3 {
                0 if number.is_multiple_of(10) => (152, "failed"),
                0 => (100, "failed"),
                1 => (10, "failed"),
                _ => (12, "passed"),
            };
            assert_eq!((&shown["totalTests"], &shown["status"]), (&json!(count), &json!(status)), "{number}");
        }
    })
    .await;
}

/// Begins a submission of so many bytes.
async fn begin(client: &Client, bytes: usize) -> TcpStream {
    begin_at(client, "/api/test-runs/submit", bytes).await
}

async fn begin_at(client: &Client, path: &str, bytes: usize) -> TcpStream {
    let address = client.base_url().strip_prefix("http://").expect("an address").to_owned();
    let mut stream = TcpStream::connect(&address).await.expect("a connection");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {bytes}\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    // The service says so when it begins to read the body, and by that is the order of age.
    let mut goes_on = [0; 25];
    stream.read_exact(&mut goes_on).await.expect("read");
    assert_eq!(&goes_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

/// Sends most of a body and never the end; answers what comes meanwhile.
async fn never_ending(client: &Client) -> String {
    let (mut reading, mut writing) = begin(client, 8 << 20).await.into_split();
    let sending = tokio::spawn(async move {
        // The service reads as far as it has room.
        let _ = writing.write_all(&vec![b' '; 7 << 20]).await;
        std::future::pending::<()>().await;
    });
    let mut answer = String::new();
    let _ = reading.read_to_string(&mut answer).await;
    sending.abort();
    answer
}

#[tokio::test]
async fn when_memory_is_short_the_oldest_body_goes_on_and_others_are_told_when_to_come_back() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let runner = runner(&database, &SMALLEST).await;
    let client = runner.client();
    let whole = format!("{}{}", run("oldest", "passed", passing(3)), " ".repeat(7 << 20));
    let mut oldest = begin(client, whole.len()).await;
    let (first, rest) = whole.as_bytes().split_at(100);
    oldest.write_all(first).await.expect("sent");

    let others = (0..6).map(|_| Box::pin(never_ending(client)));
    let (refused, _, others) = select_all(others).await;
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("\"code\":\"busy\""), "{refused}");
    assert!(refused.contains("\r\nretry-after: "), "{refused}");
    oldest.write_all(rest).await.expect("sent");
    let mut answer = String::new();
    oldest.read_to_string(&mut answer).await.expect("read");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    drop(others);
}

#[tokio::test]
async fn many_who_announce_much_and_send_little_keep_nobody_from_being_answered() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let secured = secured_settings();
    let mut settings: Vec<_> = secured.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    settings.extend(SMALLEST);
    settings.push(("SERVICE_RATE_LIMITS", "off"));
    let runner = runner(&database, &settings).await;
    let client = runner.client();
    let browser = client.browser();
    let account = json!({ "username": "ada", "password": PASSWORD });
    browser.post_json("/api/auth/setup", &account).await.expect("set up");
    let key = browser.post_json("/api/users/me/api-keys", &json!({ "name": "ci" })).await.expect("a key");
    let key = key["key"].as_str().expect("a text");

    let begun = (0..300).map(async |_| {
        let mut stream = begin_at(client, "/api/test-runs/1/events", 1 << 20).await;
        stream.write_all(b"{").await.expect("sent");
        stream
    });
    let begun: Vec<TcpStream> = join_all(begun).await;

    client.browser().post_json("/api/auth/login", &account).await.expect("signed in");
    let program = client.with_header("x-api-key", key).expect("a header");
    let small = run("small", "passed", passing(3));
    let stored = program.post_json("/api/test-runs/submit", &small).await.expect("stored");
    assert_eq!(stored["totalTests"], json!(3));
    drop(begun);
}
