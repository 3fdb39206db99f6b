//! Fresh databases: a copy of a migrated file for SQLite, and for PostgreSQL one
//! that no other test uses meanwhile.
//!
//! Names are unique across processes and machines, so tests run side by side
//! on one server. What a killed test leaves behind is removed by later ones.

mod lending;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use callboard_store::{Backend, Store, StoreConfig};
use futures::FutureExt;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};
use tempfile::TempDir;

use lending::Lent;

/// Servers that are tried when `TEST_DATABASE_URL` is not set.
const USUAL_SERVERS: [&str; 3] = [
    "postgres://postgres@127.0.0.1:5432/postgres",
    "postgres://postgres@localhost/postgres?host=/var/run/postgresql",
    "postgres://localhost/postgres?host=/var/run/postgresql",
];
/// Test databases begin with this, followed by the second of their making.
const PREFIX: &str = "callboard_test_";
/// Databases that others are copied from begin with this, and so do those that
/// tests lend each other, followed by a hash of the migrations.
const TEMPLATE_PREFIX: &str = "callboard_template_";
const SQLITE_FILE: &str = "callboard.db";
/// With the one that is kept beside it.
const SQLITE_FILES: [&str; 2] = [SQLITE_FILE, "callboard.db-intake"];
/// No test runs this long: an older database belongs to a killed one.
const ABANDONED_AFTER_SECONDS: u64 = 2 * 60 * 60;
/// Serialises the making of the template; any number that is ours.
const TEMPLATE_LOCK: i64 = 0x0063_6262_7465_7374;
/// Enough for one test, few enough for many tests on one server.
const CONNECTIONS: u32 = 4;

/// A database for one test, and a folder for files beside it. Dropping it
/// removes both.
#[derive(Debug)]
pub struct TestDatabase {
    backend: Backend,
    url: String,
    folder: TempDir,
    afterwards: Afterwards,
    was_served: AtomicBool,
}

/// What becomes of a database when its test is over.
#[derive(Debug)]
enum Afterwards {
    /// It goes with its folder, or stays.
    Nothing,
    /// It is dropped.
    Drop(Box<PgConnectOptions>),
    /// Another test may have it.
    Return { _lent: Box<Lent> },
}

impl TestDatabase {
    /// A migrated database of an engine.
    ///
    /// # Errors
    /// When there is no PostgreSQL server to test with, or it refuses.
    pub async fn fresh(backend: Backend) -> Result<Self> {
        match backend {
            Backend::Sqlite => {
                let database = Self::empty(backend).await?;
                let template = sqlite_template().await?;
                for file in SQLITE_FILES {
                    std::fs::copy(template.join(file), database.folder().join(file))?;
                }
                Ok(database)
            }
            Backend::Postgres => {
                let server = Server::find().await?;
                let lent = lending::lend(&server).await?;
                Ok(Self {
                    backend,
                    url: server.url_of(&lent.name)?,
                    folder: tempfile::tempdir()?,
                    afterwards: Afterwards::Return { _lent: Box::new(lent) },
                    was_served: AtomicBool::new(false),
                })
            }
        }
    }

    /// A database without any table.
    ///
    /// # Errors
    /// As [`TestDatabase::fresh`].
    pub async fn empty(backend: Backend) -> Result<Self> {
        match backend {
            Backend::Sqlite => {
                let folder = tempfile::tempdir()?;
                let url = format!("sqlite://{}", folder.path().join(SQLITE_FILE).display());
                let (afterwards, was_served) = (Afterwards::Nothing, AtomicBool::new(false));
                Ok(Self { backend, url, folder, afterwards, was_served })
            }
            Backend::Postgres => Self::create(&Server::find().await?).await,
        }
    }

    async fn create(server: &Server) -> Result<Self> {
        let name = unique_name()?;
        server.create(&name).await?;
        Ok(Self {
            backend: Backend::Postgres,
            url: server.url_of(&name)?,
            folder: tempfile::tempdir()?,
            afterwards: Afterwards::Drop(Box::new(server.options.clone().database(&name))),
            was_served: AtomicBool::new(false),
        })
    }

    /// The engine.
    #[must_use]
    pub const fn backend(&self) -> Backend {
        self.backend
    }

