//! What every handler can reach: the store, the configuration, the clock and
//! what is derived from them. Cheap to clone; remembers nothing that
//! correctness needs.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use callboard_auth::client_address::ClientAddress;
use callboard_auth::cookies::{CookieForm, SealedCookies};
use callboard_auth::gate::Gate;
use callboard_auth::keys::{MacKey, Purpose, Secrets};
use callboard_auth::limits::{self, CounterNames};
use callboard_auth::sealed::StoredSecrets;
use callboard_auth::{FileGrants, Identity, Origin, RouteId, Scheme};
use callboard_domain::time::Timestamp;
use callboard_ingest::WriteCoalescer;
use callboard_query::accounts::enabling;
use callboard_query::diagnoses::ModelAccess;
use callboard_query::limits::Limits;
use callboard_query::scm::Access;
use callboard_query::{Context, Links, QueryError, mail_settings};
use callboard_store::{MemoryBudget, Store, StoreError, boxed};
use http::HeaderMap;
use tokio::sync::{OnceCell, watch};

use crate::auth_mode::AuthMode;
use crate::error::ApiError;
use crate::sandbox::{Sandbox, Site};
use crate::stream_slots::{StreamSlot, StreamSlots};
use callboard_platform::config::{Config, Platform};
use callboard_platform::egress::AdminUrl;
use callboard_platform::hash_pool::PasswordWork;

/// The key under which an installation keeps its own secret, of which the keys
/// of grants and counters come when none is configured.
const OWN_SECRET: &str = "file_grant_secret";

/// Further apart than this, the clocks of the database and of this machine are
/// worth a word in the log, milliseconds.
const CLOCK_TOLERANCE_MS: i64 = 30 * 1000;

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
    cookies: Arc<SealedCookies>,
    process: Arc<Process>,
}

/// What this process found out once.
#[derive(Debug)]
struct Process {
    secrets: Secrets,
    keys: OnceCell<Keys>,
    stored_secrets: StoredSecrets,
    passwords: PasswordWork,
    schema_is_current: AtomicBool,
    authentication_has_begun: AtomicBool,
    auth_mode: AuthMode,
    mounted: Mutex<BTreeSet<RouteId>>,
    write_coalescer: WriteCoalescer,
    streams: StreamSlots,
    stopping: watch::Sender<bool>,
}

/// What needs a secret of the installation, configured or its own.
#[derive(Debug)]
struct Keys {
    grants: FileGrants,
    counters: CounterNames,
}

impl AppState {
    /// Opens the store that the configuration names.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be opened.
    #[boxed]
    pub async fn connect(config: Config) -> Result<Self, StoreError> {
        let store = Store::connect(&config.store()).await?;
        Ok(Self::new(config, store))
    }

