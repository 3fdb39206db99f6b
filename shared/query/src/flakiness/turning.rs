//! Tests that became flaky: found when a run is evaluated, among those it completed the proof of.

use callboard_domain::events::DomainEvent;
use callboard_domain::flakiness::newly_flaky;
use callboard_domain::ids::{ExecutionId, ProjectId, RunId};
use callboard_domain::notifications::NotificationEvent;
use callboard_domain::time::Timestamp;
use callboard_store::notifications::subscriptions;
use callboard_store::rollups::scores;
use callboard_store::{boxed, outbox, runs};

use super::{LEAST_COUNTED, LEAST_LISTED, judged_lane};
use crate::test_cases::LaneQuery;
use crate::{Context, Result};

/// Emits which tests became flaky with a run that ended: their score on the branch that speaks for the project has
/// reached the one from which tests count as flaky. Where nobody subscribed to that, nothing is read.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn find_newly_flaky(ctx: &Context, project: ProjectId, run: RunId, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().read().await?;
    let word = NotificationEvent::TestFlaky.as_str();
    let subscriptions = subscriptions::active_for(&mut session, project, now).await?;
    if !subscriptions.iter().any(|one| one.events.iter().any(|event| event == word)) {
        return Ok(());
    }
    let row = runs::get(&mut session, project, run).await?;
    if row.is_none_or(|row| !row.status.is_final() || row.is_mass_failure) {
        return Ok(());
    }
    let Some(lane) = judged_lane(&mut session, project, &LaneQuery::default()).await? else { return Ok(()) };
    let (low, high) = ExecutionId::range_of(run);
    let mut found = Vec::new();
    let of_lane = (vec![project.get()], vec![lane.id]);
    for (_, _, scores::FlakyRow { case: test_case, state }) in
        scores::flaky_in(&mut session, of_lane, LEAST_COUNTED).await?
    {
        // A run that is older than others of the test completes nothing.
        let newest =
            state.identified().rev().take_while(|(_, id, _)| (low..=high).contains(&id.get())).count();
        if newest == 0 {
            continue;
        }
        let bounds = (LEAST_COUNTED, LEAST_LISTED);
        let score = newly_flaky(&state, lane.believes_failures, newest, bounds);
        found.extend(score.map(|score| DomainEvent::TestFlaky { test_case, run, score }));
    }
    drop(session);
    if found.is_empty() {
        return Ok(());
    }
    let mut session = ctx.store.db().begin().await?;
    outbox::append(&mut session, project, &found, now).await?;
    Ok(session.commit().await?)
}
