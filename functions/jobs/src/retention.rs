//! What goes by its age.

use callboard_query::retention::{self, ForgetNumbers, Redate};
use callboard_store::jobs::{self, Payload};
use serde::{Deserialize, Serialize};

use crate::job::{JobContext, JobError, Outcome};

/// What is due goes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SweepRetention {}

impl Payload for SweepRetention {
    const KIND: &'static str = "sweep_retention";
}

/// Lets go of runs, files, reports and evidence whose time is over.
pub(crate) async fn sweep_retention(
    ctx: JobContext,
    job: SweepRetention,
) -> Result<Outcome<SweepRetention>, JobError> {
    let grace_ms = ctx.state().config().gc_grace_ms;
    while ctx.has_time() {
        let swept = retention::sweep(&ctx.state().background(), grace_ms, ctx.now()).await?;
        if swept.is_over() {
            return Ok(Outcome::Done);
        }
        tracing::info!(
            runs = swept.runs,
            files = swept.files,
            reports = swept.reports,
            trimmed = swept.trimmed,
            "let go of what was kept long enough"
        );
    }
    Ok(Outcome::GoOn(job))
}

/// Dates what is stored by a policy that was changed, and lets go of what is
/// due by it.
pub(crate) async fn redate_expiry(ctx: JobContext, mut job: Redate) -> Result<Outcome<Redate>, JobError> {
    while ctx.has_time() {
        match retention::redate(&ctx.state().background(), job).await? {
            Some(rest) => job = rest,
            None => {
                let mut session = ctx.store().db().begin().await?;
                let key = format!("{}:after:{}", SweepRetention::KIND, ctx.key());
                jobs::enqueue(&mut session, &key, None, &SweepRetention {}, ctx.now()).await?;
                session.commit().await?;
                return Ok(Outcome::Done);
            }
        }
    }
    Ok(Outcome::GoOn(job))
}

/// Forgets numbers whose time is over.
pub(crate) async fn forget_numbers(
    ctx: JobContext,
    mut job: ForgetNumbers,
) -> Result<Outcome<ForgetNumbers>, JobError> {
    while ctx.has_time() {
        match retention::forget_numbers(&ctx.state().background(), job, ctx.now()).await? {
            Some(rest) => job = rest,
            None => return Ok(Outcome::Done),
        }
    }
    Ok(Outcome::GoOn(job))
}
