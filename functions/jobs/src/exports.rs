//! Exports that were asked for and are larger than an answer.

use callboard_query::exports::later::{self, MakeExport};

use crate::job::{JobContext, JobError, Outcome};

/// Writes the file of an export.
pub(crate) async fn make_export(ctx: JobContext, job: MakeExport) -> Result<Outcome<MakeExport>, JobError> {
    later::make(&ctx.state().background(), &job, ctx.is_last_attempt(), ctx.now()).await?;
    Ok(Outcome::Done)
}
