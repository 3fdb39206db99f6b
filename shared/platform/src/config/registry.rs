//! The registry of configuration: every variable with its type, default,
//! bounds and a sentence. `docs/reference/configuration.md` is printed from it, and a
//! variable that nothing reads fails a test.

use std::fmt::Write as _;

use callboard_auth::password;
use callboard_domain::ingest::Caps;
use callboard_store::memory_budget;

/// One variable.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Its name in the environment.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// What holds when it is not set.
    pub default: Value,
    /// What it does, in a sentence.
    pub meaning: &'static str,
}

/// What a variable accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A whole number within bounds.
    Number {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// `true` or `false`.
    Switch,
    /// One origin.
    Origin,
    /// Origins, separated by commas.
    Origins,
    /// The same, or `*` for all of them.
    OriginsOrAny,
    /// Host names, separated by commas.
    Hosts,
    /// Secrets of at least 16 bytes, separated by commas; never shown.
    Secrets,
    /// An address that may hold a password; never shown.
    SecretAddress,
    /// Whether, how many, or which proxies stand in front.
    Proxies,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Words, separated by commas.
    Words,
    /// A secret of any length; never shown.
    Secret,
    /// Where another service answers: https, or http on this machine.
    Address,
}

/// A default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Not set.
    Unset,
    /// This text.
    Text(&'static str),
    /// This number.
    Number(u64),
}

impl Kind {
    /// Whether a value of this kind must stay out of messages.
    #[must_use]
    pub const fn is_secret(self) -> bool {
        matches!(self, Self::Secrets | Self::SecretAddress | Self::Secret)
    }

    /// What is accepted, as errors and the table say it.
    #[must_use]
    pub fn accepted(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Number { min, max } => format!("a whole number from {min} to {max}"),
            Self::Switch => "`true` or `false`".to_owned(),
            Self::Origin => "an origin such as `https://tests.example.org`, without a path".to_owned(),
            Self::Origins => "origins such as `https://tests.example.org`, separated by commas".to_owned(),
            Self::OriginsOrAny => {
                "origins such as `https://tests.example.org`, separated by commas, or `*`".to_owned()
            }
            Self::Hosts => "host names without scheme and port, separated by commas".to_owned(),
            Self::Secrets => "a random text of at least 16 bytes (several: `new,old`)".to_owned(),
            Self::SecretAddress => "an address".to_owned(),
            Self::Words => "words, separated by commas".to_owned(),
            Self::Secret => "a secret".to_owned(),
            Self::Address => "an https address (http on this machine only)".to_owned(),
            Self::OneOf(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                words.join(" or ")
            }
            Self::Proxies => {
                "`true`, `false`, the number of proxies in front, or their networks (`10.0.0.0/8,192.0.2.7`)"
                    .to_owned()
            }
        }
    }
}

const fn text(name: &'static str, default: Value, meaning: &'static str) -> Variable {
    Variable { name, kind: Kind::Text, default, meaning }
}

const fn unset(name: &'static str, kind: Kind, meaning: &'static str) -> Variable {
    Variable { name, kind, default: Value::Unset, meaning }
}

const fn number(name: &'static str, default: u64, min: u64, max: u64, meaning: &'static str) -> Variable {
    Variable { name, kind: Kind::Number { min, max }, default: Value::Number(default), meaning }
}

const MIB: u64 = 1024 * 1024;

/// `SERVICE_HOST`
pub const HOST: Variable = text(
    "SERVICE_HOST",
    Value::Text("127.0.0.1"),
    "Address to listen on. The default is reachable from this machine only; `0.0.0.0` opens it to the network.",
);
/// `SERVICE_PORT`
pub const PORT: Variable = number(
    "SERVICE_PORT",
    3000,
    0,
    65_535,
    "Port to listen on (`PORT` is read when this is not set; 0 takes a free one).",
);
/// `PORT`, the name hosting platforms use.
pub(super) const PORT_ALIAS: &str = "PORT";
/// `SERVICE_DATA_DIR`
pub const DATA_DIR: Variable = text(
    "SERVICE_DATA_DIR",
    Value::Text(".data"),
    "Folder of the embedded database and the local object store.",
);
/// `SERVICE_SECRETS`
pub const SECRETS: Variable = unset(
    "SERVICE_SECRETS",
    Kind::Secret,
    "Further settings as one JSON object, such as a secret store hands over: `{\"SERVICE_DATABASE_URL\":\"postgres://…\"}`. \
     A variable that is set by itself wins.",
);
/// `SERVICE_DATABASE_URL`
pub const DATABASE_URL: Variable = unset(
    "SERVICE_DATABASE_URL",
    Kind::SecretAddress,
    "Database: `postgres://…` or `sqlite://<path>`. Not set: `callboard.db` in the data folder.",
);
/// `SERVICE_DATABASE_CONNECTIONS`
pub const DATABASE_CONNECTIONS: Variable =
    number("SERVICE_DATABASE_CONNECTIONS", 8, 1, 200, "Most database connections one process opens.");
