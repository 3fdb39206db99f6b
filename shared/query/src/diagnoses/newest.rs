//! The newest diagnosis of a cluster, for what shows it beside other things.

use callboard_domain::ids::{ClusterId, ProjectId};
use callboard_store::db::Session;
use callboard_store::diagnoses::{self, Subject};

use super::shapes::{Diagnosis, DiagnosisBrief};
use crate::Result;

/// The newest answer about a cluster, in short.
pub(crate) async fn brief(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
) -> Result<Option<DiagnosisBrief>> {
    let subject = Subject::Cluster(cluster);
    let running = diagnoses::versions(session, project, subject, None, 1).await?.into_iter().next();
    let completed = diagnoses::newest_completed(session, project, subject).await?;
    Ok(completed.or(running).as_ref().map(DiagnosisBrief::from_row))
}

/// The newest answer about a cluster, for plans: votes are not counted.
pub(crate) async fn newest_completed(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
) -> Result<Option<Diagnosis>> {
    let row = diagnoses::newest_completed(session, project, Subject::Cluster(cluster)).await?;
    Ok(row.as_ref().map(|row| Diagnosis::new(row, &[], 0)))
}
