//! The raw limit: the very rows a service has stored, written once more into a
//! fresh database of the same engine without the service, one transaction per
//! run, one bulk statement per table.
//!
//! Columns are read from the database, so this keeps up with the schema.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use callboard_store::db::{Bulk, Column, Row, Session, Statement, Value};
use callboard_store::{Backend, Store};
use callboard_test_support::TestDatabase;

/// A table whose rows a run writes.
struct Source {
    table: &'static str,
    /// Which of its rows `t` belong to run `$2` of project `$1`.
    conditions: &'static [&'static str],
    /// Its key when a row may be there already and is brought up to date.
    upsert: &'static [&'static str],
}

const OF_RUN: &str = "t.project_id = $1 AND t.run_id = $2";
const OF_ITS_TESTS: &str = "t.project_id = $1 AND t.test_case_id IN \
    (SELECT e.test_case_id FROM executions e WHERE e.project_id = $1 AND e.run_id = $2)";
const OF_ITS_LANES: &str = "t.lane_id IN (SELECT l.id FROM lanes l JOIN test_runs r ON r.project_id = l.project_id \
    WHERE r.project_id = $1 AND r.id = $2 AND (l.kind IN (0, 2) OR l.branch = r.branch) \
    AND (l.kind IN (0, 1) OR (l.environment = r.environment AND r.environment <> '')))";
const OF_ITS_DAY: &str =
    "t.day = (SELECT MIN(e.day) FROM executions e WHERE e.project_id = $1 AND e.run_id = $2)";

const SOURCES: [Source; 3] = [
    Source { table: "executions", conditions: &[OF_RUN], upsert: &[] },
    Source {
        table: "test_state",
        conditions: &[OF_ITS_TESTS, OF_ITS_LANES],
        upsert: &["project_id", "lane_id", "test_case_id"],
    },
    Source {
        table: "test_daily",
        conditions: &[OF_ITS_TESTS, OF_ITS_LANES, OF_ITS_DAY],
        upsert: &["project_id", "lane_id", "day", "test_case_id"],
    },
];

/// What was written and how long it took.
#[derive(Debug, Clone, Copy)]
pub struct Raw {
    /// Executions per second, rollups included.
    pub executions_per_second: f64,
    /// Rollup rows per execution.
    pub rollups_per_execution: f64,
}

/// Writes the rows of some runs once more. The first run is not timed: like
/// the first submit of a suite it meets an empty database.
///
/// # Errors
/// When a database refuses.
pub async fn measure(filled: &TestDatabase, runs: &[(i64, i64)]) -> Result<Raw> {
    let (store, fresh) = (filled.store().await?, TestDatabase::fresh(filled.backend()).await?);
    let raw = {
        let target = fresh.store().await?;
        let raw = copy(&store, &target, runs).await;
        target.db().close().await;
        raw
    };
    store.db().close().await;
    raw
}

/// Rows of a transaction of [`row_by_row`].
const ROWS: i64 = 5_000;
/// Transactions of it. Some take four times as long as others, by whether a processor
/// is awake that goes on.
const TIMES: i64 = 5;