/// `SERVICE_STORAGE_URL`
pub const STORAGE_URL: Variable = unset(
    "SERVICE_STORAGE_URL",
    Kind::SecretAddress,
    "Object store: `file://<folder>`, `s3://bucket/prefix`, `gs://…` or `az://…`, with the provider's usual variables. \
     Not set: `objects` in the data folder.",
);
/// `SERVICE_S3_ENDPOINT`
pub const S3_ENDPOINT: Variable = unset(
    "SERVICE_S3_ENDPOINT",
    Kind::Text,
    "Address of an S3-compatible service that is not the provider's own.",
);
/// `SERVICE_S3_PUBLIC_ENDPOINT`
pub const S3_PUBLIC_ENDPOINT: Variable = unset(
    "SERVICE_S3_PUBLIC_ENDPOINT",
    Kind::Text,
    "Address at which browsers reach that service, when it is another one.",
);
/// `SERVICE_UPLOADS_DIRECT`
pub const UPLOADS_DIRECT: Variable = Variable {
    name: "SERVICE_UPLOADS_DIRECT",
    kind: Kind::Switch,
    default: Value::Text("true"),
    meaning: "Whether reporters send planned files to the bucket itself, where the object store signs addresses (`s3://`). \
              `false` sends them through the service, for buckets that CI cannot reach.",
};
/// `SERVICE_SITE_URL`
pub const SITE_URL: Variable = unset(
    "SERVICE_SITE_URL",
    Kind::Origin,
    "Public address of the service. Links use it; not set, they use the address of the request.",
);
/// `SERVICE_SANDBOX_ORIGIN`
pub const SANDBOX_ORIGIN: Variable = unset(
    "SERVICE_SANDBOX_ORIGIN",
    Kind::Origin,
    "Second origin of this service on which reports and other untrusted content are opened.",
);
/// `SERVICE_TRACE_VIEWER_ORIGINS`
pub const TRACE_VIEWER_ORIGINS: Variable = unset(
    "SERVICE_TRACE_VIEWER_ORIGINS",
    Kind::Origins,
    "Origins whose pages may fetch trace archives through their links, such as `https://trace.playwright.dev`. The first \
     one opens traces where the viewer of this service cannot; its server sees the link, which opens one trace for an hour.",
);
/// `SERVICE_ALLOWED_HOSTS`
pub const ALLOWED_HOSTS: Variable =
    unset("SERVICE_ALLOWED_HOSTS", Kind::Hosts, "Further host names the service answers to.");
/// `SERVICE_ALLOWED_ORIGINS`
pub const ALLOWED_ORIGINS: Variable =
    unset("SERVICE_ALLOWED_ORIGINS", Kind::Origins, "Further origins whose pages may send changes.");
