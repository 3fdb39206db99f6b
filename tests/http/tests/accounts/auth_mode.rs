//! Of processes on one database, the one that requires sign-in wins.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use callboard_domain::account::Role;
use callboard_domain::time::Timestamp;
use callboard_http::{AppState, Clock};
use callboard_platform::Config;
use callboard_store::Backend;
use callboard_test_support::{
    Answer, Client, Service, Settings, TestDatabase, for_each_backend, for_each_database,
};
use reqwest::Method;
use serde_json::json;

use super::{refusal, refused, secured_with};

const LINE: &str = "Sign-in is off: everyone who can reach this service has full access.";

async fn page(client: &Client, path: &str) -> Answer {
    let browser = client.with_header("accept", "text/html").expect("a header");
    browser.get(path).await.expect("a page")
}

async fn health(client: &Client) -> (u16, String) {
    let answer = client.get("/api/health").await.expect("an answer");
    let database = answer.json().expect("JSON")["database"].as_str().expect("a word").to_owned();
    (answer.status.as_u16(), database)
}

/// A process that answers nothing, and says why.
async fn assert_closed(service: &Service) {
    let client = service.client();
    assert_eq!(health(client).await, (503, "auth_mode_differs".to_owned()));
    let run = json!({ "projectName": "shop" });
    for (method, path) in [
        (Method::GET, "/api/projects"),
        (Method::GET, "/api/version"),
        (Method::GET, "/api/nothing"),
        (Method::POST, "/api/test-runs/start"),
        (Method::POST, "/mcp"),
    ] {
        let answer = client.send_json(method, path, &run).await.expect("an answer");
        assert_eq!(refusal(&answer), refused(503, "auth_mode_differs"), "{path}");
        assert!(answer.text().contains("SERVICE_AUTH_ENABLED=true"), "{}", answer.text());
    }
    let shown = page(client, "/projects").await;
    assert!(shown.status == 503 && shown.text().contains("SERVICE_AUTH_ENABLED=true"), "{}", shown.text());
}

async fn assert_secured(service: &Service) {
    assert_eq!(health(service.client()).await, (200, "ok".to_owned()));
    let answer = service.client().get("/api/projects").await.expect("an answer");
    assert_eq!(refusal(&answer), refused(401, "authentication_required"));
}

async fn a_second_process(backend: Backend) {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let on = Service::over(database, &secured_with(&[])).await.expect("a secured service");
    on.account("ada", Role::Administrator).await.expect("an account");
    let off = on.beside(&Settings::new()).await.expect("an open service");
    assert_closed(&off).await;
    assert_secured(&on).await;

    // As at a graceful stop. What is known is cached for some seconds.
    on.state().leave().await;
    off.state().refresh_auth_mode().await.expect("an answer");
    assert_eq!(health(off.client()).await, (200, "ok".to_owned()));
    assert!(off.client().get("/api/projects").await.expect("an answer").status.is_success());
    for path in ["/", "/projects", "/settings", "/nothing"] {
        let shown = page(off.client(), path).await;
        assert!(shown.text().contains(LINE), "{path}: {}", shown.text());
    }

    // One that was open before closes when the other one comes.
    let again = on.beside(&secured_with(&[])).await.expect("a secured service");
    off.state().refresh_auth_mode().await.expect("an answer");
    assert_closed(&off).await;
    assert_secured(&again).await;
    assert_secured(&on).await;
}

#[tokio::test]
async fn a_second_process_without_sign_in_answers_nothing_and_the_secured_one_goes_on() {
    for_each_backend(a_second_process).await;
}

#[tokio::test]
async fn a_service_without_accounts_is_open_without_a_word() {
    for_each_backend(async |backend| {
        let off = Service::start(backend).await.expect("a service");
        let shown = page(off.client(), "/projects").await;
        assert!(shown.status == 200 && !shown.text().contains(LINE), "{}", shown.text());
        off.account("ada", Role::User).await.expect("an account");
        off.state().refresh_auth_mode().await.expect("an answer");
        assert!(page(off.client(), "/projects").await.text().contains(LINE));
    })
    .await;
}

/// A process without a timer, as functions are.
async fn process(database: &TestDatabase, time: &Arc<AtomicI64>, settings: &Settings) -> AppState {
    let config = Config::from_env(settings.iter().cloned()).expect("settings");
    let time = Arc::clone(time);
    let clock = Clock::from_fn(move || Timestamp(time.load(Ordering::SeqCst)));
    AppState::new(config, database.store().await.expect("a store")).with_clock(clock)
}

#[tokio::test]
async fn a_check_in_counts_for_a_minute() {
    for_each_database(async |database| {
        let time = Arc::new(AtomicI64::new(1_767_261_600_000));
        let pass = |seconds: i64| time.fetch_add(seconds * 1000, Ordering::SeqCst);
        let on = process(database, &time, &secured_with(&[])).await;
        let off = process(database, &time, &Settings::new()).await;
        let is_closed = async |state: &AppState| state.auth_mode_differs().await.expect("an answer");
        assert!(!is_closed(&off).await, "the other one has not begun");
        on.refresh_auth_mode().await.expect("checked in");
        pass(2);
        assert!(is_closed(&off).await, "also when it was open before, 2 s later");
        assert!(!is_closed(&on).await);
        pass(57);
        assert!(is_closed(&off).await, "59 s later");
        on.refresh_auth_mode().await.expect("checked in");
        pass(59);
        assert!(is_closed(&off).await, "it has checked in again");
        pass(12);
        assert!(!is_closed(&off).await, "killed more than a minute ago");
        let late = process(database, &time, &Settings::new()).await;
        assert!(!is_closed(&late).await);
        // Of two that require sign-in one stops.
        let other = process(database, &time, &secured_with(&[])).await;
        for state in [&on, &other] {
            state.refresh_auth_mode().await.expect("checked in");
        }
        on.leave().await;
        let first = process(database, &time, &Settings::new()).await;
        assert!(is_closed(&first).await, "before its first answer");
        other.leave().await;
        pass(11);
        assert!(!is_closed(&first).await);
    })
    .await;
}
