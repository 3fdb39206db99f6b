//! A diagnosis at work, and how it ends without an answer.

use std::time::Instant;

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_integrations::model::ModelError;
use callboard_store::diagnoses::DiagnosisRow;

use super::settings::ModelAccess;
use crate::Context;

/// Why there is no answer: a word and a sentence.
pub(super) struct Failed {
    pub(super) code: &'static str,
    pub(super) error: String,
}

impl Failed {
    pub(super) fn new(code: &'static str, error: impl Into<String>) -> Self {
        Self { code, error: error.into() }
    }
}

/// Why the work ends without an answer.
pub(super) enum Ended {
    /// It is stored as failed.
    Failed(Failed),
    /// Somebody cancelled it.
    Cancelled,
    /// The process stops.
    Interrupted,
}

impl From<Failed> for Ended {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

impl From<ModelError> for Ended {
    fn from(error: ModelError) -> Self {
        Self::Failed(Failed::new(error.code(), error.to_string()))
    }
}

/// A diagnosis at work.
pub(super) struct Work<'w> {
    pub(super) project: ProjectId,
    pub(super) ctx: &'w Context,
    pub(super) access: &'w ModelAccess<'w>,
    pub(super) row: DiagnosisRow,
    pub(super) is_stopping: &'w (dyn Fn() -> bool + Send + Sync),
    pub(super) now: &'w (dyn Fn() -> Timestamp + Send + Sync),
    pub(super) started: Instant,
}
