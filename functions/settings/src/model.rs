//! `/api/settings/ai`: the model for diagnoses, its key and its budgets.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use callboard_auth::limits::CONNECTION_TEST;
use callboard_domain::diagnosis::{
    DEFAULT_LIMITS, DiagnosisLimits, DiagnosisSettings, LIMIT_FIELDS, ModelProtocol, ModelRole,
};
use callboard_http::extract::{Caller, Fields, FromQuery, Query, QueryReader};
use callboard_http::{ApiError, AppState};
use callboard_platform::egress::Allowed;
use callboard_query::Change;
use callboard_query::diagnoses::{
    self, ModelEdit, ModelStatus, ModelTestParams, ModelTestResult, SettingsEdit, StoredModel, UsageReport,
};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::answer::{GroupHistory, Written};
use crate::desk::Desk;

const MAX_MODEL_CHARS: usize = 200;
const MAX_KEY_CHARS: usize = 1_000;
const MAX_INSTRUCTIONS_CHARS: usize = 4_000;
const DEFAULT_DAYS: i64 = 30;
const KEYS: [&str; 6] =
    ["enabled", "autoDiagnose", "sendScreenshots", "roles", "customInstructions", "limits"];

/// A model and how it is reached.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read field by field")]
pub(crate) struct ModelBody {
    /// `chat-completions` for OpenAI-compatible endpoints, hosted or local, or `messages` for the Anthropic API.
    #[schema(example = "chat-completions")]
    provider: Option<String>,
    /// Name of the model.
    #[schema(example = "gpt-oss:20b")]
    model: Option<String>,
    /// Where its API begins; with http only on hosts that `SERVICE_EGRESS_ALLOW` names. Null removes model and key.
    #[schema(example = "https://api.openai.com/v1")]
    base_url: Option<String>,
    /// API key. It is sealed, sent to `base_url` only, and never shown again; null clears it.
    #[schema(format = Password)]
    api_key: Option<String>,
}

/// Roles of models.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read field by field")]
pub(crate) struct RolesBody {
    /// The model that diagnoses.
    diagnosis: Option<ModelBody>,
    /// A cheaper model that is asked first. Its answer is kept from the confidence `limits.firstPassConfidence` on;
    /// otherwise the other model is asked. Without `baseUrl` it uses endpoint and key of the other model. A null `model`
    /// removes it.
    first_pass: Option<ModelBody>,
}

/// What is set about diagnoses. Absent keys stay as they are.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read field by field")]
pub(crate) struct ModelSettingsBody {
    /// Whether diagnoses may be requested.
    enabled: Option<bool>,
    /// Whether new failure clusters of default branches are diagnosed automatically.
    auto_diagnose: Option<bool>,
    /// Whether screenshots of the failure are sent along, at most two. Nothing in them can be masked.
    send_screenshots: Option<bool>,
    /// The models.
    roles: Option<RolesBody>,
    /// Instructions for all projects, at most 4,000 characters.
    custom_instructions: Option<String>,
    /// Limits by name; null takes the default.
    #[schema(value_type = Object)]
    limits: Option<BTreeMap<String, Option<i64>>>,
}

/// A configured model, without its key.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelShown {
    /// `chat-completions` or `messages`.
    provider: Option<&'static str>,
    /// Name of the model.
    model: Option<String>,
    /// Where its API begins.
    base_url: Option<String>,
    /// Whether a key is stored.
    has_api_key: bool,
}

/// Models by role.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RolesShown {
    /// The model that diagnoses.
    diagnosis: ModelShown,
    /// The model that is asked first; without `baseUrl` at the endpoint of the other one.
    first_pass: ModelShown,
}

/// What holds.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelSettingsShown {
    /// Whether diagnoses may be requested.
    enabled: bool,
    /// Whether new failure clusters of default branches are diagnosed automatically.
    auto_diagnose: bool,
    /// Whether screenshots of the failure are sent along.
    send_screenshots: bool,
    /// Models by role.
    roles: RolesShown,
    /// Instructions for all projects.
    custom_instructions: Option<String>,
    /// Limits.
    #[schema(value_type = Object)]
    limits: DiagnosisLimits,
}

