//! What a server without autovacuum leaves to us.

use std::time::Duration;

use callboard_fn_jobs::{Budget, run_due};
use callboard_http::AppState;
use callboard_store::Db;
use callboard_store::db::{Connections, Postgres};
use callboard_test_support::for_each_database;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Executor as _};

use crate::support::{Time, state};

/// Lets periods pass until something is true of the table.
async fn until(state: &AppState, time: &Time, pool: &Connections<Postgres>, condition: &str) {
    let question = format!("SELECT 1 FROM pg_stat_user_tables WHERE relname = 'grown' AND ({condition})");
    for _ in 0..100 {
        time.advance_ms(30_000);
        let done = run_due(state, Budget::new(Duration::from_secs(10))).await.expect("the queue answers");
        assert_eq!(done.failed, 0);
        let found = sqlx::query(sqlx::AssertSqlSafe(question.clone()))
            .fetch_optional(&mut *pool.get().await.expect("PostgreSQL answers"))
            .await
            .expect("PostgreSQL answers");
        if found.is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the table was not looked after: {condition}");
}

/// Runs a statement and closes the connection, which is when the server counts at the latest.
async fn run(pool: &Connections<Postgres>, statement: &'static str) {
    let mut connection =
        PgConnection::connect_with(pool.manager().options()).await.expect("PostgreSQL answers");
    connection.execute(statement).await.expect("PostgreSQL answers");
    connection.close().await.expect("PostgreSQL answers");
}

#[tokio::test]
async fn the_planner_is_told_of_what_was_written_and_gone_rows_make_room() {
    for_each_database(async |database| {
        let time = Time::new();
        let state = state(database, &time, &[]).await;
        let Db::Postgres(pool) = state.store().db() else {
            let done =
                run_due(&state, Budget::new(Duration::from_secs(10))).await.expect("the queue answers");
            assert_eq!(done.failed, 0);
            return;
        };
        run(pool, "CREATE TABLE grown AS SELECT n FROM generate_series(1, 5000) AS n").await;
        until(&state, &time, pool, "last_analyze IS NOT NULL AND n_mod_since_analyze = 0").await;
        let autovacuum: String = sqlx::query_scalar("SHOW autovacuum")
            .fetch_one(&mut *pool.get().await.expect("PostgreSQL answers"))
            .await
            .expect("PostgreSQL answers");
        if autovacuum == "off" {
            run(pool, "DELETE FROM grown WHERE n > 1000").await;
            until(&state, &time, pool, "last_vacuum IS NOT NULL AND n_dead_tup = 0").await;
        }
    })
    .await;
}
