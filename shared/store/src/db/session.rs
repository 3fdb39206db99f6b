//! A connection or transaction of either engine, and how statements run on it.
//!
//! Every statement is a way to the server, or to the thread that holds the
//! SQLite file, and back, which takes longer than most statements do. What
//! only writes is therefore kept until something is asked or the transaction
//! ends, and goes to SQLite together with that; so does the beginning of a
//! transaction with what is done first in it. Whoever reads sees it written.

use std::ops::Range;

use futures::TryStreamExt as _;
use sqlx::postgres::PgArguments;
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{Arguments as _, AssertSqlSafe, Either, Executor as _, SqlSafeStr, SqlStr};

use super::bulk::Cells;
use super::pending::{Pending, Text};
use super::pool::{Held, Postgres, Sqlite, Transaction};
use super::{Args, Backend, Bulk, Filter, Row, Rows, Statement, Value};
use crate::{Result, StoreError, boxed};

/// Takes the only lock of SQLite immediately: a transaction that reads first and
/// then writes fails when another one wrote in between.
const BEGIN_WRITING: &str = "BEGIN IMMEDIATE";
/// Writes take the plans that were made once: their statements go by keys or by
/// what is due, whatever the values are, and making a plan takes longer than most
/// of them run. What only reads chooses anew where that seems worth it.
const BEGIN_BY_KNOWN_PLANS: &str = "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan";