/// How many rows a second are stored on this machine with a statement for each, in
/// one transaction and without a service: what tells how long a way to the database
/// and back takes here. The median of some transactions.
///
/// # Errors
/// When a database refuses.
pub async fn row_by_row(backend: Backend) -> Result<f64> {
    static TABLE: Statement = Statement::new(
        "yardstick::table",
        "CREATE TABLE yardstick (id BIGINT PRIMARY KEY, run_id BIGINT NOT NULL, test_case_id BIGINT NOT NULL, \
         status TEXT NOT NULL, duration BIGINT NOT NULL, retries BIGINT NOT NULL, started_at BIGINT NOT NULL, error TEXT)",
    );
    static ROW: Statement = Statement::new(
        "yardstick::row",
        "INSERT INTO yardstick (id, run_id, test_case_id, status, duration, retries, started_at, error) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    );
    let database = TestDatabase::fresh(backend).await?;
    let store = database.store().await?;
    let mut session = store.db().begin().await?;
    session.execute(&TABLE, Vec::new()).await?;
    session.commit().await?;
    let mut taken = Vec::new();
    for time in 0..TIMES {
        let mut session = store.db().begin().await?;
        let begun = Instant::now();
        for id in time * ROWS..(time + 1) * ROWS {
            let status = if id % 50 == 0 { "failed" } else { "passed" };
            let numbers = [id, id / 200, id % 200].map(Value::from);
            let more = [Value::from(id % 3_000), 0.into(), id.into(), Value::Text(None)];
            let row = numbers.into_iter().chain([status.into()]).chain(more).collect();
            session.execute(&ROW, row).await?;
        }
        session.commit().await?;
        taken.push(begun.elapsed());
    }
    taken.sort_unstable();
    store.db().close().await;
    Ok(ROWS as f64 / taken[taken.len() / 2].as_secs_f64())
}

/// [`row_by_row`] where the targets were set.
#[must_use]
pub const fn row_by_row_where_targets_were_set(backend: Backend) -> f64 {
    match backend {
        Backend::Sqlite => 39_000.0,
        Backend::Postgres => 6_500.0,
    }
}

async fn copy(store: &Store, target: &Store, runs: &[(i64, i64)]) -> Result<Raw> {
    let mut session = store.db().read().await?;
    let mut tables = Vec::new();
    for source in &SOURCES {
        tables.push(Table::load(&mut session, source).await?);
    }
    let (mut executions, mut rollups, mut total) = (0, 0, Duration::ZERO);
    for (number, (project, run)) in runs.iter().enumerate() {
        let mut batches = Vec::with_capacity(tables.len());
        for table in &tables {
            batches.push(table.read(&mut session, *project, *run).await?);
        }
        let counts: Vec<usize> = batches.iter().map(Vec::len).collect();
        let elapsed = write(target, &tables, batches).await?;
        if number > 0 {
            executions += counts[0];
            rollups += counts[1..].iter().sum::<usize>();
            total += elapsed;
        }
    }
    if executions == 0 {
        bail!("nothing was stored");
    }
    Ok(Raw {
        executions_per_second: executions as f64 / total.as_secs_f64(),
        rollups_per_execution: rollups as f64 / executions as f64,
    })
}

/// One run in one transaction.
async fn write(target: &Store, tables: &[Table], batches: Vec<Vec<Vec<Value>>>) -> Result<Duration> {
    let begun = Instant::now();
    let mut session = target.db().begin().await?;
    for (table, batch) in tables.iter().zip(batches) {
        let mut rows = table.bulk.rows();
        for row in batch {
            rows.push(row);
        }
        session.execute_bulk(table.bulk, Vec::new(), rows).await?;
    }
    session.commit().await?;
    Ok(begun.elapsed())
}

struct Table {
    columns: &'static [Column],
    select: &'static Statement,
    bulk: &'static Bulk,
}

impl Table {
    /// Statements live as long as the process; a handful are made per call.
    async fn load(session: &mut Session, source: &Source) -> Result<Self> {
        let columns = columns_of(session, source.table).await?;
        let names: Vec<&'static str> = columns.iter().map(|column| name_of(*column)).collect();
        let listed =
            |prefix: &str| names.iter().map(|name| format!("{prefix}{name}")).collect::<Vec<_>>().join(", ");
        let conditions = source.conditions.join(" AND ");
        let select = leak(format!("SELECT {} FROM {} t WHERE {conditions}", listed("t."), source.table));
        let head =
            leak(format!("INSERT INTO {} ({}) SELECT {} FROM", source.table, listed(""), listed("r.")));
        let tail = if source.upsert.is_empty() {
            "WHERE true"
        } else {
            let updates: Vec<String> = names
                .iter()
                .filter(|name| !source.upsert.contains(name))
                .map(|name| format!("{name} = excluded.{name}"))
                .collect();
            let key = source.upsert.join(", ");
            leak(format!("WHERE true ON CONFLICT ({key}) DO UPDATE SET {}", updates.join(", ")))
        };
        let columns: &'static [Column] = Box::leak(columns.into_boxed_slice());
        Ok(Self {
            columns,
            select: Box::leak(Box::new(Statement::new("yardstick::select", select))),
            bulk: Box::leak(Box::new(Bulk::new("yardstick::write", 0, head, columns, tail))),
        })
    }

    async fn read(&self, session: &mut Session, project: i64, run: i64) -> Result<Vec<Vec<Value>>> {
        let rows = session.all(self.select, vec![project.into(), run.into()]).await?;
        rows.iter().map(|row| self.values(row)).collect()
    }

    fn values(&self, row: &Row) -> Result<Vec<Value>> {
        let mut reader = row.reader();
        let mut values = Vec::with_capacity(self.columns.len());
        for column in self.columns {
            values.push(match column {
                Column::Int(_) => Value::Int(reader.opt_int()?),
                Column::Real(_) => Value::Real(reader.opt_real()?),
                Column::Text(_) => Value::Text(reader.opt_text()?),
                Column::Bytes(_) => Value::Bytes(reader.opt_bytes()?),
            });
        }
        Ok(values)
    }
}

async fn columns_of(session: &mut Session, table: &str) -> Result<Vec<Column>> {
    static SQLITE: Statement =
        Statement::new("yardstick::columns", "SELECT name, type FROM pragma_table_info($1) ORDER BY cid");
    static POSTGRES: Statement = Statement::new(
        "yardstick::columns",
        "SELECT column_name::text, data_type::text FROM information_schema.columns \
         WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position",
    );
    let statement = match session.backend() {
        Backend::Sqlite => &SQLITE,
        Backend::Postgres => &POSTGRES,
    };
    let rows = session.all(statement, vec![table.into()]).await?;
    rows.iter()
        .map(|row| {
            let mut reader = row.reader();
            let (name, kind) = (leak(reader.text()?), reader.text()?.to_lowercase());
            Ok(match kind.as_str() {
                "integer" | "bigint" | "smallint" => Column::Int(name),
                "real" | "double precision" => Column::Real(name),
                "text" => Column::Text(name),
                "blob" | "bytea" => Column::Bytes(name),
                other => bail!("{table}.{name} is of an unknown type {other}"),
            })
        })
        .collect::<Result<Vec<_>>>()
        .and_then(|columns| {
            (!columns.is_empty()).then_some(columns).with_context(|| format!("no table {table}"))
        })
}

fn name_of(column: Column) -> &'static str {
    match column {
        Column::Int(name) | Column::Real(name) | Column::Text(name) | Column::Bytes(name) => name,
    }
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}
