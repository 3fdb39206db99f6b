//! Shards that are run again while the service does not know yet that the client
//! before them is dead.
//!
//! A client that was killed is taken for alive until it was silent for long enough,
//! and one that comes meanwhile with the same shard might be another leg of a matrix,
//! whose results count beside those of the first. That it took the place of the first
//! is seen later: when that one turns out to have been silent since before it came.
//! Its results are then those of a newer generation, as if it had come later.

use callboard_domain::ids::SlotId;
use callboard_domain::run_life::Successors;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::executions::{self, ExecutionRow};
use callboard_store::runs::slots::SlotRow;
use callboard_store::test_cases;

use super::announce;
use super::changing::{Held, write};
use super::chunk::place_of;
use super::clusters::Failures;
use super::locked::LockedRun;
use super::merging::{decided, stored_attempts};
use super::rollup::Change;
use crate::Result;

/// Executions that are read together.
const PAGE: i64 = 500;

/// Has clients that took the place of others of the run count instead of them.
/// Called when slots of a locked run were found to be lost.
pub(super) async fn take_places(session: &mut Session, locked: &mut LockedRun, now: Timestamp) -> Result<()> {
    let before = locked.run.totals;
    for successors in locked.judge(|slots| slots.successors()) {
        let is_one = |row: &&SlotRow| successors.ordinals.contains(&row.slot.ordinal);
        let own: Vec<SlotId> = locked.slots.iter().filter(is_one).map(|row| row.id).collect();
        for slot in own {
            locked.slot_mut(slot)?.slot.generation += 1;
        }
        let mut after = None;
        loop {
            let (project, run) = (locked.run.project, locked.run.id);
            let page = executions::of_run_after(session, project, run, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            decide_anew(session, locked, &successors, page, now).await?;
        }
    }
    if locked.run.totals != before {
        locked.note(announce::run_progress(&locked.run));
    }
    Ok(())
}

/// Decides executions anew of which the attempts that came through the later slots are of
/// the next generation.
async fn decide_anew(
    session: &mut Session,
    locked: &mut LockedRun,
    successors: &Successors,
    page: Vec<ExecutionRow>,
    now: Timestamp,
) -> Result<()> {
    let place = place_of(&locked.run);
    let mut changes = Vec::new();
    for before in page {
        let mut attempts = stored_attempts(&before)?;
        attempts.regenerate(|attempt| {
            let is_here = i64::from(attempt.generation) == successors.generation
                && attempt.facts.shard_index == Some(successors.shard_index);
            let is_later = attempt.started_at.is_some_and(|at| at >= successors.since);
            attempt.generation + u32::from(is_here && is_later)
        });
        let after = decided(place, before.test_case, before.browser_id, Some(&before), &attempts)?;
        if after != before {
            changes.push(Change { before: Some(before), after, file_path: String::new() });
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    let cases: Vec<i64> = changes.iter().map(|change| change.after.test_case.get()).collect();
    let paths = test_cases::file_paths(session, place.project, cases.clone()).await?;
    for change in &mut changes {
        change.file_path = paths.get(&change.after.test_case).cloned().unwrap_or_default();
    }
    let failures = Failures::of(&[]);
    failures.begin(session, &locked.run, false).await?;
    let (_, predecessors) = executions::of_batch_with_predecessors(session, place, cases).await?;
    let assigned = changes.iter_mut().map(|change| &mut change.after);
    failures.assign(session, &locked.run, assigned, now).await?;
    let lanes = locked.lanes.clone();
    let mut held = Held { run: &mut locked.run, lanes: &lanes, now };
    locked.growth.open_clusters += write(session, &mut held, &mut changes, &predecessors).await?;
    Ok(())
}
