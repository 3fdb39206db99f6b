//! `/settings`: what runs here and how it was configured, read-only. How much
//! there is over all projects, and what the environment says, is for whom all
//! of it is.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_http::{ApiError, AppState};
use callboard_platform::Config;
use callboard_platform::config::Platform;
use callboard_platform::config::registry::{self, Kind, Value, Variable};
use callboard_query::projects;
use callboard_store::Backend;
use callboard_store::projects::InstanceTotals;

use crate::components::{SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::text::grouped;
use crate::visit::{Visit, answer};

/// Variables that belong together: their heading, and what their names begin
/// with behind `SERVICE_`. A name belongs to the first topic that has its
/// beginning; the last one takes all that are left.
const TOPICS: [(&str, &[&str]); 6] = [
    (
        "Addresses and network",
        &[
            "HOST",
            "PORT",
            "SITE_URL",
            "SANDBOX",
            "TRACE_VIEWER",
            "ALLOWED",
            "MCP",
            "TRUST_PROXY",
            "EGRESS",
            "SSE",
        ],
    ),
    ("Sign-in and secrets", &["AUTH", "COOKIE", "SECRET_KEY", "PASSWORD", "OAUTH"]),
    ("Mail", &["SMTP", "MAIL"]),
    ("Storage", &["DATA", "STORAGE", "S3", "RETENTION", "GC"]),
    ("Limits", &["RATE_LIMITS", "INGEST", "UPLOAD", "BODY", "EXPORT"]),
    ("Runs, background work and log", &[""]),
];
/// Units of bytes, the largest first.
const BYTES: [(u64, &str); 7] = [
    (1 << 30, "GiB"),
    (1_000_000_000, "GB"),
    (1 << 20, "MiB"),
    (1_000_000, "MB"),
    (1 << 10, "KiB"),
    (1_000, "kB"),
    (1, "B"),
];
/// Units of milliseconds, the largest first.
const TIMES: [(u64, &str); 5] =
    [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms")];

/// A variable with the value in force.
struct Setting {
    variable: Variable,
    /// As the environment has it.
    value: String,
    /// As people read it.
    shown: String,
    is_default: bool,
}

/// Inputs of `pages/settings.html`.
#[derive(Template)]
#[template(path = "pages/settings.html")]
struct SettingsPage {
    shell: Shell,
    tabs: SettingsTabs,
    build: Option<&'static str>,
    runtime: &'static str,
    database: &'static str,
    storage: &'static str,
    schema_is_current: bool,
    signing_in: &'static str,
    /// None for whom only some of it is.
    totals: Option<InstanceTotals>,
    warnings: Vec<String>,
    /// What the environment says, by topic; empty for whom it is not.
    topics: Vec<(&'static str, Vec<Setting>)>,
}

/// About this instance
pub(crate) async fn instance(State(state): State<AppState>, visit: Visit) -> Result<Response, ApiError> {
    let shell = Shell::new(&visit, Section::Settings, "Settings").await?.under("Home", "/").here("Settings");
    let config = state.config();
    let sees_all = visit.caller.is_administrator() && visit.caller.reaches_everything();
    let totals = if sees_all { Some(projects::instance_totals(&visit.ctx).await?) } else { None };
    answer(&SettingsPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::Instance),
        build: option_env!("CALLBOARD_BUILD_SHA"),
        runtime: match config.platform {
            Platform::Server => "One process",
            Platform::Lambda => "Functions",
        },
        database: match state.store().backend() {
            Backend::Sqlite => "SQLite",
            Backend::Postgres => "PostgreSQL",
        },
        storage: storage_kind(&config.storage_url),
        schema_is_current: state.schema_is_current().await?,
        signing_in: if state.auth_enabled() {
            "Required"
        } else {
            "Off: everyone who can reach this address is an administrator"
        },
        totals,
        warnings: if sees_all { config.warnings.clone() } else { Vec::new() },
        topics: if sees_all { by_topic(in_force(config)) } else { Vec::new() },
        shell,
    })
}

fn storage_kind(url: &str) -> &'static str {
    match url.split(':').next() {
        Some("s3") => "S3 bucket",
        Some("gs") => "Google Cloud Storage bucket",
        Some("az") => "Azure Blob container",
        _ => "Local folder",
    }
}

