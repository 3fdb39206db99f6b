//! What people and agents do with diagnoses.

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::diagnosis::{DiagnosisSettings, DiagnosisStatus};
use callboard_domain::ids::{DiagnosisId, ExecutionId, ProjectId};
use callboard_domain::status::Outcome;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::diagnoses::{self, Grounds, NewDiagnosis, Subject};
use callboard_store::settings::lock as lock_settings;
use callboard_store::{clusters, jobs};
use serde_json::json;

use super::error::DiagnosisError;
use super::payload::Diagnose;
use super::reading::{existing, get, voter};
use super::settings;
use super::shapes::Diagnosis;
use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::clusters::survivor;
use crate::executions::required_execution;
use crate::{Context, Entity, QueryError, Result};

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct DiagnosisRequest {
    /// A new answer although there is one, also to the same evidence.
    pub force: bool,
    /// What the person adds to the evidence.
    pub note: Option<String>,
    /// What it is to rest on.
    pub grounds: Grounds,
}

/// A diagnosis that was requested, or was there.
#[derive(Debug, Clone)]
pub struct Requested {
    /// Its id.
    pub id: DiagnosisId,
    /// Whether it was queued by this request.
    pub is_new: bool,
}

/// Queues a diagnosis of a cluster or an execution, once: one that runs is returned, and so is
/// one with an answer, unless the request forces a new one, adds or chooses something.
///
/// # Errors
/// [`DiagnosisError::NotConfigured`]; [`QueryError::NotFound`], also for a chosen execution that is none of the
/// cluster; [`AdministrationRule::NothingFailed`].
pub async fn request(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    subject: Subject,
    wanted: DiagnosisRequest,
) -> std::result::Result<Requested, DiagnosisError> {
    let subject = existing(ctx, project, subject).await?;
    if let Some(sample) = wanted.grounds.sample {
        require_failure_of(ctx, project, sample, subject).await?;
    }
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    let settings = settings::read(&mut session).await?;
    settings::required(&settings)?;
    lock(&mut session, project, subject, acting.now).await?;
    if let Some(running) = diagnoses::running(&mut session, project, subject).await? {
        return Ok(Requested { id: running.id, is_new: false });
    }
    if !wanted.force
        && wanted.note.is_none()
        && wanted.grounds.is_empty()
        && let Some(completed) = diagnoses::newest_completed(&mut session, project, subject).await?
    {
        return Ok(Requested { id: completed.id, is_new: false });
    }
    let DiagnosisRequest { force, note, grounds } = wanted;
    let new = NewDiagnosis { is_forced: force, note, requested_by: acting.caller.user_id(), grounds };
    let diagnosis = queue(&mut session, project, subject, new, acting.now).await?;
    let detail = json!({ "diagnosis": diagnosis, "force": force });
    let target = subject.target();
    let action = AuditAction::DiagnosisRequested;
    let noted = acting.record(&mut session, action, target, Some(project), detail).await?;
    session.commit().await?;
    noted.committed();
    Ok(Requested { id: diagnosis, is_new: true })
}

/// Fails unless an execution counts for the cluster.
async fn require_failure_of(
    ctx: &Context,
    project: Authorized<ProjectId>,
    sample: ExecutionId,
    subject: Subject,
) -> Result<()> {
    let row = required_execution(&mut ctx.store.db().read().await?, project.get(), sample).await?;
    let of = match row.cluster {
        Some(of) => Some(survivor(ctx, project, of).await?),
        None => None,
    };
    if of.is_some() && of == subject.cluster() {
        return Ok(());
    }
    Err(QueryError::not_found(Entity::Execution, sample))
}

