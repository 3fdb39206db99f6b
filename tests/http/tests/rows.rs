//! Everything a database holds, to compare before with after.

use std::collections::BTreeMap;
use std::time::Duration;

use callboard_fn_jobs::{Budget, run_due};
use callboard_store::Db;
use callboard_test_support::Service;
use sqlx::Row as _;

/// Every row of every table as text, but for the tables named.
pub(crate) async fn every_row(service: &Service, left_out: &[&str]) -> BTreeMap<String, String> {
    let tables = match service.state().store().db() {
        Db::Sqlite { .. } => {
            "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
            UNION SELECT name FROM intake.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        }
        Db::Postgres(_) => {
            "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()"
        }
    };
    let mut found = BTreeMap::new();
    for table in texts(service, tables).await.into_iter().filter(|name| !left_out.contains(&name.as_str())) {
        let row = match service.state().store().db() {
            Db::Sqlite { .. } => {
                let columns = format!("SELECT name FROM pragma_table_info('{table}')");
                let quoted =
                    texts(service, &columns).await.into_iter().map(|name| format!("quote(\"{name}\")"));
                quoted.collect::<Vec<_>>().join(" || ',' || ")
            }
            Db::Postgres(_) => "t::text".to_owned(),
        };
        let all = texts(service, &format!("SELECT {row} FROM {table} t ORDER BY 1")).await;
        found.insert(table, all.join("\n"));
    }
    found
}

/// The first column of every row, as text.
pub(crate) async fn texts(service: &Service, statement: &str) -> Vec<String> {
    let statement = sqlx::AssertSqlSafe(statement.to_owned());
    match service.state().store().db() {
        Db::Sqlite { readers, .. } => {
            let rows = sqlx::query(statement)
                .fetch_all(&mut *readers.get().await.expect("a connection"))
                .await
                .expect("rows");
            rows.iter().map(|row| row.get(0)).collect()
        }
        Db::Postgres(pool) => {
            let rows = sqlx::query(statement)
                .fetch_all(&mut *pool.get().await.expect("a connection"))
                .await
                .expect("rows");
            rows.iter().map(|row| row.get(0)).collect()
        }
    }
}

/// Does what is due now and waits for what the timer of the service began.
pub(crate) async fn settled(service: &Service) {
    let done = async {
        loop {
            run_due(service.state(), Budget::new(Duration::from_secs(20))).await.expect("worked");
            let now = service.state().now().millis();
            let open = format!(
                "SELECT kind FROM jobs WHERE state = 'leased' OR (state = 'queued' AND run_after <= {now})"
            );
            if texts(service, &open).await.is_empty() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), done).await.expect("settled in time");
}

/// The tables whose rows differ.
pub(crate) fn changed<'t>(
    before: &'t BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<&'t str> {
    before.keys().filter(|table| before[*table] != after[*table]).map(String::as_str).collect()
}
