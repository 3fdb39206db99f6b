//! `Idempotency-Key`: a request sent again is answered again and not done
//! again.

use callboard_domain::time::Timestamp;
use callboard_store::idempotency::{self, ANSWER_MS, CLAIM_MS, FirstAnswer, Found};
use callboard_test_support::{Answer, Service, for_each_database, for_each_service};
use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::builders::{attempt, run, with};

async fn submit(service: &Service, key: &str, run: &Value) -> Answer {
    let request = service.client().request(Method::POST, "/api/test-runs/submit");
    let request = request.header("content-type", "application/json").header("idempotency-key", key);
    Answer::send(request.body(run.to_string())).await.expect("an answer")
}

async fn upload(service: &Service, key: &str, run: &Value, trace: &[u8]) -> Answer {
    let trace = Part::bytes(trace.to_vec()).file_name("trace.zip");
    let form = Form::new()
        .text("projectName", "shop")
        .text("testRun", run.to_string())
        .text("testCases", run["testCases"].to_string())
        .part("trace_0", trace);
    let request = service.client().request(Method::POST, "/api/test-runs/upload");
    Answer::send(request.header("idempotency-key", key).multipart(form)).await.expect("an answer")
}

fn code(answer: &Answer) -> Value {
    answer.json().expect("a JSON answer")["code"].clone()
}

async fn runs(service: &Service) -> usize {
    let page = service.client().json("/api/test-runs").await.expect("runs");
    page["items"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn a_submission_under_its_key_is_stored_once_and_answered_alike() {
    for_each_service(async |service| {
        let first = run("shop", "passed", vec![attempt("pays", "passed", 0)]);
        let answer = submit(service, "key-1", &first).await;
        let stored = answer.success().expect("stored");
        let again = submit(service, "key-1", &first).await;
        assert_eq!((again.status, again.json().expect("JSON")), (answer.status, stored.clone()));
        assert_eq!(runs(service).await, 1);

        let other = with(first.clone(), json!({ "label": "another" }));
        let refused = submit(service, "key-1", &other).await;
        assert_eq!((refused.status.as_u16(), code(&refused)), (409, json!("idempotency_conflict")));
        assert_eq!(runs(service).await, 1);
        // Neither without the key nor under another one is it the same request.
        let fresh = submit(service, "key-2", &first).await.success().expect("stored");
        assert_ne!(fresh["runId"], stored["runId"]);
        for wrong in ["a b", &"x".repeat(201)] {
            let refused = submit(service, wrong, &first).await;
            assert_eq!((refused.status.as_u16(), code(&refused)), (400, json!("invalid_field")));
        }
        assert_eq!(runs(service).await, 2);
    })
    .await;
}

#[tokio::test]
async fn an_upload_is_known_again_although_its_boundary_is_another() {
    for_each_service(async |service| {
        let first = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
        let stored = upload(service, "form", &first, &[7; 3_000_000]).await.success().expect("stored");
        let again = upload(service, "form", &first, &[7; 3_000_000]).await.success().expect("answered");
        assert_eq!(again, stored);
        let other = upload(service, "form", &first, &[8; 3_000_000]).await;
        assert_eq!((other.status.as_u16(), code(&other)), (409, json!("idempotency_conflict")));
        assert_eq!(runs(service).await, 1);
    })
    .await;
}

#[tokio::test]
async fn only_what_was_done_is_kept() {
    for_each_service(async |service| {
        let unnamed = json!({ "status": "passed", "startTime": "2026-01-01T10:00:00Z" });
        let refused = submit(service, "refused", &unnamed).await;
        assert_eq!(refused.status.as_u16(), 400);
        let mended = run("shop", "passed", Vec::new());
        assert_eq!(submit(service, "refused", &mended).await.status.as_u16(), 200);

        // Files cannot be stored where their folder should be.
        let objects = service.database().folder().join("objects");
        let aside = service.database().folder().join("aside");
        std::fs::rename(&objects, &aside).expect("moved");
        std::fs::write(&objects, "no folder").expect("written");
        let first = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
        let fault = upload(service, "fault", &first, &[7; 2_000_000]).await;
        assert!(fault.status.is_server_error(), "{}", fault.text());
        std::fs::remove_file(&objects).expect("removed");
        std::fs::rename(&aside, &objects).expect("moved back");
        upload(service, "fault", &first, &[7; 2_000_000]).await.success().expect("stored");
    })
    .await;
}

#[tokio::test]
async fn a_request_whose_key_is_at_work_is_told_to_come_back() {
    for_each_service(async |service| {
        let mut session = service.state().store().db().begin().await.expect("a transaction");
        let now = service.state().now();
        let key = hex::encode(Sha256::digest("busy"));
        let found = idempotency::claim(&mut session, "everyone", &key, now).await.expect("claimed");
        session.commit().await.expect("committed");
        assert!(matches!(found, Found::Claimed(_)));
        let refused = submit(service, "busy", &run("shop", "passed", vec![])).await;
        assert_eq!((refused.status.as_u16(), code(&refused)), (409, json!("idempotency_in_progress")));
        assert_eq!(refused.header("retry-after"), "2");
        assert_eq!(runs(service).await, 0);
    })
    .await;
}

#[tokio::test]
async fn claims_end_after_a_minute_and_answers_after_a_day() {
    for_each_database(async |database| {
        let store = database.store().await.expect("a store");
        let mut session = store.db().begin().await.expect("a transaction");
        let session = &mut session;
        let at = |ms: i64| Timestamp(1_767_261_600_000 + ms);
        let Found::Claimed(mut lost) = idempotency::claim(session, "p", "k", at(0)).await.expect("claimed")
        else {
            panic!("a fresh key is free");
        };
        assert_eq!(
            idempotency::claim(session, "p", "k", at(CLAIM_MS - 1)).await.expect("asked"),
            Found::Running
        );
        assert!(matches!(
            idempotency::claim(session, "q", "k", at(0)).await.expect("claimed"),
            Found::Claimed(_)
        ));
        assert!(idempotency::renew(session, &mut lost, at(1)).await.expect("renewed"));
        assert_eq!(idempotency::claim(session, "p", "k", at(CLAIM_MS)).await.expect("asked"), Found::Running);
        let Found::Claimed(held) =
            idempotency::claim(session, "p", "k", at(CLAIM_MS + 1)).await.expect("claimed")
        else {
            panic!("a claim that was not renewed ends");
        };
        // Who lost the claim changes nothing.
        let answer = |status| FirstAnswer { request: [7; 32], status, body: "{}".to_owned() };
        assert!(!idempotency::renew(session, &mut lost, at(CLAIM_MS + 2)).await.expect("asked"));
        idempotency::complete(session, &lost, &answer(500), at(CLAIM_MS + 2)).await.expect("ignored");
        idempotency::release(session, &lost).await.expect("ignored");
        let done = at(CLAIM_MS + 3);
        idempotency::complete(session, &held, &answer(201), done).await.expect("kept");
        let end = Timestamp(done.millis() + ANSWER_MS);
        let before = Timestamp(end.millis() - 1);
        assert_eq!(
            idempotency::claim(session, "p", "k", before).await.expect("asked"),
            Found::Answered(answer(201))
        );
        // The other principal's claim is over by now.
        assert_eq!(idempotency::purge(session, before, 10).await.expect("purged"), 1);
        assert_eq!(idempotency::purge(session, end, 10).await.expect("purged"), 1);
    })
    .await;
}
