//! How both engines carry out the statements of the store: that they understand
//! them, and by which index they look.

use callboard_store::{Backend, Db, all_lists, all_statements};
use callboard_test_support::{Service, TestDatabase, for_each_database};
use serde_json::json;
use sqlx::{Executor as _, Row as _};

use crate::builders::{passing, run, with};
use crate::store::count;

#[tokio::test]
async fn every_statement_is_understood_by_its_engine() {
    for_each_database(async |database| {
        let store = database.store().await.expect("a store");
        let backend = store.backend();
        let mut session = store.db().read().await.expect("a connection");
        let mut seen = 0;
        for (name, sql) in all_statements(backend) {
            session.prepare(sql).await.unwrap_or_else(|error| panic!("{name}: {error}\n{sql}"));
            seen += 1;
        }
        assert!(seen > 60, "only {seen} statements are listed");
        for (name, sql) in all_lists(backend) {
            let prepared = session.prepare(sqlx::AssertSqlSafe(sql.clone())).await;
            prepared.unwrap_or_else(|error| panic!("{name}: {error}\n{sql}"));
        }
    })
    .await;
}

#[tokio::test]
async fn the_executions_of_a_run_are_read_by_their_keys_whatever_else_a_project_holds() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let store = database.store().await.expect("a store");
    let Db::Sqlite { readers, .. } = store.db() else { panic!("not SQLite") };
    let statements = all_statements(Backend::Sqlite).map(|(name, sql)| (name, sql.to_owned()));
    let mut seen = 0;
    for (name, sql) in statements.chain(all_lists(Backend::Sqlite)) {
        let plan = format!("EXPLAIN QUERY PLAN {sql}");
        let rows = sqlx::query(sqlx::AssertSqlSafe(plan))
            .fetch_all(&mut *readers.get().await.expect("a connection"))
            .await;
        for row in rows.unwrap_or_else(|error| panic!("{name}: {error}\n{sql}")) {
            let step: String = row.get("detail");
            let is_of_executions = step.contains(" executions_")
                || step.contains(" executions ")
                || step.ends_with(" executions");
            let is_whole_project = step.ends_with("(project_id=?)");
            let is_whole_table = step.starts_with("SCAN executions") || step == "SCAN e";
            // "ANY(day)": each day there is, one after the other.
            let is_every_day = step.contains("ANY(day)");
            assert!(
                !(is_whole_table || is_of_executions && (is_whole_project || is_every_day)),
                "{name} reads all executions of a project: {step}\n{sql}"
            );
            seen += usize::from(is_of_executions);
        }
    }
    assert!(seen > 20, "only {seen} steps read executions");
}

/// In a table that was vacuumed PostgreSQL likes to answer from an index alone,
/// and takes one that leads through all rows of a project for one that leads to
/// one of them.
#[tokio::test]
async fn rows_asked_for_one_by_one_are_found_by_their_keys_in_vacuumed_tables() {
    let service = Service::start(Backend::Postgres).await.expect("a service");
    // Projects of which each has few rows: in an index of all of them such a part looks as near as a key.
    for number in 0..120 {
        let id = json!({ "clientRunId": format!("run {number:03}") });
        let submission = with(run(&format!("shop {}", number / 4), "passed", passing(10)), id);
        service.client().post_json("/api/test-runs/submit", &submission).await.expect("stored");
    }
    count(&service).await;
    let store = service.database().store().await.expect("a store");
    let Db::Postgres(pool) = store.db() else { panic!("not PostgreSQL") };
    let mut connection = pool.get().await.expect("a connection");
    for setting in ["VACUUM (ANALYZE)", "SET plan_cache_mode = force_generic_plan"] {
        connection.execute(setting).await.expect("done");
    }
    let statements = all_statements(Backend::Postgres).map(|(name, sql)| (name, sql.to_owned()));
    let asking = |(_, sql): &(&str, String)| sql.contains("CROSS JOIN LATERAL") && sql.contains(" BETWEEN ");
    let mut seen = 0;
    for (name, sql) in statements.chain(all_lists(Backend::Postgres)).filter(asking) {
        let values = (1..).take_while(|number| sql.contains(&format!("${number}"))).count();
        let nothing = vec!["NULL"; values].join(", ");
        connection.execute(sqlx::AssertSqlSafe(format!("PREPARE asked AS {sql}"))).await.expect("prepared");
        let plan = sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN EXECUTE asked ({nothing})")))
            .fetch_all(&mut *connection)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}\n{sql}"));
        let steps: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        assert!(!steps.iter().any(|step| step.contains("Index Only Scan")), "{name}: {steps:#?}");
        connection.execute("DEALLOCATE asked").await.expect("done");
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} statements ask for rows one by one");
}

#[tokio::test]
async fn the_next_job_is_found_by_when_it_is_due_however_many_wait() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let store = database.store().await.expect("a store");
    let Db::Sqlite { readers, .. } = store.db() else { panic!("not SQLite") };
    let asked = ["jobs::NEXT_DUE", "lease::CLAIM", "lease::PARK_ABANDONED"];
    let mut seen = 0;
    for (name, sql) in all_statements(Backend::Sqlite) {
        if !asked.iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")))
            .fetch_all(&mut *readers.get().await.expect("a connection"))
            .await;
        let rows = rows.unwrap_or_else(|error| panic!("{name}: {error}\n{sql}"));
        let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        assert!(steps.iter().any(|step| step.contains("INDEX jobs_due")), "{name}: {steps:?}");
        assert!(!steps.iter().any(|step| step.contains("FOR ORDER BY")), "{name} sorts: {steps:?}");
        seen += 1;
    }
    assert_eq!(seen, 3);
}

#[tokio::test]
async fn the_planner_is_told_of_every_index_of_a_table_or_of_none() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let store = database.store().await.expect("a store");
    let Db::Sqlite { readers, .. } = store.db() else { panic!("not SQLite") };
    let told = "SELECT COUNT(*) FROM sqlite_stat1";
    let told: i64 = sqlx::query(told)
        .fetch_one(&mut *readers.get().await.expect("a connection"))
        .await
        .expect("statistics")
        .get(0);
    assert!(told > 60, "only {told} indexes have statistics");
    // One that is not told of is taken for one that leads to ten rows, and preferred.
    let forgotten = "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name IN (SELECT tbl FROM sqlite_stat1) \
         AND name NOT IN (SELECT idx FROM sqlite_stat1)";
    let forgotten = sqlx::query(forgotten)
        .fetch_all(&mut *readers.get().await.expect("a connection"))
        .await
        .expect("indexes");
    let forgotten: Vec<String> = forgotten.iter().map(|row| row.get("name")).collect();
    assert!(forgotten.is_empty(), "a migration must add statistics for {forgotten:?}");
}
