//! What administrators set about diagnoses. A stored key belongs to the base
//! address it was saved for and never goes to another one.

use std::time::{Duration, Instant};

use callboard_auth::scope::Authorized;
use callboard_auth::sealed::{Place, StoredSecrets};
use callboard_domain::audit::AuditAction;
use callboard_domain::diagnosis::{DiagnosisSettings, LimitField, ModelProtocol, ModelRole, ModelSettings};
use callboard_domain::ids::ProjectId;
use callboard_domain::time::{Day, Timestamp};
use callboard_integrations::model::{Draft, LanguageModel, ModelEndpoint, ModelRequest, Turn, connect};
use callboard_platform::egress::AdminUrl;
use callboard_store::db::Session;
use callboard_store::model_usage::{self, ModelUsage};
use callboard_store::settings::{self, StoredSettings};
use callboard_store::{Store, StoreError, boxed, projects};
use serde::Serialize;
use serde_json::{Map, json};
use utoipa::ToSchema;

use super::budget::{self, Outcome};
use super::error::{DiagnosisError, NotConfigured};
use super::packing::Packed;
use super::prompt::as_prompt;
use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::shapes::UserRef;
use crate::{Change, Context, Result};

/// Models that a usage report lists.
const MAX_MODELS: i64 = 200;
/// How long a test waits for an answer.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// What asking a model takes besides the database.
#[derive(Debug, Clone)]
pub struct ModelAccess<'a> {
    /// Opens stored keys.
    pub secrets: &'a StoredSecrets,
    /// Makes the requests.
    pub client: AdminUrl,
}

/// Where the key of a model is stored.
fn key_place(role: ModelRole) -> Place {
    match role {
        ModelRole::Diagnosis => Place::new("settings", "ai.diagnosis", 0),
        ModelRole::FirstPass => Place::new("settings", "ai.firstPass", 0),
    }
}

/// Fields of a role, as errors and the audit log name them.
struct RoleFields {
    provider: &'static str,
    base_url: &'static str,
    model: &'static str,
    api_key: &'static str,
}

const fn fields_of(role: ModelRole) -> RoleFields {
    macro_rules! fields {
        ($role:literal) => {
            RoleFields {
                provider: concat!("roles.", $role, ".provider"),
                base_url: concat!("roles.", $role, ".baseUrl"),
                model: concat!("roles.", $role, ".model"),
                api_key: concat!("roles.", $role, ".apiKey"),
            }
        };
    }
    match role {
        ModelRole::Diagnosis => fields!("diagnosis"),
        ModelRole::FirstPass => fields!("firstPass"),
    }
}

fn parse(stored: Option<&StoredSettings>) -> Result<DiagnosisSettings> {
    let Some(stored) = stored else { return Ok(DiagnosisSettings::default()) };
    Ok(serde_json::from_str(&stored.value).map_err(|_| StoreError::Damaged("settings of diagnoses"))?)
}

/// What is set, in the caller's transaction.
pub(super) async fn read(session: &mut Session) -> Result<DiagnosisSettings> {
    parse(settings::get(session, None, DiagnosisSettings::NAME).await?.as_ref())
}

/// What is set, and when.
#[derive(Debug, Clone)]
pub struct StoredModel {
    /// What is set.
    pub settings: DiagnosisSettings,
    /// When it was set last.
    pub updated_at: Option<Timestamp>,
    /// By whom, as long as the account exists.
    pub updated_by: Option<UserRef>,
}

/// What is set about diagnoses.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn stored(ctx: &Context) -> Result<StoredModel> {
    let mut session = ctx.store.db().read().await?;
    let stored = settings::get(&mut session, None, DiagnosisSettings::NAME).await?;
    let by = match stored.as_ref().and_then(|stored| stored.updated_by) {
        Some(user) => callboard_store::accounts::users::get_many(&mut session, vec![user.get()]).await?,
        None => Vec::new(),
    };
    Ok(StoredModel {
        settings: parse(stored.as_ref())?,
        updated_at: stored.map(|stored| stored.updated_at),
        updated_by: by.first().map(UserRef::from_row),
    })
}

/// Whether a model may be asked.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn is_configured(ctx: &Context) -> Result<bool> {
    Ok(read(&mut ctx.store.db().read().await?).await?.active_model().is_some())
}