/// Lets nobody else request a diagnosis of the subject until the transaction ends.
async fn lock(session: &mut Session, project: ProjectId, subject: Subject, now: Timestamp) -> Result<()> {
    match subject {
        Subject::Cluster(cluster) => {
            let locked = clusters::lock(session, project, vec![cluster.get()]).await?;
            if locked.is_empty() { Err(QueryError::not_found(Entity::Cluster, cluster)) } else { Ok(()) }
        }
        Subject::Execution(execution) => {
            // Requests of executions are rare and short: one lock for all of them is enough.
            lock_settings(session, None, DiagnosisSettings::NAME, now).await?;
            let row = required_execution(session, project, execution).await?;
            let has_failed = row.outcome.status().is_failing() || row.outcome == Outcome::Flaky;
            if has_failed { Ok(()) } else { Err(AdministrationRule::NothingFailed.into()) }
        }
    }
}

/// Stores a new version and queues its job. The caller holds the lock of the subject.
pub(super) async fn queue(
    session: &mut Session,
    project: ProjectId,
    subject: Subject,
    new: NewDiagnosis,
    now: Timestamp,
) -> Result<DiagnosisId> {
    let diagnosis = diagnoses::create(session, project, subject, new, now).await?;
    let job = Diagnose { project, diagnosis };
    jobs::enqueue(session, &format!("diagnosis:{diagnosis}"), Some(project), &job, now).await?;
    Ok(diagnosis)
}

/// Cancels a diagnosis that runs; the request to the model is abandoned.
///
/// # Errors
/// [`AdministrationRule::DiagnosisEnded`]; [`QueryError::NotFound`].
pub async fn cancel(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: DiagnosisId,
) -> Result<Diagnosis> {
    let mut session = ctx.store.db().begin().await?;
    let row = diagnoses::lock(&mut session, project.get(), id).await?;
    let mut row = row.ok_or_else(|| QueryError::not_found(Entity::Diagnosis, id))?;
    if !row.status.is_running() {
        return Err(AdministrationRule::DiagnosisEnded.into());
    }
    row.status = DiagnosisStatus::Failed;
    row.error_code = Some("cancelled".to_owned());
    row.error = Some("It was cancelled.".to_owned());
    diagnoses::finish(&mut session, project.get(), &row, acting.now).await?;
    let target = row.subject.target();
    let action = AuditAction::DiagnosisCancelled;
    let detail = json!({ "diagnosis": id });
    let noted = acting.record(&mut session, action, target, Some(project.get()), detail).await?;
    session.commit().await?;
    noted.committed();
    get(ctx, project, id, acting.caller).await
}

/// A person's opinion of a diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vote {
    /// It is right.
    Up,
    /// It is wrong.
    Down,
    /// No opinion any more.
    None,
}

/// Stores the caller's vote on a version, in the place of an earlier one.
///
/// # Errors
/// [`QueryError::NotFound`]; [`QueryError::Administration`] for one without an
/// answer.
pub async fn feedback(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: DiagnosisId,
    vote: Vote,
    note: Option<String>,
) -> Result<Diagnosis> {
    let mut session = ctx.store.db().begin().await?;
    let row = diagnoses::lock(&mut session, project.get(), id).await?;
    let row = row.ok_or_else(|| QueryError::not_found(Entity::Diagnosis, id))?;
    let user = voter(acting.caller);
    let is_up = match vote {
        Vote::Up => Some(true),
        Vote::Down => Some(false),
        Vote::None => None,
    };
    match is_up {
        Some(is_up) => {
            let vote = diagnoses::Vote { user, is_up, note };
            diagnoses::vote(&mut session, project.get(), id, vote, acting.now).await?;
        }
        None => diagnoses::unvote(&mut session, project.get(), id, user).await?,
    }
    let word = match vote {
        Vote::Up => "up",
        Vote::Down => "down",
        Vote::None => "none",
    };
    let target = row.subject.target();
    let detail = json!({ "diagnosis": id, "feedback": word });
    let action = AuditAction::DiagnosisRated;
    let noted = acting.record(&mut session, action, target, Some(project.get()), detail).await?;
    session.commit().await?;
    noted.committed();
    get(ctx, project, id, acting.caller).await
}
