//! Why there is no diagnosis.

use callboard_integrations::model::ModelError;
use callboard_store::StoreError;

use crate::QueryError;

/// What is missing before a model can be asked. The text is one sentence for
/// people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotConfigured {
    /// There is no model.
    #[error("No model for diagnoses is configured; an administrator can enter one in Settings, Diagnosis.")]
    Model,
    /// It is switched off.
    #[error("Diagnoses are switched off; an administrator can switch them on in Settings, Diagnosis.")]
    SwitchedOff,
    /// The stored key does not open.
    #[error("The stored API key cannot be opened; save it again, or restore its key in SERVICE_SECRET_KEY.")]
    SealedKey,
}

impl NotConfigured {
    /// The setting that is missing.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Model => "roles.diagnosis",
            Self::SwitchedOff => "enabled",
            Self::SealedKey => "roles.diagnosis.apiKey",
        }
    }
}

/// Why there is no diagnosis.
#[derive(Debug, thiserror::Error)]
pub enum DiagnosisError {
    /// Something has to be configured first.
    #[error(transparent)]
    NotConfigured(#[from] NotConfigured),
    /// The endpoint brought no answer.
    #[error(transparent)]
    Upstream(#[from] ModelError),
    /// The question itself has no answer.
    #[error(transparent)]
    Query(#[from] QueryError),
}

impl From<StoreError> for DiagnosisError {
    fn from(error: StoreError) -> Self {
        Self::Query(error.into())
    }
}