    /// Its address, for `SERVICE_DATABASE_URL`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A folder of its own, removed with it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The address of a folder for files, for `SERVICE_STORAGE_URL`.
    #[must_use]
    pub fn storage_url(&self) -> String {
        format!("file://{}", self.folder.path().join("objects").display())
    }

    /// Whether no service worked on it before; from now on one has.
    pub(crate) fn is_served_first(&self) -> bool {
        !self.was_served.swap(true, Ordering::Relaxed)
    }

    /// Opens a store over the database and the folder.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn store(&self) -> Result<Store> {
        let config = StoreConfig {
            database_url: self.url.clone(),
            storage_url: self.storage_url(),
            s3_endpoint: None,
            s3_public_endpoint: None,
            max_connections: CONNECTIONS,
        };
        Ok(Store::connect(&config).await?)
    }

    /// Lets an empty PostgreSQL database outlive this value and returns its
    /// address; [`drop_database`] removes it.
    #[must_use]
    pub fn keep(mut self) -> String {
        self.afterwards = Afterwards::Nothing;
        self.url.clone()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Afterwards::Drop(options) = std::mem::replace(&mut self.afterwards, Afterwards::Nothing) else {
            return;
        };
        // A destructor cannot await, and the test's own runtime may be ending.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(drop_by_options(&options))
        });
        if !matches!(dropped.join(), Ok(Ok(()))) {
            eprintln!("the test database {} could not be dropped; a later test removes it", self.url);
        }
    }
}

/// Runs a test on a fresh database of each engine.
///
/// # Panics
/// When the test does, after saying on which engine; or when there is no
/// database to run it on.
pub async fn for_each_database<F>(test: F)
where
    F: AsyncFn(&TestDatabase),
{
    for_each_backend(async |backend| match TestDatabase::fresh(backend).await {
        Ok(database) => test(&database).await,
        Err(error) => panic!("no database to test with: {error:#}"),
    })
    .await;
}

/// Engines to test: those of `TEST_BACKENDS`, else both.
///
/// # Panics
/// When the variable names something else.
#[must_use]
pub fn backends() -> &'static [Backend] {
    match std::env::var("TEST_BACKENDS").as_deref() {
        Err(_) | Ok("") => &[Backend::Sqlite, Backend::Postgres],
        Ok("sqlite") => &[Backend::Sqlite],
        Ok("postgres") => &[Backend::Postgres],
        Ok(other) => panic!("TEST_BACKENDS must be sqlite or postgres, got {other:?}"),
    }
}

