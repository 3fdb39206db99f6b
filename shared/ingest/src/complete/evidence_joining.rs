//! After the end of a run the evidence it was sent in small parts is joined
//! into few objects.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::evidence::joining;
use callboard_store::jobs::{self, Payload};
use serde::{Deserialize, Serialize};

use crate::{Context, Result};

/// A run whose evidence lies in parts.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct JoinEvidence {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
}

impl Payload for JoinEvidence {
    const KIND: &'static str = "join_evidence";
}

/// Queues the work, when the run has evidence it is worth for.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn queue_joining(ctx: &Context, project: ProjectId, run: RunId, now: Timestamp) -> Result<()> {
    if !joining::is_worth_it(&mut ctx.store.db().read().await?, project, run).await? {
        return Ok(());
    }
    let mut session = ctx.store.db().begin().await?;
    let key = format!("run:{run}:evidence:{now}", now = now.millis());
    jobs::enqueue(&mut session, &key, Some(project), &JoinEvidence { project, run }, now).await?;
    session.commit().await?;
    Ok(())
}

/// Joins some of it; whether there may be more.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn join_evidence(ctx: &Context, job: JoinEvidence, now: Timestamp) -> Result<bool> {
    Ok(joining::join(&ctx.store, job.project, job.run, now).await?)
}
