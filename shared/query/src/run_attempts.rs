//! What a run was after each of its attempts: before the re-runs that joined it, and
//! after each of them.

use callboard_domain::run_life::{Slot, Slots};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_ingest::{outcome_of, run_errors, stored_attempts};
use callboard_store::db::Session;
use callboard_store::executions;
use callboard_store::runs::RunRow;
use callboard_store::runs::slots::SlotRow;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Result;
use crate::shapes::Totals;
use crate::shapes::words::RunStatusWord;

/// Executions read at a time.
const PAGE: i64 = 500;
/// Attempts that are shown: the first ones.
const MAX_ATTEMPTS: i64 = 20;

/// A run as it stood after one of its attempts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunAttempt {
    /// 1 for the first attempt; every re-run is one more.
    #[schema(example = 1)]
    pub attempt: i64,
    /// How the run ended by it, or where it stands.
    #[schema(value_type = RunStatusWord)]
    pub status: RunStatus,
    /// When it began, by the clock of its client.
    #[schema(value_type = String, format = DateTime)]
    pub start_time: Timestamp,
    /// How long it took, from the earliest start to the latest end of its shards.
    pub duration: Option<i64>,
    /// The shards that it ran; empty in a run without shards.
    pub shards: Vec<i64>,
    /// Totals of the run after it.
    #[serde(flatten)]
    pub totals: Totals,
}

/// The attempts of a run, oldest first; none of a run that was never re-run.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub(crate) async fn of_run(session: &mut Session, run: &RunRow, rows: &[SlotRow]) -> Result<Vec<RunAttempt>> {
    let all = slots_where(rows, |_| true);
    let newest = judged(run, &all).newest_generation();
    if newest == 0 {
        return Ok(Vec::new());
    }
    let totals = totals_by_generation(session, run, newest).await?;
    let mut attempts = Vec::new();
    for (generation, totals) in (0..).zip(totals) {
        let of_attempt: Vec<Slot> = slots_where(rows, |slot| slot.generation == generation);
        let Some(start_time) = of_attempt.iter().map(|slot| slot.start_time).min() else { continue };
        let until = slots_where(rows, |slot| slot.generation <= generation);
        let status = if generation == newest {
            run.status
        } else {
            let errors = run_errors::of_slots(rows, judged(run, &until).deciding());
            outcome_of(&judged(run, &until), &totals, !errors.is_empty())
        };
        let mut shards: Vec<i64> = of_attempt.iter().map(|slot| slot.shard_index).collect();
        shards.retain(|index| *index > 0);
        shards.sort_unstable();
        shards.dedup();
        attempts.push(RunAttempt {
            attempt: generation + 1,
            status,
            start_time,
            duration: judged(run, &of_attempt).duration_ms(),
            shards,
            totals: totals.into(),
        });
    }
    Ok(attempts)
}

fn judged<'s>(run: &RunRow, all: &'s [Slot]) -> Slots<'s> {
    Slots { all, shard_total: run.shard_total, is_rerun: run.rerun_of.is_some() }
}

fn slots_where(rows: &[SlotRow], is_wanted: impl Fn(&Slot) -> bool) -> Vec<Slot> {
    rows.iter().map(|row| &row.slot).filter(|slot| is_wanted(slot)).cloned().collect()
}

/// The totals of a run after each generation of its slots. What has only one attempt
/// has been there from the first one on.
async fn totals_by_generation(
    session: &mut Session,
    run: &RunRow,
    newest: i64,
) -> Result<Vec<callboard_domain::totals::Totals>> {
    let shown = usize::try_from(newest.min(MAX_ATTEMPTS - 1) + 1).unwrap_or(1);
    let mut totals = vec![run.totals; shown];
    let mut after = None;
    loop {
        let page = executions::with_attempts_after(session, run.project, run.id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(totals) };
        after = Some(last.id);
        for row in &page {
            let attempts = stored_attempts(row)?;
            for (generation, totals) in (0..).zip(&mut totals) {
                totals.count(row.outcome, -1);
                if let Some(decision) = attempts.decide_until(generation) {
                    totals.count(decision.outcome(), 1);
                }
            }
        }
    }
}
