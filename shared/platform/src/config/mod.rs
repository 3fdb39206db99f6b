//! Configuration: read once from the environment at the start, typed, and
//! passed on. Nothing else in the tree reads the environment.

pub mod registry;

pub mod mail;
pub mod oauth;
mod reader;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use callboard_auth::client_address::TrustProxy;
use callboard_auth::cookies::SecureCookies;
use callboard_auth::password::{Blocklist, PasswordRules};
use callboard_auth::{Origin, Scheme};
use callboard_domain::ingest::Caps;
use callboard_domain::retention::{Edit, Level, Overrides};
use callboard_domain::run_life::Patience;
use callboard_store::StoreConfig;

use crate::egress::Allowed;
pub use mail::{MailConfig, MailServer, SMTP_URL, SetServer};
use oauth::OauthConfig;
use reader::Reader;
pub use reader::{ConfigError, ConfigErrors};

/// Exit code of a start that is refused because of its configuration
/// (`EX_CONFIG` of sysexits.h).
pub const EXIT_CONFIG: i32 = 78;

/// Largest event and largest answer of a function, as its platform encodes them.
const FUNCTION_PAYLOAD_BYTES: u64 = 6 * 1024 * 1024;

/// Where this process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// A process with a port.
    Server,
    /// A function instance: events instead of a port, a disk that vanishes.
    Lambda,
}

impl Platform {
    /// Where this process runs, for the one that may start without any other setting.
    #[must_use]
    pub fn of_process() -> Self {
        Self::named_by(|name| std::env::var_os(name).is_some())
    }

    fn named_by(is_set: impl Fn(&str) -> bool) -> Self {
        let is_function = is_set("AWS_LAMBDA_FUNCTION_NAME") || is_set("AWS_LAMBDA_RUNTIME_API");
        if is_function { Self::Lambda } else { Self::Server }
    }
}

