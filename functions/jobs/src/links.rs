//! Looks at the addresses of links.

use callboard_domain::page_title::page_title;
use callboard_platform::egress::UserUrl;
use callboard_query::links::{self, Unfurl};

use crate::job::{JobContext, JobError, Outcome};

/// Asks the address of a link what it is called. One that is not reached, or
/// does not answer, leaves the link as it is; people can ask again.
pub(crate) async fn unfurl(ctx: JobContext, job: Unfurl) -> Result<Outcome<Unfurl>, JobError> {
    let client = UserUrl::new(ctx.state().config().egress_allow.clone());
    match client.get(&job.url).await {
        Ok(answer) if answer.status.is_success() => {
            let title = page_title(&String::from_utf8_lossy(&answer.body));
            links::told(&ctx.state().background(), &job, title, ctx.now()).await?;
        }
        Ok(answer) => tracing::debug!(link = job.link, status = %answer.status, "an address told nothing"),
        Err(error) => tracing::debug!(link = job.link, %error, "an address was not read"),
    }
    Ok(Outcome::Done)
}
