//! `/settings/diagnosis`: the model for diagnoses, its budgets, and what it was
//! asked.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_domain::diagnosis::{DEFAULT_LIMITS, LIMIT_FIELDS, ModelProtocol, ModelSettings};
use callboard_http::{ApiError, AppState};
use callboard_query::diagnoses;

use crate::components::{SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Days that the usage is shown of.
const USAGE_DAYS: i64 = 30;

/// A limit.
struct Limit {
    key: &'static str,
    label: &'static str,
    min: i64,
    max: i64,
    value: i64,
    default: i64,
}

/// The model that is asked first.
struct FirstPass {
    provider: ModelProtocol,
    /// Empty where it uses the endpoint of the other model.
    base_url: String,
    model: String,
    has_model: bool,
    has_key: bool,
}

impl FirstPass {
    fn from_model(model: Option<&ModelSettings>) -> Self {
        Self {
            provider: model.map_or(ModelProtocol::ChatCompletions, |model| model.provider),
            base_url: model.map(|model| model.base_url.clone()).unwrap_or_default(),
            model: model.map(|model| model.model.clone()).unwrap_or_default(),
            has_model: model.is_some(),
            has_key: model.is_some_and(|model| model.sealed_key.is_some()),
        }
    }
}

/// What requests are for, in words.
fn purpose_words(purpose: &str) -> &'static str {
    match purpose {
        "test" => "Tests",
        "first-pass" => "First pass",
        _ => "Diagnoses",
    }
}

/// Requests to one model.
struct Usage {
    model: String,
    purpose: &'static str,
    calls: i64,
    failed: i64,
    tokens: i64,
}

/// Inputs of `pages/diagnosis_settings.html`.
#[derive(Template)]
#[template(path = "pages/diagnosis_settings.html")]
struct DiagnosisSettingsPage {
    shell: Shell,
    tabs: SettingsTabs,
    /// Whether a key can be kept at all.
    keeps_secrets: bool,
    enabled: bool,
    auto_diagnose: bool,
    provider: ModelProtocol,
    base_url: String,
    model: String,
    has_model: bool,
    has_key: bool,
    send_screenshots: bool,
    first_pass: FirstPass,
    instructions: String,
    limits: Vec<Limit>,
    usage: Vec<Usage>,
    usage_days: i64,
}

/// The model for diagnoses; for administrators.
pub(crate) async fn diagnosis(State(state): State<AppState>, visit: Visit) -> Result<Response, ApiError> {
    let found = diagnoses::stored(&visit.ctx).await?.settings;
    let report = diagnoses::usage(&visit.ctx, USAGE_DAYS, visit.now).await?;
    let limits = LIMIT_FIELDS.iter().map(|field| Limit {
        key: field.key,
        label: field.label,
        min: field.min,
        max: field.max,
        value: (field.get)(&found.limits),
        default: (field.get)(&DEFAULT_LIMITS),
    });
    let usage = report.models.into_iter().map(|row| Usage {
        model: row.model,
        purpose: purpose_words(&row.purpose),
        calls: row.usage.calls,
        failed: row.usage.failed,
        tokens: row.usage.input_tokens + row.usage.output_tokens,
    });
    let model = found.model.as_ref();
    answer(&DiagnosisSettingsPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::Diagnosis),
        keeps_secrets: !state.config().secret_keys.is_empty(),
        enabled: found.enabled,
        auto_diagnose: found.auto_diagnose,
        provider: model.map_or(ModelProtocol::ChatCompletions, |model| model.provider),
        base_url: model.map(|model| model.base_url.clone()).unwrap_or_default(),
        model: model.map(|model| model.model.clone()).unwrap_or_default(),
        has_model: model.is_some(),
        has_key: model.is_some_and(|model| model.sealed_key.is_some()),
        send_screenshots: found.send_screenshots,
        first_pass: FirstPass::from_model(found.first_pass.as_ref()),
        instructions: found.instructions.clone().unwrap_or_default(),
        limits: limits.collect(),
        usage: usage.collect(),
        usage_days: USAGE_DAYS,
        shell: Shell::new(&visit, Section::Settings, "Diagnosis")
            .await?
            .under("Settings", "/settings")
            .here("Diagnosis"),
    })
}
