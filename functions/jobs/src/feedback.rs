//! Comments and statuses of runs at their code hosts.

use callboard_query::feedback::{self, PostFeedback};
use callboard_store::jobs::Payload;
use serde::{Deserialize, Serialize};

use crate::job::{JobContext, JobError, Outcome};

/// Posts what a run says. Its next attempt, if it needs one, is another job.
pub(crate) async fn post_feedback(
    ctx: JobContext,
    job: PostFeedback,
) -> Result<Outcome<PostFeedback>, JobError> {
    let (background, access) = (ctx.state().background(), ctx.state().source_control());
    feedback::post(&background, &access, job, ctx.now()).await?;
    Ok(Outcome::Done)
}

/// Old entries of the logs are deleted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PurgeFeedback {}

impl Payload for PurgeFeedback {
    const KIND: &'static str = "purge_feedback";
}

/// Deletes entries that nobody will look up any more.
pub(crate) async fn purge_feedback(
    ctx: JobContext,
    job: PurgeFeedback,
) -> Result<Outcome<PurgeFeedback>, JobError> {
    while ctx.has_time() {
        if !feedback::purge_log(&ctx.state().background(), ctx.now()).await? {
            return Ok(Outcome::Done);
        }
    }
    Ok(Outcome::GoOn(job))
}