/// A secret; it does not print itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A text that logs do not show.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The secret as text, for handing it on.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl AsRef<[u8]> for Secret {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Everything that can be configured.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where this process runs.
    pub platform: Platform,
    /// Address to listen on.
    pub host: String,
    /// Port to listen on; 0 takes a free one.
    pub port: u16,
    /// Folder of the embedded database and local objects.
    pub data_dir: PathBuf,
    /// Address of the database.
    pub database_url: String,
    /// Most database connections of this process.
    pub database_connections: u32,
    /// Address of the object store.
    pub storage_url: String,
    /// Endpoint of an S3-compatible service.
    pub s3_endpoint: Option<String>,
    /// Endpoint of it that browsers reach.
    pub s3_public_endpoint: Option<String>,
    /// Whether clients write planned files to the bucket themselves.
    pub uploads_direct: bool,
    /// Public address.
    pub site_url: Option<Origin>,
    /// Origin for untrusted content.
    pub sandbox_origin: Option<Origin>,
    /// Origins of trace viewers that may fetch trace archives.
    pub trace_viewer_origins: Vec<Origin>,
    /// Further host names.
    pub allowed_hosts: Vec<String>,
    /// Further origins that may send changes.
    pub allowed_origins: Vec<Origin>,
    /// Further origins that may call the MCP endpoint.
    pub mcp_allowed_origins: Vec<Origin>,
    /// Whether all origins may, as far as callers have to sign in.
    pub mcp_allows_any_origin: bool,
    /// Whether tools answer as structured content, too.
    pub mcp_structured: bool,
    /// Whose forwarded headers are believed.
    pub trust_proxy: TrustProxy,
    /// Whether this is a read-only demo.
    pub demo: bool,
    /// Whether callers have to sign in.
    pub auth_enabled: bool,
    /// Secrets of sessions and file grants, the sealing one first; empty: use the
    /// installation's own.
    pub auth_secrets: Vec<Secret>,
    /// Sign-in at providers.
    pub oauth: OauthConfig,
    /// How mail is sent, when it is.
    pub mail: Option<MailConfig>,
    /// Addresses and domains that notifications may be mailed to, in lower case.
    pub mail_allowed: Vec<String>,
    /// Where the Web API of Slack is.
    pub slack_api_url: String,
    /// When cookies are marked for safe connections only.
    pub cookie_secure: SecureCookies,
    /// Keys of secrets in the database, the sealing one first; empty: none can
    /// be kept.
    pub secret_keys: Vec<Secret>,
    /// What new passwords must be like.
    pub password_rules: PasswordRules,
    /// Whether calls are limited.
    pub rate_limits: bool,
    /// Largest submit body, bytes, inflated.
    pub max_submit_bytes: u64,
    /// Largest upload body, bytes.
    pub max_upload_bytes: u64,
    /// Largest events body, bytes, inflated.
    pub max_events_bytes: u64,
    /// Memory for the bodies of all requests together, bytes.
    pub body_memory_bytes: u64,
    /// How long to wait for the clients of a run.
    pub patience: Patience,
    /// Seconds after which a live stream ends.
    pub sse_max_seconds: u64,
    /// Most live streams of one identity in one process.
    pub sse_max_per_identity: usize,
    /// Most live streams of one process.
    pub sse_max_streams: usize,
    /// Where addresses may lead besides the open internet.
    pub egress_allow: Allowed,
    /// Most bytes of an export that a function sends in one response.
    pub max_export_bytes: u64,
    /// Most bytes of a request or an answer that the gateway in front lets through, when that is known.
    pub gateway_max_bytes: Option<u64>,
    /// How long content without references is kept, milliseconds.
    pub gc_grace_ms: i64,
    /// How long what a person deletes can be restored, ms; 0 when it cannot.
    pub deletion_grace_ms: i64,
    /// What is set of retention; the rest is set by hand.
    pub retention: Arc<Overrides>,
    /// How long a change of retention that keeps less waits, milliseconds.
    pub retention_grace_ms: i64,
    /// Caps on evidence.
    pub caps: Caps,
    /// Log filter.
    pub log: String,
    /// Most calls that send results, for each credential and minute; 0 for
    /// any number.
    pub ingest_rate_per_minute: u32,
    /// The variables that are set, without secrets.
    pub given: BTreeMap<&'static str, String>,
    /// What the operator should know, as sentences.
    pub warnings: Vec<String>,
}

impl Config {
    /// Whether notifications may be mailed to an address that belongs to no account.
    #[must_use]
    pub fn mails_to(&self, address: &str) -> bool {
        mail::allows(&self.mail_allowed, address)
    }

    /// Reads the environment of this process.
    ///
    /// # Errors
    /// [`ConfigErrors`] with one entry per variable that cannot be used.
    pub fn from_process_env() -> Result<Self, ConfigErrors> {
        let values = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::from_env(values)
    }

    /// Reads configuration out of names and values.
    ///
    /// # Errors
    /// [`ConfigErrors`] with one entry per variable that cannot be used.
    pub fn from_env(values: impl IntoIterator<Item = (String, String)>) -> Result<Self, ConfigErrors> {
        let reader = Reader::new(values);
        let config = read(&reader);
        let errors = reader.into_errors();
        if errors.is_empty() { Ok(config) } else { Err(ConfigErrors(errors)) }
    }

