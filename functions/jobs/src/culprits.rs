//! Culprits of red streaks: what the commits of a range changed.

use callboard_query::scm::{self, FindCulprit};

use crate::job::{JobContext, JobError, Outcome};

/// Reads the commits between the last pass of a test and its failure.
pub(crate) async fn find_culprit(
    ctx: JobContext,
    job: FindCulprit,
) -> Result<Outcome<FindCulprit>, JobError> {
    let (background, access) = (ctx.state().background(), ctx.state().source_control());
    scm::find_culprit(&background, &access, &job, || ctx.has_time(), ctx.now()).await?;
    Ok(Outcome::Done)
}
