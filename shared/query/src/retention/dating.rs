//! When the time of a run, and of what belongs to it, is over.

use callboard_domain::ids::ProjectId;
use callboard_domain::retention::{Ages, FileRules, OutcomeClass, Policy};
use callboard_domain::status::Outcome;
use callboard_domain::time::Timestamp;
pub(super) use callboard_ingest::expiry::{date_by, follows};
use callboard_ingest::expiry::{effective, effective_for};
use callboard_store::files::FileKind;
use callboard_store::projects::ProjectRow;
use callboard_store::retention;
use callboard_store::runs::RunRow;
use callboard_store::{Session, boxed, projects};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Result;

/// How long files of a kind are kept.
pub(super) const fn ages_of(files: &FileRules, kind: FileKind) -> Ages {
    match kind {
        FileKind::Trace => files.trace,
        FileKind::Screenshot => files.screenshot,
        FileKind::Video => files.video,
        FileKind::Attachment => files.attachment,
    }
}

/// When the evidence of a run goes, by how its tests ended; null where it is
/// kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct EvidenceEnds {
    /// Of tests that passed on the first attempt or did not run.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub passed: Option<Timestamp>,
    /// Of flaky tests.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub flaky: Option<Timestamp>,
    /// Of tests that failed.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub failed: Option<Timestamp>,
}

/// When a run goes, and its evidence; what is kept as an exception stays
/// longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunEnds {
    /// The run itself; null when it is kept.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub run_expires_at: Option<Timestamp>,
    /// Its evidence.
    pub evidence_expires_at: EvidenceEnds,
}

/// When a run goes; nothing of a pinned one does.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn ends_of_run(session: &mut Session, run: &RunRow) -> Result<RunEnds> {
    if run.pin.is_some() {
        let evidence_expires_at = EvidenceEnds { passed: None, flaky: None, failed: None };
        return Ok(RunEnds { run_expires_at: None, evidence_expires_at });
    }
    let policy = effective(session, run.project).await?;
    let end = |class| policy.evidence.end(class, run.order_at);
    Ok(RunEnds {
        run_expires_at: retention::end_of_run(session, run.project, run.id).await?,
        evidence_expires_at: EvidenceEnds {
            passed: end(OutcomeClass::Passed),
            flaky: end(OutcomeClass::Flaky),
            failed: end(OutcomeClass::Failed),
        },
    })
}

/// When the evidence of a test that ended in a way goes; null where it is
/// kept, as all of a pinned run is.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub(crate) async fn end_of_evidence(
    session: &mut Session,
    run: &RunRow,
    outcome: Outcome,
) -> Result<Option<Timestamp>> {
    if run.pin.is_some() {
        return Ok(None);
    }
    let policy = effective(session, run.project).await?;
    Ok(policy.evidence.end(OutcomeClass::from_outcome(outcome), run.order_at))
}

/// A project that still exists with its policy, for which branches that are
/// still kept like tracked ones are tracked.
pub(super) async fn policy_of(
    session: &mut Session,
    project: ProjectId,
) -> Result<Option<(ProjectRow, Policy)>> {
    let Some(mut row) = projects::get(session, project).await? else { return Ok(None) };
    let policy = effective_for(session, &mut row).await?;
    Ok(Some((row, policy)))
}