/// Every variable of the registry with its value. Secrets, and addresses that
/// may hold one, only say whether they are set.
fn in_force(config: &Config) -> Vec<Setting> {
    let setting = |variable: Variable| {
        let default = match variable.default {
            Value::Unset => String::new(),
            Value::Text(text) => text.to_owned(),
            Value::Number(number) => number.to_string(),
        };
        let value = config.given.get(variable.name).cloned().unwrap_or_else(|| default.clone());
        Setting { is_default: value == default, shown: readable(&variable, &value), value, variable }
    };
    registry::variables().into_iter().map(setting).collect()
}

/// The topics in their order, each with its variables in theirs.
fn by_topic(settings: Vec<Setting>) -> Vec<(&'static str, Vec<Setting>)> {
    let mut topics = TOPICS.map(|(heading, _)| (heading, Vec::new()));
    for setting in settings {
        topics[topic_of(setting.variable.name)].1.push(setting);
    }
    topics.into_iter().collect()
}

fn topic_of(name: &str) -> usize {
    let name = name.strip_prefix("SERVICE_").unwrap_or(name);
    let is_of =
        |(_, beginnings): &(_, &[&str])| beginnings.iter().any(|beginning| name.starts_with(beginning));
    TOPICS.iter().position(is_of).unwrap_or(TOPICS.len() - 1)
}

/// A value in the unit that its variable's name says, else as it stands. Zero
/// has no unit: it stands for something of its own, such as no limit.
fn readable(variable: &Variable, value: &str) -> String {
    let (Kind::Number { .. }, Ok(number)) = (variable.kind, value.parse::<u64>()) else {
        return value.to_owned();
    };
    match variable.name.rsplit('_').next() {
        _ if number == 0 => value.to_owned(),
        Some("BYTES") => in_units(number, &BYTES),
        Some("MS") => in_units(number, &TIMES),
        Some("SECONDS") => in_units(number.saturating_mul(1_000), &TIMES),
        Some("CHARS") => format!("{}\u{a0}characters", thousands(number)),
        Some("MINUTE") => format!("{} a minute", thousands(number)),
        _ => value.to_owned(),
    }
}

