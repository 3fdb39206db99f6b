//! Turns domain events into feedback that is wanted.

use std::collections::BTreeSet;

use callboard_domain::events::DomainEvent;
use callboard_domain::feedback::FeedbackSettings;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::jobs;
use callboard_store::outbox::StoredEvent;
use callboard_store::{runs, scm_feedback};

use super::posting::PostFeedback;
use crate::{Result, settings};

/// A run that began longer ago than this is back-filled, and says nothing unless it did before, ms.
const SILENT_AFTER_MS: i64 = 24 * 60 * 60 * 1000;

/// Notes what the runs of some events are to say, and queues the posting.
pub(crate) async fn queue_feedback(
    session: &mut Session,
    project: ProjectId,
    events: &[StoredEvent],
    now: Timestamp,
) -> Result<()> {
    let changed: BTreeSet<(RunId, Timestamp)> = events.iter().filter_map(changed_run).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let settings: FeedbackSettings = settings::stored(session, Some(project)).await?;
    if settings.kinds().next().is_none() {
        return Ok(());
    }
    let mut seen = BTreeSet::new();
    for (run, at) in changed.into_iter().rev().filter(|(run, _)| seen.insert(*run)) {
        let Some(row) = runs::get(session, project, run).await? else { continue };
        let is_old = at.millis() - row.start_time.millis() > SILENT_AFTER_MS;
        if is_old && scm_feedback::of_run(session, project, run).await?.is_empty() {
            continue;
        }
        want(session, PostFeedback { project, run, is_asked: false }, &settings, now).await?;
    }
    Ok(())
}

/// The run that an event changes the numbers of.
const fn changed_run(stored: &StoredEvent) -> Option<(RunId, Timestamp)> {
    match &stored.event {
        DomainEvent::RunEvaluated { run, .. } | DomainEvent::RunRevised { run, .. } => {
            Some((*run, stored.at))
        }
        _ => None,
    }
}

/// Notes that a run is to say everything anew; returns the key of the job that does it.
pub(super) async fn want(
    session: &mut Session,
    job: PostFeedback,
    settings: &FeedbackSettings,
    now: Timestamp,
) -> Result<String> {
    let PostFeedback { project, run, .. } = job;
    for kind in settings.kinds() {
        scm_feedback::want(session, project, run, kind, now).await?;
    }
    let rows = scm_feedback::of_run(session, project, run).await?;
    let wanted = rows.iter().map(|row| row.wanted.to_string()).collect::<Vec<_>>().join("-");
    // Rows of a run that was deleted and restored count from the beginning.
    let key = format!("feedback:{project}:{run}:{wanted}:{}", now.millis());
    jobs::enqueue(session, &key, Some(project), &job, now).await?;
    Ok(key)
}
