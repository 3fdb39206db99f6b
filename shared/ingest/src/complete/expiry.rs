//! The expiry of a run and of what belongs to it, by the retention policy that is
//! in force.

use callboard_core::retention::Stored;
use callboard_domain::ids::ProjectId;
use callboard_domain::retention::{Policy, is_tracked};
use callboard_store::projects::ProjectRow;
use callboard_store::retention::{self, Dates};
use callboard_store::runs::RunRow;
use callboard_store::{Session, projects, settings};

use crate::Result;

/// The name of these settings in the store.
pub const GROUP: &str = "retention";

/// Whether the branch of a run is kept as long as the default one.
#[must_use]
pub fn follows(project: &ProjectRow, branch: &str) -> bool {
    is_tracked(branch, project.default_branch.as_deref(), &project.tracked_branches)
}

/// What the installation stores, and what a project does.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn stored_both(session: &mut Session, project: ProjectId) -> Result<(Stored, Stored)> {
    let (of_instance, of_project) = settings::get_both(session, project, GROUP).await?;
    Ok((Stored::read(of_instance.as_ref())?, Stored::read(of_project.as_ref())?))
}

/// The policy in force for a project.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn effective(session: &mut Session, project: ProjectId) -> Result<Policy> {
    let (of_instance, of_project) = stored_both(session, project).await?;
    Ok(of_project.set.over(&of_instance.policy()))
}

/// The policy in force for a project; branches that are still kept like tracked
/// ones count among those of the row from now on.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn effective_for(session: &mut Session, project: &mut ProjectRow) -> Result<Policy> {
    let (of_instance, of_project) = stored_both(session, project.id).await?;
    if let Some(held) = &of_project.held_branches {
        held.add_to(project);
    }
    Ok(of_project.set.over(&of_instance.policy()))
}

fn dates<'p>(policy: &'p Policy, project: &ProjectRow, run: &RunRow) -> Dates<'p> {
    Dates {
        run: policy.runs.end(run.order_at, follows(project, &run.branch)),
        from: run.order_at,
        files: &policy.files,
        evidence: policy.evidence,
    }
}

/// Dates a locked run and all that belongs to it. One that goes on has no
/// dates yet.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn date_run(session: &mut Session, run: &RunRow) -> Result<()> {
    if !run.status.is_final() {
        return Ok(());
    }
    let Some(mut project) = projects::get(session, run.project).await? else { return Ok(()) };
    let policy = effective_for(session, &mut project).await?;
    Ok(retention::date(session, run.project, run.id, &dates(&policy, &project, run)).await?)
}

/// Dates a run by a policy and project that are known.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn date_by(
    session: &mut Session,
    policy: &Policy,
    project: &ProjectRow,
    run: &RunRow,
) -> Result<()> {
    Ok(retention::date(session, run.project, run.id, &dates(policy, project, run)).await?)
}
