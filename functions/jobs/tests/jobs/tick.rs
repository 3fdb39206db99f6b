//! `POST /internal/tick`: who may call it, and what it does.

use axum::Router;
use axum::body::Body;
use callboard_domain::ids::RunId;
use callboard_domain::status::RunStatus;
use callboard_http::{AppState, Door, front};
use callboard_store::{feed, ids, jobs};
use callboard_test_support::for_each_database;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use sha2::Sha256;
use tower::ServiceExt as _;

use crate::support::{SECRET, START, Time, state};

const HOUR_MS: i64 = 60 * 60 * 1000;

fn sign(secret: &str, seconds: i64) -> String {
    let mut key = [0_u8; 64];
    // A short secret would be stretched first; this one is long enough.
    Hkdf::<Sha256>::new(Some(b"svc-kdf-v1"), secret.as_bytes()).expand(b"tick/v1", &mut key).expect("a key");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("JSON");
    mac.update(format!("tick\n{seconds}").as_bytes());
    format!("t={seconds},v1={}", hex::encode(mac.finalize().into_bytes()))
}

fn service(state: &AppState) -> Router {
    front(callboard_fn_jobs::router(state.clone()), state.clone(), Door::Main)
}

async fn tick(service: &Router, signature: Option<&str>, body: &str) -> (StatusCode, Value) {
    let mut request = Request::post("/internal/tick");
    if let Some(signature) = signature {
        request = request.header("x-tick-signature", signature);
    }
    send(service, request, body.to_owned()).await
}

async fn send(service: &Router, request: http::request::Builder, body: String) -> (StatusCode, Value) {
    let request = request.header("host", "localhost").header("content-type", "application/json");
    let request = request.body(Body::from(body)).expect("a body");
    let answer = service.clone().oneshot(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    (status, serde_json::from_slice(&body).expect("a body"))
}

#[tokio::test]
async fn only_the_schedule_of_this_installation_is_admitted() {
    for_each_database(async |database| {
        let time = Time::new();
        let now = START / 1000;
        let state = state(database, &time, &[("SERVICE_AUTH_SECRET", SECRET)]).await;
        let service = service(&state);
        let other = "0a4d55a8d778e5022fab701977c5d840bbc486d0";
        let refused = [
            None,
            Some(sign(other, now)),
            Some(sign(SECRET, now - 301)),
            Some(sign(SECRET, now + 301)),
            Some("t=1,v1=".to_owned()),
        ];
        for signature in refused {
            let (status, body) = tick(&service, signature.as_deref(), "{}").await;
            assert_eq!(
                (status.as_u16(), &body["code"]),
                (401, &json!("invalid_tick_signature")),
                "{signature:?}"
            );
        }
        let mut session = state.store().db().read().await.unwrap();
        assert_eq!(jobs::counts(&mut session).await.unwrap(), jobs::JobCounts::default());
        let (status, _) = tick(&service, Some(&sign(SECRET, now)), r#"{"budgetMs":25001}"#).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    })
    .await;
}

#[tokio::test]
async fn a_tick_does_what_is_due_and_says_when_to_come_again() {
    for_each_database(async |database| {
        let time = Time::new();
        let state = state(database, &time, &[("SERVICE_AUTH_SECRET", SECRET)]).await;
        let service = service(&state);
        let signed = |time: &Time| sign(SECRET, time.now().millis() / 1000);
        // Ticks of two schedules at the same time.
        let signature = signed(&time);
        let calls =
            [tick(&service, Some(&signature), ""), tick(&service, Some(&signature), r#"{"budgetMs":1000}"#)];
        let [(first, one), (second, two)] = futures::future::join_all(calls).await.try_into().unwrap();
        assert_eq!((first, second), (StatusCode::OK, StatusCode::OK));
        let sum = |field: &str| one[field].as_i64().unwrap() + two[field].as_i64().unwrap();
        let periodic = sum("claimed");
        assert!(periodic >= 3);
        assert_eq!((sum("done"), sum("failed")), (periodic, 0));

        let (_, again) = tick(&service, Some(&signature), "{}").await;
        assert_eq!(again, json!({ "claimed": 0, "done": 0, "failed": 0 }));

        // The next hour has jobs of its own; those of a day ago are forgotten.
        time.advance_ms(25 * HOUR_MS);
        let (_, later) = tick(&service, Some(&signed(&time)), "{}").await;
        assert_eq!(later["failed"], 0);
        // The first ticks of an installation also found what is to be done in it once.
        let repeated = later["done"].as_i64().expect("a number");
        assert!((3..=periodic).contains(&repeated), "{repeated} of {periodic}");
        let counts = jobs::counts(&mut state.store().db().read().await.unwrap()).await.unwrap();
        assert_eq!(counts, jobs::JobCounts { done: counts.done, ..jobs::JobCounts::default() });
        assert!((repeated..=periodic).contains(&counts.done), "{} of {periodic} are kept", counts.done);
    })
    .await;
}

#[tokio::test]
async fn a_tick_ends_runs_that_fell_silent_in_another_process() {
    for_each_database(async |database| {
        let time = Time::new();
        let elsewhere = state(database, &time, &[]).await;
        let live = front(callboard_fn_live::router(elsewhere.clone()), elsewhere, Door::Main);
        let call = async |path: String, body: Value| {
            let (status, answer) = send(&live, Request::post(path), body.to_string()).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            answer
        };
        let start = async || call("/api/test-runs/start".to_owned(), json!({ "projectName": "shop" })).await;
        let (silent, waiting) = (start().await, start().await);
        // One is done but for a report that never comes.
        let end = json!({ "streamToken": waiting["streamToken"], "status": "passed", "duration": 5,
            "hasPendingUploads": true });
        call(format!("/api/test-runs/{}/finish", waiting["runId"]), end).await;

        let state = state(database, &time, &[("SERVICE_AUTH_SECRET", SECRET)]).await;
        let service = service(&state);
        // Of all runs and of one: what their feeds say of its end.
        let told = async |run: &Value| {
            let (status, _) = tick(&service, Some(&sign(SECRET, time.now().millis() / 1000)), "{}").await;
            assert_eq!(status, StatusCode::OK);
            let run = RunId(run["runId"].as_i64().expect("a run"));
            let mut session = state.store().db().read().await.unwrap();
            let of_all = feed::global(&mut session, 0, 100).await.unwrap();
            let is_end = |kind: &str| matches!(kind, "run-finished" | "run-interrupted");
            let of_all = of_all.into_iter().filter(|event| event.run == run && is_end(&event.kind));
            let project = ids::project_of(&mut session, ids::Listed::Run, run.get()).await.unwrap();
            let own = feed::of_run(&mut session, project.expect("a project"), run, 0, 100).await.unwrap();
            let own = own.events.iter().filter(|event| event.kind == "run-finished").count();
            let ends: Vec<_> = of_all.filter_map(|event| event.status).collect();
            assert_eq!(ends.len(), own);
            ends
        };
        for (seconds_later, silent_ends, waiting_ends) in [
            (119, vec![], vec![]),
            (2, vec![RunStatus::Interrupted], vec![]),
            (478, vec![RunStatus::Interrupted], vec![]),
            (2, vec![RunStatus::Interrupted], vec![RunStatus::Passed]),
        ] {
            time.advance_ms(seconds_later * 1000);
            assert_eq!((told(&silent).await, told(&waiting).await), (silent_ends, waiting_ends));
        }
    })
    .await;
}
