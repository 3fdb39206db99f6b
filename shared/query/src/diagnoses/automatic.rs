//! Diagnoses that nobody requested: new failure clusters of a default branch,
//! when an administrator switched that on.

use callboard_domain::events::DomainEvent;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::clusters::{self, reads};
use callboard_store::db::Session;
use callboard_store::diagnoses::{self, NewDiagnosis, Subject};
use callboard_store::outbox::StoredEvent;
use callboard_store::{projects, runs};

use super::{commands, settings};
use crate::Result;

/// A run that began longer ago than this when it was evaluated is back-filled, and nothing is paid for it, ms.
const BACK_FILLED_AFTER_MS: i64 = 24 * 60 * 60 * 1000;
/// New clusters of a run that are looked at.
const MAX_NEW_CLUSTERS: i64 = 200;

/// Queues diagnoses of the clusters that evaluated runs are the first to show.
pub(crate) async fn diagnose_new_clusters(
    session: &mut Session,
    project: ProjectId,
    events: &[StoredEvent],
    now: Timestamp,
) -> Result<()> {
    let evaluated: Vec<(RunId, Timestamp)> = events
        .iter()
        .filter_map(|stored| match stored.event {
            DomainEvent::RunEvaluated { run, .. } => Some((run, stored.at)),
            _ => None,
        })
        .collect();
    if evaluated.is_empty() {
        return Ok(());
    }
    let settings = settings::read(session).await?;
    if settings.active_model().is_none() || !settings.auto_diagnose {
        return Ok(());
    }
    let Some(default_branch) = projects::get(session, project).await?.and_then(|row| row.default_branch)
    else {
        return Ok(());
    };
    for (run, at) in evaluated {
        let Some(row) = runs::get(session, project, run).await? else { continue };
        let is_recent = at.millis() - row.start_time.millis() <= BACK_FILLED_AFTER_MS;
        if is_recent && row.branch == default_branch {
            diagnose_run(session, project, run, settings.limits.auto_diagnose_max, now).await?;
        }
    }
    Ok(())
}

/// A run can be evaluated several times: what was diagnosed of it before counts.
async fn diagnose_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    max: i64,
    now: Timestamp,
) -> Result<()> {
    let mut room = max;
    let mut undiagnosed = Vec::new();
    for cluster in reads::new_of_run(session, project, run, MAX_NEW_CLUSTERS).await? {
        if diagnoses::versions(session, project, Subject::Cluster(cluster), None, 1).await?.is_empty() {
            undiagnosed.push(cluster);
        } else {
            room -= 1;
        }
    }
    undiagnosed.truncate(usize::try_from(room).unwrap_or(0));
    for cluster in undiagnosed {
        let locked = clusters::lock(session, project, vec![cluster.get()]).await?;
        // Somebody may have requested it in the meantime.
        let is_free =
            diagnoses::versions(session, project, Subject::Cluster(cluster), None, 1).await?.is_empty();
        if !locked.is_empty() && is_free {
            commands::queue(session, project, Subject::Cluster(cluster), NewDiagnosis::default(), now)
                .await?;
        }
    }
    Ok(())
}
