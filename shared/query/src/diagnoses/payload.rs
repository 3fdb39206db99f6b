//! The job of a diagnosis as it is queued.

use callboard_domain::ids::{DiagnosisId, ProjectId};
use callboard_store::jobs::Payload;
use serde::{Deserialize, Serialize};

/// The work of making a diagnosis.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Diagnose {
    /// Project.
    pub project: ProjectId,
    /// The diagnosis.
    pub diagnosis: DiagnosisId,
}

impl Payload for Diagnose {
    const KIND: &'static str = "diagnose";
}
