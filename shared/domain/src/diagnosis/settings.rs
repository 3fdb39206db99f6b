//! What an administrator sets about diagnoses: the model, its key, and budgets.

use serde::{Deserialize, Serialize};

use super::words::DiagnosisStatus;

/// How a model endpoint is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelProtocol {
    /// `POST <base>/chat/completions`, as OpenAI, gateways and local model
    /// servers answer it.
    #[serde(rename = "chat-completions")]
    ChatCompletions,
    /// `POST <base>/v1/messages`, as Anthropic answers it.
    #[serde(rename = "messages")]
    Messages,
}

impl ModelProtocol {
    /// The words of the setting.
    pub const WORDS: [&'static str; 2] = ["chat-completions", "messages"];

    /// The spelling on the wire and in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat-completions",
            Self::Messages => "messages",
        }
    }

    /// Reads a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "chat-completions" => Some(Self::ChatCompletions),
            "messages" => Some(Self::Messages),
            _ => None,
        }
    }

    /// The API in words for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::ChatCompletions => "OpenAI-compatible API",
            Self::Messages => "Anthropic API",
        }
    }
}

/// What a model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelRole {
    /// It diagnoses.
    Diagnosis,
    /// It is asked first, and its answer kept when it is sure enough.
    FirstPass,
}

impl ModelRole {
    /// Both roles.
    pub const ALL: [Self; 2] = [Self::Diagnosis, Self::FirstPass];

    /// The key of the role in settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Diagnosis => "diagnosis",
            Self::FirstPass => "firstPass",
        }
    }

    /// Reads a key.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// A model endpoint as an administrator entered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelSettings {
    /// How it is spoken to.
    pub provider: ModelProtocol,
    /// Where its API begins, without a trailing slash. Empty for a first pass that uses the endpoint and the key of the
    /// model that diagnoses.
    pub base_url: String,
    /// Name of the model.
    pub model: String,
    /// Its key, sealed; local servers have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_key: Option<String>,
}

/// One limit: its name on the wire and what it may be.
#[derive(Debug, Clone, Copy)]
pub struct LimitField {
    /// Name on the wire.
    pub key: &'static str,
    /// Label of the field on pages.
    pub label: &'static str,
    /// Least value.
    pub min: i64,
    /// Greatest value.
    pub max: i64,
    /// Reads it.
    pub get: fn(&DiagnosisLimits) -> i64,
    /// Where it is written.
    pub place: fn(&mut DiagnosisLimits) -> &mut i64,
}

/// Declares the limits: field, name on the wire, label, bounds and default, in the order of pages and documents.
macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $field:ident $key:literal $label:literal $min:literal..=$max:literal = $default:literal;)+) => {
        /// Limits of diagnoses. Days are UTC days.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct DiagnosisLimits {
            $($(#[doc = $doc])+ pub $field: i64,)+
        }

        /// Limits where nothing is set.
        pub const DEFAULT_LIMITS: DiagnosisLimits = DiagnosisLimits { $($field: $default,)+ };

        /// All limits, in the order of pages and documents.
        pub const LIMIT_FIELDS: &[LimitField] = &[
            $(LimitField {
                key: $key,
                label: $label,
                min: $min,
                max: $max,
                get: |limits| limits.$field,
                place: |limits| &mut limits.$field,
            },)+
        ];
    };
}

limits! {
    /// Tokens of evidence in one request.
    max_input_tokens "maxInputTokens" "Evidence per request (tokens)" 2_000..=200_000 = 16_000;
    /// How long one request may take, seconds.
    timeout_seconds "timeoutSeconds" "Timeout of a request (seconds)" 5..=240 = 120;
    /// Requests a day, over all projects.
    calls_per_day "callsPerDay" "Requests per day" 0..=100_000 = 200;
    /// Tokens a day, in both directions, over all projects.
    tokens_per_day "tokensPerDay" "Tokens per day" 0..=1_000_000_000 = 2_000_000;
    /// Requests a day for one project.
    project_calls_per_day "projectCallsPerDay" "Requests per day and project" 0..=100_000 = 100;
    /// Tokens a day for one project.
    project_tokens_per_day "projectTokensPerDay" "Tokens per day and project" 0..=1_000_000_000 = 1_000_000;
    /// Failure clusters of one run that are diagnosed automatically.
    auto_diagnose_max "autoDiagnoseMax" "Automatic diagnoses per run" 1..=20 = 3;
    /// Least confidence at which an answer of the first pass is kept, 0 to 100.
    first_pass_confidence "firstPassConfidence" "Keep a first answer from this confidence (percent)" 1..=100 = 80;
}

impl Default for DiagnosisLimits {
    fn default() -> Self {
        DEFAULT_LIMITS
    }
}

/// Everything that is set about diagnoses, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DiagnosisSettings {
    /// Whether diagnoses may be requested.
    pub enabled: bool,
    /// Whether new failure clusters of default branches are diagnosed automatically.
    pub auto_diagnose: bool,
    /// The model; none is configured without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelSettings>,
    /// A cheaper model that is asked first; the other one is asked when its answer is not sure enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_pass: Option<ModelSettings>,
    /// Whether screenshots of the failure are sent along. They cannot be masked.
    pub send_screenshots: bool,
    /// Instructions for all projects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Limits.
    pub limits: DiagnosisLimits,
}

impl DiagnosisSettings {
    /// The name in the store and in addresses.
    pub const NAME: &'static str = "ai";

    /// The model that may be called: one is configured and switched on.
    #[must_use]
    pub fn active_model(&self) -> Option<&ModelSettings> {
        self.model.as_ref().filter(|_| self.enabled)
    }

    /// The stored settings of a role.
    #[must_use]
    pub const fn stored(&self, role: ModelRole) -> Option<&ModelSettings> {
        match role {
            ModelRole::Diagnosis => self.model.as_ref(),
            ModelRole::FirstPass => self.first_pass.as_ref(),
        }
    }

    /// Where the settings of a role are stored.
    pub const fn stored_mut(&mut self, role: ModelRole) -> &mut Option<ModelSettings> {
        match role {
            ModelRole::Diagnosis => &mut self.model,
            ModelRole::FirstPass => &mut self.first_pass,
        }
    }

    /// The model of a role, and the role whose key it takes: a first pass without an address of its own is another
    /// model of the same endpoint.
    #[must_use]
    pub fn resolved(&self, role: ModelRole) -> Option<(ModelSettings, ModelRole)> {
        let own = self.stored(role)?;
        if role == ModelRole::Diagnosis || !own.base_url.is_empty() {
            return Some((own.clone(), role));
        }
        let shared = self.model.clone()?;
        Some((ModelSettings { model: own.model.clone(), ..shared }, ModelRole::Diagnosis))
    }
}

impl DiagnosisStatus {
    /// Whether its job has not ended.
    #[must_use]
    pub const fn is_running(self) -> bool {
        matches!(self, Self::Running)
    }
}