/// Runs a test for each engine of [`backends`], one after the other, and says
/// on which one it failed.
///
/// # Panics
/// When the test does.
pub async fn for_each_backend<F>(test: F)
where
    F: AsyncFn(Backend),
{
    for &backend in backends() {
        let outcome = std::panic::AssertUnwindSafe(test(backend)).catch_unwind().await;
        if let Err(panic) = outcome {
            eprintln!("this test failed on {backend:?}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// The address of the PostgreSQL server tests use: `TEST_DATABASE_URL`, else
/// the first usual one on which databases may be created.
///
/// # Errors
/// A sentence that says which servers were tried and what each said.
pub async fn server_url() -> Result<String> {
    Ok(Server::find().await?.url)
}

/// Drops a database that [`TestDatabase::keep`] left.
///
/// # Errors
/// When the address is not one of a test database, or the server refuses.
pub async fn drop_database(url: &str) -> Result<()> {
    let options: PgConnectOptions = url.parse()?;
    let name = options.get_database().unwrap_or_default();
    if !name.starts_with(PREFIX) {
        bail!("{name:?} is not the name of a test database");
    }
    drop_by_options(&options).await
}

async fn drop_by_options(options: &PgConnectOptions) -> Result<()> {
    let name = options.get_database().unwrap_or_default().to_owned();
    let server = Server { url: String::new(), options: options.clone().database("postgres") };
    server.run(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await
}

struct Server {
    url: String,
    options: PgConnectOptions,
}

/// The address of a server on this machine asks for no encryption unless it says
/// otherwise: a handshake takes an unoptimised build a tenth of a second, and
/// every test makes several.
fn without_encryption_at_home(url: &str) -> Result<String> {
    let mut url = url::Url::parse(url)?;
    let is_here = url.host_str().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
    if is_here && !url.query_pairs().any(|(name, _)| name == "sslmode") {
        url.query_pairs_mut().append_pair("sslmode", "disable");
    }
    Ok(url.into())
}

impl Server {
    async fn find() -> Result<Self> {
        if let Ok(given) = std::env::var("TEST_DATABASE_URL") {
            return Self::usable(&given)
                .await
                .context("TEST_DATABASE_URL does not name a usable PostgreSQL server");
        }
        let mut refusals = Vec::new();
        for url in USUAL_SERVERS {
            match Self::usable(url).await {
                Ok(server) => return Ok(server),
                Err(error) => refusals.push(format!("{url}: {error:#}")),
            }
        }
        bail!(
            "no PostgreSQL server to test with; set TEST_DATABASE_URL to one on which databases may be created. \
             Tried: {}",
            refusals.join("; ")
        )
    }

    async fn usable(url: &str) -> Result<Self> {
        let url = without_encryption_at_home(url)?;
        let options: PgConnectOptions = url.parse()?;
        let server = Self { url, options: options.disable_statement_logging() };
        let mut connection = server.connect().await?;
        let may_create: bool =
            sqlx::query_scalar("SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user")
                .fetch_one(&mut connection)
                .await?;
        connection.close().await?;
        if may_create { Ok(server) } else { bail!("the account may not create databases") }
    }

    async fn connect(&self) -> Result<PgConnection> {
        Ok(PgConnection::connect_with(&self.options).await?)
    }

    /// Makes an empty database that orders texts as people do, where the server
    /// can: installations may have such a one, and no answer may differ there.
    async fn create(&self, name: &str) -> Result<()> {
        let mut connection = self.connect().await?;
        let has_languages: bool = sqlx::query_scalar(
            "SELECT current_setting('server_version_num')::int >= 150000 \
             AND EXISTS (SELECT 1 FROM pg_collation WHERE collname = 'en-US-x-icu')",
        )
        .fetch_one(&mut connection)
        .await?;
        let language =
            if has_languages { " TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'" } else { "" };
        connection.execute(AssertSqlSafe(format!("CREATE DATABASE {name}{language}"))).await?;
        connection.close().await?;
        Ok(())
    }

    async fn run(&self, statement: &str) -> Result<()> {
        let mut connection = self.connect().await?;
        connection.execute(AssertSqlSafe(statement.to_owned())).await?;
        connection.close().await?;
        Ok(())
    }

    /// The address of a database on this server: the same with another name.
    fn url_of(&self, name: &str) -> Result<String> {
        let mut url = url::Url::parse(&self.url)?;
        url.set_path(name);
        Ok(url.into())
    }

    /// The name of a database that has every migration of this build. The
    /// first process that needs it makes it while the others wait.
    async fn template(&self) -> Result<String> {
        let name = format!("{TEMPLATE_PREFIX}{:016x}", migrations_hash(&["postgres"])?);
        let mut connection = self.connect().await?;
        sqlx::query("SELECT pg_advisory_lock($1)").bind(TEMPLATE_LOCK).execute(&mut connection).await?;
        let existing: Option<i32> = sqlx::query_scalar("SELECT 1 FROM pg_database WHERE datname = $1")
            .bind(&name)
            .fetch_optional(&mut connection)
            .await?;
        if existing.is_none() {
            self.drop_abandoned(&mut connection, &name).await?;
            let unfinished = TestDatabase::create(self).await?;
            let store = unfinished.store().await?;
            store.migrate().await?;
            store.db().close().await;
            let options: PgConnectOptions = unfinished.url.parse()?;
            let from = options.get_database().unwrap_or_default();
            lending::keep_rows(self, from).await?;
            connection.execute(AssertSqlSafe(format!("ALTER DATABASE {from} RENAME TO {name}"))).await?;
            let _ = unfinished.keep();
        }
        // Closing the session gives the lock back.
        connection.close().await?;
        Ok(name)
    }

    /// Drops what killed tests left: databases whose second of making, which
    /// is in their name, is long ago. And those of builds with other migrations,
    /// unless somebody works with them.
    async fn drop_abandoned(&self, connection: &mut PgConnection, template: &str) -> Result<()> {
        let names: Vec<String> = sqlx::query_scalar("SELECT datname FROM pg_database WHERE datname LIKE $1")
            .bind(format!("{PREFIX}%"))
            .fetch_all(&mut *connection)
            .await?;
        let oldest = now_seconds()?.saturating_sub(ABANDONED_AFTER_SECONDS);
        for name in names {
            let made = name[PREFIX.len()..].split('_').next().and_then(|second| second.parse::<u64>().ok());
            if made.is_some_and(|made| made < oldest) {
                connection
                    .execute(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")))
                    .await?;
            }
        }
        let names: Vec<String> = sqlx::query_scalar("SELECT datname FROM pg_database WHERE datname LIKE $1")
            .bind(format!("{TEMPLATE_PREFIX}%"))
            .fetch_all(&mut *connection)
            .await?;
        for name in names.iter().filter(|name| !name.starts_with(template)) {
            let dropped = connection.execute(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name}"))).await;
            if let Err(error) = dropped {
                eprintln!("the test database {name} stays: {error}");
            }
        }
        Ok(())
    }
}

fn now_seconds() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

fn unique_name() -> Result<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Ok(format!("{PREFIX}{}_{nanos:x}_{}_{number}", now_seconds()?, std::process::id()))
}

/// A folder with SQLite files that have every migration of this build. Processes that
/// make it at once put the same in its place.
async fn sqlite_template() -> Result<PathBuf> {
    let hash = migrations_hash(&["sqlite", "sqlite-intake"])?;
    let place = std::env::temp_dir().join(format!("{TEMPLATE_PREFIX}{hash:016x}"));
    if !place.exists() {
        let unfinished = TestDatabase::empty(Backend::Sqlite).await?;
        let store = unfinished.store().await?;
        store.migrate().await?;
        // The last connection brings everything into the files.
        store.db().close().await;
        let beside = tempfile::tempdir()?;
        for file in SQLITE_FILES {
            std::fs::copy(unfinished.folder().join(file), beside.path().join(file))?;
        }
        if std::fs::rename(beside.path(), &place).is_ok() {
            let _moved = beside.keep();
        }
        anyhow::ensure!(place.exists(), "{} could not be made", place.display());
    }
    Ok(place)
}

/// Two builds with the same migrations share a template.
fn migrations_hash(folders: &[&str]) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    for folder in folders {
        let folder = format!("{}/../../migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .with_context(|| format!("cannot read {folder}"))?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        files.sort();
        for file in files {
            file.file_name().hash(&mut hasher);
            std::fs::read(file)?.hash(&mut hasher);
        }
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use callboard_domain::time::Timestamp;
    use callboard_store::projects;

    use super::*;

    #[tokio::test]
    async fn every_test_has_a_migrated_database_of_its_own() {
        for_each_database(async |database| {
            let store = database.store().await.unwrap();
            assert!(store.schema_is_current().await.unwrap());
            let other = TestDatabase::fresh(database.backend()).await.unwrap();
            assert_ne!(other.url(), database.url());
        })
        .await;
    }

    #[tokio::test]
    async fn a_dropped_test_database_is_gone() {
        let database = TestDatabase::empty(Backend::Postgres).await.unwrap();
        let url = database.url().to_owned();
        let open = database.store().await.unwrap();
        drop(database);
        drop(open);
        let options: PgConnectOptions = url.parse().unwrap();
        assert!(PgConnection::connect_with(&options).await.is_err());
    }

    /// One database is used twice, unless other tests have all that are free.
    #[tokio::test]
    async fn the_next_test_finds_nothing_of_the_last() {
        for_each_backend(async |backend| {
            for _ in 0..2 {
                let database = TestDatabase::fresh(backend).await.unwrap();
                let store = database.store().await.unwrap();
                let mut session = store.db().begin().await.unwrap();
                let made = projects::get_or_create(&mut session, "shop", None, Timestamp(1)).await.unwrap();
                session.commit().await.unwrap();
                assert_eq!((made.id.get(), made.is_new), (1, true));
            }
        })
        .await;
    }

    #[tokio::test]
    async fn only_test_databases_can_be_dropped_by_address() {
        assert!(drop_database("postgres://postgres@127.0.0.1/postgres").await.is_err());
    }
}