/// `SERVICE_MCP_ALLOWED_ORIGINS`
pub const MCP_ALLOWED_ORIGINS: Variable = unset(
    "SERVICE_MCP_ALLOWED_ORIGINS",
    Kind::OriginsOrAny,
    "Further origins whose pages may call the MCP endpoint; `*` counts only where callers have to sign in.",
);
/// `SERVICE_MCP_STRUCTURED`
pub const MCP_STRUCTURED: Variable = Variable {
    name: "SERVICE_MCP_STRUCTURED",
    kind: Kind::Switch,
    default: Value::Text("false"),
    meaning: "Whether tools of the MCP endpoint also answer as structured content, with schemas in their list. \
              A client asks for it alone with `?structured=1`.",
};
/// `SERVICE_TRUST_PROXY`
pub const TRUST_PROXY: Variable = Variable {
    name: "SERVICE_TRUST_PROXY",
    kind: Kind::Proxies,
    default: Value::Text("false"),
    meaning: "Set behind a reverse proxy: its `X-Forwarded-For`, `X-Forwarded-Host` and `X-Forwarded-Proto` are \
              believed. With networks, only when the connection comes from one of them.",
};
/// `SERVICE_AUTH_ENABLED`
pub const AUTH_ENABLED: Variable = Variable {
    name: "SERVICE_AUTH_ENABLED",
    kind: Kind::Switch,
    default: Value::Text("false"),
    meaning: "Whether callers have to sign in. Off: everyone who reaches the service may do everything.",
};
/// `SERVICE_DEMO`
pub const DEMO: Variable = Variable {
    name: "SERVICE_DEMO",
    kind: Kind::Switch,
    default: Value::Text("false"),
    meaning: "Serves what is stored as a read-only demo: every write is refused with 403 `demo_mode`, nothing is \
              deleted by age, no mail is sent and nobody signs in at a provider.",
};
/// `SERVICE_AUTH_SECRET`
pub const AUTH_SECRET: Variable = unset(
    "SERVICE_AUTH_SECRET",
    Kind::Secrets,
    "Secret that seals sessions and file links; required when callers have to sign in. Not set: file links use one \
     that is made and kept in the database.",
);
/// `SERVICE_COOKIE_SECURE`
pub const COOKIE_SECURE: Variable = Variable {
    name: "SERVICE_COOKIE_SECURE",
    kind: Kind::OneOf(&["auto", "always", "never"]),
    default: Value::Text("auto"),
    meaning: "Whether cookies are marked for safe connections only; `auto` follows the connection.",
};
/// `SERVICE_SECRET_KEY`
pub const SECRET_KEY: Variable = unset(
    "SERVICE_SECRET_KEY",
    Kind::Secrets,
    "Key of the secrets stored in the database. Not set: none can be stored.",
);
/// `SERVICE_PASSWORD_MIN_LENGTH`
pub const PASSWORD_MIN_LENGTH: Variable = number(
    "SERVICE_PASSWORD_MIN_LENGTH",
    password::MIN_CHARS as u64,
    password::MIN_CHARS as u64,
    128,
    "Fewest characters of a new password; 15 is a good choice.",
);
/// `SERVICE_PASSWORD_BLOCKLIST`
pub const PASSWORD_BLOCKLIST: Variable = Variable {
    name: "SERVICE_PASSWORD_BLOCKLIST",
    kind: Kind::OneOf(&["off", "warn", "enforce"]),
    default: Value::Text("warn"),
    meaning: "What happens to new passwords that are in lists of common ones.",
};
/// `SERVICE_RATE_LIMITS`
pub const RATE_LIMITS: Variable = Variable {
    name: "SERVICE_RATE_LIMITS",
    kind: Kind::OneOf(&["on", "off"]),
    default: Value::Text("on"),
    meaning: "Limits on sign-ins and other calls. `off` counts only where no other machine reaches the service.",
};
/// `SERVICE_INGEST_RATE_PER_MINUTE`
pub const INGEST_RATE: Variable = number(
    "SERVICE_INGEST_RATE_PER_MINUTE",
    0,
    0,
    1_000_000,
    "Most calls that send results, for each credential and minute; 0 does not count them.",
);
/// `SERVICE_INGEST_MAX_SUBMIT_BYTES`
pub const MAX_SUBMIT_BYTES: Variable = number(
    "SERVICE_INGEST_MAX_SUBMIT_BYTES",
    128 * MIB,
    MIB,
    1024 * MIB,
    "Largest body of `POST /api/test-runs/submit`, inflated.",
);
/// `SERVICE_UPLOAD_MAX_BYTES`
pub const MAX_UPLOAD_BYTES: Variable = number(
    "SERVICE_UPLOAD_MAX_BYTES",
    524_288_000,
    MIB,
    5 * 1024 * MIB,
    "Largest body of `POST /api/test-runs/upload`.",
);
/// `SERVICE_INGEST_MAX_EVENTS_BYTES`
pub const MAX_EVENTS_BYTES: Variable = number(
    "SERVICE_INGEST_MAX_EVENTS_BYTES",
    64 * MIB,
    MIB,
    1024 * MIB,
    "Largest body of `POST /api/test-runs/{id}/events`, inflated.",
);
/// `SERVICE_BODY_MEMORY_BYTES`
pub const BODY_MEMORY_BYTES: Variable = number(
    "SERVICE_BODY_MEMORY_BYTES",
    memory_budget::DEFAULT_MEMORY_BYTES,
    memory_budget::MIN_MEMORY_BYTES,
    64 * 1024 * MIB,
    "Memory for the bodies of all requests together; small bodies and applying pending results of live runs have a quarter of it each on top. The bodies of one \
     account, or of one address without accounts, hold at most half of it (48 MiB if that is more), those of an address that is not signed in a quarter. JSON above 8 MiB goes to temporary files (in `TMPDIR`) of at most four \
     times this size. A request that finds no room within 10 s is answered 503 with `Retry-After`.",
);
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// `SERVICE_RUN_STALE_MS`
pub const RUN_STALE_MS: Variable = number(
    "SERVICE_RUN_STALE_MS",
    120_000,
    30_000,
    DAY_MS,
    "Silence after which a reporter counts as lost, ms. Reporters send a heartbeat every 15 s.",
);
/// `SERVICE_SHARD_WAIT_MS`
pub const SHARD_WAIT_MS: Variable = number(
    "SERVICE_SHARD_WAIT_MS",
    900_000,
    30_000,
    DAY_MS,
    "Silence after which a run ends without the shards that never began, ms.",
);
/// `SERVICE_SETUP_STALE_MS`
pub const SETUP_STALE_MS: Variable = number(
    "SERVICE_SETUP_STALE_MS",
    1_800_000,
    60_000,
    DAY_MS,
    "How long a global set-up may take before its run counts as lost, ms.",
);
/// `SERVICE_FINALIZING_STALE_MS`
pub const FINALIZING_STALE_MS: Variable = number(
    "SERVICE_FINALIZING_STALE_MS",
    600_000,
    30_000,
    DAY_MS,
    "How long a run waits for the files it announced, ms.",
);
/// `SERVICE_SHARD_JOIN_MS`
pub const SHARD_JOIN_MS: Variable = number(
    "SERVICE_SHARD_JOIN_MS",
    21_600_000,
    60_000,
    7 * DAY_MS,
    "How long after its last heartbeat a late shard still joins a run, ms.",
);
/// `SERVICE_SSE_MAX_SECONDS`
pub const SSE_MAX_SECONDS: Variable = number(
    "SERVICE_SSE_MAX_SECONDS",
    600,
    1,
    3_600,
    "Seconds after which a live stream ends; its client continues where it was. Deployed as functions the default is 50.",
);
/// `SERVICE_SSE_MAX_PER_IDENTITY`
pub const SSE_MAX_PER_IDENTITY: Variable = number(
    "SERVICE_SSE_MAX_PER_IDENTITY",
    20,
    1,
    10_000,
    "Most live streams one process serves to one account or API key, or to one client address where callers do not sign in. \
     The pages of a browser share one for each run.",
);
/// `SERVICE_SSE_MAX_STREAMS`
pub const SSE_MAX_STREAMS: Variable =
    number("SERVICE_SSE_MAX_STREAMS", 500, 1, 100_000, "Most live streams one process serves.");