    /// Whether only this machine can reach the listener.
    #[must_use]
    pub fn is_bound_to_loopback(&self) -> bool {
        let host = self.host.trim_matches(['[', ']']);
        self.platform == Platform::Server
            && (host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()))
    }

    /// The largest body that reaches the service, bytes: what the gateway in front of a function lets through, or
    /// the largest upload.
    #[must_use]
    pub fn max_request_bytes(&self) -> u64 {
        match (self.platform, self.gateway_max_bytes) {
            // Binary bodies are base64 and a third longer there, beside headers and the rest.
            (Platform::Lambda, most) => most.unwrap_or(FUNCTION_PAYLOAD_BYTES) * 2 / 3,
            (Platform::Server, most) => self.max_upload_bytes.min(most.unwrap_or(u64::MAX)),
        }
    }

    /// The largest body of an answer that reaches a client, bytes; `None` when there is no limit.
    #[must_use]
    pub fn max_answer_bytes(&self) -> Option<u64> {
        match self.platform {
            // As base64, with room for headers.
            Platform::Lambda => Some(self.gateway_max_bytes.unwrap_or(FUNCTION_PAYLOAD_BYTES) * 7 / 10),
            Platform::Server => self.gateway_max_bytes,
        }
    }

    /// What the store needs of this.
    #[must_use]
    pub fn store(&self) -> StoreConfig {
        StoreConfig {
            database_url: self.database_url.clone(),
            storage_url: self.storage_url.clone(),
            s3_endpoint: self.s3_endpoint.clone(),
            s3_public_endpoint: self.s3_public_endpoint.clone(),
            max_connections: self.database_connections,
        }
    }
}