/// A read with its values.
pub(crate) type Read = (&'static Statement, Args);

/// A connection for reading, or a transaction.
#[derive(Debug)]
pub struct Session {
    inner: Inner,
    pending: Pending,
}

#[derive(Debug)]
enum Inner {
    Sqlite(Held<Sqlite>),
    Postgres(Held<Postgres>),
}

impl Session {
    fn over(inner: Inner) -> Self {
        Self { inner, pending: Pending::default() }
    }

    pub(super) fn sqlite(connection: Held<Sqlite>) -> Self {
        Self::over(Inner::Sqlite(connection))
    }

    pub(super) fn sqlite_transaction(mut connection: Held<Sqlite>) -> Self {
        connection.transaction = Transaction::Params;
        Self::sqlite(connection)
    }

    pub(super) fn postgres(connection: Held<Postgres>) -> Self {
        Self::over(Inner::Postgres(connection))
    }

    pub(super) async fn postgres_transaction(mut connection: Held<Postgres>) -> Result<Self> {
        connection.transaction = Transaction::Open;
        let begun = connection.ask().execute(BEGIN_BY_KNOWN_PLANS).await;
        connection.answered(begun)?;
        Ok(Self::postgres(connection))
    }

    /// Which engine this talks to.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match self.inner {
            Inner::Sqlite(_) => Backend::Sqlite,
            Inner::Postgres(_) => Backend::Postgres,
        }
    }

    /// Whether writes are kept until they have to run.
    fn keeps_writes(&self) -> bool {
        matches!(&self.inner, Inner::Sqlite(connection) if connection.transaction != Transaction::None)
    }

    /// Makes a transaction's writes permanent.
    ///
    /// # Errors
    /// [`StoreError::Database`]; nothing is written
    /// then.
    pub async fn commit(self) -> Result<()> {
        self.commit_told().await.map(drop)
    }

    /// [`Session::commit`], with what each write did that was kept until now. Those
    /// that ran before are not in it: on PostgreSQL all of them, on SQLite what is more
    /// than fits into memory well.
    #[boxed]
    pub(crate) async fn commit_told(mut self) -> Result<Vec<Answer>> {
        let mut texts = self.pending.take();
        let mut told = Vec::new();
        match &mut self.inner {
            Inner::Sqlite(connection) => {
                let last = texts.pop();
                for text in texts {
                    told.extend(ask_sqlite(connection, text).await?);
                }
                let kept = told.len() + last.as_ref().map_or(0, |text| text.statements);
                let end = match (last, connection.transaction) {
                    (Some(Text { sql, args, statements }), _) => {
                        // The text was put together from constants.
                        let sql = AssertSqlSafe(format!("{};\nCOMMIT", sql.as_str())).into_sql_str();
                        Text { sql, args, statements: statements + 1 }
                    }
                    (None, Transaction::Open | Transaction::Failed) => {
                        Text::one("COMMIT".into_sql_str(), Args::new())
                    }
                    (None, Transaction::None | Transaction::Params) => return Ok(Vec::new()),
                };
                told.extend(ask_sqlite(connection, end).await?);
                told.truncate(kept);
                connection.committed();
            }
            Inner::Postgres(connection) => {
                if connection.transaction == Transaction::Open {
                    let done = connection.ask().execute("COMMIT").await;
                    connection.answered(done)?;
                    connection.transaction = Transaction::None;
                }
            }
        }
        Ok(told)
    }

    /// Runs a statement and tells how many rows it touched.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    #[boxed]
    pub async fn execute(&mut self, statement: &Statement, args: Args) -> Result<u64> {
        let sql = statement.sql(self.backend());
        match &mut self.inner {
            Inner::Sqlite(_) => {
                let answers = self.ask([(sql, args)]).await?;
                Ok(answers.last().map_or(0, |answer| answer.touched))
            }
            Inner::Postgres(connection) => {
                let query =
                    sqlx::query_with::<sqlx::Postgres, _>(sql.into_sql_str(), postgres_arguments(args)?);
                let done = connection.ask().execute(query).await;
                Ok(connection.answered(done)?.rows_affected())
            }
        }
    }

    /// Runs a statement of which nobody asks what it touched. In a transaction
    /// it may run later, but before anything that could tell.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the database refuses it, or what ran before.
    pub async fn write(&mut self, statement: &Statement, args: Args) -> Result<()> {
        if self.keeps_writes() {
            self.pending.add(statement.sql(Backend::Sqlite), args);
            return self.flush_when_full().await;
        }
        self.execute(statement, args).await.map(drop)
    }

    /// [`Session::write`] for one row that this transaction holds locked; `false`
    /// when it is not there. On SQLite a write transaction holds the only lock, so
    /// what was read is still there and nobody is asked.
    ///
    /// # Errors
    /// As for [`Session::write`].
    pub async fn write_locked(&mut self, statement: &Statement, args: Args) -> Result<bool> {
        if self.keeps_writes() {
            self.write(statement, args).await?;
            return Ok(true);
        }
        Ok(self.execute(statement, args).await? == 1)
    }

    /// Runs a bulk statement for its rows, as [`Session::write`] does; nothing to
    /// do for none.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the database refuses it, or what ran before.
    #[boxed]
    pub async fn execute_bulk(&mut self, bulk: &Bulk, scalars: Args, mut rows: Rows) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        match &mut self.inner {
            Inner::Sqlite(_) => {
                for (size, range) in rows.lists() {
                    self.pending.add_rows(bulk.sqlite_sql(size), scalars.clone(), &mut rows, range);
                    self.flush_when_full().await?;
                }
                if !self.keeps_writes() {
                    self.flush().await?;
                }
            }
            Inner::Postgres(connection) => {
                for range in rows.messages() {
                    let arguments = postgres_rows(scalars.clone(), &mut rows, range)?;
                    let query =
                        sqlx::query_with::<sqlx::Postgres, _>(bulk.postgres_sql().into_sql_str(), arguments);
                    let done = connection.ask().execute(query).await;
                    connection.answered(done)?;
                }
            }
        }
        Ok(())
    }

    async fn flush_when_full(&mut self) -> Result<()> {
        if self.pending.is_full() { self.flush().await } else { Ok(()) }
    }

    /// Runs what is kept.
    #[boxed]
    async fn flush(&mut self) -> Result<()> {
        let Inner::Sqlite(connection) = &mut self.inner else { return Ok(()) };
        for text in self.pending.take() {
            run_sqlite(connection, text).await?;
        }
        Ok(())
    }

    /// Asks SQLite some statements, and with them runs what is kept: one way there
    /// and back, unless that is much.
    async fn ask(&mut self, asked: impl IntoIterator<Item = (&'static str, Args)>) -> Result<Vec<Answer>> {
        let Inner::Sqlite(connection) = &mut self.inner else { return Ok(Vec::new()) };
        let mut count = 0;
        for (text, args) in asked {
            self.pending.add(text, args);
            count += 1;
        }
        let mut answers = Vec::with_capacity(count);
        for text in self.pending.take() {
            answers.append(&mut ask_sqlite(connection, text).await?);
        }
        // Those of the writes come first.
        Ok(answers.split_off(answers.len().saturating_sub(count)))
    }

    /// The rows of several statements that do not depend on each other, each by
    /// itself: on SQLite one way there and back.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn each<const N: usize>(&mut self, reads: [Read; N]) -> Result<[Vec<Row>; N]> {
        let mut found = Vec::with_capacity(N);
        if self.backend() == Backend::Postgres {
            for (statement, args) in reads {
                found.push(self.all(statement, args).await?);
            }
        } else {
            let statements = reads.each_ref().map(|(statement, _)| *statement);
            let reads = reads.map(|(statement, args)| (statement.sql(Backend::Sqlite), args));
            for (statement, answer) in statements.into_iter().zip(self.ask(reads).await?) {
                found.push(statement.rows(answer.rows)?);
            }
        }
        found.try_into().map_err(|_| StoreError::Damaged("a statement that was asked and not answered"))
    }

    /// All rows of a statement. Use only where the number of rows is bounded.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    #[boxed]
    pub async fn all(&mut self, statement: &Statement, args: Args) -> Result<Vec<Row>> {
        let sql = statement.sql(self.backend());
        match &mut self.inner {
            Inner::Sqlite(_) => {
                let answer = self.ask([(sql, args)]).await?.pop().unwrap_or_default();
                statement.rows(answer.rows)
            }
            Inner::Postgres(connection) => fetch_postgres(connection, sql.into_sql_str(), args).await,
        }
    }

    /// All rows of a filtered list; its text carries the limit.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    #[boxed]
    pub async fn list(&mut self, filter: Filter) -> Result<Vec<Row>> {
        let (text, args) = filter.into_parts();
        self.flush().await?;
        // The text was put together from constants by `Filter`.
        let sql = AssertSqlSafe(text).into_sql_str();
        match &mut self.inner {
            Inner::Sqlite(connection) => {
                let answers = ask_sqlite(connection, Text::one(sql, args)).await?;
                Ok(answers.into_iter().next_back().unwrap_or_default().rows)
            }
            Inner::Postgres(connection) => fetch_postgres(connection, sql, args).await,
        }
    }

    /// The number a list answers that only counts.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn count(&mut self, filter: Filter) -> Result<i64> {
        self.list(filter).await?.first().map_or(Ok(0), |row| row.reader().int())
    }

    /// The first row of a statement, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn first(&mut self, statement: &Statement, args: Args) -> Result<Option<Row>> {
        Ok(self.all(statement, args).await?.into_iter().next())
    }

    /// The row of a statement that always has one.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when there is none.
    pub async fn one(&mut self, statement: &Statement, args: Args) -> Result<Row> {
        self.first(statement, args).await?.ok_or(StoreError::Damaged("a row that must exist is missing"))
    }

    /// Asks the engine to prepare a text, without running it.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the engine does not accept it.
    pub async fn prepare(&mut self, sql: impl SqlSafeStr) -> Result<()> {
        match &mut self.inner {
            Inner::Sqlite(connection) => {
                let prepared = connection.ask().prepare(sql.into_sql_str()).await.map(drop);
                connection.answered(prepared)
            }
            Inner::Postgres(connection) => {
                let prepared = connection.ask().prepare(sql.into_sql_str()).await.map(drop);
                connection.answered(prepared)
            }
        }
    }
}

