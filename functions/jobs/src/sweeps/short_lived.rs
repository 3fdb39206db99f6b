//! Rows that were made to end: counters of limits, sessions, links, keys of
//! repeated requests, exports, answers of code hosts, and the oldest of the
//! audit log.

use callboard_domain::time::Timestamp;
use callboard_store::accounts::{sessions, tokens, used_states};
use callboard_store::jobs::Payload;
use callboard_store::{audit, exports, idempotency, rate_limits, scm_cache};
use serde::{Deserialize, Serialize};

use super::{BATCH, DAY_MS};
use crate::job::{JobContext, JobError, Outcome};

/// Rows whose time is over are purged.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PurgeShortLived {}

impl Payload for PurgeShortLived {
    const KIND: &'static str = "purge_short_lived";
}

/// Deletes rows whose time is over. None of them opens or stops anything any
/// more; they only take room.
pub(crate) async fn purge_short_lived(
    ctx: JobContext,
    job: PurgeShortLived,
) -> Result<Outcome<PurgeShortLived>, JobError> {
    while ctx.has_time() {
        let now = ctx.now();
        let oldest_audited = Timestamp(now.millis() - audit::KEPT_DAYS * DAY_MS);
        let mut session = ctx.store().db().begin().await?;
        let purged = [
            rate_limits::purge(&mut session, now, BATCH).await?,
            sessions::purge(&mut session, now, BATCH).await?,
            tokens::purge(&mut session, now, BATCH).await?,
            used_states::purge(&mut session, now, BATCH).await?,
            idempotency::purge(&mut session, now, BATCH).await?,
            audit::purge(&mut session, oldest_audited, BATCH).await?,
            exports::purge(&mut session, now, BATCH).await?,
            scm_cache::purge(&mut session, now, BATCH).await?,
        ];
        session.commit().await?;
        if purged.iter().all(|rows| *rows == 0) {
            return Ok(Outcome::Done);
        }
    }
    Ok(Outcome::GoOn(job))
}