/// A number in the largest unit that it is a whole number of, so that nothing
/// is rounded: `128 MiB`, `90 s`.
fn in_units(number: u64, units: &[(u64, &'static str)]) -> String {
    let fits = |(size, _): &&(u64, &str)| number.is_multiple_of(*size);
    let (size, unit) = units.iter().find(fits).copied().unwrap_or((1, ""));
    format!("{}\u{a0}{unit}", thousands(number / size))
}

fn thousands(number: u64) -> String {
    grouped(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value that differs from the default.
    fn other(variable: &Variable) -> Option<String> {
        Some(match (variable.kind, variable.default) {
            (Kind::Number { min, .. }, Value::Number(default)) => {
                (if default == min { min + 1 } else { min }).to_string()
            }
            (Kind::Text, _) if variable.name == "SERVICE_LOG" => "debug".to_owned(),
            (Kind::Text, _) if variable.name.starts_with("SERVICE_S3_") => "http://localhost:9000".to_owned(),
            (Kind::Text, _) if variable.name == "SERVICE_RETENTION" => r#"{"runs":{"days":30}}"#.to_owned(),
            (Kind::Text, _) if variable.name == "SERVICE_MAIL_FROM" => "Tests <a@example.org>".to_owned(),
            (Kind::Text, _) => "other".to_owned(),
            (Kind::Origin, _) => {
                format!("https://{}.example.org", variable.name.to_lowercase().replace('_', "-"))
            }
            (Kind::Origins | Kind::OriginsOrAny, _) => "https://a.example.org".to_owned(),
            (Kind::Hosts, _) => "a.example.org".to_owned(),
            (Kind::Secrets, _) => "0123456789abcdef-not-a-known-word".to_owned(),
            (Kind::SecretAddress, _) if variable.name == "SERVICE_DATABASE_URL" => {
                "postgres://u:p4ss@db/x".to_owned()
            }
            (Kind::SecretAddress, _) if variable.name == "SERVICE_SMTP_URL" => {
                "smtps://u:p4ss@mail.example.org".to_owned()
            }
            (Kind::SecretAddress, _) => "s3://bucket".to_owned(),
            (Kind::Proxies, _) => "true".to_owned(),
            (Kind::Switch, Value::Text("true")) => "false".to_owned(),
            (Kind::Switch, _) => "true".to_owned(),
            (Kind::Words, _) => "one, two".to_owned(),
            // Stands for other settings.
            (Kind::Secret, _) if variable.name == "SERVICE_SECRETS" => return None,
            (Kind::Secret, _) => "a-client-secret".to_owned(),
            (Kind::Address, _) => "https://provider.example.org/x".to_owned(),
            // Counts on a loopback bind only, which is not what is set here.
            (Kind::OneOf(_), _) if variable.name == "SERVICE_RATE_LIMITS" => return None,
            (Kind::OneOf(words), default) => {
                let other = words.iter().find(|word| default != Value::Text(word))?;
                (*other).to_owned()
            }
            (Kind::Number { .. }, _) => return None,
        })
    }

    #[test]
    fn every_variable_that_is_set_is_shown_as_set_and_secrets_stay_secret() {
        let settable: Vec<Variable> =
            registry::variables().into_iter().filter(|each| other(each).is_some()).collect();
        let environment = settable.iter().filter_map(|each| Some((each.name.to_owned(), other(each)?)));
        let config = Config::from_env(environment).unwrap();
        let shown = in_force(&config);
        for variable in settable {
            let setting = shown.iter().find(|each| each.variable.name == variable.name).unwrap();
            assert!(!setting.is_default, "{} is shown as {:?}", variable.name, setting.value);
            assert!(!variable.kind.is_secret() || setting.value == "set, not shown", "{}", variable.name);
        }
    }

    #[test]
    fn numbers_are_read_in_their_units_and_nothing_is_rounded() {
        let shown =
            |variable: &Variable, value: &str| readable(variable, value).replace(['\u{a0}', '\u{202f}'], " ");
        for (value, text) in
            [("134217728", "128 MiB"), ("524288000", "500 MiB"), ("4000000", "4 MB"), ("7", "7 B")]
        {
            assert_eq!(shown(&registry::MAX_SUBMIT_BYTES, value), text);
        }
        for (value, text) in
            [("120000", "2 min"), ("21600000", "6 h"), ("90000", "90 s"), ("1234", "1 234 ms")]
        {
            assert_eq!(shown(&registry::RUN_STALE_MS, value), text);
        }
        assert_eq!(shown(&registry::GC_GRACE_SECONDS, "0"), "0");
        assert_eq!(shown(&registry::PORT, "3000"), "3000");
        assert_eq!(shown(&registry::LOG, "1000"), "1000");
    }

    #[test]
    fn every_topic_has_variables_and_every_variable_has_one() {
        let topics = by_topic(in_force(&Config::from_env([]).unwrap()));
        assert!(topics.iter().all(|(_, settings)| !settings.is_empty()));
        let shown: usize = topics.iter().map(|(_, settings)| settings.len()).sum();
        assert_eq!(shown, registry::variables().len());
        let topic = |name| TOPICS[topic_of(name)].0;
        assert_eq!(topic("SERVICE_SHARD_WAIT_MS"), "Runs, background work and log");
        assert_eq!(topic("SERVICE_SECRET_KEY"), "Sign-in and secrets");
    }

    #[test]
    fn nothing_set_means_defaults_everywhere() {
        let config = Config::from_env([]).unwrap();
        for setting in in_force(&config) {
            assert!(setting.is_default, "{} is shown as {:?}", setting.variable.name, setting.value);
        }
    }
}