/// What SQLite answered to one statement.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The rows it returned.
    pub(crate) rows: Vec<Row>,
    /// How many rows it touched.
    pub(crate) touched: u64,
}

/// Runs the statements of a text one after the other, and before them the
/// beginning of a transaction that was asked for.
async fn ask_sqlite(connection: &mut Held<Sqlite>, text: Text) -> Result<Vec<Answer>> {
    let Text { mut sql, args, mut statements } = text;
    let arguments = sqlite_arguments(args)?;
    let begins = connection.transaction == Transaction::Params;
    match connection.transaction {
        Transaction::Failed => return Err(StoreError::Damaged("a transaction that did not begin goes on")),
        Transaction::Params => {
            connection.transaction = Transaction::Open;
            // Both are constants, or were put together from constants.
            sql = AssertSqlSafe(format!("{BEGIN_WRITING};\n{}", sql.as_str())).into_sql_str();
            statements += 1;
        }
        Transaction::None | Transaction::Open => {}
    }
    let mut answers = Vec::with_capacity(statements);
    let asked = collect(connection.ask(), sql, arguments, &mut answers).await;
    if begins && asked.is_err() && answers.is_empty() {
        connection.transaction = Transaction::Failed;
    }
    // When its thread breaks off, the driver ends the answers as if they were all.
    let asked = asked.and_then(|()| match answers.len() == statements {
        true => Ok(()),
        false => Err(sqlx::Error::WorkerCrashed),
    });
    connection.answered(asked)?;
    if begins {
        answers.remove(0);
    }
    Ok(answers)
}