    /// State over a store that is open already.
    #[must_use]
    pub fn new(config: Config, store: Store) -> Self {
        let sandbox = config.sandbox_origin.clone().map_or(Sandbox::Opaque, Sandbox::Origin);
        let config = Arc::new(config);
        let secrets = Secrets::new(&config.auth_secrets);
        Self {
            store: store.with_memory(MemoryBudget::new(config.body_memory_bytes)),
            gate: Arc::new(gate(&config, &sandbox)),
            cookies: Arc::new(SealedCookies::new(&secrets)),
            process: Arc::new(Process {
                secrets,
                keys: OnceCell::new(),
                stored_secrets: StoredSecrets::new(&Secrets::new(&config.secret_keys)),
                passwords: PasswordWork::for_this_machine(),
                schema_is_current: AtomicBool::new(false),
                authentication_has_begun: AtomicBool::new(false),
                auth_mode: AuthMode::default(),
                mounted: Mutex::default(),
                write_coalescer: match config.platform {
                    Platform::Server => WriteCoalescer::default(),
                    Platform::Lambda => WriteCoalescer::at_once(),
                },
                streams: StreamSlots::new(config.sse_max_streams, config.sse_max_per_identity),
                stopping: watch::Sender::new(false),
            }),
            config,
            clock: Clock::system(),
            sandbox: Arc::new(sandbox),
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
        Context {
            store: self.store.clone(),
            links: Links::new(&site.origin().to_string()).with_viewer(self.viewer().opens_traces()),
            patience: self.config.patience,
            retention: Arc::clone(&self.config.retention),
            retention_grace_ms: self.config.retention_grace_ms,
            deletion_grace_ms: self.config.deletion_grace_ms,
            requires_sign_in: self.config.auth_enabled,
            write_coalescer: self.process.write_coalescer.clone(),
        }
    }

    /// What work asks with that no client waits for: links name the
    /// configured address.
    #[must_use]
    pub fn background(&self) -> Context {
        let site = self.config.site_url.clone().unwrap_or_else(|| Origin::localhost(self.config.port));
        self.context(&Site(site))
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

    /// Whether callers have to sign in.
    #[must_use]
    pub fn auth_enabled(&self) -> bool {
        self.config.auth_enabled
    }

    /// The sealer of cookies.
    #[must_use]
    pub fn cookies(&self) -> &SealedCookies {
        &self.cookies
    }

    /// How cookies are named and marked on the connection of a request.
    #[must_use]
    pub fn cookie_form(&self, headers: &HeaderMap) -> CookieForm {
        let named = self.gate.effective_origin(headers);
        self.config.cookie_secure.form(named.as_ref().map_or(Scheme::Http, Origin::scheme))
    }

    /// The sealer of file grants. Without a configured secret the
    /// installation's own is read from the database at the first use.
    ///
    /// # Errors
    /// [`StoreError`] when that secret cannot be read.
    pub async fn grants(&self) -> Result<&FileGrants, StoreError> {
        Ok(&self.keys().await?.grants)
    }

    /// The names of counters and the hashes of addresses; the secret is that
    /// of [`AppState::grants`].
    ///
    /// # Errors
    /// [`StoreError`] when that secret cannot be read.
    pub async fn counter_names(&self) -> Result<&CounterNames, StoreError> {
        Ok(&self.keys().await?.counters)
    }

    /// Admission of limited calls.
    ///
    /// # Errors
    /// [`StoreError`] when the installation's secret cannot be read.
    #[boxed]
    pub async fn limits(&self) -> Result<Limits, StoreError> {
        if !self.config.rate_limits {
            return Ok(Limits::off(self.store.clone()));
        }
        Ok(Limits::new(self.store.clone(), self.counter_names().await?.clone()))
    }

    /// Counts messages to the MCP endpoint: by credential, and by address
    /// where callers do not sign in.
    ///
    /// # Errors
    /// 429 when they come too early.
    pub async fn admit_messages(
        &self,
        identity: &Identity,
        address: Option<&ClientAddress>,
        messages: i64,
    ) -> Result<(), ApiError> {
        let subject = match address {
            _ if self.auth_enabled() => identity.credential().into_bytes(),
            Some(address) => address.subject(),
            None => return Ok(()),
        };
        let limits = self.limits().await?;
        Ok(limits.check_steady_calls(limits::MCP, &subject, messages, self.now()).await?)
    }

    /// A place for a live stream, counted for the account or key of its reader, or
    /// for their address where there is none.
    ///
    /// # Errors
    /// 429 when they, or all together, have as many as there may be.
    pub fn open_stream(
        &self,
        identity: &Identity,
        address: Option<&ClientAddress>,
    ) -> Result<StreamSlot, ApiError> {
        let is_known = self.auth_enabled() && identity.role().is_some();
        let subject = address.filter(|_| !is_known).map(ClientAddress::subject);
        self.process.streams.take(subject.unwrap_or_else(|| identity.credential().into_bytes()))
    }

    /// The sealer of secrets in the database.
    #[must_use]
    pub fn stored_secrets(&self) -> &StoredSecrets {
        &self.process.stored_secrets
    }

    /// The configuration with the mail server that is used: that of the environment, or else that of the settings.
    ///
    /// # Errors
    /// [`QueryError::Store`].
    pub async fn mail_config(&self) -> Result<Arc<Config>, QueryError> {
        if self.config.mail.is_some() || self.config.demo {
            return Ok(Arc::clone(&self.config));
        }
        let mail = mail_settings::effective(&self.store, self.stored_secrets(), &self.config).await?;
        Ok(match mail {
            Some(mail) => Arc::new(Config { mail: Some(mail), ..Config::clone(&self.config) }),
            None => Arc::clone(&self.config),
        })
    }

    /// What reading the repositories of projects takes.
    #[must_use]
    pub fn source_control(&self) -> Access<'_> {
        let client = AdminUrl::new(self.config.egress_allow.clone());
        Access { secrets: self.stored_secrets(), client }
    }

    /// What asking the model for diagnoses takes.
    #[must_use]
    pub fn model_access(&self) -> ModelAccess<'_> {
        let client = AdminUrl::new(self.config.egress_allow.clone());
        ModelAccess { secrets: self.stored_secrets(), client }
    }

