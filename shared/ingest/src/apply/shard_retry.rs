//! Shards that are run again while the service does not know yet that the client
//! before them is dead.
//!
//! A client that was killed is taken for alive until it was silent for long enough,
//! and one that comes meanwhile with the same shard might be another leg of a matrix,
//! whose results count beside those of the first. That it took the place of the first
//! is seen later: when that one turns out to have been silent since before it came.
//! Its results are then those of a newer generation, as if it had come later. The same
//! happens when an earlier attempt of a CI job arrives after later ones.

use callboard_domain::attempts::{Attempt, AttemptSet};
use callboard_domain::ids::SlotId;
use callboard_domain::run_life::Successors;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::executions;
use callboard_store::runs::slots::SlotRow;

use crate::Result;
use crate::apply::redecide::redecide;
use crate::transaction::run_events;
use crate::transaction::run_transaction::LockedRun;

/// Executions that are read together.
const PAGE: i64 = 500;

/// Has clients that took the place of others of the run count instead of them.
/// Called when slots of a locked run were found to be lost.
pub(crate) async fn take_places(session: &mut Session, locked: &mut LockedRun, now: Timestamp) -> Result<()> {
    let before = locked.run.totals;
    for successors in locked.judge(|slots| slots.successors()) {
        let is_one = |row: &&SlotRow| successors.ordinals.contains(&row.slot.ordinal);
        let own: Vec<SlotId> = locked.slots.iter().filter(is_one).map(|row| row.id).collect();
        for slot in own {
            locked.slot_mut(slot)?.slot.generation += 1;
        }
        regenerate(session, locked, |one| generation_of(one, &successors), now).await?;
    }
    if locked.run.totals != before {
        locked.note(run_events::run_progress(&locked.run));
    }
    Ok(())
}

/// Moves a generation of a shard, and all newer ones, up by one: what comes before them
/// arrived after them. The index is 0 outside shards.
pub(crate) async fn make_room(
    session: &mut Session,
    locked: &mut LockedRun,
    index: i64,
    generation: i64,
    now: Timestamp,
) -> Result<()> {
    let is_later = |row: &&SlotRow| row.slot.shard_index == index && row.slot.generation >= generation;
    let later: Vec<SlotId> = locked.slots.iter().filter(is_later).map(|row| row.id).collect();
    for slot in later {
        locked.slot_mut(slot)?.slot.generation += 1;
    }
    let shard = Some(index).filter(|index| *index > 0);
    let moved = |one: &Attempt| {
        let is_moved = one.facts.shard_index == shard && i64::from(one.generation) >= generation;
        one.generation + u32::from(is_moved)
    };
    regenerate(session, locked, moved, now).await
}

/// Gives the attempts of a run other generations and judges its executions anew.
async fn regenerate(
    session: &mut Session,
    locked: &mut LockedRun,
    generation: impl Fn(&Attempt) -> u32,
    now: Timestamp,
) -> Result<()> {
    let mut after = None;
    loop {
        let (project, run) = (locked.run.project, locked.run.id);
        let page = executions::of_run_after(session, project, run, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.id);
        let change = |attempts: &mut AttemptSet| attempts.regenerate(&generation);
        redecide(session, locked, page, change, now).await?;
    }
}

/// The generation of an attempt: those that came through the later slots are of
/// the next one.
fn generation_of(attempt: &Attempt, successors: &Successors) -> u32 {
    let is_here = i64::from(attempt.generation) == successors.generation
        && attempt.facts.shard_index == Some(successors.shard_index);
    let is_later = attempt.started_at.is_some_and(|at| at >= successors.since);
    attempt.generation + u32::from(is_here && is_later)
}
