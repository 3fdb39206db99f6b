//! Tests that became slower for good: found when a run is evaluated, among the tests that passed in it.

use std::collections::BTreeMap;

use callboard_domain::events::DomainEvent;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::notifications::NotificationEvent;
use callboard_domain::shifts::newly_slower;
use callboard_domain::status::Outcome;
use callboard_domain::test_state::TestState;
use callboard_domain::time::Timestamp;
use callboard_store::executions::brief;
use callboard_store::notifications::subscriptions;
use callboard_store::{boxed, outbox, rollups, runs};

use crate::{Context, Result};

/// Executions of a run that are looked at together.
const BATCH: i64 = 500;

/// Emits which tests became slower for good with a run that ended. Where nobody subscribed to that, nothing is read.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn judge_durations(ctx: &Context, project: ProjectId, run: RunId, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().read().await?;
    let word = NotificationEvent::TestSlower.as_str();
    let subscriptions = subscriptions::active_for(&mut session, project, now).await?;
    if !subscriptions.iter().any(|one| one.events.iter().any(|event| event == word)) {
        return Ok(());
    }
    let Some(row) = runs::get(&mut session, project, run).await? else { return Ok(()) };
    if !row.status.is_final() {
        return Ok(());
    }
    let (mut after, mut found) = (None, Vec::new());
    loop {
        let executions = brief::of_run(&mut session, project, run, after, BATCH).await?;
        let Some(last) = executions.last() else { break };
        after = Some(last.id);
        let passed = executions.iter().filter(|one| one.outcome == Outcome::Passed);
        let mut cases: Vec<i64> = passed.map(|one| one.test_case.get()).collect();
        cases.sort_unstable();
        cases.dedup();
        for (test_case, state) in rollups::states_in(&mut session, project, row.lane_id, cases).await? {
            let shift = series(&state).values().find_map(|durations| newly_slower(durations));
            found.extend(shift.map(|shift| DomainEvent::TestSlower {
                test_case,
                run,
                before_ms: shift.before_ms,
                after_ms: shift.after_ms,
            }));
        }
    }
    drop(session);
    if found.is_empty() {
        return Ok(());
    }
    let mut session = ctx.store.db().begin().await?;
    outbox::append(&mut session, project, &found, now).await?;
    Ok(session.commit().await?)
}

/// Durations of the passes of a test, oldest first, by browser.
fn series(state: &TestState) -> BTreeMap<u8, Vec<i64>> {
    let mut series: BTreeMap<u8, Vec<i64>> = BTreeMap::new();
    for recent in state.recent().filter(|recent| recent.outcome == Outcome::Passed) {
        if let Some(duration) = recent.duration_ms {
            series.entry(recent.browser_slot).or_default().push(duration);
        }
    }
    series
}
