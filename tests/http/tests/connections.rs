//! Connections that are left in the middle of something.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::db::Statement;
use callboard_store::feed::{self, NewEvent};
use callboard_store::{Backend, Db, StoreError, instance};
use callboard_test_support::{Runner, TestDatabase, for_each_database};
use serde_json::json;

use crate::builders::attempt;
use crate::live::start;

static ONE: Statement = Statement::new("tests::ONE", "SELECT CAST(1 AS BIGINT)");
static NOWHERE: Statement = Statement::new("tests::NOWHERE", "SELECT 1 FROM nowhere");
/// Takes much longer than it is waited for.
static LONG: Statement = Statement::of_each(
    "tests::LONG",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT COUNT(*) FROM n",
    "SELECT CAST(1 AS BIGINT) FROM (SELECT pg_sleep(1)) AS slept",
);
const NOW: Timestamp = Timestamp(1_700_000_000_000);

async fn set(db: &Db, key: &str) {
    let mut session = db.begin().await.expect("a transaction");
    instance::set(&mut session, key, "1", NOW).await.expect("set");
    session.commit().await.expect("committed");
}

async fn is_set(db: &Db, key: &str) -> bool {
    instance::value(db, key).await.expect("a value").is_some()
}

#[tokio::test]
async fn what_is_not_committed_is_undone_before_others_write() {
    for_each_database(async |database| {
        let store = database.store().await.expect("a store");
        let db = store.db();

        let mut dropped = db.begin().await.expect("a transaction");
        instance::set(&mut dropped, "dropped", "1", NOW).await.expect("set");
        // What is asked sees what was written.
        dropped.all(&ONE, Vec::new()).await.expect("a row");
        drop(dropped);
        set(db, "after").await;

        let mut refused = db.begin().await.expect("a transaction");
        instance::set(&mut refused, "refused", "1", NOW).await.expect("set");
        let error = refused.all(&NOWHERE, Vec::new()).await.expect_err("there is no such table");
        assert!(matches!(error, StoreError::Database(_)), "{error}");
        drop(refused);
        set(db, "last").await;

        // A transaction in which nothing happens is one, too.
        db.begin().await.expect("a transaction").commit().await.expect("committed");
        let found = [is_set(db, "dropped").await, is_set(db, "after").await];
        assert_eq!(found, [false, true]);
        let found = [is_set(db, "refused").await, is_set(db, "last").await];
        assert_eq!(found, [false, true]);
    })
    .await;
}

#[tokio::test]
async fn who_goes_away_in_the_middle_leaves_a_connection_that_answers_what_it_is_asked() {
    for_each_database(async |database| {
        // Migrated, with one connection of each kind.
        database.store().await.expect("a store");
        let db = Db::connect(database.url(), 1).await.expect("a database");
        let patience = Duration::from_millis(20);

        let mut reading = db.read().await.expect("a connection");
        let answer = tokio::time::timeout(patience, reading.all(&LONG, Vec::new())).await;
        assert!(answer.is_err(), "nobody waited for it");
        drop(reading);
        let rows = db.read().await.expect("a connection").all(&ONE, Vec::new()).await.expect("a row");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].reader().int().expect("a number"), 1);

        let mut writing = db.begin().await.expect("a transaction");
        instance::set(&mut writing, "broken off", "1", NOW).await.expect("set");
        let answer = tokio::time::timeout(patience, writing.all(&LONG, Vec::new())).await;
        assert!(answer.is_err(), "nobody waited for it");
        drop(writing);
        set(&db, "after").await;
        assert_eq!([is_set(&db, "broken off").await, is_set(&db, "after").await], [false, true]);
        db.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_log_that_became_long_is_moved_into_the_file_and_begins_anew() {
    const MIB: u64 = 1 << 20;
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let store = database.store().await.expect("a store");
    let file = PathBuf::from(database.url().trim_start_matches("sqlite://"));
    let log = PathBuf::from(format!("{}-wal", file.display()));
    let size = |path: &Path| std::fs::metadata(path).expect("a file").len();

    let mut session = store.db().begin().await.expect("a transaction");
    let text = "x".repeat(1 << 20);
    for key in 0..80 {
        instance::set(&mut session, &key.to_string(), &text, NOW).await.expect("set");
    }
    session.commit().await.expect("committed");
    assert!(size(&log) > 80 * MIB, "all of it is in the log at first");
    let mut attempt = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    while size(&log) > 64 * MIB {
        assert!(Instant::now() < deadline, "the log is still long");
        tokio::time::sleep(Duration::from_millis(50)).await;
        attempt += 1;
        set(store.db(), &format!("attempt {attempt}")).await;
    }
    assert!(size(&file) > 80 * MIB, "all of it is in the file");
}

#[tokio::test]
async fn who_is_asked_to_stop_in_the_middle_of_work_leaves_nothing_but_the_files() {
    let database = TestDatabase::empty(Backend::Sqlite).await.expect("a database");
    let file = database.url().trim_start_matches("sqlite://");
    let logs = [format!("{file}-wal"), format!("{file}-intake-wal")].map(PathBuf::from);
    let settings = [
        ("SERVICE_DATABASE_URL", database.url().to_owned()),
        ("SERVICE_STORAGE_URL", database.storage_url()),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let mut runner = Runner::start(&settings).await.expect("a service");
    assert!(logs.iter().all(|log| log.exists()), "it writes");
    // Much is to be done after this answer.
    let feeder = start(runner.client(), json!({})).await;
    feeder.results(vec![attempt("pays", "passed", 0)]).await;
    feeder.finish("passed").await;
    runner.process().terminate().expect("asked");
    let ended = runner.process().end().await.expect("it ends");
    assert!(ended.success(), "{ended}");
    assert!(!logs.iter().any(|log| log.exists()), "something is left beside the files");
}

#[tokio::test]
async fn events_of_a_run_are_found_after_any_number() {
    for_each_database(async |database| {
        let store = database.store().await.expect("a store");
        let (project, run) = (ProjectId(1), RunId(1));
        let mut head = 0;
        for call in 0..6_usize {
            // Some of minutes, then some of hours, and more than one row holds.
            let events = (0..call * 30).map(|at| NewEvent {
                kind: if at < call * 3 { "step-begin" } else { "test-completed" }.into(),
                data: format!(r#"{{"title":"a \"title\" in ] [, {call}-{at}"}}"#),
                is_passing: at < call * 3,
            });
            let mut session = store.db().begin().await.expect("a transaction");
            head =
                feed::append(&mut session, project, run, head, events.collect(), NOW).await.expect("written");
            session.commit().await.expect("committed");
        }
        assert_eq!(head, 30 * (1 + 2 + 3 + 4 + 5));
        let mut session = store.db().read().await.expect("a connection");
        for after in 0..head {
            let found = feed::of_run(&mut session, project, run, after, 2).await.expect("events").events;
            let numbers: Vec<i64> = found.iter().map(|event| event.seq).collect();
            assert_eq!(numbers, (after + 1..).take(numbers.len()).collect::<Vec<_>>(), "after {after}");
            assert!(!numbers.is_empty(), "after {after}");
            for event in found {
                let data: serde_json::Value = serde_json::from_str(&event.data).expect("JSON");
                assert!(data["title"].as_str().is_some_and(|title| title.starts_with("a \"title\"")));
                assert!(["step-begin", "test-completed"].contains(&event.kind.as_str()), "{}", event.kind);
            }
        }
        let rest = feed::of_run(&mut session, project, run, head, 2).await.expect("events");
        assert!(rest.events.is_empty() && !rest.has_more);
    })
    .await;
}
