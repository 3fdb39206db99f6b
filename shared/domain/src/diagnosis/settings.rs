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

/// A model endpoint as an administrator entered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelSettings {
    /// How it is spoken to.
    pub provider: ModelProtocol,
    /// Where its API begins, without a trailing slash.
    pub base_url: String,
    /// Name of the model.
    pub model: String,
    /// Its key, sealed; local servers have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_key: Option<String>,
}

/// Limits of diagnoses. Days are UTC days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DiagnosisLimits {
    /// Tokens of evidence in one request.
    pub max_input_tokens: i64,
    /// How long one request may take, seconds.
    pub timeout_seconds: i64,
    /// Requests a day, over all projects.
    pub calls_per_day: i64,
    /// Tokens a day, in both directions, over all projects.
    pub tokens_per_day: i64,
    /// Requests a day for one project.
    pub project_calls_per_day: i64,
    /// Tokens a day for one project.
    pub project_tokens_per_day: i64,
    /// Failure clusters of one run that are diagnosed automatically.
    pub auto_diagnose_max: i64,
}

/// Limits where nothing is set.
pub const DEFAULT_LIMITS: DiagnosisLimits = DiagnosisLimits {
    max_input_tokens: 16_000,
    timeout_seconds: 120,
    calls_per_day: 200,
    tokens_per_day: 2_000_000,
    project_calls_per_day: 100,
    project_tokens_per_day: 1_000_000,
    auto_diagnose_max: 3,
};

impl Default for DiagnosisLimits {
    fn default() -> Self {
        DEFAULT_LIMITS
    }
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

/// All limits, in the order of pages and documents.
pub const LIMIT_FIELDS: [LimitField; 7] = [
    LimitField {
        key: "maxInputTokens",
        label: "Evidence per request (tokens)",
        min: 2_000,
        max: 200_000,
        get: |limits| limits.max_input_tokens,
        place: |limits| &mut limits.max_input_tokens,
    },
    LimitField {
        key: "timeoutSeconds",
        label: "Timeout of a request (seconds)",
        min: 5,
        max: 240,
        get: |limits| limits.timeout_seconds,
        place: |limits| &mut limits.timeout_seconds,
    },
    LimitField {
        key: "callsPerDay",
        label: "Requests per day",
        min: 0,
        max: 100_000,
        get: |limits| limits.calls_per_day,
        place: |limits| &mut limits.calls_per_day,
    },
    LimitField {
        key: "tokensPerDay",
        label: "Tokens per day",
        min: 0,
        max: 1_000_000_000,
        get: |limits| limits.tokens_per_day,
        place: |limits| &mut limits.tokens_per_day,
    },
    LimitField {
        key: "projectCallsPerDay",
        label: "Requests per day and project",
        min: 0,
        max: 100_000,
        get: |limits| limits.project_calls_per_day,
        place: |limits| &mut limits.project_calls_per_day,
    },
    LimitField {
        key: "projectTokensPerDay",
        label: "Tokens per day and project",
        min: 0,
        max: 1_000_000_000,
        get: |limits| limits.project_tokens_per_day,
        place: |limits| &mut limits.project_tokens_per_day,
    },
    LimitField {
        key: "autoDiagnoseMax",
        label: "Automatic diagnoses per run",
        min: 1,
        max: 20,
        get: |limits| limits.auto_diagnose_max,
        place: |limits| &mut limits.auto_diagnose_max,
    },
];

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
}

impl DiagnosisStatus {
    /// Whether its job has not ended.
    #[must_use]
    pub const fn is_running(self) -> bool {
        matches!(self, Self::Running)
    }
}