/// Fails unless a model may be asked.
///
/// # Errors
/// [`DiagnosisError::NotConfigured`].
pub async fn require_configured(ctx: &Context) -> std::result::Result<(), DiagnosisError> {
    let settings = read(&mut ctx.store.db().read().await?).await?;
    Ok(required(&settings).map(|_| ())?)
}

/// The model that may be asked.
pub(super) fn required(settings: &DiagnosisSettings) -> std::result::Result<&ModelSettings, NotConfigured> {
    let model = settings.model.as_ref().ok_or(NotConfigured::Model)?;
    if settings.enabled { Ok(model) } else { Err(NotConfigured::SwitchedOff) }
}

/// A text for any assistant: instructions and evidence, to be copied. It needs no
/// configured model.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn prompt(ctx: &Context, project: Authorized<ProjectId>, packed: &Packed) -> Result<String> {
    let mut session = ctx.store.db().read().await?;
    let settings = read(&mut session).await?;
    let of_project = projects::get(&mut session, project.get()).await?;
    let of_project = of_project.and_then(|project| project.diagnosis_instructions);
    Ok(as_prompt(packed, settings.instructions.as_deref(), of_project.as_deref()))
}

/// Whether a model for diagnoses is configured.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelStatus {
    /// Whether diagnoses can be requested.
    pub configured: bool,
    /// Whether new clusters of default branches are diagnosed automatically.
    pub auto_diagnose: bool,
}

/// Whether a model for diagnoses is configured.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn status(ctx: &Context) -> Result<ModelStatus> {
    let settings = read(&mut ctx.store.db().read().await?).await?;
    let configured = settings.active_model().is_some();
    Ok(ModelStatus { configured, auto_diagnose: configured && settings.auto_diagnose })
}

/// Changes of the model.
#[derive(Debug, Clone, Default)]
pub struct ModelEdit {
    /// How it is spoken to.
    pub provider: Option<ModelProtocol>,
    /// Where its API begins; clearing it removes the model and its key. A first pass without it uses the endpoint of the
    /// model that diagnoses.
    pub base_url: Change<String>,
    /// Its name; clearing it removes a first pass.
    pub model: Change<String>,
    /// Its key in clear text.
    pub key: Change<String>,
}

/// Changes of what is set about diagnoses.
#[derive(Debug, Clone, Default)]
pub struct SettingsEdit {
    /// Whether diagnoses may be requested.
    pub enabled: Option<bool>,
    /// Whether new failure clusters of default branches are diagnosed automatically.
    pub auto_diagnose: Option<bool>,
    /// The model.
    pub model: ModelEdit,
    /// The model that is asked first.
    pub first_pass: ModelEdit,
    /// Whether screenshots of the failure are sent along.
    pub send_screenshots: Option<bool>,
    /// Instructions for all projects.
    pub instructions: Change<String>,
    /// Limits; a cleared one takes its default.
    pub limits: Vec<(LimitField, Change<i64>)>,
}

fn without_slash(url: String) -> String {
    url.trim_end_matches('/').to_owned()
}

/// The model of a role with an address of its own, after an edit.
fn edited_model(
    role: ModelRole,
    edit: ModelEdit,
    before: Option<ModelSettings>,
    secrets: &StoredSecrets,
) -> Result<Option<ModelSettings>> {
    let ModelEdit { provider, base_url, model, key } = edit;
    let fields = fields_of(role);
    let incomplete = |field| AdministrationRule::ModelIncomplete { field };
    let old_url = before.as_ref().map(|before| before.base_url.clone());
    let Some(url) = base_url.applied_to(old_url.clone()).map(without_slash) else {
        let is_named = model.value().is_some() || key.value().is_some();
        if is_named && before.is_none() {
            return Err(incomplete(fields.base_url).into());
        }
        return Ok(None);
    };
    let has_key = before.as_ref().is_some_and(|before| before.sealed_key.is_some());
    if has_key && old_url.is_some_and(|old| old != url) && key.is_keep() {
        return Err(AdministrationRule::ModelKeyOfAnotherAddress { field: fields.api_key }.into());
    }
    let provider = provider.or_else(|| before.as_ref().map(|before| before.provider));
    let provider = provider.ok_or_else(|| incomplete(fields.provider))?;
    let model = model.into_value().or_else(|| before.as_ref().map(|before| before.model.clone()));
    let model = model.ok_or_else(|| incomplete(fields.model))?;
    let sealed = key.try_map(|plain| secrets.seal(&key_place(role), &plain))?;
    let sealed_key = sealed.applied_to(before.and_then(|before| before.sealed_key));
    Ok(Some(ModelSettings { provider, base_url: url, model, sealed_key }))
}

