//! Diagnoses of failure clusters and executions by a configured model, off by default.
//!
//! A diagnosis is requested by a person or an agent, or by [`automatic`] for a
//! new cluster where an administrator wants that. It is queued once per cluster,
//! and made by a job. What the model is sent comes from [`context`], which
//! pages, REST and MCP show as well: one packer, secrets masked first, nothing
//! of another project. Requests leave through the egress client to the one
//! address that an administrator stored; budgets are rows of `model_usage`.

mod asking;
mod automatic;
mod budget;
mod commands;
mod context;
mod error;
mod job;
mod newest;
mod packing;
mod payload;
mod prompt;
mod question;
mod reading;
mod settings;
mod shapes;
mod work;

pub(crate) use automatic::diagnose_new_clusters;
pub use callboard_integrations::model::ModelError;
pub use callboard_store::diagnoses::{Grounds, Subject};
pub use commands::{DiagnosisRequest, Requested, Vote, cancel, feedback, request};
pub use context::{ClusterContext, Coverage, EvidenceContext, cluster_context, execution_context};
pub use error::{DiagnosisError, NotConfigured};
pub use job::{JobEnd, run};
pub(crate) use newest::{brief, newest_completed};
pub use packing::{Packed, PackedSection, Section};
pub use payload::Diagnose;
pub use reading::{latest, newest, versions, wait_until_done};
pub(crate) use settings::rotate;
pub use settings::{
    ModelAccess, ModelEdit, ModelStatus, ModelTestParams, ModelTestResult, SettingsEdit, StoredModel,
    UsageReport, edit, is_configured, prompt, require_configured, status, stored, test_connection, usage,
};
pub use shapes::{
    Diagnosis, DiagnosisBrief, DiagnosisEvidence, DiagnosisHypothesis, DiagnosisProgress, DiagnosisVotes,
    PatchValidation, SuggestedFix,
};
