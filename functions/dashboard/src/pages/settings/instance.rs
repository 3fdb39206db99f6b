//! `/settings`: what runs here and how it was configured, read-only. How much
//! there is over all projects, and what the environment says, is for whom all
//! of it is.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_http::config::Platform;
use callboard_http::config::registry::{self, Value, Variable};
use callboard_http::{ApiError, AppState, Config};
use callboard_query::projects;
use callboard_store::Backend;
use callboard_store::projects::InstanceTotals;

use crate::components::{SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// A variable with the value in force.
struct Setting {
    variable: Variable,
    value: String,
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
    settings: Vec<Setting>,
}

/// What runs here.
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
            "Off: everyone who reaches this address is administrator"
        },
        totals,
        warnings: if sees_all { config.warnings.clone() } else { Vec::new() },
        settings: if sees_all { in_force(config) } else { Vec::new() },
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
        Setting { is_default: value == default, value, variable }
    };
    registry::variables().into_iter().map(setting).collect()
}

#[cfg(test)]
mod tests {
    use callboard_http::config::registry::Kind;

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
            (Kind::Switch, _) => "true".to_owned(),
            (Kind::Words, _) => "one, two".to_owned(),
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
    fn nothing_set_means_defaults_everywhere() {
        let config = Config::from_env([]).unwrap();
        for setting in in_force(&config) {
            assert!(setting.is_default, "{} is shown as {:?}", setting.variable.name, setting.value);
        }
    }
}
