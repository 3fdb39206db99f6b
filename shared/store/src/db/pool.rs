//! Connections that are kept open and handed out one after the other.
//!
//! The driver's own pools ask every connection that is given back whether it
//! still lives, a way to the server or to SQLite's thread and back for each use.
//! These take what comes back as it is: a [`Held`] connection knows whether
//! something was left unfinished on it, and only then is it looked after.

use std::fmt::Debug;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{
    Manager, Metrics, Object, Pool, PoolConfig, PoolError, QueueMode, RecycleError, RecycleResult,
    TimeoutType, Timeouts, WeakPool,
};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection, Executor as _};
use tokio::sync::watch;
use url::Url;

use crate::{Result, StoreError};

/// How long a request waits for a connection that is in use, and for a new one,
/// before it is told to come back.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a connection to a server may have been idle and is still taken for
/// alive: between the transactions of a busy process nothing has happened to it.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);
/// Idle connections are closed after this.
const MOST_IDLE: Duration = Duration::from_secs(10 * 60);
/// Connections to a server are replaced after this: what they keep grows.
const MOST_AGE: Duration = Duration::from_secs(30 * 60);
/// How often idle connections are looked for.
const LOOK_AFTER: Duration = Duration::from_secs(60);
/// How long a connection to a server may take to say that it is alive, or to
/// follow after something was left open on it.
const RECOVERY: Duration = Duration::from_secs(5);
/// The first wait for a server that takes no connections at the moment; each
/// further one is twice as long, up to the last.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Opens connections to a file.
#[derive(Debug)]
pub struct Sqlite {
    options: SqliteConnectOptions,
    beside: Option<Beside>,
    commits: watch::Sender<()>,
    /// Held by who works on the log: it is not closed meanwhile.
    pub(super) log: tokio::sync::Mutex<()>,
}

impl Sqlite {
    pub(super) fn new(options: SqliteConnectOptions) -> Self {
        let (commits, log) = (watch::Sender::new(()), tokio::sync::Mutex::new(()));
        Self { options, beside: None, commits, log }
    }

    /// To a file beside which another one is seen.
    pub(super) fn beside(options: SqliteConnectOptions, beside: Beside) -> Self {
        Self { beside: Some(beside), ..Self::new(options) }
    }

    /// Tells of what is committed on these connections, for as long as they are
    /// there.
    pub(super) fn commits(&self) -> watch::Receiver<()> {
        self.commits.subscribe()
    }
}

/// Another file that connections see, and cannot write: beginning to write locks
/// every file that could be written.
#[derive(Debug)]
pub(super) struct Beside {
    /// What its tables belong to.
    schema: &'static str,
    /// Pages that are kept of it, as SQLite is told that.
    cache: &'static str,
    address: String,
}

impl Beside {
    /// What running clients sent.
    pub(super) fn intake(file: &Path) -> Result<Self> {
        Ok(Self { schema: "intake", cache: "-1000", address: only_read(file)? })
    }

    /// Everything else.
    pub(super) fn runs(file: &Path) -> Result<Self> {
        Ok(Self { schema: "runs", cache: "-4000", address: only_read(file)? })
    }

    async fn attach(&self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let Self { schema, cache, address } = self;
        let attach = AssertSqlSafe(format!("ATTACH ?1 AS {schema}"));
        sqlx::query(attach).bind(address.as_str()).execute(&mut *connection).await?;
        let keep = AssertSqlSafe(format!("PRAGMA {schema}.cache_size = {cache}"));
        connection.execute(sqlx::raw_sql(keep)).await.map(drop)
    }
}

/// The address under which SQLite opens a file and does not write it.
fn only_read(file: &Path) -> Result<String> {
    let file = std::path::absolute(file).ok();
    let url = file.and_then(|file| Url::from_file_path(file).ok());
    let mut url = url.ok_or_else(|| {
        StoreError::Configuration(
            "SERVICE_DATABASE_URL must name a file by its whole path, or from a folder that is there"
                .to_owned(),
        )
    })?;
    url.set_query(Some("mode=ro"));
    Ok(url.into())
}