/// A limit and what it may be.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitShown {
    /// Name.
    key: &'static str,
    /// Label.
    label: &'static str,
    /// Least value.
    min: i64,
    /// Greatest value.
    max: i64,
}

/// What is set about diagnoses.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelSettingsAnswer {
    /// What holds.
    settings: ModelSettingsShown,
    /// Limits where nothing is set.
    #[schema(value_type = Object)]
    defaults: DiagnosisLimits,
    /// Names and bounds of the limits.
    fields: Vec<LimitShown>,
    #[serde(flatten)]
    history: GroupHistory,
}

impl ModelShown {
    fn from_settings(settings: &DiagnosisSettings, role: ModelRole) -> Self {
        let model = settings.stored(role);
        let own = model.filter(|model| !model.base_url.is_empty());
        Self {
            provider: own.map(|model| model.provider.as_str()),
            model: model.map(|model| model.model.clone()),
            base_url: own.map(|model| model.base_url.clone()),
            has_api_key: model.is_some_and(|model| model.sealed_key.is_some()),
        }
    }
}

impl From<StoredModel> for ModelSettingsAnswer {
    fn from(found: StoredModel) -> Self {
        Self {
            settings: ModelSettingsShown {
                enabled: found.settings.enabled,
                auto_diagnose: found.settings.auto_diagnose,
                send_screenshots: found.settings.send_screenshots,
                roles: RolesShown {
                    diagnosis: ModelShown::from_settings(&found.settings, ModelRole::Diagnosis),
                    first_pass: ModelShown::from_settings(&found.settings, ModelRole::FirstPass),
                },
                custom_instructions: found.settings.instructions,
                limits: found.settings.limits,
            },
            defaults: DEFAULT_LIMITS,
            fields: LIMIT_FIELDS
                .iter()
                .map(|field| LimitShown {
                    key: field.key,
                    label: field.label,
                    min: field.min,
                    max: field.max,
                })
                .collect(),
            history: GroupHistory::new(found.updated_at, found.updated_by),
        }
    }
}

/// An error about a field of an inner object, under its path in the body.
fn under(path: &'static str) -> impl Fn(ApiError) -> ApiError {
    move |error| {
        let field = error.body().data.and_then(|data| data["field"].as_str().map(str::to_owned));
        match field {
            Some(field) if error.code() == "invalid_field" => {
                ApiError::invalid_field(&format!("{path}.{field}"), format!("{path}.{}", error.message()))
            }
            _ => error,
        }
    }
}

/// A base address. The key goes there, so it takes https, unless the environment
/// opens the host.
fn base_url(fields: &Fields, allowed: &Allowed) -> Result<Change<String>, ApiError> {
    let url = fields.address("baseUrl", false)?;
    let is_safe = url.value().is_none_or(|url| url.starts_with("https:") || allowed.opens(url));
    if is_safe { Ok(url) } else { fields.address("baseUrl", true) }
}

fn provider(fields: &Fields) -> Result<Option<ModelProtocol>, ApiError> {
    let word = fields.text("provider")?.into_value();
    word.map(|word| {
        ModelProtocol::parse(&word).ok_or_else(|| {
            let message = format!("provider must be one of {}.", ModelProtocol::WORDS.join(", "));
            ApiError::invalid_field("provider", message)
        })
    })
    .transpose()
}

fn model_edit(fields: &Fields, allowed: &Allowed) -> Result<ModelEdit, ApiError> {
    Ok(ModelEdit {
        provider: provider(fields)?,
        base_url: base_url(fields, allowed)?,
        model: fields.line("model", MAX_MODEL_CHARS)?,
        key: fields.line("apiKey", MAX_KEY_CHARS)?,
    })
}

