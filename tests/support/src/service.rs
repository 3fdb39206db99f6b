//! The whole service in the test process, started as `callboard` starts it,
//! over a fresh database and a folder for its files.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use callboard_fn_jobs::{Budget, run_due};
use callboard_http::AppState;
use callboard_local_runner::run;
use callboard_platform::Config;
use callboard_store::{Backend, jobs};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::{Client, Settings, TestDatabase};

/// Time for the work of an hour of a service without data: far more than it takes.
const HOURLY_WORK: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);

/// A running service. Dropping it stops it and removes its data.
#[derive(Debug)]
pub struct Service {
    client: Client,
    state: AppState,
    // The listeners close before the database is dropped.
    _running: Running,
    database: Arc<TestDatabase>,
}

#[derive(Debug)]
struct Running {
    _stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Service {
    /// Starts a service on a fresh database of an engine.
    ///
    /// # Errors
    /// When there is no database, or the service does not start.
    pub async fn start(backend: Backend) -> Result<Self> {
        Self::over(TestDatabase::fresh(backend).await?, &Settings::new()).await
    }

    /// Starts a service on a database, with settings beside the address of
    /// the database, the folder and the port.
    ///
    /// # Errors
    /// When the settings are refused, or the service does not start.
    pub async fn over(database: TestDatabase, settings: &Settings) -> Result<Self> {
        let is_first = database.is_served_first();
        let service = Self::sharing(Arc::new(database), settings).await?;
        // What every hour begins with comes before the test, not in the middle of it: many tests tell of days long
        // ago, and retention would let go of what they have just stored.
        if is_first {
            service.work_of_the_hour().await?;
        }
        Ok(service)
    }

    /// Starts another service over the same database and files, as if it were
    /// another process: the two share nothing else.
    ///
    /// # Errors
    /// As [`Service::over`].
    pub async fn beside(&self, settings: &Settings) -> Result<Self> {
        Self::sharing(Arc::clone(&self.database), settings).await
    }

    /// Does what is due, and waits for what the timer of the service began of it.
    async fn work_of_the_hour(&self) -> Result<()> {
        loop {
            run_due(&self.state, Budget::new(HOURLY_WORK)).await?;
            let mut session = self.state.store().db().read().await?;
            if jobs::counts(&mut session).await?.leased == 0 {
                return Ok(());
            }
            drop(session);
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn sharing(database: Arc<TestDatabase>, settings: &Settings) -> Result<Self> {
        let own = [
            ("SERVICE_HOST", "127.0.0.1".to_owned()),
            ("SERVICE_PORT", "0".to_owned()),
            ("SERVICE_DATABASE_URL", database.url().to_owned()),
            ("SERVICE_DATABASE_CONNECTIONS", "4".to_owned()),
            ("SERVICE_STORAGE_URL", database.storage_url()),
            ("SERVICE_DATA_DIR", database.folder().display().to_string()),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        callboard_http::install_tls();
        let config = Config::from_env(own.into_iter().chain(settings.iter().cloned()))?;
        let ready = run::prepare(config).await.context("the service does not start")?;
        let client = Client::new(format!("http://127.0.0.1:{}", ready.port()?))?;
        let state = ready.state().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(ready.serve(async {
            // Also when the sender is dropped.
            let _ = stopped.await;
        }));
        Ok(Self { client, state, _running: Running { _stop: stop, serving }, database })
    }

    /// A client of it.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Its address, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> &str {
        self.client.base_url()
    }

    /// What its handlers share: store, configuration, clock.
    #[must_use]
    pub const fn state(&self) -> &AppState {
        &self.state
    }

    /// Stops it and hands over its database and files, for another service.
    ///
    /// # Panics
    /// While a service that was started beside it runs.
    pub async fn into_database(self) -> TestDatabase {
        let Self { state, _running: running, database, .. } = self;
        drop(running);
        state.leave().await;
        state.store().db().close().await;
        match Arc::into_inner(database) {
            Some(database) => database,
            None => panic!("another service still uses the database"),
        }
    }

    /// Its database.
    #[must_use]
    pub fn database(&self) -> &TestDatabase {
        &self.database
    }
}

/// Runs a test against a fresh service on each engine.
///
/// # Panics
/// When the test does, after saying on which engine; or when a service does
/// not start.
pub async fn for_each_service<F>(test: F)
where
    F: AsyncFn(&Service),
{
    crate::databases::for_each_backend(async |backend| match Service::start(backend).await {
        Ok(service) => test(&service).await,
        Err(error) => panic!("no service to test: {error:#}"),
    })
    .await;
}
