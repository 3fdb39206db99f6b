//! What is staged goes: with its run, with its project, or after a day.

use callboard_store::{Db, unclaimed};
use callboard_test_support::{Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Uploader, link, refusal};
use crate::builders::attempt;
use crate::live::{later, start};
use crate::rows::{settled, texts};

const HOUR_MS: i64 = 60 * 60 * 1000;

/// Changes rows behind the back of the service.
pub(super) async fn execute(service: &Service, statement: &str) {
    let statement = sqlx::AssertSqlSafe(statement.to_owned());
    match service.state().store().db() {
        Db::Sqlite { writer, .. } => {
            let mut connection = writer.get().await.expect("a connection");
            sqlx::query(statement).execute(&mut *connection).await.map(|_| ())
        }
        Db::Postgres(pool) => {
            let mut connection = pool.get().await.expect("a connection");
            sqlx::query(statement).execute(&mut *connection).await.map(|_| ())
        }
    }
    .expect("executed");
}

/// Files below a folder of the object store.
pub(super) fn objects(service: &Service, folder: &str) -> Vec<std::path::PathBuf> {
    fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
    }
    let root = service.database().storage_url();
    walk(&std::path::Path::new(root.strip_prefix("file://").expect("a folder")).join(folder))
}

async fn delete(service: &Service, path: &str, body: Value) {
    let answer = service.client().send_json(Method::DELETE, path, &body).await.expect("an answer");
    assert!(answer.status.is_success(), "{}", answer.text());
    settled(service).await;
}

#[tokio::test]
async fn staged_bytes_go_with_their_run_and_their_project() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let of_run = Uploader::token(&feeder.client, feeder.run, &feeder.token);
        let of_project = Uploader::account(service.client(), "shop", None);
        let (one, two) = (of_run.ticket("trace", b"one").await, of_project.ticket("import", b"two").await);
        let open = of_run.ticket("trace", b"three").await;
        one.put("one").await.success().expect("received");
        two.put("two").await.success().expect("received");
        assert_eq!(objects(service, "staging").len(), 2);

        let project = feeder.shown().await["projectId"].clone();
        delete(service, &format!("/api/test-runs/{}?now=true", feeder.run), json!({})).await;
        assert_eq!(objects(service, "staging").len(), 1, "{:?}", objects(service, "staging"));
        for ticket in [&one, &open] {
            assert_eq!(refusal(&ticket.put("three").await), (404, "ticket_not_found".to_owned()));
        }
        two.put("two").await.success().expect("known");
        delete(service, &format!("/api/projects/{project}"), json!({ "confirm": "shop", "now": true })).await;
        assert!(objects(service, "staging").is_empty(), "{:?}", objects(service, "staging"));
        assert_eq!(refusal(&two.put("two").await), (404, "ticket_not_found".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn what_nobody_commits_is_swept_after_a_day() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "failed", 0)]).await;
        let uploader = Uploader::token(&feeder.client, feeder.run, &feeder.token);
        let (left, done) = (uploader.ticket("trace", b"left").await, uploader.ticket("trace", b"done").await);
        left.put("left").await.success().expect("received");
        done.put("done").await.success().expect("received");
        let item = done.linked(link("trace", "pays", 0));
        assert_eq!(uploader.commit(item.clone()).await["status"], "linked");
        let late = uploader.ticket("attachment", b"late").await;
        // A commit that was killed: its copy is named by a row of its own.
        let folder = service.database().storage_url();
        let folder = std::path::Path::new(folder.strip_prefix("file://").expect("a folder")).join("staging");
        assert_eq!(objects(service, "staging").len(), 1);
        let sweep = async |hours: i64| {
            let store = service.state().store();
            let now = later(service, hours * HOUR_MS);
            unclaimed::sweep_staging(store, now, 100).await.expect("swept");
            unclaimed::sweep(store, now, 100).await.expect("swept");
        };
        sweep(24).await;
        assert_eq!(objects(service, "staging").len(), 1, "an hour of doubt about clocks");
        sweep(26).await;
        assert!(objects(service, "staging").is_empty(), "{:?} in {folder:?}", objects(service, "staging"));
        assert!(texts(service, "SELECT staging_key FROM upload_tickets").await.is_empty());
        assert_eq!(refusal(&late.put("late").await), (404, "ticket_not_found".to_owned()));
        assert_eq!(uploader.commit(left.item()).await["status"], "not_uploaded");
        assert_eq!(uploader.commit(item).await["status"], Value::from("duplicate"));
    })
    .await;
}