fn settings_edit(fields: &Fields, allowed: &Allowed) -> Result<SettingsEdit, ApiError> {
    fields.require_any(&KEYS)?;
    let roles = fields.object("roles")?.into_value();
    let of_role = |role: ModelRole, path| {
        let given = roles.as_ref().map(|roles| roles.object(role.as_str())).transpose()?;
        match given.and_then(Change::into_value) {
            Some(model) => model_edit(&model, allowed).map_err(under(path)),
            None => Ok(ModelEdit::default()),
        }
    };
    let model = of_role(ModelRole::Diagnosis, "roles.diagnosis")?;
    let first_pass = of_role(ModelRole::FirstPass, "roles.firstPass")?;
    let mut limits = Vec::new();
    if let Some(given) = fields.object("limits")?.into_value() {
        for field in LIMIT_FIELDS {
            let change = given.whole(field.key, field.min..=field.max).map_err(under("limits"))?;
            if !change.is_keep() {
                limits.push((*field, change));
            }
        }
    }
    Ok(SettingsEdit {
        enabled: fields.flag("enabled")?,
        auto_diagnose: fields.flag("autoDiagnose")?,
        send_screenshots: fields.flag("sendScreenshots")?,
        model,
        first_pass,
        instructions: fields.prose("customInstructions", MAX_INSTRUCTIONS_CHARS)?,
        limits,
    })
}

/// The model for diagnoses, without its key, and the limits.
#[utoipa::path(get, path = "/api/settings/ai", tag = "settings", operation_id = "model_settings",
    responses((status = 200, body = ModelSettingsAnswer)))]
pub(crate) async fn get(desk: Desk) -> Result<Json<ModelSettingsAnswer>, ApiError> {
    Ok(Json(diagnoses::stored(&desk.ctx).await?.into()))
}

/// Changes the model for diagnoses. What is absent stays. A stored key belongs to
/// its base address: another address takes another key.
///
/// # Errors
/// 400 `no_fields`, `missing_field`, `invalid_field`; 503
/// `secret_key_not_configured`.
#[utoipa::path(method(patch, put), path = "/api/settings/ai", tag = "settings", operation_id = "edit_model_settings",
    request_body = ModelSettingsBody,
    responses(
        (status = 200, body = Written<ModelSettingsAnswer>),
        (status = 400, description = "`no_fields`, `missing_field`, `invalid_field`"),
        (status = 503, description = "`secret_key_not_configured`: a key cannot be stored")
    ))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    desk: Desk,
    fields: Fields,
) -> Result<Json<Written<ModelSettingsAnswer>>, ApiError> {
    let edit = settings_edit(&fields, &state.config().egress_allow)?;
    diagnoses::edit(&desk.ctx, desk.acting(), state.stored_secrets(), edit).await?;
    Ok(Written::answer(diagnoses::stored(&desk.ctx).await?))
}

/// The model answered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tested {
    /// Always true.
    success: bool,
    #[serde(flatten)]
    test: ModelTestResult,
}

/// Which model a test asks, and what it tries instead of what is saved.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read field by field")]
pub(crate) struct ModelTestBody {
    /// `diagnosis` unless it is `firstPass`.
    #[schema(example = "diagnosis")]
    role: Option<String>,
    /// `chat-completions` or `messages`.
    provider: Option<String>,
    /// Name of the model.
    model: Option<String>,
    /// Where its API begins.
    base_url: Option<String>,
    /// API key.
    #[schema(format = Password)]
    api_key: Option<String>,
}

/// Asks the model for one word: as it is saved, or with the fields of the body
/// instead. A saved key is sent to the saved address only.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 429 `rate_limited`; 502
/// `upstream_failed`; 503 `not_configured`.
#[utoipa::path(post, path = "/api/settings/ai/test", tag = "settings", operation_id = "test_model",
    request_body = ModelTestBody,
    responses(
        (status = 200, body = Tested),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 429, description = "`rate_limited`: more than 10 tests a minute"),
        (status = 502, description = "`upstream_failed`: `message` says in one sentence what is wrong"),
        (status = 503, description = "`not_configured`: `data.setting` is missing")
    ))]
