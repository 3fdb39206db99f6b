//! A stream asks again who reads it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use callboard_auth::api_key;
use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_http::{AppState, Clock, Door, front};
use callboard_platform::Config;
use callboard_store::Store;
use callboard_store::accounts::api_keys::{self, NewKey};
use callboard_store::accounts::assignments;
use callboard_store::accounts::users::{self, UserRow};
use callboard_test_support::for_each_database;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const START: i64 = 1_767_261_600_000;
/// Longer than a decision about access may hold.
const MINUTE_MS: i64 = 60_000;

/// An account with a key; answers the key and what the account is in.
async fn account(store: &Store, name: &str, role: Role, project: Option<ProjectId>) -> (String, UserRow) {
    let now = Timestamp(START);
    let mut session = store.db().begin().await.unwrap();
    let id = users::new_id(&mut session).await.unwrap();
    let user = UserRow {
        id,
        username: name.to_owned(),
        username_key: name.to_owned(),
        password: String::new(),
        role,
        name: None,
        email: None,
        avatar: None,
        oauth: None,
        session_epoch: 0,
        disabled_at: None,
        created_at: now,
        updated_at: now,
    };
    users::insert(&mut session, &user).await.unwrap();
    if let Some(project) = project {
        assignments::add(&mut session, id, Some(project), None, now).await.unwrap();
    }
    let fresh = api_key::mint().unwrap();
    let key = NewKey {
        user: id,
        name: "a key".to_owned(),
        key_hash: fresh.hash,
        key_prefix: fresh.shown.clone(),
        permission: KeyPermission::Full,
        projects: None,
        parent: None,
        created_by: id,
        created_at: now,
        expires_at: None,
    };
    api_keys::insert(&mut session, &key).await.unwrap();
    session.commit().await.unwrap();
    (format!("Bearer {}", fresh.text), user)
}

async fn send(router: &Router, request: http::request::Builder, body: Value) -> axum::response::Response {
    let request = request.header("host", "localhost").header("content-type", "application/json");
    router.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap()
}

type Pieces = BoxStream<'static, Result<Bytes, axum::Error>>;

async fn open(router: &Router, path: &str, key: &str) -> Pieces {
    let request = Request::get(path).header("host", "localhost").header("authorization", key);
    let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body().into_data_stream().boxed()
}

/// What is told until something holds this text; nothing when the stream ends
/// before.
async fn told_until(pieces: &mut Pieces, text: &str) -> Option<String> {
    let mut told = String::new();
    while let Some(piece) = pieces.next().await {
        told.push_str(&String::from_utf8_lossy(&piece.unwrap()));
        if told.contains(text) {
            return Some(told);
        }
    }
    None
}

/// Reads until something is told that holds this text; false at the end.
async fn is_told(pieces: &mut Pieces, text: &str) -> bool {
    told_until(pieces, text).await.is_some()
}

