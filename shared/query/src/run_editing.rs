//! What people change about a run: its label, its environment, and that it is
//! kept.

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_ingest::{move_run, run_words};
use callboard_store::db::Session;
use callboard_store::runs::{self, Pin, RunRow, compared};
use callboard_store::search::{self, SearchKind};
use serde_json::{Value, json};

use crate::accounts::Acting;
use crate::runs::required_run;
use crate::{Change, Context, Result};

/// An edit of a run.
#[derive(Debug, Clone, Default)]
pub struct RunEdit {
    /// Display label. An edited one is never overwritten by what clients send.
    pub label: Change<String>,
    /// Environment; its numbers follow by a job.
    pub environment: Change<String>,
}

/// Edits a run.
///
/// # Errors
/// [`crate::LifeRefusal::NotFinished`] when a run that goes on is to change its
/// environment; [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
pub async fn edit(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    run: RunId,
    edit: RunEdit,
) -> Result<()> {
    let environment = match edit.environment {
        Change::Keep => None,
        Change::Clear => Some(String::new()),
        Change::Set(environment) => Some(environment),
    };
    if let Some(environment) = environment {
        move_run(ctx, acting, project, run, &environment).await?;
    }
    let mut session = ctx.store.db().begin().await?;
    let row = locked(&mut session, project.get(), run).await?;
    let label = edit.label.applied_to(row.label.clone());
    if label == row.label && (row.label_is_edited || label.is_none()) {
        return Ok(());
    }
    compared::set_label(&mut session, project.get(), run, label.as_deref(), acting.now).await?;
    let found_by = run_words(label.as_deref(), &row.branch);
    search::replace(&mut session, project.get(), SearchKind::Run, run.get(), found_by).await?;
    let detail = json!({ "changed": ["label"], "label": { "from": row.label, "to": label } });
    note(session, acting, &row, detail).await
}

/// Keeps a run and its evidence whatever retention says.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
pub async fn pin(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    run: RunId,
    reason: Option<String>,
) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let row = locked(&mut session, project.get(), run).await?;
    if row.pin.as_ref().is_some_and(|pin| pin.reason == reason) {
        return Ok(());
    }
    let detail = json!({ "changed": ["pin"], "pinned": true, "reason": reason });
    let pin = Pin { at: acting.now, by: acting.caller.user_id(), reason };
    compared::set_pin(&mut session, project.get(), run, Some(&pin), acting.now).await?;
    note(session, acting, &row, detail).await
}

/// Leaves a run to retention again.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
pub async fn unpin(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    run: RunId,
) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let row = locked(&mut session, project.get(), run).await?;
    if row.pin.is_none() {
        return Ok(());
    }
    compared::set_pin(&mut session, project.get(), run, None, acting.now).await?;
    note(session, acting, &row, json!({ "changed": ["pin"], "pinned": false })).await
}

async fn locked(session: &mut Session, project: ProjectId, run: RunId) -> Result<RunRow> {
    required_run(session, project, run).await?;
    Ok(runs::lock(session, project, run).await?)
}

async fn note(mut session: Session, acting: Acting<'_>, run: &RunRow, detail: Value) -> Result<()> {
    let target = ("run", run.id.get());
    let noted =
        acting.record(&mut session, AuditAction::RunChanged, target, Some(run.project), detail).await?;
    session.commit().await?;
    noted.committed();
    Ok(())
}
