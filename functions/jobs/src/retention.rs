//! What goes by its age.

use callboard_platform::config::Platform;
use callboard_query::retention::{self, ApplyRetention, ForgetNumbers, Redate};
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
    // Functions have no start; what their environment sets is compared here.
    if ctx.state().config().platform == Platform::Lambda {
        retention::start(&ctx.state().background(), ctx.now()).await?;
    }
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

/// The storage pages say what each preset would free.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct EstimateRetention {}

impl Payload for EstimateRetention {
    const KIND: &'static str = "estimate_retention";
}

/// Counts what each preset would free.
pub(crate) async fn estimate_retention(
    ctx: JobContext,
    _: EstimateRetention,
) -> Result<Outcome<EstimateRetention>, JobError> {
    retention::estimate_presets(&ctx.state().background(), ctx.now()).await?;
    Ok(Outcome::Done)
}

/// Brings a change of the policy into force whose grace is over.
pub(crate) async fn apply_retention(
    ctx: JobContext,
    job: ApplyRetention,
) -> Result<Outcome<ApplyRetention>, JobError> {
    retention::apply(&ctx.state().background(), job, ctx.now()).await?;
    Ok(Outcome::Done)
}

/// Dates what is stored by a policy that was changed, and lets go of what is
/// due by it.
pub(crate) async fn redate_expiry(ctx: JobContext, job: Redate) -> Result<Outcome<Redate>, JobError> {
    let background = ctx.state().background();
    let outcome = ctx.in_steps(job, |job| retention::redate(&background, job)).await?;
    if matches!(outcome, Outcome::Done) {
        let mut session = ctx.store().db().begin().await?;
        let key = format!("{}:after:{}", SweepRetention::KIND, ctx.key());
        jobs::enqueue(&mut session, &key, None, &SweepRetention {}, ctx.now()).await?;
        session.commit().await?;
    }
    Ok(outcome)
}

/// Forgets numbers whose time is over.
pub(crate) async fn forget_numbers(
    ctx: JobContext,
    job: ForgetNumbers,
) -> Result<Outcome<ForgetNumbers>, JobError> {
    let background = ctx.state().background();
    ctx.in_steps(job, |job| retention::forget_numbers(&background, job, ctx.now())).await
}
