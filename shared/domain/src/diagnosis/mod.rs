//! Diagnoses that a language model writes: what it is asked for, how its answer
//! is read and checked, and what an administrator sets about it.
//!
//! Nothing here calls a model. A model's answer is untrusted text like any
//! test output: it is bounded, cleaned, and shown as text only.

mod answer;
mod partial;
mod patch;
mod settings;
mod words;

pub use answer::{
    AnswerError, EvidenceRef, Hypothesis, ModelAnswer, SuggestedFix, answer_schema, parse_answer,
};
pub use partial::PartialAnswer;
pub use patch::{PatchCheck, PatchStatus, PatchedFile, check_patch, patched_files};
pub use settings::{
    DEFAULT_LIMITS, DiagnosisLimits, DiagnosisSettings, LIMIT_FIELDS, LimitField, ModelProtocol, ModelRole,
    ModelSettings,
};
pub use words::{Category, Confidence, DiagnosisStatus, Severity};

/// Version of the instructions and of the answer's schema. It is part of the
/// context hash, so a new version pays for a new answer.
pub const PROMPT_VERSION: i64 = 1;
/// Characters of what a person adds to the evidence.
pub const MAX_CONTEXT_CHARS: usize = 4_000;
