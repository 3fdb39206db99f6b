//! One door to two databases: pools, transactions, statements and rows.
//!
//! A [`Statement`] is written once and rendered for each engine by
//! [`dialect`]; [`Session`] runs it on whichever engine is configured. SQLite
//! has one writer connection, taken with `BEGIN IMMEDIATE`, and a pool of
//! readers; PostgreSQL one pool.

mod ahead;
mod bulk;
mod dialect;
mod filter;
mod pending;
mod row;
mod session;
mod value;

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

pub use ahead::Read;
pub use bulk::{Bulk, Column, Rows};
pub use dialect::Statement;
pub(crate) use dialect::statements;
pub use filter::Filter;
pub use row::{Reader, Row};
pub use session::Session;
pub(crate) use value::args;
pub use value::{Args, Value};

use crate::{Result, StoreError};

/// The database engine behind a [`Db`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Embedded, one file.
    Sqlite,
    /// A PostgreSQL server (14 or newer).
    Postgres,
}

/// Connections to the configured database.
#[derive(Debug, Clone)]
pub enum Db {
    /// SQLite: one connection writes, several read.
    Sqlite {
        /// The only connection that writes.
        writer: SqlitePool,
        /// Connections that read.
        readers: SqlitePool,
    },
    /// PostgreSQL.
    Postgres(PgPool),
}

/// Takes the only lock of SQLite at once: a transaction that reads first and
/// then writes fails when another one wrote in between.
const BEGIN_WRITING: &str = "BEGIN IMMEDIATE";
/// How long a request waits for a connection before it is told to come back.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a connection to a server may have been idle and is still taken for
/// alive: asking it costs a round trip, and between the transactions of a busy
/// process nothing has happened to it.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);
/// Prepared statements a connection keeps: more than the tree has statements.
const STATEMENT_CACHE: usize = 1024;
/// Rows that SQLite's thread reads ahead: it and the reader wake each other
/// whenever this many are read. Lists and pages ask for fewer.
const ROWS_AHEAD: usize = 2_048;

impl Db {
    /// Opens `sqlite://<path>` or `postgres://…`.
    ///
    /// # Errors
    /// [`StoreError::Configuration`] for another address,
    /// [`StoreError::Database`] when the file or server cannot be opened.
    pub async fn connect(url: &str, max_connections: u32) -> Result<Self> {
        if url.starts_with("sqlite:") {
            Self::connect_sqlite(url, max_connections).await
        } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Self::connect_postgres(url, max_connections).await
        } else {
            Err(StoreError::Configuration(
                "SERVICE_DATABASE_URL must begin with sqlite:// or postgres://".to_owned(),
            ))
        }
    }

    async fn connect_sqlite(url: &str, max_connections: u32) -> Result<Self> {
        if url.contains(":memory:") {
            return Err(StoreError::Configuration(
                "SERVICE_DATABASE_URL must name a file: an in-memory database is gone with the process"
                    .to_owned(),
            ));
        }
        let options = SqliteConnectOptions::from_str(url)?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .auto_vacuum(SqliteAutoVacuum::Incremental)
            .page_size(8192)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(5))
            .pragma("cache_size", "-16000")
            .pragma("temp_store", "memory")
            .row_buffer_size(ROWS_AHEAD)
            .statement_cache_capacity(STATEMENT_CACHE);
        // A connection to a file does not go stale: asking whether it lives is
        // a way to its thread and back for nothing.
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None);
        let writer = Box::pin(writer.connect_with(options.clone())).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(max_connections.max(1))
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .connect_lazy_with(options);
        Ok(Self::Sqlite { writer, readers })
    }

    async fn connect_postgres(url: &str, max_connections: u32) -> Result<Self> {
        let options = PgConnectOptions::from_str(url)?
            .application_name("callboard")
            .statement_cache_capacity(STATEMENT_CACHE);
        let pool = PgPoolOptions::new()
            .max_connections(max_connections.max(1))
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .after_connect(|connection, _| {
                // Compiling a statement takes longer than any of ours runs; the server does it by its guess of what
                // one costs, which for joins over lists of ids is far too high.
                Box::pin(async move { connection.execute("SET jit = off").await.map(drop) })
            })
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if meta.idle_for >= TRUSTED_IDLE {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            });
        Ok(Self::Postgres(Box::pin(pool.connect_with(options)).await?))
    }

    /// Which engine this is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match self {
            Self::Sqlite { .. } => Backend::Sqlite,
            Self::Postgres(_) => Backend::Postgres,
        }
    }

    /// A connection for reading.
    ///
    /// # Errors
    /// [`StoreError::Database`] when none becomes free in time.
    pub async fn read(&self) -> Result<Session> {
        // Waiting for a connection holds what making one would take, 16 KiB: everything that reads would be as large,
        // and moved with it.
        Ok(match self {
            Self::Sqlite { readers, .. } => Session::sqlite(Box::pin(readers.acquire()).await?),
            Self::Postgres(pool) => Session::postgres(Box::pin(pool.acquire()).await?),
        })
    }

    /// A transaction for writing. Dropping it without
    /// [`Session::commit`] undoes it.
    ///
    /// # Errors
    /// [`StoreError::Database`] when no connection becomes free in time.
    pub async fn begin(&self) -> Result<Session> {
        Ok(match self {
            Self::Sqlite { writer, .. } => {
                let begun = match Box::pin(writer.begin_with(BEGIN_WRITING)).await {
                    // When its disk is full, SQLite ends a transaction by itself. The driver does
                    // not notice, and lets no other begin on that connection.
                    Err(sqlx::Error::InvalidSavePointStatement) => {
                        if let Err(error) = Box::pin(writer.acquire()).await?.close().await {
                            tracing::warn!(%error, "a connection that lost its transaction did not close in order");
                        }
                        Box::pin(writer.begin_with(BEGIN_WRITING)).await
                    }
                    begun => begun,
                };
                Session::sqlite_transaction(begun?)
            }
            Self::Postgres(pool) => Session::postgres_transaction(Box::pin(pool.begin()).await?),
        })
    }

    /// Runs what PostgreSQL refuses inside a transaction; nothing to do on
    /// SQLite. The text must not hold anything that somebody sent.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the database refuses.
    pub(crate) async fn run_outside_transactions(&self, text: String) -> Result<()> {
        if let Self::Postgres(pool) = self {
            let mut connection = Box::pin(pool.acquire()).await?;
            connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await?;
        }
        Ok(())
    }

    /// Closes all connections; used by an orderly stop.
    pub async fn close(&self) {
        match self {
            Self::Sqlite { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
            Self::Postgres(pool) => pool.close().await,
        }
    }
}
