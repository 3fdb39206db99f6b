//! The grace period of a deletion by a person: its length, its end, and who
//! does without it.

use std::time::Duration;

use callboard_domain::time::Timestamp;
use callboard_fn_jobs::{Budget, run_due};
use callboard_http::state::Clock;
use callboard_test_support::{Client, Service, TestDatabase, for_each_backend, for_each_service};
use serde_json::{Value, json};

use super::{all_stored, delete, freed, refused, restore, stored, submitted, upload};
use crate::rows::settled;

const HOUR_MS: i64 = 60 * 60 * 1000;

/// Does what is due some hours from now.
pub(super) async fn work_in(service: &Service, hours: i64) {
    let at = Timestamp(service.state().now().millis() + hours * HOUR_MS);
    let state = service.state().clone().with_clock(Clock::from_fn(move || at));
    run_due(&state, Budget::new(Duration::from_secs(20))).await.expect("worked");
}

pub(super) async fn receipt(client: &Client, of: &Value) -> Value {
    client.json(&format!("/api/deletions/{}", of["receipt"]["id"])).await.expect("a receipt")
}

#[tokio::test]
async fn a_deletion_waits_for_its_grace_period_and_is_carried_out_then() {
    for_each_service(async |service| {
        let client = service.client();
        let start = service.state().now().to_iso();
        let run = upload(service, "shop", &start, b"only here", b"also only here").await["runId"].clone();
        let path = format!("/api/test-runs/{run}");
        let kept = all_stored(service).await;
        let first = delete(client, &path).await.success().expect("deleted");
        let told = &first["receipt"];
        assert_eq!((&told["state"], &told["restoredAt"]), (&json!("pending"), &Value::Null));
        let moment = |key: &str| {
            let text = told[key].as_str().expect("a time");
            Timestamp::parse_iso(text).expect("a time").millis()
        };
        assert_eq!(moment("restorableUntil") - moment("createdAt"), 24 * HOUR_MS);
        settled(service).await;
        work_in(service, 23).await;
        assert_eq!(receipt(client, &first).await["state"], "pending");
        assert_eq!(all_stored(service).await, kept, "nothing is freed before the grace period is over");

        // Restored once, and not twice.
        let restored = restore(client, told).await.success().expect("restored");
        assert_eq!(restored["renamed"], Value::Null);
        assert_eq!(restored["receipt"]["state"], "restored");
        assert_eq!(restored["receipt"]["restorableUntil"], Value::Null);
        assert!(restored["receipt"]["restoredAt"].is_string(), "{restored}");
        refused(&restore(client, told).await, 409, "not_restorable");
        work_in(service, 25).await;
        assert_eq!(client.json(&path).await.expect("the run")["totalTests"], 2);
        assert_eq!(receipt(client, &first).await["state"], "restored");
        let audited = client.json("/api/audit?action=deletion.restored").await.expect("entries");
        assert_eq!(audited["items"][0]["detail"]["label"], format!("#{run}"));
        let listed = client.json("/api/deletions?state=restored").await.expect("receipts");
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
        for state in ["pending", "complete", "restoring"] {
            let listed = client.json(&format!("/api/deletions?state={state}")).await.expect("receipts");
            assert_eq!(listed["items"], json!([]), "{state}");
        }

        // Deleted again; this time nobody objects.
        let second = delete(client, &path).await.success().expect("deleted");
        settled(service).await;
        work_in(service, 25).await;
        let done = receipt(client, &second).await;
        assert_eq!((&done["state"], &done["restorableUntil"]), (&json!("complete"), &Value::Null));
        assert_eq!((&done["rows"]["runs"], &done["rows"]["executions"]), (&json!(1), &json!(2)));
        assert_eq!(stored(service, &format!("project-1/reports/{run}")), (0, 0));
        refused(&restore(client, &second["receipt"]).await, 409, "not_restorable");
        refused(&restore(client, &json!({ "id": 4711 })).await, 404, "deletion_not_found");
    })
    .await;
}

#[tokio::test]
async fn no_grace_period_is_left_when_it_is_switched_off_or_skipped() {
    for_each_backend(async |backend| {
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let off = vec![("SERVICE_DELETION_GRACE_HOURS".to_owned(), "0".to_owned())];
        let service = &Service::over(database, &off).await.expect("a service");
        let client = service.client();
        let start = "2026-01-01T10:00:00.000Z";
        let run = submitted(service, "shop", start, json!({})).await;
        let deleted = delete(client, &format!("/api/test-runs/{run}")).await.success().expect("deleted");
        assert_eq!(deleted["receipt"]["restorableUntil"], Value::Null);
        refused(&restore(client, &deleted["receipt"]).await, 409, "not_restorable");
        assert_eq!(freed(service, &deleted).await["rows"]["runs"], 1);
    })
    .await;
}

#[tokio::test]
async fn personal_data_is_deleted_without_a_grace_period() {
    for_each_service(async |service| {
        let client = service.client();
        let start = "2026-01-01T10:00:00.000Z";
        let mut runs = Vec::new();
        for _ in 0..3 {
            runs.push(submitted(service, "shop", start, json!({})).await);
        }
        let by_query = delete(client, &format!("/api/test-runs/{}?now=true", runs[0])).await;
        let body = json!({ "ids": [runs[1]], "now": true });
        let by_body = client.post("/api/test-runs/bulk-delete", &body).await.expect("an answer");
        let cleanup = json!({ "olderThanDays": 1, "now": true });
        let cleaned = client.post("/api/admin/cleanup", &cleanup).await.expect("an answer");
        for answer in [by_query, by_body, cleaned] {
            let answer = answer.success().expect("deleted");
            refused(&restore(client, &answer["receipt"]).await, 409, "not_restorable");
            assert_eq!(freed(service, &answer).await["rows"]["runs"], 1);
        }
        let odd = client.post("/api/test-runs/bulk-delete", &json!({ "ids": [1], "now": "yes" })).await;
        refused(&odd.expect("an answer"), 400, "invalid_field");
    })
    .await;
}
