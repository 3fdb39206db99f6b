//! The service being measured: the optimised `callboard` binary beside this
//! one, as a process of its own over a fresh database and folder. Dropping it
//! stops the process and removes both.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use callboard_store::Backend;
use callboard_test_support::{Answer, Client, Runner, Settings, TestDatabase};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

use crate::machine;

/// A running service with a database of its own.
#[derive(Debug)]
pub struct Subject {
    runner: Runner,
    pid: u32,
    database: TestDatabase,
}

/// A stored run.
#[derive(Debug, Clone, Copy)]
pub struct Stored {
    /// Its id.
    pub run: i64,
    /// Id of its project.
    pub project: i64,
}

impl Subject {
    /// Starts the service on a fresh database of an engine.
    ///
    /// # Errors
    /// When there is no such database, or the service does not start.
    pub async fn start(backend: Backend) -> Result<Self> {
        Self::start_with(backend, &[]).await
    }

    /// Starts the service with further settings.
    ///
    /// # Errors
    /// As [`Subject::start`].
    pub async fn start_with(backend: Backend, more: &[(&str, &str)]) -> Result<Self> {
        let database = TestDatabase::empty(backend).await?;
        let mut settings = settings(&database);
        settings.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let runner = Runner::start(&settings).await?;
        let pid = machine::child("callboard").context("the service has no process on this system")?;
        Ok(Self { runner, pid, database })
    }

    /// A client of it.
    #[must_use]
    pub fn client(&self) -> Client {
        self.runner.client().clone()
    }

    /// Its process.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Its database.
    #[must_use]
    pub const fn database(&self) -> &TestDatabase {
        &self.database
    }
}

/// What a service over a database is started with.
#[must_use]
pub fn settings(database: &TestDatabase) -> Settings {
    [
        ("SERVICE_HOST", "127.0.0.1".to_owned()),
        ("SERVICE_DATABASE_URL", database.url().to_owned()),
        ("SERVICE_STORAGE_URL", database.storage_url()),
        ("SERVICE_DATA_DIR", database.folder().display().to_string()),
        // What is measured is how fast calls are answered, not how soon they are refused.
        ("SERVICE_RATE_LIMITS", "off".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// The engine as tables name it.
#[must_use]
pub const fn engine(backend: Backend) -> &'static str {
    match backend {
        Backend::Sqlite => "SQLite",
        Backend::Postgres => "PostgreSQL",
    }
}

/// Sends a run.
///
/// # Errors
/// When it is not stored; the answer is in the message.
pub async fn submit(client: &Client, body: Bytes) -> Result<Stored> {
    let request = client
        .request(Method::POST, "/api/test-runs/submit")
        .header(CONTENT_TYPE, "application/json")
        .body(body);
    let answer = Answer::send(request).await?.success()?;
    stored(&answer)
}

/// The run and project an answer names.
///
/// # Errors
/// When it names none.
pub fn stored(answer: &Value) -> Result<Stored> {
    let id = |name: &str| answer[name].as_i64().with_context(|| format!("no {name} in {answer}"));
    Ok(Stored { run: id("testRunId")?, project: id("projectId")? })
}

/// Reads a path; any answer that is no success is an error.
///
/// # Errors
/// When the answer is not 200 or does not arrive.
pub async fn read(client: &Client, path: &str) -> Result<Bytes> {
    let answer = client.get(path).await?;
    ensure!(answer.status.is_success(), "GET {path} answered {}: {}", answer.status, answer.text());
    Ok(answer.body)
}