    /// Room for the work of passwords.
    #[must_use]
    pub fn passwords(&self) -> &PasswordWork {
        &self.process.passwords
    }

    async fn keys(&self) -> Result<&Keys, StoreError> {
        self.process.keys.get_or_try_init(|| self.derive_keys()).await
    }

    #[boxed]
    async fn derive_keys(&self) -> Result<Keys, StoreError> {
        let mut secrets = self.process.secrets.clone();
        if secrets.is_empty() {
            secrets = Secrets::new(&[self.store.instance_secret(OWN_SECRET).await?]);
        }
        let counters = MacKey::derive(&secrets, Purpose::RATE)
            .ok_or(StoreError::Damaged("the installation has no secret"))?;
        Ok(Keys { grants: FileGrants::new(&secrets), counters: CounterNames::new(counters) })
    }

    /// Whether the database has every migration of this version. Asks the
    /// database until it says yes.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    #[boxed]
    pub async fn schema_is_current(&self) -> Result<bool, StoreError> {
        if self.process.schema_is_current.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let is_current = self.store.schema_is_current().await?;
        if is_current && enabling::mode_differs(&self.store, self.auth_enabled()).await? {
            tracing::warn!(
                "SERVICE_AUTH_ENABLED differs from what the last deployment (`callboard migrate`) was told"
            );
        }
        self.process.schema_is_current.store(is_current, Ordering::Relaxed);
        Ok(is_current)
    }

    /// Does what the first sign-ins of an installation take, when callers have
    /// to sign in; and says so in the log when nobody could. Asks the
    /// database once in the life of a process.
    ///
    /// # Errors
    /// [`QueryError::Store`] when the database does not answer.
    #[boxed]
    pub async fn begin_authentication(&self) -> Result<(), QueryError> {
        let has_begun = &self.process.authentication_has_begun;
        if !self.auth_enabled() || has_begun.load(Ordering::Relaxed) || !self.schema_is_current().await? {
            return Ok(());
        }
        if enabling::begin(&self.store, self.now()).await? {
            tracing::info!("callers have to sign in from now on; every account there was sees all projects");
        }
        if enabling::is_locked_out(&self.store).await? {
            tracing::warn!(
                "no administrator can sign in; `callboard grant-administrator <username>` makes one of an account"
            );
        }
        let ahead_ms = enabling::clock_ahead_ms(&self.store, self.now()).await?;
        if ahead_ms.abs() > CLOCK_TOLERANCE_MS {
            tracing::warn!(
                "the clock of the database is {} s ahead of this machine's; sessions and keys end early or late",
                ahead_ms / 1000
            );
        }
        has_begun.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// What is known of other processes on this database.
    pub(crate) fn auth_mode(&self) -> &AuthMode {
        &self.process.auth_mode
    }

    /// Asks answers that last to come to their end.
    pub fn stop(&self) {
        self.process.stopping.send_replace(true);
    }

    /// Completes when this process is about to stop.
    pub async fn stopped(&self) {
        // The sender lives as long as the state.
        let _ = self.process.stopping.subscribe().wait_for(|is_stopping| *is_stopping).await;
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
        mcp_any_origin: config.mcp_allows_any_origin && config.auth_enabled,
        mcp_own_origin: config.auth_enabled,
        bound_to_loopback: config.is_bound_to_loopback(),
        trust_proxy: config.trust_proxy.is_some(),
        behind_tls: config.platform == Platform::Lambda,
    }
}