/// Opens connections to a server.
#[derive(Debug)]
pub struct Postgres(pub(super) PgConnectOptions);

impl Postgres {
    /// How the server is reached.
    #[must_use]
    pub const fn options(&self) -> &PgConnectOptions {
        &self.0
    }
}

/// What is done with connections of both kinds.
pub trait Link: Connection + Debug {
    /// How long a recovery may take before the connection is given up.
    const PATIENCE: Option<Duration>;

    /// Undoes the transaction that is open.
    fn roll_back(&mut self) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

impl Link for SqliteConnection {
    /// Its thread answers once it is done with what it does, and holds the lock
    /// until then, whoever gives the connection up.
    const PATIENCE: Option<Duration> = None;

    /// When its disk is full, or a lock is not to be had, SQLite has ended the
    /// transaction by itself, or never begun it.
    async fn roll_back(&mut self) -> Result<(), sqlx::Error> {
        match self.execute("ROLLBACK").await {
            Err(sqlx::Error::Database(error)) if error.message().contains("no transaction is active") => {
                Ok(())
            }
            done => done.map(drop),
        }
    }
}

impl Link for PgConnection {
    const PATIENCE: Option<Duration> = Some(RECOVERY);

    async fn roll_back(&mut self) -> Result<(), sqlx::Error> {
        self.execute("ROLLBACK").await.map(drop)
    }
}

/// Opens connections of one kind.
pub trait Opener: Manager<Type: Link, Error = sqlx::Error> + Debug + Sized + 'static {
    /// Looks after a connection that was let go too early, meanwhile. Written for
    /// each kind: what is generic is made anew where it is used, here wherever a
    /// connection may be dropped.
    fn look_after(left: Left<Self>);
}

impl Opener for Sqlite {
    fn look_after(left: Left<Self>) {
        tokio::spawn(left.recover());
    }
}

impl Opener for Postgres {
    fn look_after(left: Left<Self>) {
        tokio::spawn(left.recover());
    }
}

impl Manager for Sqlite {
    type Type = SqliteConnection;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<SqliteConnection, sqlx::Error> {
        let mut connection = self.options.connect().await?;
        if let Some(beside) = &self.beside {
            beside.attach(&mut connection).await?;
        }
        Ok(connection)
    }

    /// A connection to a file does not go stale.
    async fn recycle(&self, _: &mut SqliteConnection, _: &Metrics) -> RecycleResult<sqlx::Error> {
        Ok(())
    }
}

impl Manager for Postgres {
    type Type = PgConnection;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<PgConnection, sqlx::Error> {
        let mut wait = FIRST_WAIT;
        let mut connection = loop {
            match self.0.connect().await {
                Err(error) if is_busy_or_starting(&error) => {
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LAST_WAIT);
                }
                connected => break connected?,
            }
        };
        // Compiling a statement takes longer than any of ours runs; the server does it by its guess of what one costs,
        // which for joins over lists of ids is far too high.
        connection.execute("SET jit = off").await?;
        Ok(connection)
    }

    async fn recycle(&self, connection: &mut PgConnection, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        if metrics.age() > MOST_AGE {
            return Err(RecycleError::message("old"));
        }
        let last_taken = metrics.recycled.unwrap_or(metrics.created);
        if has_doubled(last_taken - metrics.created, metrics.age()) {
            connection.execute("DISCARD PLANS").await?;
        } else if metrics.last_used() >= TRUSTED_IDLE {
            connection.ping().await?;
        }
        Ok(())
    }
}

/// Whether a connection became a second old since an age, or twice as old once
/// more. It then forgets its plans: the server makes a plan for tables as they
/// are and keeps it, and those of a young database grow a thousandfold within
/// minutes. Plans that suit a table of half its size are good enough.
fn has_doubled(before: Duration, age: Duration) -> bool {
    age.as_secs().checked_ilog2() > before.as_secs().checked_ilog2()
}

