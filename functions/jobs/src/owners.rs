//! Owners of tests follow the CODEOWNERS files of their repositories.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_query::scm::{self, SourceControlError};
use callboard_store::jobs::Payload;
use callboard_store::projects::edit::with_repository;
use serde::{Deserialize, Serialize};

use crate::job::{JobContext, JobError, Outcome};

/// Projects that are listed at a time.
const PROJECTS: i64 = 50;

/// Tests of projects with a repository are matched with its CODEOWNERS file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct RefreshOwners {
    /// Projects up to this one are done.
    after: i64,
}

impl Payload for RefreshOwners {
    const KIND: &'static str = "refresh_owners";
}

/// Reads the files of all projects with a repository and a token for it, one after the other. A project
/// whose host does not answer keeps its owners.
pub(crate) async fn refresh_owners(
    ctx: JobContext,
    mut job: RefreshOwners,
) -> Result<Outcome<RefreshOwners>, JobError> {
    loop {
        let mut session = ctx.store().db().read().await?;
        let projects = with_repository(&mut session, ProjectId(job.after), PROJECTS).await?;
        drop(session);
        if projects.is_empty() {
            return Ok(Outcome::Done);
        }
        for project in projects {
            let (background, access) = (ctx.state().background(), ctx.state().source_control());
            let project_of_job = Authorized::of_job(project);
            if !scm::has_repository(&background, project_of_job).await? {
                job.after = project.get();
                continue;
            }
            let has_time = || ctx.has_time();
            let refreshed =
                scm::refresh_owners(&background, &access, project_of_job, has_time, ctx.now()).await;
            match refreshed {
                Ok(true) => return Ok(Outcome::GoOn(job)),
                Ok(false) => {}
                Err(SourceControlError::Query(error)) => return Err(error.into()),
                Err(error) => tracing::info!(project = project.get(), %error, "owners were not read"),
            }
            job.after = project.get();
            if !ctx.has_time() {
                return Ok(Outcome::GoOn(job));
            }
        }
    }
}