pub(crate) async fn test(
    State(state): State<AppState>,
    desk: Desk,
    caller: Caller,
    fields: Fields,
) -> Result<Json<Tested>, ApiError> {
    // Visitors of a demo must not make it call other hosts.
    if state.config().demo {
        return Err(ApiError::demo_mode());
    }
    let role = fields.text("role")?.into_value().map(|word| {
        let wrong = || ApiError::invalid_field("role", "role must be diagnosis or firstPass.");
        ModelRole::parse(&word).ok_or_else(wrong)
    });
    let is_first_pass = role.transpose()? == Some(ModelRole::FirstPass);
    let ModelEdit { provider, base_url, model, key } = model_edit(&fields, &state.config().egress_allow)?;
    let (base_url, model, key) = (base_url.into_value(), model.into_value(), key.into_value());
    let tried = ModelTestParams { is_first_pass, provider, base_url, model, key };
    state.limits().await?.check(CONNECTION_TEST, &caller.credential().into_bytes(), state.now()).await?;
    let test = diagnoses::test_connection(&desk.ctx, &state.model_access(), tried, state.now()).await?;
    Ok(Json(Tested { success: true, test }))
}

/// Which days a report is about.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageParams {
    /// Days, today included; 1 to 400.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 400, example = 30)]
    days: i64,
}

impl FromQuery for UsageParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { days: query.number("days", 1..=400)?.unwrap_or(DEFAULT_DAYS) })
    }
}

/// Counters of requests.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageTotals {
    /// Requests.
    calls: i64,
    /// Requests without a usable answer.
    failed: i64,
    /// Tokens sent.
    input_tokens: i64,
    /// Tokens received.
    output_tokens: i64,
}

/// Requests to one model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageRow {
    /// `chat-completions` or `messages`.
    provider: String,
    /// Name of the model.
    model: String,
    /// `diagnosis`, `first-pass` or `test`.
    purpose: String,
    #[serde(flatten)]
    totals: UsageTotals,
}

/// What models were asked.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageAnswer {
    /// Days it is about.
    days: i64,
    /// All of it.
    totals: UsageTotals,
    /// By model and purpose.
    by_model: Vec<UsageRow>,
}

impl From<UsageReport> for UsageAnswer {
    fn from(report: UsageReport) -> Self {
        let mut totals = UsageTotals::default();
        let by_model = report.models.into_iter().map(|row| {
            let own = UsageTotals {
                calls: row.usage.calls,
                failed: row.usage.failed,
                input_tokens: row.usage.input_tokens,
                output_tokens: row.usage.output_tokens,
            };
            totals.calls += own.calls;
            totals.failed += own.failed;
            totals.input_tokens += own.input_tokens;
            totals.output_tokens += own.output_tokens;
            UsageRow { provider: row.provider, model: row.model, purpose: row.purpose, totals: own }
        });
        let by_model = by_model.collect();
        Self { days: report.days, totals, by_model }
    }
}

/// What models were asked in the last days, by model and purpose; every request
/// counts, answered or not.
///
/// # Errors
/// 400 `invalid_query`.
#[utoipa::path(get, path = "/api/settings/ai/usage", tag = "settings", operation_id = "model_usage",
    params(UsageParams),
    responses((status = 200, body = UsageAnswer), (status = 400, description = "`invalid_query`")))]
pub(crate) async fn usage(
    desk: Desk,
    Query(params): Query<UsageParams>,
) -> Result<Json<UsageAnswer>, ApiError> {
    Ok(Json(diagnoses::usage(&desk.ctx, params.days, desk.now).await?.into()))
}

/// Whether a model for diagnoses is configured.
#[utoipa::path(get, path = "/api/ai/status", tag = "settings", operation_id = "model_status",
    responses((status = 200, body = ModelStatus)))]
pub(crate) async fn status(desk: Desk) -> Result<Json<ModelStatus>, ApiError> {
    Ok(Json(diagnoses::status(&desk.ctx).await?))
}