/// The model that is asked first, after an edit. Without an address it is another model of the endpoint that diagnoses.
fn edited_first_pass(
    edit: ModelEdit,
    before: Option<ModelSettings>,
    secrets: &StoredSecrets,
) -> Result<Option<ModelSettings>> {
    let fields = fields_of(ModelRole::FirstPass);
    let is_named = edit.base_url.value().is_some() || edit.key.value().is_some();
    let name = edit.model.clone().applied_to(before.as_ref().map(|before| before.model.clone()));
    let Some(name) = name else {
        let missing = AdministrationRule::ModelIncomplete { field: fields.model };
        return if is_named { Err(missing.into()) } else { Ok(None) };
    };
    let own = before.filter(|before| !before.base_url.is_empty());
    if edit.base_url.clone().applied_to(own.as_ref().map(|own| own.base_url.clone())).is_some() {
        let edit = ModelEdit { model: Change::Set(name), ..edit };
        return edited_model(ModelRole::FirstPass, edit, own, secrets);
    }
    if edit.key.value().is_some() {
        return Err(AdministrationRule::ModelIncomplete { field: fields.base_url }.into());
    }
    let provider = ModelProtocol::ChatCompletions;
    Ok(Some(ModelSettings { provider, base_url: String::new(), model: name, sealed_key: None }))
}

/// The settings as the audit log shows them: the key is a fact, not a text.
fn shown(settings: &DiagnosisSettings) -> Map<String, serde_json::Value> {
    let (model, first) = (settings.model.as_ref(), settings.first_pass.as_ref());
    let mut shown = Map::new();
    shown.insert("enabled".to_owned(), settings.enabled.into());
    shown.insert("autoDiagnose".to_owned(), settings.auto_diagnose.into());
    shown.insert("provider".to_owned(), model.map(|model| model.provider.as_str()).into());
    shown.insert("baseUrl".to_owned(), model.map(|model| model.base_url.clone()).into());
    shown.insert("model".to_owned(), model.map(|model| model.model.clone()).into());
    shown.insert("firstPass.model".to_owned(), first.map(|first| first.model.clone()).into());
    shown.insert("firstPass.baseUrl".to_owned(), first.map(|first| first.base_url.clone()).into());
    shown.insert("sendScreenshots".to_owned(), settings.send_screenshots.into());
    shown.insert("customInstructions".to_owned(), settings.instructions.clone().into());
    if let serde_json::Value::Object(limits) = json!(settings.limits) {
        shown.extend(limits);
    }
    shown
}

/// Changes what is set about diagnoses.
///
/// # Errors
/// [`AdministrationRule`]; [`crate::QueryError::Secret`] when no key can be
/// stored; [`crate::QueryError::Store`].
pub async fn edit(
    ctx: &Context,
    acting: Acting<'_>,
    secrets: &StoredSecrets,
    edit: SettingsEdit,
) -> Result<()> {
    acting.reaches_everything()?;
    let mut session = ctx.store.db().begin().await?;
    let stored = settings::lock(&mut session, None, DiagnosisSettings::NAME, acting.now).await?;
    let before = parse(Some(&stored))?;
    let mut after = before.clone();
    after.model = edited_model(ModelRole::Diagnosis, edit.model, after.model.take(), secrets)?;
    after.first_pass = edited_first_pass(edit.first_pass, after.first_pass.take(), secrets)?;
    after.send_screenshots = edit.send_screenshots.unwrap_or(after.send_screenshots);
    after.instructions = edit.instructions.applied_to(after.instructions.take());
    for (field, change) in edit.limits {
        let place = (field.place)(&mut after.limits);
        *place = match change {
            Change::Set(value) => value,
            Change::Clear => (field.get)(&callboard_domain::diagnosis::DEFAULT_LIMITS),
            Change::Keep => *place,
        };
    }
    after.auto_diagnose = edit.auto_diagnose.unwrap_or(after.auto_diagnose);
    match edit.enabled {
        Some(true) if after.model.is_none() => return Err(AdministrationRule::NoModel.into()),
        Some(enabled) => after.enabled = enabled,
        None if after.model.is_none() => after.enabled = false,
        None => {}
    }
    if after == before {
        return Ok(());
    }
    let by = acting.caller.user_id();
    let value = json!(after).to_string();
    settings::set(&mut session, None, DiagnosisSettings::NAME, &value, acting.now, by).await?;
    let mut changed = Map::new();
    let was = shown(&before);
    for (key, now) in shown(&after) {
        let before = was.get(&key).cloned().unwrap_or_default();
        if before != now {
            changed.insert(key, json!({ "before": before, "after": now }));
        }
    }
    let target = ("settings", 0);
    let detail = json!({ "group": DiagnosisSettings::NAME, "changed": changed });
    let mut noted =
        vec![acting.record(&mut session, AuditAction::SettingsChanged, target, None, detail).await?];
    for role in ModelRole::ALL {
        let key =
            |settings: &DiagnosisSettings| settings.stored(role).and_then(|model| model.sealed_key.clone());
        let (old_key, new_key) = (key(&before), key(&after));
        if old_key != new_key {
            let action = if new_key.is_some() { AuditAction::SecretSet } else { AuditAction::SecretCleared };
            let detail = json!({ "secret": fields_of(role).api_key });
            noted.push(acting.record(&mut session, action, target, None, detail).await?);
        }
    }
    session.commit().await?;
    noted.into_iter().for_each(callboard_store::audit::Recorded::committed);
    Ok(())
}

