//! Uploads that are too large to be verified while their client waits.

use callboard_ingest::VerifyUpload;

use crate::job::{JobContext, JobError, Outcome};

/// Verifies a large upload.
pub(crate) async fn verify_upload(
    ctx: JobContext,
    job: VerifyUpload,
) -> Result<Outcome<VerifyUpload>, JobError> {
    callboard_ingest::verify_upload(&ctx.state().background(), &job, ctx.now()).await?;
    Ok(Outcome::Done)
}
