//! What every handler can reach: the store, the configuration, the clock and
//! what is derived from them. Cheap to clone; remembers nothing that
//! correctness needs.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use callboard_auth::gate::Gate;
use callboard_auth::{Authenticator, FileGrants, RouteId};
use callboard_domain::time::Timestamp;
use callboard_query::{Context, Links};
use callboard_store::{Store, StoreError};
use tokio::sync::OnceCell;

use crate::config::{Config, Platform};
use crate::sandbox::{Sandbox, Site};

/// The key under which an installation keeps its own grant secret.
const GRANT_SECRET: &str = "file_grant_secret";

/// Gives the time. Tests give their own.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::from_fn(|| Timestamp(chrono::Utc::now().timestamp_millis()))
    }

    /// Any source of time.
    pub fn from_fn(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

/// The state of every router.
#[derive(Debug, Clone)]
pub struct AppState {
    store: Store,
    config: Arc<Config>,
    clock: Clock,
    sandbox: Arc<Sandbox>,
    gate: Arc<Gate>,
    authenticator: Authenticator,
    process: Arc<Process>,
}

/// What this process found out once.
#[derive(Debug, Default)]
struct Process {
    grants: OnceCell<FileGrants>,
    schema_is_current: AtomicBool,
    mounted: Mutex<BTreeSet<RouteId>>,
}

impl AppState {
    /// Opens the store that the configuration names.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be opened.
    pub async fn connect(config: Config) -> Result<Self, StoreError> {
        let store = Store::connect(&config.store()).await?;
        Ok(Self::new(config, store))
    }

    /// State over a store that is open already.
    #[must_use]
    pub fn new(config: Config, store: Store) -> Self {
        let sandbox = config.sandbox_origin.clone().map_or(Sandbox::Opaque, Sandbox::Origin);
        let config = Arc::new(config);
        Self {
            store,
            gate: Arc::new(gate(&config, &sandbox)),
            config,
            clock: Clock::system(),
            sandbox: Arc::new(sandbox),
            authenticator: Authenticator::off(),
            process: Arc::default(),
        }
    }

    /// The same state with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The same state with another way of keeping untrusted content apart.
    #[must_use]
    pub fn with_sandbox(self, sandbox: Sandbox) -> Self {
        let gate = Arc::new(gate(&self.config, &sandbox));
        Self { sandbox: Arc::new(sandbox), gate, ..self }
    }

    /// Rows and objects.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// What questions are asked with: the store, and links as this client
    /// knows the service.
    #[must_use]
    pub fn context(&self, site: &Site) -> Context {
        Context { store: self.store.clone(), links: Links::new(&site.origin().to_string()) }
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Where untrusted content is opened.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The browser boundary.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Who recognises callers.
    #[must_use]
    pub const fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }

    /// The sealer of file grants. Without a configured secret the
    /// installation's own is read from the database at the first use.
    ///
    /// # Errors
    /// [`StoreError`] when that secret cannot be read.
    pub async fn grants(&self) -> Result<&FileGrants, StoreError> {
        self.process
            .grants
            .get_or_try_init(|| async {
                if self.config.auth_secrets.is_empty() {
                    Ok(FileGrants::new(&[self.store.instance_secret(GRANT_SECRET).await?]))
                } else {
                    Ok(FileGrants::new(&self.config.auth_secrets))
                }
            })
            .await
    }

    /// Whether the database has every migration of this version. Asked of the
    /// database until it says yes.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn schema_is_current(&self) -> Result<bool, StoreError> {
        if self.process.schema_is_current.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let is_current = self.store.schema_is_current().await?;
        self.process.schema_is_current.store(is_current, Ordering::Relaxed);
        Ok(is_current)
    }

    /// Notes the routes a router serves.
    pub(crate) fn note_mounted(&self, routes: impl IntoIterator<Item = RouteId>) {
        self.process.mounted.lock().unwrap_or_else(PoisonError::into_inner).extend(routes);
    }

    /// The routes that routers over this state serve, for comparison with the
    /// route table.
    #[must_use]
    pub fn mounted_routes(&self) -> BTreeSet<RouteId> {
        self.process.mounted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn gate(config: &Config, sandbox: &Sandbox) -> Gate {
    Gate {
        site: config.site_url.clone(),
        sandbox: sandbox.origins(),
        allowed_hosts: config.allowed_hosts.clone(),
        allowed_origins: config.allowed_origins.clone(),
        mcp_origins: config.mcp_allowed_origins.clone(),
        bound_to_loopback: config.is_bound_to_loopback(),
        trust_proxy: config.trust_proxy,
        behind_tls: config.platform == Platform::Lambda,
    }
}