/// Whether a server takes no connections at the moment: nothing listens yet, it
/// starts or stops, or it has as many as it may have.
fn is_busy_or_starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        sqlx::Error::Database(error) => matches!(error.code().as_deref(), Some("53300" | "57P03")),
        _ => false,
    }
}

/// [`Connections`] that are not kept open by being known.
#[derive(Debug)]
pub(super) struct Known<M: Opener>(WeakPool<M>);

impl<M: Opener> Known<M> {
    /// They, if they are still there.
    pub(super) fn upgrade(&self) -> Option<Connections<M>> {
        self.0.upgrade().map(Connections)
    }
}

/// Connections of one kind; clones share them.
#[derive(Debug)]
pub struct Connections<M: Opener>(Pool<M>);

impl<M: Opener> Clone for Connections<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M: Opener> Connections<M> {
    /// At most so many, opened when they are needed.
    pub(super) fn new(manager: M, most: usize) -> Result<Self> {
        let mut config = PoolConfig::new(most.max(1));
        config.timeouts =
            Timeouts { wait: Some(ACQUIRE_TIMEOUT), create: Some(ACQUIRE_TIMEOUT), recycle: Some(RECOVERY) };
        // The one used last: its statements are prepared and its pages read.
        config.queue_mode = QueueMode::Lifo;
        let pool = Pool::builder(manager).config(config).runtime(Runtime::Tokio1).build();
        let pool: Pool<M> = pool.map_err(|error| StoreError::Configuration(error.to_string()))?;
        Ok(Self(pool))
    }

    /// The same, not kept open by it.
    pub(super) fn weak(&self) -> Known<M> {
        Known(self.0.weak())
    }

    /// Closes those that nobody needs, for as long as the pool is there.
    pub(super) fn close_idle(&self) {
        let weak = self.weak();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_AFTER).await;
                let Some(Self(pool)) = weak.upgrade() else { return };
                let idle = pool.retain(|_, metrics| metrics.last_used() < MOST_IDLE).removed;
                drop(pool);
                close_all(idle).await;
            }
        });
    }

    /// A connection.
    ///
    /// # Errors
    /// [`StoreError::Database`] when none becomes free, or can be opened, in time.
    pub async fn get(&self) -> Result<Held<M>> {
        let object = self.0.get().await.map_err(of_pool)?;
        Ok(Held { object: Some(object), transaction: Transaction::None, is_asked: false })
    }

    /// Opens connections like the others.
    #[must_use]
    pub fn manager(&self) -> &M {
        self.0.manager()
    }

    /// Whether they were closed.
    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Closes those that are not in use, and the others when they come back.
    pub async fn close(&self) {
        let idle = self.0.retain(|_, _| false).removed;
        self.0.close();
        close_all(idle).await;
    }
}

async fn close_all<C: Connection>(connections: Vec<C>) {
    for connection in connections {
        if let Err(error) = connection.close().await {
            tracing::debug!(%error, "a connection to the database did not close in order");
        }
    }
}

fn of_pool(error: PoolError<sqlx::Error>) -> sqlx::Error {
    match error {
        PoolError::Backend(error) => error,
        PoolError::Closed => sqlx::Error::PoolClosed,
        PoolError::Timeout(TimeoutType::Wait | TimeoutType::Create | TimeoutType::Recycle)
        | PoolError::NoRuntimeSpecified
        | PoolError::PostCreateHook(_) => sqlx::Error::PoolTimedOut,
    }
}

/// How far the transaction of a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transaction {
    /// There is none, or it is over.
    None,
    /// It begins with the first statement, in the same way to the database.
    Params,
    /// It goes on.
    Open,
    /// It could not begin; nothing may be done as if it had.
    Failed,
}

/// A connection in somebody's hands. What is left open on it when it is let go
/// is undone before the next one gets it.
#[derive(Debug)]
pub struct Held<M: Opener> {
    object: Option<Object<M>>,
    pub(super) transaction: Transaction,
    /// Whether an answer is awaited, or failed to come.
    is_asked: bool,
}

