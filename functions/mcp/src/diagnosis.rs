//! Diagnoses as tools answer them.

use callboard_query::diagnoses::{
    Diagnosis, DiagnosisBrief, DiagnosisEvidence, PatchValidation, SuggestedFix,
};
use callboard_query::failures::PlannedDiagnosis;
use serde::Serialize;
use utoipa::ToSchema;

/// A change that may repair the cause.
#[derive(Serialize, ToSchema)]
pub(crate) struct Fix {
    description: String,
    file: Option<String>,
    code: Option<String>,
    patch: Option<String>,
}

impl Fix {
    pub(crate) fn from_fix(fix: SuggestedFix) -> Self {
        Self { description: fix.description, file: fix.file, code: fix.code, patch: fix.patch }
    }
}

/// A diagnosis in short.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Brief {
    diagnosis_id: i64,
    status: &'static str,
    category: Option<String>,
    confidence: Option<&'static str>,
    summary: Option<String>,
}

impl Brief {
    pub(crate) fn from_brief(brief: DiagnosisBrief) -> Self {
        Self {
            diagnosis_id: brief.id,
            status: brief.status,
            category: brief.category,
            confidence: brief.confidence,
            summary: brief.summary,
        }
    }
}

/// The diagnosis in a plan.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Planned {
    diagnosis_id: i64,
    category: Option<String>,
    confidence: Option<&'static str>,
    root_cause: Option<String>,
    summary: Option<String>,
    patch: Option<String>,
    patch_validation: Option<PatchValidation>,
}

impl Planned {
    pub(crate) fn from_diagnosis(planned: PlannedDiagnosis) -> Self {
        Self {
            diagnosis_id: planned.id,
            category: planned.category,
            confidence: planned.confidence,
            root_cause: planned.root_cause,
            summary: planned.summary,
            patch: planned.patch,
            patch_validation: planned.patch_validation,
        }
    }
}

/// Another possible cause.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Hypothesis {
    category: &'static str,
    root_cause: String,
    likelihood: u8,
    evidence: Vec<String>,
}

/// A whole diagnosis.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Whole {
    diagnosis_id: i64,
    status: &'static str,
    provider: Option<String>,
    model: Option<String>,
    category: Option<String>,
    confidence: Option<&'static str>,
    confidence_score: Option<i64>,
    severity: Option<String>,
    affected_area: Option<String>,
    summary: Option<String>,
    root_cause: Option<String>,
    evidence: Vec<DiagnosisEvidence>,
    hypotheses: Vec<Hypothesis>,
    suggested_fix: Option<Fix>,
    patch_validation: Option<PatchValidation>,
    investigation_steps: Vec<String>,
    prevention_tips: Vec<String>,
    error: Option<String>,
    feedback: Option<&'static str>,
    input_tokens: i64,
    output_tokens: i64,
    duration: Option<i64>,
    updated_at: String,
}

impl Whole {
    pub(crate) fn from_diagnosis(found: Diagnosis) -> Self {
        let hypotheses = found.hypotheses.into_iter().map(|each| Hypothesis {
            category: each.category,
            root_cause: each.root_cause,
            likelihood: each.likelihood,
            evidence: each.evidence,
        });
        Self {
            diagnosis_id: found.id,
            status: found.status,
            provider: found.provider,
            model: found.model,
            category: found.category,
            confidence: found.confidence,
            confidence_score: found.confidence_score,
            severity: found.severity,
            affected_area: found.affected_area,
            summary: found.summary,
            root_cause: found.root_cause,
            evidence: found.evidence,
            hypotheses: hypotheses.collect(),
            suggested_fix: found.suggested_fix.map(Fix::from_fix),
            patch_validation: found.patch_validation,
            investigation_steps: found.investigation_steps,
            prevention_tips: found.prevention_tips,
            error: found.error,
            feedback: found.votes.mine,
            input_tokens: found.input_tokens,
            output_tokens: found.output_tokens,
            duration: found.duration,
            updated_at: found.updated_at.to_iso(),
        }
    }
}
