//! Hiding, restoring and freeing what was deleted.

use callboard_domain::ids::DeletionId;
use callboard_domain::time::Timestamp;
use callboard_query::deletions::{self, Advanced, DeleteTarget, HideTarget, RestoreTarget};
use callboard_store::jobs::Payload;
use serde::{Deserialize, Serialize};

use crate::job::{JobContext, JobError, Outcome};

/// Receipts of one batch.
const BATCH: i64 = 500;
/// Why a deletion of runs is tried again later.
const WAITING: &str = "waits for the restore or the freeing of a deleted project";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Takes what a deletion hid out of the aggregates, step by step.
pub(crate) async fn hide_target(
    ctx: JobContext,
    mut job: HideTarget,
) -> Result<Outcome<HideTarget>, JobError> {
    loop {
        match deletions::advance_hiding(ctx.store(), &mut job, ctx.now()).await? {
            Advanced::Done => return Ok(Outcome::Done),
            Advanced::Further if ctx.has_time() => {}
            Advanced::Further => return Ok(Outcome::GoOn(job)),
            Advanced::Waiting => return Err(JobError::passing(WAITING)),
        }
    }
}

/// Restores the runs of a deletion, step by step.
pub(crate) async fn restore_target(
    ctx: JobContext,
    job: RestoreTarget,
) -> Result<Outcome<RestoreTarget>, JobError> {
    loop {
        match deletions::advance_restoring(ctx.store(), DeletionId(job.receipt), ctx.now()).await? {
            Advanced::Done => return Ok(Outcome::Done),
            Advanced::Further if ctx.has_time() => {}
            Advanced::Further | Advanced::Waiting => return Ok(Outcome::GoOn(job)),
        }
    }
}

/// Frees what a deletion names, step by step.
pub(crate) async fn delete_target(
    ctx: JobContext,
    job: DeleteTarget,
) -> Result<Outcome<DeleteTarget>, JobError> {
    loop {
        match deletions::advance(ctx.store(), &job, ctx.now()).await {
            Ok(Advanced::Done) => return Ok(Outcome::Done),
            Ok(Advanced::Further) if ctx.has_time() => {}
            Ok(Advanced::Further) => return Ok(Outcome::GoOn(job)),
            Ok(Advanced::Waiting) => return Err(JobError::passing(WAITING)),
            Err(error) => {
                let is_last = ctx.is_last_attempt();
                deletions::note_failure(ctx.store(), &job, &error.to_string(), is_last).await?;
                return Err(error.into());
            }
        }
    }
}

/// Deletions and restores that were given up are taken up again, and old receipts go.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ResumeDeletions {}

impl Payload for ResumeDeletions {
    const KIND: &'static str = "resume_deletions";
}

/// Takes deletions and restores up again that failed too often to be tried by themselves.
pub(crate) async fn resume_deletions(
    ctx: JobContext,
    _: ResumeDeletions,
) -> Result<Outcome<ResumeDeletions>, JobError> {
    let resumed = deletions::resume(ctx.store(), ctx.now()).await?;
    if resumed > 0 {
        tracing::warn!(resumed, "deletions and restores that failed are tried again");
    }
    let oldest = ctx.now().millis() - callboard_store::deletions::KEPT_DAYS * DAY_MS;
    let mut session = ctx.store().db().begin().await?;
    callboard_store::deletions::purge(&mut session, Timestamp(oldest), BATCH).await?;
    session.commit().await?;
    Ok(Outcome::Done)
}