impl<M: Opener> Held<M> {
    /// Notes that something is asked: one round trip.
    pub(super) fn ask(&mut self) -> &mut M::Type {
        self.is_asked = true;
        self
    }

    /// Notes what came of it.
    pub(super) fn answered<T>(&mut self, answer: Result<T, sqlx::Error>) -> Result<T> {
        self.is_asked = matches!(&answer, Err(error) if !is_an_answer(error));
        Ok(answer?)
    }
}

impl<M: Opener> Held<M> {
    /// Closes it; the next one is opened anew.
    pub(super) async fn close(mut self) {
        if let Some(object) = self.object.take() {
            close_all(vec![Object::take(object)]).await;
        }
    }
}

impl Held<Sqlite> {
    /// Notes that the transaction is over, its writes made permanent.
    pub(super) fn committed(&mut self) {
        self.transaction = Transaction::None;
        if let Some(pool) = self.object.as_ref().and_then(Object::pool) {
            pool.manager().commits.send_replace(());
        }
    }
}

/// Whether the database answered, though not what was hoped for.
fn is_an_answer(error: &sqlx::Error) -> bool {
    match error {
        // Those are its last words, or come from somebody between.
        sqlx::Error::Database(error) => {
            !error.code().is_some_and(|code| code.starts_with("57P") || code.starts_with("08"))
        }
        sqlx::Error::RowNotFound
        | sqlx::Error::Encode(_)
        | sqlx::Error::Decode(_)
        | sqlx::Error::ColumnDecode { .. } => true,
        _ => false,
    }
}

impl<M: Opener> Deref for Held<M> {
    type Target = M::Type;

    #[expect(clippy::expect_used, reason = "only dropping takes the connection out")]
    fn deref(&self) -> &M::Type {
        self.object.as_ref().expect("a connection that is held")
    }
}

impl<M: Opener> DerefMut for Held<M> {
    #[expect(clippy::expect_used, reason = "only dropping takes the connection out")]
    fn deref_mut(&mut self) -> &mut M::Type {
        self.object.as_mut().expect("a connection that is held")
    }
}

impl<M: Opener> Drop for Held<M> {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else { return };
        let is_open = matches!(self.transaction, Transaction::Open | Transaction::Failed);
        if !is_open && !self.is_asked {
            return;
        }
        if tokio::runtime::Handle::try_current().is_ok() {
            M::look_after(Left { object, is_asked: self.is_asked, is_open });
        } else {
            // Nobody is there to look after it: it is closed, which undoes what is open.
            drop(Object::take(object));
        }
    }
}

/// A connection on which something was left.
#[derive(Debug)]
pub struct Left<M: Opener> {
    object: Object<M>,
    /// Whether an answer is still to come.
    is_asked: bool,
    /// Whether a transaction is open.
    is_open: bool,
}

impl<M: Opener> Left<M> {
    /// Reads what was still to come and undoes what is open. A connection that does
    /// not follow is closed.
    async fn recover(self) {
        let Self { mut object, is_asked, is_open } = self;
        let recovery = async {
            if is_asked {
                object.ping().await?;
            }
            if is_open { object.roll_back().await } else { Ok(()) }
        };
        let recovered = match M::Type::PATIENCE {
            Some(patience) => {
                tokio::time::timeout(patience, recovery).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
            }
            None => recovery.await,
        };
        if let Err(error) = recovered {
            tracing::debug!(%error, "a connection to the database is closed after what happened on it");
            drop(Object::take(object));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_forgotten_whenever_a_connection_has_become_twice_as_old() {
        let forgets = |before, age| has_doubled(Duration::from_millis(before), Duration::from_millis(age));
        assert!(!forgets(0, 999) && forgets(999, 1_000) && !forgets(1_000, 1_999) && forgets(1_999, 2_000));
        assert!(!forgets(2_000, 3_999) && forgets(3_000, 60_000) && !forgets(64_000, 127_000));
    }
}
