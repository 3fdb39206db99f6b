//! Reading diagnoses.

use std::time::Duration;

use callboard_auth::Identity;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{DiagnosisId, ProjectId};
use callboard_store::db::Session;
use callboard_store::diagnoses::{self, DiagnosisRow, Subject};
use tokio::time::Instant;

use super::shapes::Diagnosis;
use crate::executions::required_execution;
use crate::page::{Slice, fetch};
use crate::{Context, Entity, QueryError, Result, clusters};

/// How often somebody who waits looks.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// The account whose vote is the caller's own.
pub(super) fn voter(caller: &Identity) -> i64 {
    caller.user_id().map_or(0, |user| user.get())
}

async fn shown(
    session: &mut Session,
    project: ProjectId,
    row: &DiagnosisRow,
    user: i64,
) -> Result<Diagnosis> {
    let votes = diagnoses::votes(session, project, row.id).await?;
    Ok(Diagnosis::new(row, &votes, user))
}

/// One version.
pub(super) async fn required(
    session: &mut Session,
    project: ProjectId,
    id: DiagnosisId,
) -> Result<DiagnosisRow> {
    let row = diagnoses::get(session, project, id).await?;
    row.ok_or_else(|| QueryError::not_found(Entity::Diagnosis, id))
}

/// One version as an answer shows it.
pub(super) async fn get(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: DiagnosisId,
    caller: &Identity,
) -> Result<Diagnosis> {
    let mut session = ctx.store.db().read().await?;
    let row = required(&mut session, project.get(), id).await?;
    shown(&mut session, project.get(), &row, voter(caller)).await
}

/// The subject as it is stored: a cluster that was made part of another one is that one.
pub(super) async fn existing(
    ctx: &Context,
    project: Authorized<ProjectId>,
    subject: Subject,
) -> Result<Subject> {
    match subject {
        Subject::Cluster(cluster) => Ok(Subject::Cluster(clusters::survivor(ctx, project, cluster).await?)),
        Subject::Execution(execution) => {
            let mut session = ctx.store.db().read().await?;
            required_execution(&mut session, project.get(), execution).await?;
            Ok(subject)
        }
    }
}

/// The version that a subject shows: the one that runs, else the newest.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn latest(
    ctx: &Context,
    project: Authorized<ProjectId>,
    subject: Subject,
    caller: &Identity,
) -> Result<Option<Diagnosis>> {
    Ok(versions(ctx, project, subject, caller, None, 1).await?.items.into_iter().next())
}

/// The version to rely on: the newest one with an answer, else the newest.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn newest(
    ctx: &Context,
    project: Authorized<ProjectId>,
    subject: Subject,
    caller: &Identity,
) -> Result<Option<Diagnosis>> {
    let subject = existing(ctx, project, subject).await?;
    let mut session = ctx.store.db().read().await?;
    match diagnoses::newest_completed(&mut session, project.get(), subject).await? {
        Some(row) => Ok(Some(shown(&mut session, project.get(), &row, voter(caller)).await?)),
        None => {
            drop(session);
            latest(ctx, project, subject, caller).await
        }
    }
}

/// Versions of a subject's diagnosis, newest first; the key is the version.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn versions(
    ctx: &Context,
    project: Authorized<ProjectId>,
    subject: Subject,
    caller: &Identity,
    before: Option<i64>,
    limit: usize,
) -> Result<Slice<Diagnosis, i64>> {
    let subject = existing(ctx, project, subject).await?;
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    let rows = diagnoses::versions(&mut session, project, subject, before, fetch(limit)).await?;
    let rows = Slice::cut(rows, limit, |row| row.version);
    let mut items = Vec::with_capacity(rows.items.len());
    for row in &rows.items {
        items.push(shown(&mut session, project, row, voter(caller)).await?);
    }
    Ok(Slice { items, next: rows.next })
}

/// Waits until a diagnosis has ended, at most `patience`, and returns it as it
/// is then.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn wait_until_done(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: DiagnosisId,
    caller: &Identity,
    patience: Duration,
) -> Result<Diagnosis> {
    let until = Instant::now() + patience;
    loop {
        let row = required(&mut ctx.store.db().read().await?, project.get(), id).await?;
        if !row.status.is_running() || Instant::now() + LOOK_EVERY > until {
            return get(ctx, project, id, caller).await;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
