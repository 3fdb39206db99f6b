//! Objects that no row refers to: staged uploads, what a crash or a broken-off
//! upload left, and content whose last reference is gone.

use callboard_query::storage::{self, SweptNow};
use callboard_store::blobs::collect;
use callboard_store::jobs::Payload;
use callboard_store::reports;
use callboard_store::unclaimed::{self, Swept};
use serde::{Deserialize, Serialize};

use super::BATCH;
use crate::job::{JobContext, JobError, Outcome};

/// Staged uploads, and objects written for rows that never came, are deleted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SweepStaging {
    /// Deleted so far.
    #[serde(default)]
    orphans: i64,
}

impl Payload for SweepStaging {
    const KIND: &'static str = "sweep_staging";
}

/// Deletes what uploads left behind a day ago.
pub(crate) async fn sweep_staging(
    ctx: JobContext,
    job: SweepStaging,
) -> Result<Outcome<SweepStaging>, JobError> {
    let mut job = job;
    while ctx.has_time() {
        let mut session = ctx.store().db().begin().await?;
        let left = reports::discard_left(&mut session, ctx.now(), BATCH).await?;
        session.commit().await?;
        let staged = unclaimed::sweep_staging(ctx.store(), ctx.now(), BATCH).await?;
        let unclaimed = unclaimed::sweep(ctx.store(), ctx.now(), BATCH).await?;
        let swept = progress(&[staged, unclaimed])?;
        job.orphans += i64::try_from(swept).unwrap_or(i64::MAX);
        if left + swept == 0 {
            let swept = SweptNow::Orphans(job.orphans);
            storage::note_sweep(&ctx.state().background(), swept, ctx.now()).await?;
            return Ok(Outcome::Done);
        }
        tracing::info!(staged = staged.deleted, unclaimed = unclaimed.deleted, "deleted what uploads left");
    }
    Ok(Outcome::GoOn(job))
}

/// Content that nothing refers to is collected.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SweepObjects {
    /// Deleted so far.
    #[serde(default)]
    objects: i64,
    /// Their bytes.
    #[serde(default)]
    bytes: i64,
}

impl Payload for SweepObjects {
    const KIND: &'static str = "sweep_objects";
}

/// Collects content without references, after the configured grace period.
pub(crate) async fn sweep_objects(
    ctx: JobContext,
    job: SweepObjects,
) -> Result<Outcome<SweepObjects>, JobError> {
    let grace_ms = ctx.state().config().gc_grace_ms;
    let mut job = job;
    while ctx.has_time() {
        let condemned = collect::condemn_pending(ctx.store(), ctx.now(), BATCH).await?;
        let collected = collect::collect(ctx.store(), grace_ms, ctx.now(), BATCH).await?;
        let deleted = progress(&[collected])?;
        job.objects += i64::try_from(deleted).unwrap_or(i64::MAX);
        job.bytes += collected.bytes;
        if condemned == 0 && deleted == 0 {
            let swept = SweptNow::Content(job.objects, job.bytes);
            storage::note_sweep(&ctx.state().background(), swept, ctx.now()).await?;
            return Ok(Outcome::Done);
        }
        tracing::info!(condemned, deleted, "collected content that nothing refers to");
    }
    Ok(Outcome::GoOn(job))
}

/// How many objects went; an error when the store refused some, so that the
/// job waits before it asks again.
fn progress(batches: &[Swept]) -> Result<usize, JobError> {
    let refused: usize = batches.iter().map(|swept| swept.refused).sum();
    if refused > 0 {
        return Err(JobError::passing(format!("the object store refused to delete {refused} objects")));
    }
    Ok(batches.iter().map(|swept| swept.deleted).sum())
}
