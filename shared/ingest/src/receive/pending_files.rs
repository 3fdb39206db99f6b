//! Files that follow the results: who waits for them, and until when.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId, SlotId};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::boxed;

use callboard_store::runs::{self, slots};

use crate::resolve::start_keys;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, Result};
use callboard_core::retry::repeated;

/// Notes that files of a run are being received: the run is not given up
/// meanwhile, however long that takes.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn files_are_coming(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    now: Timestamp,
) -> Result<()> {
    touch_waiting(ctx, (project.get(), run), now).await
}

/// [`files_are_coming`] for whoever sends them.
pub(crate) async fn touch_waiting(
    ctx: &Context,
    (project, run): (ProjectId, RunId),
    now: Timestamp,
) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    runs::touch(&mut session, project, run, now).await?;
    let slots = slots::of_run(&mut session, project, run).await?;
    if let Some(oldest) = slots.iter().find(|row| row.slot.waiting) {
        slots::touch(&mut session, project, oldest.id, now).await?;
    }
    Ok(session.commit().await?)
}

/// The slot of the client that sends files, by what it calls its run itself.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn sender_of_files(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    client_run_id: &str,
) -> Result<Option<SlotId>> {
    let key = start_keys::named(client_run_id);
    let found = slots::by_start_key(&mut ctx.store.db().read().await?, project.get(), &key).await?;
    Ok(found.filter(|found| found.run == run).map(|found| found.slot))
}

/// Files of a run have come: the slot they are `of` stops waiting for some, or the
/// oldest one that waits when nobody knows, and a run that only waited for them is
/// over. Answers where the run stands.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn files_have_come(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    of: Option<SlotId>,
    now: Timestamp,
) -> Result<RunStatus> {
    end_wait_of(ctx, (project.get(), run), of, now).await
}

/// [`files_have_come`] for a client of the run.
pub(crate) async fn end_wait_of(
    ctx: &Context,
    run: (ProjectId, RunId),
    of: Option<SlotId>,
    now: Timestamp,
) -> Result<RunStatus> {
    repeated(|| end_wait(ctx, run, of, now)).await
}

async fn end_wait(
    ctx: &Context,
    (project, run): (ProjectId, RunId),
    of: Option<SlotId>,
    now: Timestamp,
) -> Result<RunStatus> {
    let mut session = ctx.store.db().begin().await?;
    let mut locked = LockedRun::lock(&mut session, project, run).await?;
    if !locked.end_wait(of, now, &ctx.patience)? {
        return Ok(locked.run.status);
    }
    Ok(locked.close(session, now).await?.status)
}