fn read(reader: &Reader) -> Config {
    let (mcp_allowed_origins, mcp_allows_any_origin) = reader.origins_or_any(&registry::MCP_ALLOWED_ORIGINS);
    let platform = Platform::named_by(|name| reader.is_set(name));
    let data_dir = PathBuf::from(reader.text(&registry::DATA_DIR));
    let caps = registry::variables();
    let mut config = Config {
        platform,
        host: reader.text(&registry::HOST),
        port: narrow(reader.number(&registry::PORT)),
        database_url: reader
            .optional_text(&registry::DATABASE_URL)
            .unwrap_or_else(|| format!("sqlite://{}", data_dir.join("callboard.db").display())),
        database_connections: narrow(reader.number(&registry::DATABASE_CONNECTIONS)),
        storage_url: reader
            .optional_text(&registry::STORAGE_URL)
            .unwrap_or_else(|| format!("file://{}", data_dir.join("objects").display())),
        s3_endpoint: reader.optional_text(&registry::S3_ENDPOINT),
        s3_public_endpoint: reader.optional_text(&registry::S3_PUBLIC_ENDPOINT),
        data_dir,
        uploads_direct: reader.switch(&registry::UPLOADS_DIRECT),
        site_url: reader.origin(&registry::SITE_URL),
        sandbox_origin: reader.origin(&registry::SANDBOX_ORIGIN),
        trace_viewer_origins: reader.origins(&registry::TRACE_VIEWER_ORIGINS),
        allowed_hosts: reader.hosts(&registry::ALLOWED_HOSTS),
        allowed_origins: reader.origins(&registry::ALLOWED_ORIGINS),
        mcp_allowed_origins,
        mcp_allows_any_origin,
        mcp_structured: reader.switch(&registry::MCP_STRUCTURED),
        trust_proxy: reader.proxies(&registry::TRUST_PROXY),
        demo: reader.switch(&registry::DEMO),
        auth_enabled: reader.switch(&registry::AUTH_ENABLED),
        auth_secrets: reader.secrets(&registry::AUTH_SECRET),
        oauth: oauth::read(reader),
        mail: mail::read(reader),
        mail_allowed: mail::read_allowed(reader),
        slack_api_url: reader.address(&mail::SLACK_API_URL).unwrap_or_default(),
        cookie_secure: match reader.word(&registry::COOKIE_SECURE) {
            "always" => SecureCookies::Always,
            "never" => SecureCookies::Never,
            _ => SecureCookies::Auto,
        },
        secret_keys: reader.secrets(&registry::SECRET_KEY),
        password_rules: PasswordRules {
            min_chars: narrow(reader.number(&registry::PASSWORD_MIN_LENGTH)),
            blocklist: match reader.word(&registry::PASSWORD_BLOCKLIST) {
                "off" => Blocklist::Off,
                "enforce" => Blocklist::Enforce,
                _ => Blocklist::Warn,
            },
        },
        rate_limits: reader.word(&registry::RATE_LIMITS) != "off",
        max_submit_bytes: reader.number(&registry::MAX_SUBMIT_BYTES),
        max_upload_bytes: reader.number(&registry::MAX_UPLOAD_BYTES),
        max_events_bytes: reader.number(&registry::MAX_EVENTS_BYTES),
        body_memory_bytes: reader.number(&registry::BODY_MEMORY_BYTES),
        patience: Patience {
            stale_ms: narrow(reader.number(&registry::RUN_STALE_MS)),
            shard_wait_ms: narrow(reader.number(&registry::SHARD_WAIT_MS)),
            setup_ms: narrow(reader.number(&registry::SETUP_STALE_MS)),
            finalizing_ms: narrow(reader.number(&registry::FINALIZING_STALE_MS)),
            shard_join_ms: narrow(reader.number(&registry::SHARD_JOIN_MS)),
        },
        sse_max_per_identity: narrow(reader.number(&registry::SSE_MAX_PER_IDENTITY)),
        sse_max_streams: narrow(reader.number(&registry::SSE_MAX_STREAMS)),
        sse_max_seconds: match reader.number(&registry::SSE_MAX_SECONDS) {
            // A function's gateway gives up on answers that take a minute.
            _ if platform == Platform::Lambda && !reader.is_set(registry::SSE_MAX_SECONDS.name) => 50,
            seconds => seconds,
        },
        egress_allow: Allowed::read(&reader.words(&registry::EGRESS_ALLOW)).unwrap_or_else(|word| {
            reader.refuse(
                &registry::EGRESS_ALLOW,
                format!("holds \"{word}\", which is no host and no network"),
            );
            Allowed::default()
        }),
        max_export_bytes: reader.number(&registry::EXPORT_MAX_STREAM_BYTES),
        gateway_max_bytes: Some(reader.number(&registry::GATEWAY_MAX_BYTES)).filter(|most| *most > 0),
        gc_grace_ms: narrow::<i64>(reader.number(&registry::GC_GRACE_SECONDS)) * 1000,
        deletion_grace_ms: narrow::<i64>(reader.number(&registry::DELETION_GRACE_HOURS)) * 60 * 60 * 1000,
        retention: Arc::new(retention(reader)),
        retention_grace_ms: narrow::<i64>(reader.number(&registry::RETENTION_GRACE_HOURS)) * 60 * 60 * 1000,
        caps: Caps::configured(|name| {
            let variable = caps.iter().find(|variable| variable.name == name)?;
            usize::try_from(reader.number(variable)).ok()
        }),
        log: reader.text(&registry::LOG),
        ingest_rate_per_minute: narrow(reader.number(&registry::INGEST_RATE)),
        given: reader.given(&registry::variables()),
        warnings: Vec::new(),
    };
    refuse_what_cannot_work(reader, &config);
    config.warnings = warnings(reader, &config);
    // Said among the warnings: what others can reach is always limited.
    config.rate_limits |= !config.is_bound_to_loopback();
    if config.demo {
        // Their variables are still checked, so that leaving demo mode brings no surprise.
        config.oauth = OauthConfig::default();
        config.mail = None;
    }
    config
}

/// Reads what is set of retention; what cannot be read is refused.
fn retention(reader: &Reader) -> Overrides {
    let mut set = Overrides::default();
    let Some(text) = reader.optional_text(&registry::RETENTION) else { return set };
    match serde_json::from_str(&text) {
        Ok(policy) => match Edit::read(&policy, Level::Instance) {
            Ok(edit) if edit.is_empty() => reader.refuse(&registry::RETENTION, "names no key of a policy"),
            Ok(edit) => drop(set.apply(&edit)),
            Err(error) => reader.refuse(&registry::RETENTION, format!("cannot be used: {error}")),
        },
        Err(error) => reader.refuse(&registry::RETENTION, format!("must be a JSON object: {error}")),
    }
    set
}

