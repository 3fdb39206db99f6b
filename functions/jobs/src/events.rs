//! Delivery of domain events, and deleting old ones.

use callboard_query::events::{self, DeliverEvents};
use callboard_store::jobs::Payload;
use serde::{Deserialize, Serialize};

use crate::job::{JobContext, JobError, Outcome};

/// The new events of a project are handled.
pub(crate) async fn deliver_events(
    ctx: JobContext,
    job: DeliverEvents,
) -> Result<Outcome<DeliverEvents>, JobError> {
    events::deliver(&ctx.state().background(), job.project, ctx.now()).await?;
    Ok(Outcome::Done)
}

/// Deliveries that were lost or failed are made up for.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ResumeDeliveries {}

impl Payload for ResumeDeliveries {
    const KIND: &'static str = "resume_event_deliveries";
}

/// Delivers the events of all projects that still have some.
pub(crate) async fn resume_deliveries(
    ctx: JobContext,
    _: ResumeDeliveries,
) -> Result<Outcome<ResumeDeliveries>, JobError> {
    events::resume(&ctx.state().background(), ctx.now()).await?;
    Ok(Outcome::Done)
}

/// Old events are deleted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PurgeEvents {}

impl Payload for PurgeEvents {
    const KIND: &'static str = "purge_events";
}

/// Deletes events that every subscriber has had time for.
pub(crate) async fn purge_events(
    ctx: JobContext,
    job: PurgeEvents,
) -> Result<Outcome<PurgeEvents>, JobError> {
    while ctx.has_time() {
        if !events::purge(&ctx.state().background(), ctx.now()).await? {
            return Ok(Outcome::Done);
        }
    }
    Ok(Outcome::GoOn(job))
}
