//! A connection or transaction of either engine, and how statements run on it.

use std::ops::Range;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnection, Postgres};
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection};
use sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr, SqlStr, Transaction};

use super::bulk::Cells;
use super::{Args, Backend, Bulk, Filter, Row, Rows, Statement, Value};
use crate::{Result, StoreError};

/// A connection for reading, or a transaction.
#[derive(Debug)]
pub struct Session(Inner);

#[derive(Debug)]
enum Inner {
    Sqlite(PoolConnection<Sqlite>),
    SqliteTransaction(Transaction<'static, Sqlite>),
    Postgres(PoolConnection<Postgres>),
    PostgresTransaction(Transaction<'static, Postgres>),
}

enum Link<'s> {
    Sqlite(&'s mut SqliteConnection),
    Postgres(&'s mut PgConnection),
}

impl Session {
    pub(super) fn sqlite(connection: PoolConnection<Sqlite>) -> Self {
        Self(Inner::Sqlite(connection))
    }

    pub(super) fn sqlite_transaction(transaction: Transaction<'static, Sqlite>) -> Self {
        Self(Inner::SqliteTransaction(transaction))
    }

    pub(super) fn postgres(connection: PoolConnection<Postgres>) -> Self {
        Self(Inner::Postgres(connection))
    }

    pub(super) fn postgres_transaction(transaction: Transaction<'static, Postgres>) -> Self {
        Self(Inner::PostgresTransaction(transaction))
    }

    /// Which engine this talks to.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match self.0 {
            Inner::Sqlite(_) | Inner::SqliteTransaction(_) => Backend::Sqlite,
            Inner::Postgres(_) | Inner::PostgresTransaction(_) => Backend::Postgres,
        }
    }

    fn link(&mut self) -> Link<'_> {
        match &mut self.0 {
            Inner::Sqlite(connection) => Link::Sqlite(connection),
            Inner::SqliteTransaction(transaction) => Link::Sqlite(transaction),
            Inner::Postgres(connection) => Link::Postgres(connection),
            Inner::PostgresTransaction(transaction) => Link::Postgres(transaction),
        }
    }

    /// Makes a transaction's writes permanent.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the database refuses; nothing is written
    /// then.
    pub async fn commit(self) -> Result<()> {
        match self.0 {
            Inner::SqliteTransaction(transaction) => transaction.commit().await?,
            Inner::PostgresTransaction(transaction) => transaction.commit().await?,
            Inner::Sqlite(_) | Inner::Postgres(_) => {}
        }
        Ok(())
    }

    /// Runs a statement and tells how many rows it touched.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the database refuses.
    pub async fn execute(&mut self, statement: &Statement, args: Args) -> Result<u64> {
        let sql = statement.sql(self.backend());
        self.run(sql.into_sql_str(), args).await
    }

    /// Runs a bulk statement for its rows; nothing to do for none.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the database refuses.
    pub async fn execute_bulk(&mut self, bulk: &Bulk, scalars: Args, rows: Rows) -> Result<u64> {
        if rows.is_empty() {
            return Ok(0);
        }
        let mut done = 0;
        match self.link() {
            Link::Sqlite(connection) => {
                let mut rows = rows;
                for (size, range) in rows.lists() {
                    let arguments = sqlite_rows(scalars.clone(), &mut rows, range)?;
                    let query =
                        sqlx::query_with::<Sqlite, _>(bulk.sqlite_sql(size).into_sql_str(), arguments);
                    done += connection.execute(query).await?.rows_affected();
                }
            }
            Link::Postgres(connection) => {
                let mut rows = rows;
                for range in rows.messages() {
                    let arguments = postgres_rows(scalars.clone(), &mut rows, range)?;
                    let query =
                        sqlx::query_with::<Postgres, _>(bulk.postgres_sql().into_sql_str(), arguments);
                    done += connection.execute(query).await?.rows_affected();
                }
            }
        }
        Ok(done)
    }

    /// All rows of a statement. Use only where the number of rows is bounded.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the database refuses.
    pub async fn all(&mut self, statement: &Statement, args: Args) -> Result<Vec<Row>> {
        let sql = statement.sql(self.backend());
        self.fetch(sql.into_sql_str(), args).await
    }

    /// All rows of a filtered list; its text carries the limit.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the database refuses.
    pub async fn list(&mut self, filter: Filter) -> Result<Vec<Row>> {
        let (text, args) = filter.into_parts();
        // The text was put together from constants by `Filter`.
        self.fetch(AssertSqlSafe(text).into_sql_str(), args).await
    }

    /// The first row of a statement, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the database refuses.
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
        match self.link() {
            Link::Sqlite(connection) => {
                connection.prepare(sql.into_sql_str()).await?;
            }
            Link::Postgres(connection) => {
                connection.prepare(sql.into_sql_str()).await?;
            }
        }
        Ok(())
    }

    async fn run(&mut self, sql: SqlStr, args: Args) -> Result<u64> {
        Ok(match self.link() {
            Link::Sqlite(connection) => {
                let query = sqlx::query_with::<Sqlite, _>(sql, sqlite_arguments(args)?);
                connection.execute(query).await?.rows_affected()
            }
            Link::Postgres(connection) => {
                let query = sqlx::query_with::<Postgres, _>(sql, postgres_arguments(args)?);
                connection.execute(query).await?.rows_affected()
            }
        })
    }

    async fn fetch(&mut self, sql: SqlStr, args: Args) -> Result<Vec<Row>> {
        Ok(match self.link() {
            Link::Sqlite(connection) => {
                let query = sqlx::query_with::<Sqlite, _>(sql, sqlite_arguments(args)?);
                connection.fetch_all(query).await?.into_iter().map(Row::Sqlite).collect()
            }
            Link::Postgres(connection) => {
                let query = sqlx::query_with::<Postgres, _>(sql, postgres_arguments(args)?);
                connection.fetch_all(query).await?.into_iter().map(Row::Postgres).collect()
            }
        })
    }
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
        }
    }
    Ok(arguments)
}

/// Cells row by row, taken out of the rows, then the scalars.
fn sqlite_rows(scalars: Args, rows: &mut Rows, range: Range<usize>) -> Result<SqliteArguments> {
    let mut arguments = SqliteArguments::default();
    for at in range {
        for cells in &mut rows.columns {
            match cells {
                Cells::Int(cells) => add(&mut arguments, cells[at])?,
                Cells::Real(cells) => add(&mut arguments, cells[at])?,
                Cells::Text(cells) => add(&mut arguments, cells[at].take())?,
                Cells::Bytes(cells) => add(&mut arguments, cells[at].take())?,
            }
        }
    }
    add_sqlite(&mut arguments, scalars)?;
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