async fn collect(
    connection: &mut SqliteConnection,
    text: SqlStr,
    arguments: SqliteArguments,
    answers: &mut Vec<Answer>,
) -> Result<(), sqlx::Error> {
    let mut parts = connection.fetch_many(sqlx::query_with::<sqlx::Sqlite, _>(text, arguments));
    let mut next = Answer::default();
    while let Some(part) = parts.try_next().await? {
        match part {
            Either::Left(done) => {
                next.touched = done.rows_affected();
                answers.push(std::mem::take(&mut next));
            }
            Either::Right(row) => next.rows.push(Row::Sqlite(row)),
        }
    }
    Ok(())
}

/// [`ask_sqlite`], of which only what the last statement touched is of interest.
async fn run_sqlite(connection: &mut Held<Sqlite>, text: Text) -> Result<u64> {
    Ok(ask_sqlite(connection, text).await?.pop().map_or(0, |answer| answer.touched))
}

async fn fetch_postgres(connection: &mut Held<Postgres>, sql: SqlStr, args: Args) -> Result<Vec<Row>> {
    let query = sqlx::query_with::<sqlx::Postgres, _>(sql, postgres_arguments(args)?);
    let rows = connection.ask().fetch_all(query).await;
    Ok(connection.answered(rows)?.into_iter().map(Row::Postgres).collect())
}

fn add<'v, A, T>(arguments: &mut A, value: T) -> Result<()>
where
    A: sqlx::Arguments,
    T: sqlx::Encode<'v, A::Database> + sqlx::Type<A::Database> + 'v,
{
    arguments.add(value).map_err(|error| StoreError::Database(sqlx::Error::Encode(error)))
}

fn sqlite_arguments(args: Args) -> Result<SqliteArguments> {
    let mut arguments = SqliteArguments::default();
    add_sqlite(&mut arguments, args)?;
    Ok(arguments)
}

fn add_sqlite(arguments: &mut SqliteArguments, args: Args) -> Result<()> {
    arguments.reserve(args.len(), 0);
    for value in args {
        match value {
            Value::Int(value) => add(arguments, value)?,
            Value::Real(value) => add(arguments, value)?,
            Value::Text(value) => add(arguments, value)?,
            Value::Bytes(value) => add(arguments, value)?,
            Value::Ints(list) => add(arguments, json(&list)?)?,
            Value::Texts(list) => add(arguments, json(&list)?)?,
            Value::BytesList(list) => {
                let list: Vec<String> = list.iter().map(hex::encode).collect();
                add(arguments, json(&list)?)?;
            }
            Value::IntColumns(columns) => {
                let count = columns.iter().map(Vec::len).min().unwrap_or(0);
                let row = |at: usize| columns.iter().map(|column| column[at]).collect::<Vec<i64>>();
                add(arguments, json(&(0..count).map(row).collect::<Vec<_>>())?)?;
            }
        }
    }
    Ok(())
}

fn json<T: serde::Serialize>(list: &[T]) -> Result<String> {
    serde_json::to_string(list).map_err(|error| StoreError::Database(sqlx::Error::Encode(error.into())))
}

fn postgres_arguments(args: Args) -> Result<PgArguments> {
    let mut arguments = PgArguments::default();
    for value in args {
        match value {
            Value::Int(value) => add(&mut arguments, value)?,
            Value::Real(value) => add(&mut arguments, value)?,
            Value::Text(value) => add(&mut arguments, value)?,
            Value::Bytes(value) => add(&mut arguments, value)?,
            Value::Ints(list) => add(&mut arguments, list)?,
            Value::Texts(list) => add(&mut arguments, list)?,
            Value::BytesList(list) => add(&mut arguments, list)?,
            Value::IntColumns(columns) => {
                columns.into_iter().try_for_each(|column| add(&mut arguments, column))?;
            }
        }
    }
    Ok(arguments)
}

fn postgres_rows(scalars: Args, rows: &mut Rows, range: Range<usize>) -> Result<PgArguments> {
    let mut arguments = postgres_arguments(scalars)?;
    for cells in &mut rows.columns {
        match cells {
            Cells::Int(cells) => add(&mut arguments, cells[range.clone()].to_vec())?,
            Cells::Real(cells) => add(&mut arguments, cells[range.clone()].to_vec())?,
            Cells::Text(cells) => {
                add(&mut arguments, cells[range.clone()].iter_mut().map(Option::take).collect::<Vec<_>>())?
            }
            Cells::Bytes(cells) => {
                add(&mut arguments, cells[range.clone()].iter_mut().map(Option::take).collect::<Vec<_>>())?
            }
        }
    }
    Ok(arguments)
}
