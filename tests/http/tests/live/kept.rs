//! What waits on SQLite is in a file beside the others: it is worked in once, whatever
//! ends in between, and comes along from where it was before.

use std::path::PathBuf;

use callboard_store::{Backend, Db};
use callboard_test_support::Service;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::{Feeder, complete, run_events, start};
use crate::builders::attempt;
use crate::rows::{settled, texts};

const WAITING: &str = "SELECT CAST(COUNT(*) AS TEXT) FROM run_intake";

/// A call that tells of the beginning of a test and of its result.
async fn send(feeder: &Feeder, title: &str) {
    let begun = json!({ "type": "begin", "title": title, "location": "tests/shop.spec.ts:7:5" });
    let events: Vec<Value> = vec![begun, complete(attempt(title, "passed", 0))];
    assert_eq!(feeder.events(events).await["inserted"], json!(1));
}

async fn told(service: &Service, feeder: &Feeder) -> [usize; 2] {
    let told = run_events(service, feeder.run).await;
    ["test-begin", "test-completed"].map(|kind| told.iter().filter(|one| *one == kind).count())
}

async fn beside(service: &Service, text: &str) {
    let Db::Sqlite { intake, .. } = service.state().store().db() else { panic!("not SQLite") };
    let mut writer = intake.writer.get().await.expect("a connection");
    sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(&mut *writer).await.expect("done");
}

#[tokio::test]
async fn what_is_worked_in_and_was_not_removed_is_not_worked_in_again() {
    let service = Service::start(Backend::Sqlite).await.expect("a service");
    let feeder = start(service.client(), json!({})).await;
    // As if the process ended each time it is about to remove it.
    beside(
        &service,
        "CREATE TRIGGER stays BEFORE DELETE ON run_intake BEGIN SELECT RAISE(ABORT, 'it stays'); END",
    )
    .await;
    for round in 1..=3 {
        send(&feeder, &format!("pays {round}")).await;
        assert_eq!(feeder.shown().await["totalTests"], json!(round));
        assert_eq!(told(&service, &feeder).await, [round, round]);
        assert_eq!(texts(&service, WAITING).await, [round.to_string()]);
    }
    beside(&service, "DROP TRIGGER stays").await;
    send(&feeder, "pays 4").await;
    assert_eq!(feeder.shown().await["totalTests"], json!(4));
    // Places are free now, and are given to nothing that would be taken for worked in.
    send(&feeder, "pays 5").await;
    assert_eq!(feeder.finish("passed").await, "passed");
    assert_eq!(texts(&service, WAITING).await, ["0"], "the next ones take along what was left");
    assert_eq!(feeder.shown().await["totalTests"], json!(5));
    assert_eq!(told(&service, &feeder).await, [5, 5]);
}

#[tokio::test]
async fn what_is_left_of_a_run_that_ended_goes_with_the_work_that_follows() {
    let service = Service::start(Backend::Sqlite).await.expect("a service");
    let feeder = start(service.client(), json!({})).await;
    let stays = "CREATE TRIGGER stays BEFORE DELETE ON run_intake BEGIN SELECT RAISE(ABORT, 'it stays'); END";
    beside(&service, stays).await;
    send(&feeder, "pays").await;
    assert_eq!(feeder.finish("passed").await, "passed");
    assert_eq!(texts(&service, WAITING).await, ["1"]);
    beside(&service, "DROP TRIGGER stays").await;
    settled(&service).await;
    for table in ["run_intake", "run_intake_keys"] {
        let count = format!("SELECT CAST(COUNT(*) AS TEXT) FROM {table}");
        assert_eq!(texts(&service, &count).await, ["0"], "{table}");
    }
    assert_eq!(feeder.shown().await["totalTests"], json!(1));
}

/// The statements that undo a migration and all that follow it, newest first.
fn rollback_from(first: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations/sqlite");
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let mut files: Vec<_> = files
        .filter(|file| file.file_name().is_some_and(|name| name.to_string_lossy().as_ref() >= first))
        .collect();
    files.sort();
    let undo = |file: &PathBuf| {
        let step = std::fs::read_to_string(file).expect("a migration");
        let (_, undo) = step.split_once("-- rollback:\n").expect("how it is undone");
        undo.lines().map(|line| line.trim_start_matches("-- ")).collect::<Vec<_>>().join("\n")
    };
    files.iter().rev().map(undo).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn what_waited_among_the_runs_comes_along() {
    let service = Service::start(Backend::Sqlite).await.expect("a service");
    let store = service.state().store();
    let Db::Sqlite { writer, .. } = store.db() else { panic!("not SQLite") };
    let feeder = start(service.client(), json!({})).await;
    // Nothing is worked in as long as no test may be stored.
    let hold = "CREATE TRIGGER hold BEFORE INSERT ON test_cases BEGIN SELECT RAISE(ABORT, 'not now'); END";
    sqlx::raw_sql(hold).execute(&mut *writer.get().await.expect("a connection")).await.expect("held");
    send(&feeder, "pays").await;
    send(&feeder, "pays later").await;
    let there = texts(&service, WAITING).await;
    assert_eq!(there, ["2"]);
    // Back to the step before, as the files of the steps say that is done, with what waits where it was then.
    let back = format!(
        "{}
        INSERT INTO main.run_intake SELECT * FROM intake.run_intake;
        INSERT INTO main.run_intake_keys SELECT * FROM intake.run_intake_keys;
        DELETE FROM main.schema_migrations WHERE version >= 31;
        DROP TRIGGER hold;",
        rollback_from("0031")
    );
    sqlx::raw_sql(AssertSqlSafe(back))
        .execute(&mut *writer.get().await.expect("a connection"))
        .await
        .expect("back");
    beside(&service, "DELETE FROM run_intake; DELETE FROM run_intake_keys").await;
    assert!(!store.schema_is_current().await.expect("asked"));
    store.migrate().await.expect("migrated");
    assert!(store.schema_is_current().await.expect("asked"));
    assert_eq!(feeder.finish("passed").await, "passed");
    assert_eq!(feeder.shown().await["totalTests"], json!(2));
    assert_eq!(told(&service, &feeder).await, [2, 2]);
}