/// `SERVICE_EGRESS_ALLOW`
pub const EGRESS_ALLOW: Variable = unset(
    "SERVICE_EGRESS_ALLOW",
    Kind::Words,
    "Targets inside of your network that addresses in links may lead to: `host`, `host:port` or networks such as `10.1.0.0/16`.",
);
/// `SERVICE_EXPORT_MAX_STREAM_BYTES`
pub const EXPORT_MAX_STREAM_BYTES: Variable = number(
    "SERVICE_EXPORT_MAX_STREAM_BYTES",
    4_000_000,
    65_536,
    20_000_000,
    "Most bytes of an export that a function answers directly; a larger one is created by `POST /api/exports`.",
);
/// `SERVICE_GATEWAY_MAX_BYTES`
pub const GATEWAY_MAX_BYTES: Variable = unset(
    "SERVICE_GATEWAY_MAX_BYTES",
    Kind::Number { min: MIB / 2, max: 5 * 1024 * MIB },
    "Most bytes of a request or an answer that what stands in front lets through. What is larger goes to the bucket and comes \
     from it. Not set: no limit; deployed as functions 6 MiB, which is encoded bytes there (behind a load balancer set 1048576).",
);
/// `SERVICE_GC_GRACE_SECONDS`
pub const GC_GRACE_SECONDS: Variable = number(
    "SERVICE_GC_GRACE_SECONDS",
    900,
    0,
    30 * 24 * 60 * 60,
    "How long a stored file that nothing refers to any more is kept before it is deleted.",
);
/// `SERVICE_DELETION_GRACE_HOURS`
pub const DELETION_GRACE_HOURS: Variable = number(
    "SERVICE_DELETION_GRACE_HOURS",
    24,
    0,
    30 * 24,
    "How long an administrator can restore runs and projects that a person deleted. 0 deletes them immediately.",
);
/// `SERVICE_RETENTION`
pub const RETENTION: Variable = unset(
    "SERVICE_RETENTION",
    Kind::Text,
    "How long data is kept, as JSON: `{\"runs\":{\"days\":365}}` or `{\"preset\":\"lean\"}`. Not set: forever. The keys are \
     those of `/api/settings/retention`; what is set here cannot be changed there.",
);
/// `SERVICE_RETENTION_GRACE_HOURS`
pub const RETENTION_GRACE_HOURS: Variable = number(
    "SERVICE_RETENTION_GRACE_HOURS",
    24,
    0,
    30 * 24,
    "Hours until a change of retention that keeps less comes into force, and during which it can be undone; \
     0: immediately.",
);
/// `SERVICE_LOG`
pub const LOG: Variable = text(
    "SERVICE_LOG",
    Value::Text("info"),
    "What is logged: a level, or levels by module such as `info,callboard_store=debug`.",
);

