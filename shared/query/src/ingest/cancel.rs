//! Ending a run by hand.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::run_life::EndReason;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::runs::tokens;

use super::locked::LockedRun;
use crate::{Context, LifeRefusal, Result};

/// Cancels an unfinished run. Its tokens are revoked, so none of its clients
/// revives it.
///
/// # Errors
/// [`LifeRefusal::AlreadyFinished`] when it is over.
pub async fn cancel(ctx: &Context, project: Authorized<ProjectId>, run: RunId, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let mut locked = LockedRun::lock(&mut session, project.get(), run).await?;
    if locked.run.status.is_final() {
        return Err(LifeRefusal::AlreadyFinished.into());
    }
    locked.give_up(RunStatus::Cancelled, EndReason::User, now);
    tokens::revoke(&mut session, project.get(), run, now).await?;
    locked.close(session, now).await?;
    Ok(())
}
