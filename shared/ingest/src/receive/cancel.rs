//! Ending a run by hand.

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::run_life::EndReason;
use callboard_domain::status::RunStatus;
use callboard_store::runs::tokens;

use serde_json::json;

use crate::apply::pending;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, LifeRefusal, Result};
use callboard_core::Acting;

/// Cancels an unfinished run. Its tokens are revoked, so none of its clients
/// revives it.
///
/// # Errors
/// [`LifeRefusal::AlreadyFinished`] when it is over.
pub async fn cancel(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    run: RunId,
) -> Result<()> {
    let now = acting.now;
    pending::apply_pending_for_run(ctx, project.get(), run).await?;
    let mut session = ctx.store.db().begin().await?;
    let mut locked = LockedRun::lock(&mut session, project.get(), run).await?;
    if locked.run.status.is_final() {
        return Err(LifeRefusal::AlreadyFinished.into());
    }
    locked.abort(RunStatus::Cancelled, EndReason::User, now);
    let revoked = tokens::revoke(&mut session, project.get(), run, now).await?;
    let (target, within) = (("run", run.get()), Some(project.get()));
    let mut noted = vec![
        acting
            .record(&mut session, AuditAction::RunChanged, target, within, json!({ "status": "cancelled" }))
            .await?,
    ];
    if revoked > 0 {
        let detail = json!({ "tokens": revoked });
        noted.push(acting.record(&mut session, AuditAction::TokenRevoked, target, within, detail).await?);
    }
    locked.close(session, now).await?;
    for entry in noted {
        entry.committed();
    }
    Ok(())
}
