//! The local runner on a platform that starts a container for requests, tells it its
//! port, and stops it when there are none.

use std::time::Duration;

use callboard_platform::config::registry;
use callboard_store::{Backend, jobs};
use callboard_test_functions::both::settings;
use callboard_test_functions::served::infra;
use callboard_test_support::{Client, Process, S3Server, Settings, TestDatabase};
use serde_json::json;

/// A container, and a client of it once it answers.
async fn start(settings: &Settings) -> (Process, Client) {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("a container")
        .local_addr()
        .expect("a container")
        .port();
    let mut settings = settings.clone();
    settings.push(("PORT".to_owned(), port.to_string()));
    let mut process = Process::start("callboard", &settings).expect("a container");
    let client = Client::new(format!("http://127.0.0.1:{port}")).expect("a container");
    for _ in 0..600 {
        if client.get("/api/health").await.is_ok_and(|answer| answer.status.is_success()) {
            return (process, client);
        }
        assert_eq!(process.ended().expect("a container"), None, "{}", process.output());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the container did not answer:\n{}", process.output());
}

#[tokio::test]
async fn containers_that_come_and_go_with_requests_lose_nothing() {
    let database = TestDatabase::empty(Backend::Postgres).await.unwrap();
    let bucket = S3Server::start().await.unwrap();
    let mut settings = settings(&database, &bucket);
    let platform =
        [("SERVICE_HOST", "0.0.0.0"), ("SERVICE_GATEWAY_MAX_BYTES", "33554432"), ("K_SERVICE", "callboard")];
    settings.extend(platform.map(|(name, value)| (name.to_owned(), value.to_owned())));

    let (mut first, client) = start(&settings).await;
    let start_run = json!({ "projectName": "shop", "startTime": "2026-01-01T10:00:00.000Z" });
    let opened = client.post_json("/api/test-runs/start", &start_run).await.unwrap();
    assert_eq!(opened["limits"]["requestMaxBytes"], 33_554_432);
    let run = &opened["runId"];
    let event = json!({ "type": "complete", "title": "pays", "location": "tests/pay.spec.ts:9:5", "status": "failed",
        "duration": 80, "error": "Error: declined" });
    let events = json!({ "streamToken": opened["streamToken"], "testCases": [event] });
    client.post_json(&format!("/api/test-runs/{run}/events"), &events).await.unwrap();
    let finish = json!({ "streamToken": opened["streamToken"], "status": "failed", "duration": 80 });
    client.post_json(&format!("/api/test-runs/{run}/finish"), &finish).await.unwrap();
    first.terminate().unwrap();
    assert!(first.end().await.unwrap().success(), "{}", first.output());

    // Nobody asks; what is due is done all the same.
    let mut work = Process::command("callboard", &["work"], &settings).unwrap();
    assert!(work.end().await.unwrap().success(), "{}", work.output());
    assert!(work.output().contains(" jobs done, 0 failed"), "{}", work.output());
    let store = database.store().await.unwrap();
    let counts = jobs::counts(&mut store.db().read().await.unwrap()).await.unwrap();
    assert_eq!((counts.leased, counts.parked), (0, 0));

    let (second, client) = start(&settings).await;
    let shown = client.json(&format!("/api/test-runs/{run}")).await.unwrap();
    assert_eq!((&shown["status"], &shown["failedTests"]), (&json!("failed"), &json!(1)), "{shown}");
    let clusters = client.json("/api/failure-clusters").await.unwrap();
    assert_eq!(clusters["items"].as_array().map(Vec::len), Some(1), "{clusters}");
    drop(second);
}

#[test]
fn the_settings_of_the_container_files_are_settings() {
    let known: Vec<&str> = registry::variables().into_iter().map(|variable| variable.name).collect();
    let files = ["service.yaml", "job.yaml"]
        .map(|name| std::fs::read_to_string(infra("cloud-run").join(name)).unwrap());
    let file = files.concat();
    let named: Vec<&str> = file
        .split(|sign: char| !(sign.is_ascii_uppercase() || sign == '_'))
        .filter(|word| word.starts_with("SERVICE_"))
        .collect();
    assert!(named.len() > 10, "{named:?}");
    for name in named {
        assert!(known.contains(&name), "{name} in infra/cloud-run is no setting");
    }
}