/// Fits a number into the type of its field; the registry's bounds say it fits.
fn narrow<T: TryFrom<u64> + Default>(number: u64) -> T {
    T::try_from(number).unwrap_or_default()
}

fn refuse_what_cannot_work(reader: &Reader, config: &Config) {
    // A secret that was refused has been told of already.
    let is_missing = config.auth_secrets.is_empty() && !reader.is_set(registry::AUTH_SECRET.name);
    if config.auth_enabled && is_missing {
        reader.refuse(
            &registry::AUTH_SECRET,
            "is required when SERVICE_AUTH_ENABLED is true: it seals the sessions; 32 random bytes in hex \
             (`openssl rand -hex 32`) will do",
        );
    }
    if config.site_url.is_some() && config.site_url == config.sandbox_origin {
        reader.refuse(
            &registry::SANDBOX_ORIGIN,
            "must differ from SERVICE_SITE_URL: it keeps untrusted content away from it",
        );
    }
    // Uploads are streamed to the object store and never held.
    let held = [
        (&registry::MAX_SUBMIT_BYTES, config.max_submit_bytes),
        (&registry::MAX_EVENTS_BYTES, config.max_events_bytes),
    ];
    for (variable, bytes) in held.into_iter().filter(|(_, bytes)| *bytes > config.body_memory_bytes) {
        reader.refuse(
            variable,
            format!(
                "({bytes}) must not be larger than {} ({}): a body that can never be admitted would be refused for ever",
                registry::BODY_MEMORY_BYTES.name,
                config.body_memory_bytes
            ),
        );
    }
    if config.platform != Platform::Lambda {
        return;
    }
    if config.database_url.starts_with("sqlite:") {
        reader.refuse(
            &registry::DATABASE_URL,
            "must name a PostgreSQL server (postgres://…) when running as a function: instances share \
             nothing and lose their disk, so SQLite would lose results",
        );
    }
    if config.storage_url.starts_with("file:") {
        reader.refuse(
            &registry::STORAGE_URL,
            "must name a bucket (s3://…, gs://…, az://…) when running as a function: instances lose their \
             disk, so files would be lost",
        );
    }
}

fn warnings(reader: &Reader, config: &Config) -> Vec<String> {
    const COMFORTABLE_SECRET_BYTES: usize = 32;
    let mut warnings = Vec::new();
    let known: Vec<&str> = registry::variables().into_iter().map(|variable| variable.name).collect();
    for name in reader.names().filter(|name| name.starts_with("SERVICE_") && !known.contains(name)) {
        warnings.push(match registry::nearest(name) {
            Some(nearest) => {
                format!("{name} is not a setting of this version; did you mean {nearest}?")
            }
            None => format!("{name} is not a setting of this version"),
        });
    }
    if !config.auth_enabled && config.platform == Platform::Server && !config.is_bound_to_loopback() {
        warnings.push(format!(
            "authentication is off and {} is reachable from the network: everyone who reaches it is an administrator",
            config.host
        ));
    }
    if config.mcp_allows_any_origin && !config.auth_enabled {
        warnings.push("SERVICE_MCP_ALLOWED_ORIGINS=* is ignored: callers do not sign in".to_owned());
    }
    warnings.extend(config.oauth.warnings());
    if config.mail.as_ref().is_some_and(|mail| mail.is_password_exposed) {
        warnings.push(
            "SERVICE_SMTP_URL sends its password unencrypted: use smtps://, or ?tls=required".to_owned(),
        );
    }
    if let Some(site) = &config.site_url
        && site.scheme() == Scheme::Http
        && !site.is_loopback()
    {
        warnings.push(format!("SERVICE_SITE_URL ({site}) is not https"));
    }
    if let (Some(site), Some(sandbox)) = (&config.site_url, &config.sandbox_origin)
        && site.host() == sandbox.host()
    {
        warnings.push(
            "SERVICE_SANDBOX_ORIGIN has the host of SERVICE_SITE_URL: a separate host name isolates better"
                .to_owned(),
        );
    }
    if config.auth_secrets.iter().any(|secret| secret.as_ref().len() < COMFORTABLE_SECRET_BYTES) {
        warnings.push("SERVICE_AUTH_SECRET is shorter than 32 bytes".to_owned());
    }
    if config.secret_keys.iter().any(|secret| secret.as_ref().len() < COMFORTABLE_SECRET_BYTES) {
        warnings.push("SERVICE_SECRET_KEY is shorter than 32 bytes".to_owned());
    }
    if config.secret_keys.iter().any(|secret| config.auth_secrets.contains(secret)) {
        warnings.push(
            "SERVICE_SECRET_KEY is the same as SERVICE_AUTH_SECRET: whoever learns one knows the other"
                .to_owned(),
        );
    }
    if config.auth_enabled && config.secret_keys.is_empty() {
        warnings.push("SERVICE_SECRET_KEY is not set: no secrets can be kept in the database".to_owned());
    }
    if !config.rate_limits && !config.is_bound_to_loopback() {
        warnings.push(format!(
            "SERVICE_RATE_LIMITS=off is ignored: {} is reachable from the network",
            config.host
        ));
    }
    warnings
}

