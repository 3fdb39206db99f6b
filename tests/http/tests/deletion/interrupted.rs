//! Deletions and restores whose process was killed right after the request.

use std::time::Duration;

use callboard_store::db::Statement;
use callboard_test_support::{Service, for_each_service};
use serde_json::{Value, json};

use super::grace::{receipt, work_in};
use super::{delete, delete_now, freed, refused, restore, submitted};
use crate::rows::{settled, texts};

/// More than a request hides itself.
const MANY: usize = 203;

async fn execute(service: &Service, sql: &'static str) {
    let mut session = service.state().store().db().begin().await.expect("a transaction");
    session.execute(&Statement::new("interrupted", sql), Vec::new()).await.expect("executed");
    session.commit().await.expect("committed");
}

/// Works some hours from now until a receipt has this state.
async fn worked_until(service: &Service, of: &Value, hours: i64, state: &str) -> Value {
    let done = async {
        loop {
            work_in(service, hours).await;
            let told = receipt(service.client(), of).await;
            if told["state"] == state {
                return told;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), done).await.expect("worked in time")
}

#[tokio::test]
async fn a_bulk_deletion_takes_all_runs_although_its_hiding_never_ran() {
    for_each_service(async |service| {
        let client = service.client();
        for _ in 0..MANY {
            submitted(service, "shop", "2026-01-01T10:00:00.000Z", json!({})).await;
        }
        settled(service).await;
        // The job that hides has this key; it is not due for ever.
        execute(
            service,
            "INSERT INTO jobs (id, key, kind, project_id, payload, state, run_after, attempts, created_at) \
             VALUES (-1, 'deletion:1:hide', 'hide_target', 1, '{\"receipt\":1,\"further\":{\"project\":1,\
             \"branch\":null,\"environment\":null,\"statuses\":null,\"before\":1798761600000}}', \
             'queued', 9000000000000, 0, 0)",
        )
        .await;
        let filter = json!({ "filter": { "project": 1, "before": "2027-01-01" } });
        let deleted = client.post_json("/api/test-runs/bulk-delete", &filter).await.expect("deleted");
        assert_eq!((&deleted["receipt"]["id"], &deleted["matched"]), (&json!(1), &json!(MANY)));
        settled(service).await;
        let left = "SELECT CAST(COUNT(*) AS text) FROM test_runs";
        assert_eq!(texts(service, left).await, ["3"]);
        let done = worked_until(service, &deleted, 25, "complete").await;
        assert_eq!((&done["rows"]["runs"], &done["remaining"]), (&json!(MANY), &json!(0)));
        assert_eq!(texts(service, left).await, ["0"]);
    })
    .await;
}

#[tokio::test]
async fn a_restore_that_was_given_up_is_taken_up_again() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submitted(service, "shop", "2026-01-01T10:00:00.000Z", json!({})).await;
        let path = format!("/api/test-runs/{run}");
        let request = "UPDATE deletion_receipts SET restore_requested_at = created_at WHERE restored_at IS NULL";

        // By the service, when its job was given up.
        let deleted = delete(client, &path).await.success().expect("deleted");
        settled(service).await;
        execute(service, request).await;
        execute(
            service,
            "INSERT INTO jobs (id, key, kind, project_id, payload, state, run_after, attempts, created_at, finished_at) \
             SELECT -1, 'deletion:' || id || ':restore', 'restore_target', project_id, '{\"receipt\":' || id || '}', \
             'parked', 0, 8, 0, 0 FROM deletion_receipts WHERE restored_at IS NULL",
        )
        .await;
        assert_eq!(receipt(client, &deleted).await["state"], "restoring");
        worked_until(service, &deleted, 2, "restored").await;
        assert_eq!(client.json(&path).await.expect("the run")["totalTests"], 2);

        // Not by whoever asks again while its job is at work.
        let deleted = delete(client, &path).await.success().expect("deleted");
        settled(service).await;
        execute(service, request).await;
        execute(
            service,
            "INSERT INTO jobs (id, key, kind, project_id, payload, state, run_after, attempts, created_at) \
             SELECT -2, 'deletion:' || id || ':restore', 'restore_target', project_id, '{\"receipt\":' || id || '}', \
             'queued', 9000000000000, 0, 0 FROM deletion_receipts WHERE restored_at IS NULL",
        )
        .await;
        let again = restore(client, &deleted["receipt"]).await;
        refused(&again, 409, "not_restorable");
        assert!(again.text().contains("being restored already"), "{}", again.text());
        execute(service, "DELETE FROM jobs WHERE id = -2").await;
        restore(client, &deleted["receipt"]).await.success().expect("restored");

        // By whoever asks again, when there is no job.
        let deleted = delete(client, &path).await.success().expect("deleted");
        settled(service).await;
        execute(service, request).await;
        let again = restore(client, &deleted["receipt"]).await.success().expect("restored");
        assert_eq!(again["receipt"]["state"], "restored");
        assert_eq!(client.json(&path).await.expect("the run")["totalTests"], 2);
        let gone = delete_now(client, &path).await.success().expect("deleted");
        assert_eq!(freed(service, &gone).await["rows"]["runs"], 1);
    })
    .await;
}
