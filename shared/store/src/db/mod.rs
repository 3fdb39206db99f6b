//! One door to two databases: pools, transactions, statements and rows.
//!
//! A [`Statement`] is written once and rendered for each engine by
//! `dialect`; [`Session`] runs it on whichever engine is configured. SQLite
//! has one writer connection, whose transactions begin with `BEGIN IMMEDIATE`
//! along with their first statement, and a pool of readers; PostgreSQL one pool.
//!
//! What running clients sent and nobody has worked in ([`crate::intake`]) is in a
//! SQLite file of its own beside the other, with a writer of its own: a client that
//! waits for its call to be kept waits for nothing that is done to the runs. Who
//! writes one file sees the other and cannot write it, so a transaction locks only
//! one of them. On PostgreSQL it is one more table.

mod bulk;
mod dialect;
mod filter;
mod intake_file;
mod log;
mod pending;
mod pool;
mod row;
mod session;
mod value;

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Executor as _};

pub use bulk::{Bulk, Column, Rows};
pub use dialect::Statement;
pub(crate) use dialect::statements;
pub use filter::Filter;
pub use intake_file::IntakeFile;
use pool::Beside;
pub use pool::{Connections, Held, Postgres, Sqlite};
pub use row::{Reader, Row};
pub(crate) use session::Read;
pub use session::Session;
pub(crate) use value::args;
pub use value::{Args, Value};

use crate::{Result, StoreError, boxed};

/// The database engine behind a [`Db`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Embedded, in files of this machine.
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
        writer: Connections<Sqlite>,
        /// Connections that read.
        readers: Connections<Sqlite>,
        /// What running clients sent.
        intake: IntakeFile,
    },
    /// PostgreSQL.
    Postgres(Connections<Postgres>),
}

/// Prepared statements a connection keeps: more than the tree has statements.
const STATEMENT_CACHE: usize = 1024;
/// Texts that the connection keeps prepared that writes to SQLite. It does most of its
/// work with few of them, but put together as they are there is no end of others,
/// which fit the clusters, days and lists of one run; they take 90 KB each, and a
/// thousand were mostly such ones.
const WRITTEN_TEXTS: usize = 192;
/// Rows that SQLite's thread reads ahead: it and the reader wake each other
/// whenever this many are read. Lists and pages ask for fewer.
const ROWS_AHEAD: usize = 2_048;

impl Db {
    /// Opens `sqlite://<path>` or `postgres://…`.
    ///
    /// # Errors
    /// [`StoreError::Configuration`] for another address,
    /// [`StoreError::Database`] when the file or server cannot be opened.
    #[boxed]
    pub async fn connect(url: &str, max_connections: u32) -> Result<Self> {
        let most = usize::try_from(max_connections).unwrap_or(usize::MAX);
        if url.starts_with("sqlite:") {
            Self::connect_sqlite(url, most).await
        } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Self::connect_postgres(url, most).await
        } else {
            Err(StoreError::Configuration(
                "SERVICE_DATABASE_URL must begin with sqlite:// or postgres://".to_owned(),
            ))
        }
    }

    async fn connect_sqlite(url: &str, most: usize) -> Result<Self> {
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
            .page_size(8192)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(5))
            .pragma("cache_size", "-16000")
            .pragma("temp_store", "memory")
            .pragma("wal_autocheckpoint", log::LAST_RESORT)
            .pragma("journal_size_limit", log::KEPT)
            .row_buffer_size(ROWS_AHEAD);
        let file = options.get_filename().to_owned();
        let beside = intake_file::beside(&file);
        // Either file has to be there before somebody looks into it who must not write it.
        let intake = IntakeFile::open(options.clone(), &file, &beside).await?;
        // Who sets this writes, each time anew.
        let making = options.clone().auto_vacuum(SqliteAutoVacuum::Incremental);
        let making = making.statement_cache_capacity(WRITTEN_TEXTS);
        let writer = Connections::new(Sqlite::beside(making, Beside::intake(&beside)?), 1)?;
        // The file is made now, or what is wrong with it is told.
        drop(Box::pin(writer.get()).await?);
        // They forget what they read whenever somebody wrote, and there are many of them. With half of this, reads
        // behind a long history took a fifth longer.
        let options = options.pragma("cache_size", "-4000").statement_cache_capacity(STATEMENT_CACHE);
        let readers = Connections::new(Sqlite::beside(options, Beside::intake(&beside)?), most)?;
        readers.close_idle();
        log::keep_short(&writer, &readers, log::Rest::AsFarAsItGoes);
        Ok(Self::Sqlite { writer, readers, intake })
    }

    async fn connect_postgres(url: &str, most: usize) -> Result<Self> {
        let options = PgConnectOptions::from_str(url)?
            .application_name("callboard")
            .statement_cache_capacity(STATEMENT_CACHE);
        let pool = Connections::new(Postgres(options), most)?;
        drop(Box::pin(pool.get()).await?);
        pool.close_idle();
        Ok(Self::Postgres(pool))
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
    #[boxed]
    pub async fn read(&self) -> Result<Session> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Session::sqlite(readers.get().await?),
            Self::Postgres(pool) => Session::postgres(pool.get().await?),
        })
    }

    /// A transaction for writing. Dropping it without
    /// [`Session::commit`] undoes it. On SQLite another process that writes is
    /// waited for by its first statement.
    ///
    /// # Errors
    /// [`StoreError::Database`] when no connection becomes free in time.
    #[boxed]
    pub async fn begin(&self) -> Result<Session> {
        match self {
            Self::Sqlite { writer, .. } => Ok(Session::sqlite_transaction(writer.get().await?)),
            Self::Postgres(pool) => Session::postgres_transaction(pool.get().await?).await,
        }
    }

    /// Where what running clients sent is written: on SQLite a transaction of its file,
    /// as [`Db::begin`] has one of the others; on PostgreSQL a connection on which
    /// each statement is a transaction.
    ///
    /// # Errors
    /// [`StoreError::Database`] when no connection becomes free in time.
    #[boxed]
    pub async fn intake(&self) -> Result<Session> {
        match self {
            Self::Sqlite { intake, .. } => Ok(Session::sqlite_transaction(intake.writer.get().await?)),
            Self::Postgres(_) => self.read().await,
        }
    }

    /// Runs what PostgreSQL refuses inside a transaction; nothing to do on
    /// SQLite. The text must not hold anything that somebody sent.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    #[boxed]
    pub(crate) async fn run_outside_transactions(&self, text: String) -> Result<()> {
        if let Self::Postgres(pool) = self {
            let mut connection = pool.get().await?;
            let done = connection.ask().execute(sqlx::raw_sql(AssertSqlSafe(text))).await;
            connection.answered(done)?;
        }
        Ok(())
    }

    /// Closes the connections that are not in use, and the others when they are
    /// given back.
    #[boxed]
    pub async fn close(&self) {
        match self {
            Self::Sqlite { writer, readers, intake } => {
                // Whoever moves a log has a connection, and the last one that closes moves the rest, if it may write.
                let _at_rest = (writer.manager().log.lock().await, intake.writer.manager().log.lock().await);
                intake.writer.close().await;
                readers.close().await;
                writer.close().await;
                intake.close().await;
            }
            Self::Postgres(pool) => pool.close().await,
        }
    }
}