/// The endpoint of a model with its key in clear text.
fn endpoint(
    access: &ModelAccess<'_>,
    model: &ModelSettings,
    key_role: ModelRole,
    timeout: Duration,
) -> std::result::Result<ModelEndpoint, NotConfigured> {
    let key = model.sealed_key.as_deref().map(|sealed| access.secrets.open(&key_place(key_role), sealed));
    let key = key.transpose().map_err(|_| NotConfigured::SealedKey)?.map(|key| key.to_string());
    Ok(ModelEndpoint {
        protocol: model.provider,
        base_url: model.base_url.clone(),
        model: model.model.clone(),
        key,
        timeout,
    })
}

/// The client of a configured model.
pub(super) fn client(
    access: &ModelAccess<'_>,
    (model, key_role): (&ModelSettings, ModelRole),
    timeout: Duration,
    now: Timestamp,
) -> std::result::Result<Box<dyn LanguageModel>, NotConfigured> {
    Ok(connect(access.client.clone(), endpoint(access, model, key_role, timeout)?, now))
}

/// What a test tries instead of what is saved.
#[derive(Debug, Clone, Default)]
pub struct ModelTestParams {
    /// Whether the model of the first pass is tested.
    pub is_first_pass: bool,
    /// How the model is spoken to.
    pub provider: Option<ModelProtocol>,
    /// Where its API begins. With another one than the saved address, the saved
    /// key is not sent.
    pub base_url: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// Key in clear text.
    pub key: Option<String>,
}

/// The model answered.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelTestResult {
    /// One sentence for people.
    #[schema(example = "gpt-oss:20b answered in 0.8 s.")]
    pub message: String,
    /// Name of the model.
    pub model: String,
    /// Tokens of the question.
    pub input_tokens: i64,
    /// Tokens of the answer.
    pub output_tokens: i64,
    /// How long it took, ms.
    pub duration: i64,
}

