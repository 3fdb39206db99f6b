//! Diagnoses by the configured model.

use callboard_query::diagnoses::{self, Diagnose, JobEnd};

use crate::job::{JobContext, JobError, Outcome};

/// Makes a diagnosis. When the process stops, another one goes on.
pub(crate) async fn diagnose(ctx: JobContext, job: Diagnose) -> Result<Outcome<Diagnose>, JobError> {
    let (background, access) = (ctx.state().background(), ctx.state().model_access());
    let is_last = ctx.is_last_attempt();
    let ended =
        diagnoses::run(&background, &access, &job, is_last, || ctx.is_stopping(), || ctx.now()).await?;
    Ok(match ended {
        JobEnd::Done => Outcome::Done,
        JobEnd::Interrupted => Outcome::GoOn(job),
    })
}
