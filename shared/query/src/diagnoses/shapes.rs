//! Diagnoses as answers show them. Everything a model wrote is text.

use callboard_domain::diagnosis::{Confidence, DiagnosisStatus, ModelAnswer, PatchCheck, PatchStatus};
use callboard_domain::time::Timestamp;
use callboard_store::diagnoses::{DiagnosisRow, Vote};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What of an answer is stored beside the columns of its row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) answer: ModelAnswer,
    pub(super) patch: Option<PatchCheck>,
}

/// A diagnosis in short.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosisBrief {
    /// Diagnosis id.
    pub id: i64,
    /// `running`, `completed` or `failed`.
    #[schema(example = "completed")]
    pub status: &'static str,
    /// `app-bug`, `test-bug`, `flaky-test`, `infrastructure`, `environment` or `unknown`.
    #[schema(example = "test-bug")]
    pub category: Option<String>,
    /// `high`, `medium` or `low`.
    #[schema(example = "high")]
    pub confidence: Option<&'static str>,
    /// One sentence.
    pub summary: Option<String>,
}

/// What a cause rests on.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DiagnosisEvidence {
    /// Id of a section of the context.
    #[schema(example = "sampleError")]
    pub section: String,
    /// What stands there, in the model's words.
    pub quote: String,
}

/// Another possible cause.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosisHypothesis {
    /// Category.
    pub category: &'static str,
    /// The cause.
    pub root_cause: String,
    /// 0 to 100.
    pub likelihood: u8,
    /// Ids of sections.
    pub evidence: Vec<String>,
}

/// A change that may repair the cause. Nothing applies it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SuggestedFix {
    /// What to do.
    pub description: String,
    /// The file it concerns.
    pub file: Option<String>,
    /// The code afterwards.
    pub code: Option<String>,
    /// The change as a unified diff; null when it was no valid patch.
    pub patch: Option<String>,
}

/// Whether the patch fits the stored sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchValidation {
    /// `applies`, `applies-with-offset`, `stale-file`, `invalid` or `unchecked`.
    #[schema(example = "unchecked")]
    pub status: &'static str,
    /// Files that were compared.
    pub files_checked: usize,
    /// Files the patch changes.
    pub files_in_patch: usize,
    /// Why it does not apply.
    pub errors: Vec<String>,
}

/// Votes on a diagnosis.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DiagnosisVotes {
    /// People who found it right.
    pub up: usize,
    /// People who found it wrong.
    pub down: usize,
    /// The caller's vote: `up` or `down`.
    #[schema(example = "up")]
    pub mine: Option<&'static str>,
    /// The caller's note.
    pub note: Option<String>,
}

/// An answer that is still being written.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DiagnosisProgress {
    /// Bytes of the answer that have arrived.
    pub received: i64,
    /// What can be read of it already; null while that is nothing.
    pub text: Option<String>,
}

/// A version of a diagnosis by a model.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// Diagnosis id.
    pub id: i64,
    /// `cluster`, or `execution` for a diagnosis of one execution.
    #[schema(example = "cluster")]
    pub scope: &'static str,
    /// The cluster; null for a diagnosis of an execution.
    pub cluster_id: Option<i64>,
    /// The execution it is about, or whose evidence was chosen for a diagnosis of the cluster.
    pub execution_id: Option<i64>,
    /// The commit that changes were to count from.
    pub base_commit: Option<String>,
    /// Commits that were to be looked at.
    pub selected_commit_shas: Vec<String>,
    /// 1 for the first one of its cluster or execution.
    pub version: i64,
    /// `running`, `completed` or `failed`.
    #[schema(example = "completed")]
    pub status: &'static str,
    /// What a running one is at: `queued`, `first-pass`, `asking`, `repairing`.
    pub stage: Option<String>,
    /// What has arrived of the answer of a running one.
    pub progress: Option<DiagnosisProgress>,
    /// How the model was spoken to: `chat-completions` or `messages`.
    pub provider: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// `app-bug`, `test-bug`, `flaky-test`, `infrastructure`, `environment` or `unknown`.
    pub category: Option<String>,
    /// `high`, `medium` or `low`.
    pub confidence: Option<&'static str>,
    /// 0 to 100.
    pub confidence_score: Option<i64>,
    /// `blocker`, `high`, `medium` or `low`.
    pub severity: Option<String>,
    /// The part of the application.
    pub affected_area: Option<String>,
    /// One sentence.
    pub summary: Option<String>,
    /// The cause.
    pub root_cause: Option<String>,
    /// What the cause rests on.
    pub evidence: Vec<DiagnosisEvidence>,
    /// Other possible causes, at most five.
    pub hypotheses: Vec<DiagnosisHypothesis>,
    /// A change that may repair it.
    pub suggested_fix: Option<SuggestedFix>,
    /// Whether its patch fits; null without one.
    pub patch_validation: Option<PatchValidation>,
    /// How to find out more.
    pub investigation_steps: Vec<String>,
    /// How to keep it from coming back.
    pub prevention_tips: Vec<String>,
    /// What the person who requested it added.
    pub additional_context: Option<String>,
    /// Tokens sent.
    pub input_tokens: i64,
    /// Tokens received.
    pub output_tokens: i64,
    /// How long it took, ms.
    pub duration: Option<i64>,
    /// What kind of failure it was, as a word.
    #[schema(example = "budget_exceeded")]
    pub error_code: Option<String>,
    /// Why there is no answer, in one sentence.
    pub error: Option<String>,
    /// Votes.
    pub votes: DiagnosisVotes,
    /// When it was requested.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it changed last.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