#[tokio::test]
async fn a_stream_ends_when_its_reader_may_not_see_it_any_more() {
    for_each_database(async |database| {
        let time = Arc::new(AtomicI64::new(START));
        let clock = Arc::clone(&time);
        let settings =
            [("SERVICE_AUTH_ENABLED", "true"), ("SERVICE_AUTH_SECRET", "a4b1c7d2e9f60813572469ad0c3be58f")];
        let config = Config::from_env(settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let store = database.store().await.unwrap();
        let state = AppState::new(config.unwrap(), store)
            .with_clock(Clock::from_fn(move || Timestamp(clock.load(Ordering::SeqCst))));
        let store = state.store().clone();
        let router = front(callboard_fn_live::router(state.clone()), state, Door::Main);

        let (admin, _) = account(&store, "admin", Role::Administrator, None).await;
        let start = json!({ "projectName": "shop", "startTime": "2026-01-01T10:00:00.000Z" });
        let begin_run = start;
        let start_in = async |project: &str| {
            let request = Request::post("/api/test-runs/start").header("authorization", &admin);
            let mut body = begin_run.clone();
            body["projectName"] = json!(project);
            let answer = send(&router, request, body).await;
            assert_eq!(answer.status(), 200);
            let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            serde_json::from_slice::<Value>(&body).unwrap()
        };
        let run = start_in("shop").await;
        let project = ProjectId(run["projectId"].as_i64().unwrap());
        let other = ProjectId(start_in("depot").await["projectId"].as_i64().unwrap());
        let (key, reader) = account(&store, "reader", Role::User, Some(project)).await;
        let (key_of_mover, mover) = account(&store, "mover", Role::User, Some(project)).await;
        let mut session = store.db().begin().await.unwrap();
        assignments::add(&mut session, mover.id, Some(other), None, Timestamp(START)).await.unwrap();
        session.commit().await.unwrap();
        let begin = async |title: &str| {
            let event = json!({ "type": "begin", "title": title, "location": "tests/a.spec.ts:1:1" });
            let body = json!({ "streamToken": run["streamToken"], "testCases": [event] });
            let path = format!("/api/test-runs/{}/events", run["runId"]);
            assert_eq!(send(&router, Request::post(path), body).await.status(), 200);
        };

        let path = format!("/api/test-runs/{}/stream", run["runId"]);
        let (mut of_run, mut moved_of_run) =
            (open(&router, &path, &key).await, open(&router, &path, &key_of_mover).await);
        let mut of_all = open(&router, "/api/stream?lastEventId=0", &key).await;
        let mut moved_of_all = open(&router, "/api/stream?lastEventId=0", &key_of_mover).await;
        let told = |run: &Value| format!("\"runId\":{}", run["runId"]);
        assert!(is_told(&mut of_all, &told(&run)).await);
        assert!(is_told(&mut moved_of_all, &told(&run)).await);
        assert!(is_told(&mut of_run, "\"init\"").await);
        assert!(is_told(&mut moved_of_run, "\"init\"").await);
        begin("before").await;
        assert!(is_told(&mut of_run, "before").await);
        // A minute later its reader is asked again, and stays.
        time.fetch_add(MINUTE_MS, Ordering::SeqCst);
        begin("later").await;
        assert!(is_told(&mut of_run, "later").await);

        let mut session = store.db().begin().await.unwrap();
        assignments::remove(&mut session, mover.id, project).await.unwrap();
        users::save(&mut session, &UserRow { disabled_at: Some(Timestamp(START)), ..reader }).await.unwrap();
        session.commit().await.unwrap();
        time.fetch_add(MINUTE_MS, Ordering::SeqCst);
        begin("afterwards").await;
        let (hidden, shown) = (start_in("shop").await, start_in("depot").await);
        for stream in [&mut of_run, &mut moved_of_run] {
            assert!(!is_told(stream, "afterwards").await, "the stream of the run ends before");
        }
        assert!(!is_told(&mut of_all, &told(&hidden)).await, "the stream of all runs ends before");
        let goes_on = told_until(&mut moved_of_all, &told(&shown)).await.unwrap();
        assert!(!goes_on.contains(&told(&hidden)), "it tells of what is left to see: {goes_on}");
    })
    .await;
}

#[tokio::test]
async fn streams_are_counted_for_each_key_and_for_the_process() {
    for_each_database(async |database| {
        let settings = [
            ("SERVICE_AUTH_ENABLED", "true"),
            ("SERVICE_AUTH_SECRET", "a4b1c7d2e9f60813572469ad0c3be58f"),
            ("SERVICE_SSE_MAX_PER_IDENTITY", "2"),
            ("SERVICE_SSE_MAX_STREAMS", "3"),
        ];
        let config = Config::from_env(settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let state = AppState::new(config.unwrap(), database.store().await.unwrap());
        let store = state.store().clone();
        let router = front(callboard_fn_live::router(state.clone()), state, Door::Main);
        let (ada, _) = account(&store, "ada", Role::Administrator, None).await;
        let (bob, _) = account(&store, "bob", Role::Administrator, None).await;
        let refused = async |key: &str| {
            let request =
                Request::get("/api/stream").header("host", "localhost").header("authorization", key);
            let answer = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(answer.status(), 429);
            assert!(answer.headers().contains_key("retry-after"));
            let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            let error: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(error["code"], "too_many_streams");
            error["message"].as_str().unwrap().to_owned()
        };
        let first = open(&router, "/api/stream", &ada).await;
        let _second = open(&router, "/api/stream", &ada).await;
        assert!(refused(&ada).await.contains("SERVICE_SSE_MAX_PER_IDENTITY"));
        let _third = open(&router, "/api/stream", &bob).await;
        assert!(refused(&bob).await.contains("SERVICE_SSE_MAX_STREAMS"));
        // The place of one that ends is free.
        drop(first);
        let _fourth = open(&router, "/api/stream", &bob).await;
        refused(&bob).await;
    })
    .await;
}