/// Fewest different characters of a secret: random ones of any alphabet have more.
const LEAST_DIFFERENT_CHARS: usize = 5;

/// Words and commands that stand in examples, and texts that repeat a few
/// characters.
fn is_guessable(secret: &str) -> bool {
    const WELL_KNOWN: &[&str] = &[
        "changeme",
        "change-me",
        "change_me",
        "secret",
        "password",
        "example",
        "default",
        "your",
        "here",
        "goes",
        "replace",
        "insert",
        "key",
        "0123456789",
        "1234567890",
        "abcdef",
        "-",
        "_",
    ];
    let lower = secret.to_ascii_lowercase();
    let different: std::collections::BTreeSet<char> = secret.chars().collect();
    // A command that a file of settings holds instead of what it prints, or the place of a secret.
    let is_placeholder = ["$(", "${", "`", "<", ">"].iter().any(|sign| secret.contains(sign));
    different.len() < LEAST_DIFFERENT_CHARS
        || is_placeholder
        || WELL_KNOWN.iter().fold(lower, |rest, word| rest.replace(word, "")).len() < 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
        Config::from_env(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    fn refused(pairs: &[(&str, &str)]) -> String {
        read(pairs).unwrap_err().to_string()
    }

    #[test]
    fn without_any_variable_everything_has_a_default() {
        let config = read(&[]).unwrap();
        assert_eq!(config.port, 3000);
        assert!(config.is_bound_to_loopback());
        assert_eq!(config.database_url, "sqlite://.data/callboard.db");
        assert_eq!(config.storage_url, "file://.data/objects");
        assert_eq!(config.max_submit_bytes, 134_217_728);
        assert_eq!(config.warnings, Vec::<String>::new());
    }

    #[test]
    fn errors_name_the_variable_what_came_and_what_is_accepted() {
        let text = refused(&[("SERVICE_PORT", "abc"), ("SERVICE_SITE_URL", "tests.example.org/x")]);
        assert_eq!(
            text,
            "SERVICE_PORT must be a whole number from 0 to 65535, got \"abc\"\n\
             SERVICE_SITE_URL must be an origin such as `https://tests.example.org`, without a path, got \
             \"tests.example.org/x\""
        );
    }

    #[test]
    fn secrets_are_never_repeated() {
        for secret in [
            "tooSmall1",
            "changemechangeme",
            "your-secret-here-your-secret",
            "0123456789abcdef0123456789abcdef",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "abababababababababababababababab",
            "$(openssl rand -hex 32)",
            "<openssl rand -hex 32>",
        ] {
            let text = refused(&[("SERVICE_AUTH_SECRET", secret)]);
            assert!(!text.contains(secret), "{text}");
        }
        let config =
            read(&[("SERVICE_AUTH_SECRET", "f1d2d2f924e986ac86fdf7b36c94bcdf32beec15,9c1185a5c5e9fc54")])
                .unwrap();
        assert_eq!(config.auth_secrets.len(), 2);
        assert!(!format!("{config:?}").contains("f1d2d2"));
    }

    #[test]
    fn a_refused_secret_says_why_and_is_not_called_missing() {
        let auth = ("SERVICE_AUTH_ENABLED", "true");
        let weak = refused(&[auth, ("SERVICE_AUTH_SECRET", "changemechangeme")]);
        assert!(weak.contains("SERVICE_AUTH_SECRET holds a secret that can be guessed"), "{weak}");
        let short = refused(&[auth, ("SERVICE_AUTH_SECRET", "f1d2d2f924")]);
        assert!(
            short.contains("SERVICE_AUTH_SECRET holds a secret that is shorter than 16 bytes"),
            "{short}"
        );
        assert!(!weak.contains("required") && !short.contains("required"), "{weak} {short}");
    }

    #[test]
    fn body_limits_above_the_memory_for_bodies_are_refused_with_both_settings() {
        let small = ("SERVICE_BODY_MEMORY_BYTES", "67108864");
        let text = refused(&[small]);
        assert!(text.starts_with("SERVICE_INGEST_MAX_SUBMIT_BYTES (134217728) must not be larger"), "{text}");
        assert!(text.contains("SERVICE_BODY_MEMORY_BYTES (67108864)"), "{text}");
        let submit = ("SERVICE_INGEST_MAX_SUBMIT_BYTES", "67108864");
        assert!(read(&[small, submit]).is_ok());
        let events = refused(&[small, submit, ("SERVICE_INGEST_MAX_EVENTS_BYTES", "67108865")]);
        assert!(events.starts_with("SERVICE_INGEST_MAX_EVENTS_BYTES (67108865)"), "{events}");
    }

    #[test]
    fn secrets_of_a_store_are_settings_like_others() {
        let store = r#"{"SERVICE_DATABASE_URL":"postgres://db/x","SERVICE_PORT":4000,"SERVICE_DEMO":true,"SERVICE_SMTP_URL":""}"#;
        let config = read(&[("SERVICE_SECRETS", store), ("SERVICE_PORT", "5000")]).unwrap();
        assert_eq!((config.database_url.as_str(), config.port, config.demo), ("postgres://db/x", 5000, true));
        assert!(!config.given.values().any(|shown| shown.contains("postgres:")), "{:?}", config.given);
        for (store, expected) in [
            ("hunter2hunter2", "must be a JSON object"),
            (r#"{"AWS_SECRET_ACCESS_KEY":"hunter2hunter2"}"#, "holds \"AWS_SECRET_ACCESS_KEY\""),
            (r#"{"SERVICE_LOG":["hunter2hunter2"]}"#, "SERVICE_LOG"),
        ] {
            let text = refused(&[("SERVICE_SECRETS", store)]);
            assert!(text.contains(expected) && !text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn a_gateway_limits_requests_and_answers() {
        let lambda = ("AWS_LAMBDA_FUNCTION_NAME", "submit");
        let function =
            [lambda, ("SERVICE_DATABASE_URL", "postgres://db/x"), ("SERVICE_STORAGE_URL", "s3://b")];
        let config = read(&function).unwrap();
        assert_eq!((config.max_request_bytes(), config.max_answer_bytes()), (4_194_304, Some(4_404_019)));
        let behind = function.into_iter().chain([("SERVICE_GATEWAY_MAX_BYTES", "1048576")]);
        let config = read(&behind.collect::<Vec<_>>()).unwrap();
        assert_eq!((config.max_request_bytes(), config.max_answer_bytes()), (699_050, Some(734_003)));
        let config = read(&[]).unwrap();
        assert_eq!((config.max_request_bytes(), config.max_answer_bytes()), (524_288_000, None));
        let config = read(&[("SERVICE_GATEWAY_MAX_BYTES", "33554432")]).unwrap();
        assert_eq!((config.max_request_bytes(), config.max_answer_bytes()), (33_554_432, Some(33_554_432)));
    }

    #[test]
    fn authentication_takes_a_secret() {
        for value in ["true", " TRUE "] {
            assert!(refused(&[("SERVICE_AUTH_ENABLED", value)]).contains("SERVICE_AUTH_SECRET is required"));
            let secret = ("SERVICE_AUTH_SECRET", "f1d2d2f924e986ac86fdf7b36c94bcdf32beec15");
            assert!(read(&[("SERVICE_AUTH_ENABLED", value), secret]).unwrap().auth_enabled);
        }
        assert!(refused(&[("SERVICE_AUTH_ENABLED", "yes")]).contains("got \"yes\""));
        for value in ["", "false", "False"] {
            assert!(read(&[("SERVICE_AUTH_ENABLED", value)]).is_ok());
        }
    }

    #[test]
    fn a_demo_sends_no_mail_and_has_no_providers() {
        let configured = [
            ("SERVICE_SMTP_URL", "smtp://mail.example:25"),
            ("SERVICE_MAIL_FROM", "tests@example.org"),
            ("SERVICE_OAUTH_CODEHOST_CLIENT_ID", "id"),
            ("SERVICE_OAUTH_CODEHOST_CLIENT_SECRET", "f1d2d2f924e986ac86fdf7b36c94bcdf32beec15"),
        ];
        let config = read(&configured).unwrap();
        assert!(config.mail.is_some() && config.oauth.configured().count() == 1);
        let demo = configured.into_iter().chain([("SERVICE_DEMO", "true")]).collect::<Vec<_>>();
        let config = read(&demo).unwrap();
        assert!(config.demo && config.mail.is_none() && config.oauth.configured().count() == 0);
    }

    #[test]
    fn a_function_refuses_what_its_disk_would_lose() {
        let lambda = ("AWS_LAMBDA_FUNCTION_NAME", "submit");
        let text = refused(&[lambda]);
        assert!(text.contains("SERVICE_DATABASE_URL must name a PostgreSQL server"), "{text}");
        assert!(text.contains("SERVICE_STORAGE_URL must name a bucket"), "{text}");
        let ready =
            read(&[lambda, ("SERVICE_DATABASE_URL", "postgres://db/x"), ("SERVICE_STORAGE_URL", "s3://b")])
                .unwrap();
        assert!(!ready.is_bound_to_loopback());
    }

    #[test]
    fn unknown_names_are_reported_with_the_nearest_known_one() {
        let config = read(&[("SERVICE_PROT", "1"), ("SERVICE_XYZZY_Q", "1"), ("PATH", "/bin")]).unwrap();
        assert_eq!(
            config.warnings,
            [
                "SERVICE_PROT is not a setting of this version; did you mean SERVICE_PORT?",
                "SERVICE_XYZZY_Q is not a setting of this version",
            ]
        );
    }

    #[test]
    fn the_platform_port_counts_when_ours_is_not_set() {
        assert_eq!(read(&[("PORT", "8080")]).unwrap().port, 8080);
        assert_eq!(read(&[("PORT", "8080"), ("SERVICE_PORT", "9090")]).unwrap().port, 9090);
    }

    #[test]
    fn every_variable_of_the_registry_is_read() {
        let reader = Reader::new([]);
        super::read(&reader);
        let known: Vec<&str> = registry::variables().into_iter().map(|variable| variable.name).collect();
        assert!(known.iter().all(|name| reader.names_read().contains(name)), "{known:?}");
        assert_eq!(reader.names_read().len(), known.len());
    }
}
