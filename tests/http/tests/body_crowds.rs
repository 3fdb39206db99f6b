//! Many bodies at a time share one budget, seen from outside: nobody loses
//! anything, nobody blocks the others.

use callboard_store::Backend;
use callboard_test_support::accounts::{PASSWORD, secured_settings};
use callboard_test_support::{Answer, Client, TestDatabase, for_each_database};
use futures::future::{join_all, select_all};
use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::body_memory::{EXTRA_BYTES, LINES, MIB, SMALLEST, gzip, post, runner, telling_tests, took, warm};
use crate::builders::{passing, run, telling, with};

const SMALLEST_BYTES: u64 = 64 * MIB;
/// Clients of the crowded test.
const CLIENTS: usize = 50;

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
    let packed = gzip(std::iter::once(body.as_bytes()));
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
        Answer::send(client.request(Method::POST, "/api/test-runs/upload").multipart(form))
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