/// Asks the model for one word. A saved key goes to the saved address only.
///
/// # Errors
/// [`AdministrationRule::ModelKeyOfAnotherAddress`] when another address is
/// tried without a key; [`DiagnosisError`].
pub async fn test_connection(
    ctx: &Context,
    access: &ModelAccess<'_>,
    tried: ModelTestParams,
    now: Timestamp,
) -> std::result::Result<ModelTestResult, DiagnosisError> {
    let role = if tried.is_first_pass { ModelRole::FirstPass } else { ModelRole::Diagnosis };
    let saved = read(&mut ctx.store.db().read().await?).await?.resolved(role);
    let key_role = saved.as_ref().map_or(role, |(_, key_role)| *key_role);
    let saved = saved.map(|(saved, _)| saved);
    let is_same = match (&tried.base_url, &saved) {
        (Some(url), Some(saved)) => without_slash(url.clone()) == saved.base_url,
        (None, Some(_)) => true,
        _ => false,
    };
    let saved_key = saved.as_ref().and_then(|saved| saved.sealed_key.clone());
    if !is_same && tried.key.is_none() && saved_key.is_some() {
        let field = fields_of(role).api_key;
        return Err(crate::QueryError::from(AdministrationRule::ModelKeyOfAnotherAddress { field }).into());
    }
    let base_url =
        tried.base_url.map(without_slash).or_else(|| saved.as_ref().map(|saved| saved.base_url.clone()));
    let model = tried.model.or_else(|| saved.as_ref().map(|saved| saved.model.clone()));
    let provider = tried.provider.or_else(|| saved.as_ref().map(|saved| saved.provider));
    let (Some(base_url), Some(model), Some(provider)) = (base_url, model, provider) else {
        return Err(NotConfigured::Model.into());
    };
    let settings = ModelSettings {
        provider,
        base_url,
        model,
        sealed_key: saved_key.filter(|_| is_same && tried.key.is_none()),
    };
    let mut endpoint = endpoint(access, &settings, key_role, TEST_TIMEOUT)?;
    endpoint.key = tried.key.or(endpoint.key);
    let request = ModelRequest {
        instructions: "Answer with one word.".to_owned(),
        turns: vec![Turn::User("Say ready.".to_owned())],
        pictures: Vec::new(),
        schema: None,
        // Models that think before they answer need room for that.
        max_output_tokens: 1_024,
    };
    let started = Instant::now();
    let asked = connect(access.client.clone(), endpoint, now).ask(&request, &Draft::default()).await;
    let ms = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
    let outcome = match &asked {
        Ok(reply) => Outcome {
            calls: reply.calls,
            input_tokens: Some(reply.input_tokens),
            output_tokens: reply.output_tokens,
            has_failed: false,
            ms,
        },
        Err(_) => Outcome { calls: 1, has_failed: true, ms, ..Outcome::default() },
    };
    budget::count_test(ctx, &settings, outcome, now).await?;
    let reply = asked?;
    Ok(ModelTestResult {
        message: format!("{} answered in {:.1} s.", settings.model, ms as f64 / 1000.0),
        model: settings.model,
        input_tokens: reply.input_tokens,
        output_tokens: reply.output_tokens,
        duration: ms,
    })
}

/// What models were asked.
#[derive(Debug, Clone)]
pub struct UsageReport {
    /// Days it is about.
    pub days: i64,
    /// By model and purpose.
    pub models: Vec<ModelUsage>,
}

/// What models were asked in the last days, today included.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn usage(ctx: &Context, days: i64, now: Timestamp) -> Result<UsageReport> {
    let from = Day(now.day().0 - days + 1);
    let models = model_usage::by_model(&mut ctx.store.db().read().await?, from, MAX_MODELS).await?;
    Ok(UsageReport { days, models })
}

/// Seals the stored keys under the first key of the ring: stored secrets, those
/// that were sealed again, and those that no key opens.
pub(crate) async fn rotate(store: &Store, secrets: &StoredSecrets) -> Result<(u64, u64, u64)> {
    let mut session = store.db().begin().await?;
    let Some(stored) = settings::get(&mut session, None, DiagnosisSettings::NAME).await? else {
        return Ok((0, 0, 0));
    };
    let mut found = parse(Some(&stored))?;
    let (mut keys, mut resealed, mut unusable) = (0, 0, 0);
    for role in ModelRole::ALL {
        let key = found.stored_mut(role).as_mut().and_then(|model| model.sealed_key.as_mut());
        let Some(sealed) = key else { continue };
        keys += 1;
        match secrets.reseal(&key_place(role), sealed) {
            Ok(None) => {}
            Ok(Some(again)) => {
                *sealed = again;
                resealed += 1;
            }
            Err(error) => {
                tracing::error!(%error, role = role.as_str(), "the stored key of a model was not sealed again");
                unusable += 1;
            }
        }
    }
    if resealed == 0 {
        return Ok((keys, 0, unusable));
    }
    let locked = settings::lock(&mut session, None, DiagnosisSettings::NAME, stored.updated_at).await?;
    // A key that was set in the meantime is sealed under the first key already.
    if locked.value != stored.value {
        return Ok((keys, 0, unusable));
    }
    let value = json!(found).to_string();
    let (at, by) = (stored.updated_at, stored.updated_by);
    settings::set(&mut session, None, DiagnosisSettings::NAME, &value, at, by).await?;
    session.commit().await?;
    Ok((keys, resealed, unusable))
}