/// The confidence of a row.
fn confidence(row: &DiagnosisRow) -> Option<&'static str> {
    let score = row.confidence_score?.clamp(0, 100);
    Some(Confidence::from_score(u8::try_from(score).unwrap_or(0)).as_str())
}

impl DiagnosisBrief {
    pub(super) fn from_row(row: &DiagnosisRow) -> Self {
        Self {
            id: row.id.get(),
            status: row.status.as_str(),
            category: row.category.clone(),
            confidence: confidence(row),
            summary: row.summary.clone(),
        }
    }
}

impl DiagnosisVotes {
    /// Counts votes; `user` is the caller, 0 without accounts.
    fn from_votes(votes: &[Vote], user: i64) -> Self {
        let up = votes.iter().filter(|vote| vote.is_up).count();
        let own = votes.iter().find(|vote| vote.user == user);
        Self {
            up,
            down: votes.len() - up,
            mine: own.map(|vote| if vote.is_up { "up" } else { "down" }),
            note: own.and_then(|vote| vote.note.clone()),
        }
    }
}

impl Diagnosis {
    pub(super) fn new(row: &DiagnosisRow, votes: &[Vote], user: i64) -> Self {
        let details: Option<Details> =
            row.details.as_deref().and_then(|details| serde_json::from_str(details).ok());
        let answer = details.as_ref().map(|details| &details.answer);
        let patch = details.as_ref().and_then(|details| details.patch.as_ref());
        let is_valid = patch.is_some_and(|patch| patch.status != PatchStatus::Invalid);
        let texts = |list: fn(&ModelAnswer) -> &Vec<String>| answer.map(list).cloned().unwrap_or_default();
        Self {
            id: row.id.get(),
            scope: row.subject.target().0,
            cluster_id: row.subject.cluster().map(|cluster| cluster.get()),
            execution_id: row.subject.execution().or(row.grounds.sample).map(|execution| execution.get()),
            base_commit: row.grounds.base_commit.clone(),
            selected_commit_shas: row.grounds.commits.clone(),
            version: row.version,
            status: row.status.as_str(),
            stage: (row.status == DiagnosisStatus::Running).then(|| row.stage.clone()),
            progress: (row.status == DiagnosisStatus::Running && row.received > 0)
                .then(|| DiagnosisProgress { received: row.received, text: row.draft.clone() }),
            provider: row.provider.clone(),
            model: row.model.clone(),
            category: row.category.clone(),
            confidence: confidence(row),
            confidence_score: row.confidence_score,
            severity: row.severity.clone(),
            affected_area: answer.and_then(|answer| answer.affected_area.clone()),
            summary: row.summary.clone(),
            root_cause: answer.map(|answer| answer.root_cause.clone()),
            evidence: answer
                .into_iter()
                .flat_map(|answer| &answer.evidence)
                .map(|each| DiagnosisEvidence { section: each.section.clone(), quote: each.quote.clone() })
                .collect(),
            hypotheses: answer
                .into_iter()
                .flat_map(|answer| &answer.hypotheses)
                .map(|each| DiagnosisHypothesis {
                    category: each.category.as_str(),
                    root_cause: each.root_cause.clone(),
                    likelihood: each.likelihood,
                    evidence: each.evidence.clone(),
                })
                .collect(),
            suggested_fix: answer.and_then(|answer| answer.suggested_fix.as_ref()).map(|fix| SuggestedFix {
                description: fix.description.clone(),
                file: fix.file.clone(),
                code: fix.code.clone(),
                patch: fix.patch.clone().filter(|_| is_valid),
            }),
            patch_validation: patch.map(|patch| PatchValidation {
                status: patch.status.as_str(),
                files_checked: patch.files_checked,
                files_in_patch: patch.files_in_patch,
                errors: patch.errors.clone(),
            }),
            investigation_steps: texts(|answer| &answer.investigation_steps),
            prevention_tips: texts(|answer| &answer.prevention_tips),
            additional_context: row.note.clone(),
            input_tokens: row.input_tokens,
            output_tokens: row.output_tokens,
            duration: row.duration_ms,
            error_code: row.error_code.clone(),
            error: row.error.clone(),
            votes: DiagnosisVotes::from_votes(votes, user),
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}