const OWN: &[Variable] = &[
    HOST,
    PORT,
    DATA_DIR,
    SECRETS,
    DATABASE_URL,
    DATABASE_CONNECTIONS,
    STORAGE_URL,
    S3_ENDPOINT,
    S3_PUBLIC_ENDPOINT,
    UPLOADS_DIRECT,
    SITE_URL,
    SANDBOX_ORIGIN,
    TRACE_VIEWER_ORIGINS,
    ALLOWED_HOSTS,
    ALLOWED_ORIGINS,
    MCP_ALLOWED_ORIGINS,
    MCP_STRUCTURED,
    TRUST_PROXY,
    DEMO,
    AUTH_ENABLED,
    AUTH_SECRET,
    COOKIE_SECURE,
    SECRET_KEY,
    PASSWORD_MIN_LENGTH,
    PASSWORD_BLOCKLIST,
    RATE_LIMITS,
    INGEST_RATE,
    MAX_SUBMIT_BYTES,
    MAX_UPLOAD_BYTES,
    GC_GRACE_SECONDS,
    DELETION_GRACE_HOURS,
    RETENTION,
    RETENTION_GRACE_HOURS,
    MAX_EVENTS_BYTES,
    BODY_MEMORY_BYTES,
    RUN_STALE_MS,
    SHARD_WAIT_MS,
    SETUP_STALE_MS,
    FINALIZING_STALE_MS,
    SHARD_JOIN_MS,
    SSE_MAX_SECONDS,
    SSE_MAX_PER_IDENTITY,
    SSE_MAX_STREAMS,
    EGRESS_ALLOW,
    EXPORT_MAX_STREAM_BYTES,
    GATEWAY_MAX_BYTES,
    LOG,
];

/// Every variable, in the order of the table. The caps on evidence are
/// declared beside the code that cuts.
#[must_use]
pub fn variables() -> Vec<Variable> {
    let caps = Caps::SETTINGS
        .into_iter()
        .map(|cap| number(cap.variable, cap.default as u64, cap.min as u64, cap.max as u64, cap.meaning));
    OWN.iter().copied().chain(super::mail::variables()).chain(super::oauth::variables()).chain(caps).collect()
}

/// The variable whose name is most like `name`, when one is like it at all.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    const ALIKE: f64 = 0.85;
    const PREFIX: &str = "SERVICE_";
    let own = name.strip_prefix(PREFIX)?;
    variables()
        .into_iter()
        .filter_map(|variable| {
            Some((strsim::jaro_winkler(own, variable.name.strip_prefix(PREFIX)?), variable.name))
        })
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| name)
}

/// The table of `docs/reference/configuration.md`, in Markdown.
#[must_use]
pub fn markdown_table() -> String {
    let mut table = String::from("| Variable | Default | Accepted | Meaning |\n|---|---|---|---|\n");
    for variable in variables() {
        let default = match variable.default {
            Value::Unset => "–".to_owned(),
            Value::Text(text) => format!("`{text}`"),
            Value::Number(number) => format!("`{number}`"),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "| `{}` | {default} | {} | {} |",
            variable.name,
            variable.kind.accepted(),
            variable.meaning
        );
    }
    table
}
