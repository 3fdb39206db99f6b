//! What people and agents do with diagnoses.

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::diagnosis::DiagnosisStatus;
use callboard_domain::ids::{ClusterId, DiagnosisId, ProjectId};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::diagnoses::{self, NewDiagnosis};
use callboard_store::{clusters as store, jobs};
use serde_json::json;

use super::error::DiagnosisError;
use super::payload::Diagnose;
use super::reading::{get, voter};
use super::settings;
use super::shapes::Diagnosis;
use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::{Context, Entity, QueryError, Result, clusters};

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct DiagnosisRequest {
    /// A new answer although there is one, also to the same evidence.
    pub force: bool,
    /// What the person adds to the evidence.
    pub note: Option<String>,
}

/// A diagnosis that was requested, or was there.
#[derive(Debug, Clone)]
pub struct Requested {
    /// Its id.
    pub id: DiagnosisId,
    /// Whether it was queued by this request.
    pub is_new: bool,
}

/// Queues a diagnosis of a cluster, once: one that runs is returned, and so is
/// one with an answer, unless the request forces a new one or adds something.
///
/// # Errors
/// [`DiagnosisError::NotConfigured`]; [`QueryError::NotFound`].
pub async fn request(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    cluster: ClusterId,
    wanted: DiagnosisRequest,
) -> std::result::Result<Requested, DiagnosisError> {
    let id = clusters::survivor(ctx, project, cluster).await?;
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    let settings = settings::read(&mut session).await?;
    settings::required(&settings)?;
    if store::lock(&mut session, project, vec![id.get()]).await?.is_empty() {
        return Err(QueryError::not_found(Entity::Cluster, cluster).into());
    }
    if let Some(running) = diagnoses::running(&mut session, project, id).await? {
        return Ok(Requested { id: running.id, is_new: false });
    }
    if !wanted.force
        && wanted.note.is_none()
        && let Some(completed) = diagnoses::newest_completed(&mut session, project, id).await?
    {
        return Ok(Requested { id: completed.id, is_new: false });
    }
    let new =
        NewDiagnosis { is_forced: wanted.force, note: wanted.note, requested_by: acting.caller.user_id() };
    let diagnosis = queue(&mut session, project, id, new, acting.now).await?;
    let detail = json!({ "diagnosis": diagnosis, "force": wanted.force });
    let target = ("cluster", id.get());
    let action = AuditAction::DiagnosisRequested;
    let noted = acting.record(&mut session, action, target, Some(project), detail).await?;
    session.commit().await?;
    noted.committed();
    Ok(Requested { id: diagnosis, is_new: true })
}

/// Stores a new version and queues its job. The caller holds the lock of the cluster.
pub(super) async fn queue(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
    new: NewDiagnosis,
    now: Timestamp,
) -> Result<DiagnosisId> {
    let diagnosis = diagnoses::create(session, project, cluster, new, now).await?;
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
    let target = ("cluster", row.cluster.get());
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
    let target = ("cluster", row.cluster.get());
    let detail = json!({ "diagnosis": id, "feedback": word });
    let action = AuditAction::DiagnosisRated;
    let noted = acting.record(&mut session, action, target, Some(project.get()), detail).await?;
    session.commit().await?;
    noted.committed();
    get(ctx, project, id, acting.caller).await
}
