//! The queue forgets what it did long ago.

use callboard_domain::time::Timestamp;
use callboard_store::jobs::{self, Payload};
use serde::{Deserialize, Serialize};

use super::{BATCH, DAY_MS};
use crate::job::{JobContext, JobError, Outcome};
use crate::registry::KINDS;

/// A job that is done keeps its key, hence from being done again, this long.
const KEPT_DAYS: i64 = 30;
/// The job of a period is of no interest longer than this, however it ended.
const PERIODIC_KEPT_DAYS: i64 = 1;

/// Old jobs are purged.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PurgeJobs {}

impl Payload for PurgeJobs {
    const KIND: &'static str = "purge_jobs";
}

/// Deletes jobs that were done long ago. Parked ones stay until somebody has
/// looked, but for those of past periods.
pub(crate) async fn purge_jobs(ctx: JobContext, job: PurgeJobs) -> Result<Outcome<PurgeJobs>, JobError> {
    let before = |days: i64| Timestamp(ctx.now().millis() - days * DAY_MS);
    let periodic = KINDS.periodic_names();
    while ctx.has_time() {
        let mut session = ctx.store().db().begin().await?;
        let done = jobs::purge_done(&mut session, before(KEPT_DAYS), BATCH).await?;
        let past = jobs::purge_periodic(&mut session, &periodic, before(PERIODIC_KEPT_DAYS), BATCH).await?;
        session.commit().await?;
        if done + past == 0 {
            return Ok(Outcome::Done);
        }
    }
    Ok(Outcome::GoOn(job))
}
