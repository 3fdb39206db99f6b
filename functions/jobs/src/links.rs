//! Looks at the addresses of links.

use callboard_auth::scope::Authorized;
use callboard_domain::page_title::page_title;
use callboard_platform::egress::UserUrl;
use callboard_query::links::{self, Unfurl};
use callboard_query::scm::{self, SourceControlError};

use crate::job::{JobContext, JobError, Outcome};

/// Asks the address of a link what it is called, and the code host how an issue or
/// request of the project's repository stands. What is not reached, or does not
/// answer, leaves the link as it is; people can ask again.
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
    let (background, access) = (ctx.state().background(), ctx.state().source_control());
    let project = Authorized::of_job(job.project);
    let addresses = std::iter::once(job.url.as_str());
    match scm::refresh_tickets(&background, &access, project, addresses, ctx.now()).await {
        Ok(()) => Ok(Outcome::Done),
        Err(SourceControlError::Query(error)) => Err(error.into()),
        // A project without a repository has no issues to read.
        Err(_) => Ok(Outcome::Done),
    }
}
