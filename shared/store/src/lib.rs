//! The only place with SQL and objects.
//!
//! Lives here: one module per aggregate with its statements for SQLite and
//! PostgreSQL, the object store, evidence packs and migrations. A function
//! here takes the project it works on and a connection or transaction; it
//! never decides who may see what. Must not live here: HTTP, JSON answers,
//! authorisation, the wording of questions (that is the query layer).

pub mod accounts;
pub mod audit;
pub mod blobs;
pub mod branch_states;
pub mod clusters;
pub mod code_owners;
mod compression;
pub mod db;
pub mod deletions;
pub mod diagnoses;
mod error;
pub mod evidence;
pub mod executions;
pub mod exports;
pub mod feed;
pub mod files;
pub mod gates;
pub mod history_joins;
pub mod idempotency;
pub mod ids;
pub mod instance;
pub mod intake;
pub mod jobs;
pub mod lanes;
pub mod links;
pub mod locators;
pub mod markers;
pub mod memory_budget;
mod migrate;
pub mod model_usage;
pub mod notifications;
pub mod objects;
pub mod outbox;
pub mod projects;
pub mod quarantine;
pub mod rate_limits;
pub mod reports;
pub mod retention;
pub mod rollups;
pub mod runs;
pub mod scm_cache;
pub mod scm_feedback;
pub mod search;
pub mod settings;
pub mod source_paths;
mod statements;
pub mod storage;
pub mod tags;
pub mod test_cases;
pub mod test_functions;
pub mod unclaimed;
pub mod upkeep;
pub mod upload_tickets;

use std::sync::Arc;

/// Puts the future of an `async fn` on the heap, by a pointer to its code.
///
/// The compiler makes the code of a future where the future is awaited, not
/// where the function is written: what every handler crate awaits, down to the
/// last step of the drivers, it makes anew for each of them. Boxed, it is made
/// once, in the crate of the function. One allocation is nothing beside a way to
/// the database; the public functions of the query layer are boxed for it, and
/// here what everything else comes down to. (The macro is named for its other
/// use: futures that contain themselves.)
pub use async_recursion::async_recursion as boxed;
pub use db::{Backend, Db, Session};
pub use error::{Result, StoreError};
pub use memory_budget::{MemoryBudget, Reservation, Resource};
pub use migrate::{BUILD_TOO_OLD, SchemaState, newest_step};
pub use objects::Objects;
pub use statements::{all as all_statements, all_lists};

/// Where a store keeps rows and objects.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// `sqlite://<path>` (`sqlite::memory:` is refused: replicas could not
    /// share it) or `postgres://…`.
    pub database_url: String,
    /// `file://<folder>`, `s3://bucket/prefix`, `gs://…` or `az://…`.
    pub storage_url: String,
    /// Endpoint of an S3-compatible service, when it is not the provider's own.
    pub s3_endpoint: Option<String>,
    /// Its endpoint as browsers reach it, when that is another one.
    pub s3_public_endpoint: Option<String>,
    /// Most database connections this process opens.
    pub max_connections: u32,
}

/// Rows and objects of one installation. Cheap to clone; holds no state that
/// correctness needs.
#[derive(Debug, Clone)]
pub struct Store {
    db: Db,
    objects: Arc<Objects>,
    memory: MemoryBudget,
}

impl Store {
    /// Opens the database and describes the object store; bucket clients
    /// connect at their first use.
    ///
    /// # Errors
    /// [`StoreError::Configuration`] for an address it cannot use,
    /// [`StoreError::Database`] when the database does not answer.
    pub async fn connect(config: &StoreConfig) -> Result<Self> {
        let db = Db::connect(&config.database_url, config.max_connections).await?;
        let (endpoint, public) = (config.s3_endpoint.as_deref(), config.s3_public_endpoint.as_deref());
        let objects = Arc::new(Objects::open(&config.storage_url, endpoint, public)?);
        Ok(Self { db, objects, memory: MemoryBudget::default() })
    }

    /// The database.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The object store.
    #[must_use]
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The same store with another budget for what it receives.
    #[must_use]
    pub fn with_memory(self, memory: MemoryBudget) -> Self {
        Self { memory, ..self }
    }

    /// The budget for what is received.
    #[must_use]
    pub const fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// Which database engine answers.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.db.backend()
    }

    /// Applies what is missing of the migrations.
    ///
    /// # Errors
    /// [`StoreError::Migration`] when a step fails or an applied file changed.
    pub async fn migrate(&self) -> Result<()> {
        migrate::run(&self.db).await
    }

    /// Whether the schema is the one this build was written for, or that of the next release.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the database does not answer.
    pub async fn schema_is_current(&self) -> Result<bool> {
        Ok(self.schema_state().await? == SchemaState::Current)
    }

    /// How the schema fits this build.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the database does not answer.
    pub async fn schema_state(&self) -> Result<SchemaState> {
        migrate::state(&self.db).await
    }

    /// Asks the database for a sign of life.
    ///
    /// # Errors
    /// [`StoreError::Database`] when it does not answer.
    pub async fn check_database(&self) -> Result<()> {
        instance::check(&self.db).await
    }

    /// Asks the object store for a sign of life.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when it does not answer.
    pub async fn check_storage(&self) -> Result<()> {
        self.objects.check().await
    }

    /// A 32-byte random value of this installation, created once under `key`
    /// and shared by all processes.
    ///
    /// # Errors
    /// [`StoreError::Database`] when it cannot be read or written.
    pub async fn instance_secret(&self, key: &str) -> Result<[u8; 32]> {
        instance::secret(&self.db, key).await
    }
}
