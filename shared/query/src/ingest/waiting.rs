//! Files that follow the results: who waits for them, and until when.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;

use callboard_store::runs::{self, slots};

use super::locked::LockedRun;
use crate::{Context, Result};

/// Notes that files of a run are being received: the run is not given up
/// meanwhile, however long that takes.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn files_are_coming(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    now: Timestamp,
) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    runs::touch(&mut session, project.get(), run, now).await?;
    let slots = slots::of_run(&mut session, project.get(), run).await?;
    if let Some(oldest) = slots.iter().find(|row| row.slot.waiting) {
        slots::touch(&mut session, project.get(), oldest.id, now).await?;
    }
    Ok(session.commit().await?)
}

/// Files of a run have come: the oldest slot that waits for some stops
/// waiting, and a run that only waited for them is over. Answers where the run
/// stands.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn files_have_come(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    now: Timestamp,
) -> Result<RunStatus> {
    let mut session = ctx.store.db().begin().await?;
    let mut locked = LockedRun::lock(&mut session, project.get(), run).await?;
    if !locked.end_wait(now, &ctx.patience)? {
        return Ok(locked.run.status);
    }
    Ok(locked.close(session, now).await?.status)
}
