//! Feeding a run: events, signs of life, the end. Every call is a client of
//! one slot, recognised by its token; a run that was taken for over goes on.

use std::collections::HashMap;

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::ingest::{EventsBody, RunFields, TestCaseEntry, Warnings};
use callboard_domain::run_life::SlotState;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::evidence;
use callboard_store::feed::NewEvent;
use callboard_store::runs::tokens::TokenKind;
use callboard_store::runs::{self, slots};

use super::announce::{self, Told};
use super::bearer::{self, Bearer};
use super::chunk::{self, Folded, Group, Known, Target};
use super::describing::{self, Plan};
use super::locked::{ACTIVITY_STEP_MS, LockedRun};
use super::packing::Packed;
use super::rollup;
use super::writer::{CONFLICT_ATTEMPTS, chunks};
use crate::{Context, QueryError, Result};

/// What became of the events of a call.
#[derive(Debug)]
pub struct EventsTaken {
    /// Events that count, those that were known included.
    pub processed: usize,
    /// Attempts nobody knew of.
    pub inserted: usize,
    /// Events that were left out.
    pub ignored: usize,
    /// Why.
    pub warnings: Warnings,
}

/// Takes the events of a running client. Sending them again changes nothing.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Token`], [`QueryError::Life`].
pub async fn events(ctx: &Context, run: RunId, body: EventsBody, now: Timestamp) -> Result<EventsTaken> {
    let bearer = bearer::recognise(ctx, run, body.stream_token.as_deref(), TokenKind::Stream, now).await?;
    let EventsBody { begun, steps, completes, processed, ignored, .. } = body;
    let (mut entries, warnings) = (completes.entries, completes.warnings);
    let told: HashMap<usize, Told> = entries.iter().map(|entry| (entry.index, Told::of(entry))).collect();
    bearer.refuse_early()?;
    let packed = Packed::write(ctx, bearer.project, Some(run), &mut entries, now).await?;
    let mut passing = Vec::with_capacity(begun.len() + steps.len());
    passing.extend(begun.iter().map(announce::test_begun));
    passing.extend(steps.iter().map(announce::step));
    let mut feeding = Feeding { ctx, run, bearer, told, packed, is_recorded: false, inserted: 0, now };
    let fed = feeding.feed(entries, passing).await;
    if !feeding.is_recorded {
        feeding.packed.discard(ctx, fed.as_ref().err()).await;
    }
    fed?;
    Ok(EventsTaken { processed, inserted: feeding.inserted, ignored, warnings })
}

struct Feeding<'a> {
    ctx: &'a Context,
    run: RunId,
    bearer: Bearer,
    told: HashMap<usize, Told>,
    packed: Packed,
    is_recorded: bool,
    inserted: usize,
    now: Timestamp,
}

impl Feeding<'_> {
    async fn feed(&mut self, entries: Vec<TestCaseEntry>, passing: Vec<NewEvent>) -> Result<()> {
        let groups = chunk::group(entries);
        let known = Known::read(self.ctx, self.bearer.project, &groups, self.now).await?;
        let mut passing = Some(passing);
        for groups in chunks(&groups) {
            let passing = passing.take().unwrap_or_default();
            let mut attempt = 1;
            let folded = loop {
                match self.step(groups, &known, &passing).await {
                    Err(QueryError::Store(error)) if error.is_conflict() && attempt < CONFLICT_ATTEMPTS => {
                        tracing::info!(%error, attempt, "a transaction gave way to another and is repeated");
                        attempt += 1;
                    }
                    done => break done?,
                }
            };
            self.is_recorded |= folded.uses_evidence;
            self.inserted += folded.new_attempts;
        }
        Ok(())
    }

    async fn step(&self, groups: &[Group], known: &Known, passing: &[NewEvent]) -> Result<Folded> {
        let mut session = self.ctx.store.db().begin().await?;
        let mut locked = LockedRun::lock(&mut session, self.bearer.project, self.run).await?;
        locked.admit(self.bearer.slot, self.now)?;
        for event in passing {
            locked.note(event.clone());
        }
        let generation = locked.slot(self.bearer.slot)?.slot.generation;
        let no_files = HashMap::new();
        let lanes = locked.lanes.clone();
        let mut target = Target {
            run: &mut locked.run,
            lanes: &lanes,
            is_fresh: false,
            may_wait: true,
            generation: u32::try_from(generation).unwrap_or_default(),
            known,
            evidence: &self.packed.slices,
            requests: &self.packed.requests,
            files: &no_files,
            now: self.now,
        };
        let folded = chunk::fold(&mut session, &mut target, groups).await?;
        if folded.uses_evidence
            && !self.is_recorded
            && let Some(pack) = &self.packed.pack
        {
            evidence::record(&mut session, self.bearer.project, self.run, pack, self.now).await?;
        }
        locked.growth.test_cases += folded.new_test_cases;
        locked.growth.executions += folded.counted;
        locked.growth.open_clusters += folded.open_clusters;
        for (index, row) in &folded.changed {
            if let Some(told) = self.told.get(index) {
                locked.note(announce::test_completed(row, told));
            }
        }
        locked.settle(self.now, None, &self.ctx.patience);
        if !folded.changed.is_empty() {
            locked.note(announce::run_progress(&locked.run));
        }
        locked.close(session, self.now).await?;
        Ok(folded)
    }
}

/// A sign of life; answers where the run stands.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Token`], [`QueryError::Life`].
pub async fn heartbeat(ctx: &Context, run: RunId, token: Option<&str>, now: Timestamp) -> Result<RunStatus> {
    let bearer = bearer::recognise(ctx, run, token, TokenKind::Stream, now).await?;
    let Bearer { project, slot, .. } = bearer;
    let mut session = ctx.store.db().read().await?;
    let row = runs::get(&mut session, project, run).await?;
    let own = slots::of_run(&mut session, project, run).await?.into_iter().find(|row| row.id == slot);
    drop(session);
    if let (Some(row), Some(own)) = (row, own)
        && matches!(row.status, RunStatus::Running | RunStatus::Finalizing)
        && matches!(own.slot.state, SlotState::Live | SlotState::Finished)
    {
        if rollup::has_waited(&row, now) {
            count_waiting(ctx, project, run, now).await?;
        }
        if own.slot.last_activity_at.millis() + ACTIVITY_STEP_MS <= now.millis() {
            let mut session = ctx.store.db().begin().await?;
            runs::touch(&mut session, project, run, now).await?;
            slots::touch(&mut session, project, slot, now).await?;
            session.commit().await?;
        }
        return Ok(row.status);
    }
    let mut session = ctx.store.db().begin().await?;
    let mut locked = LockedRun::lock(&mut session, project, run).await?;
    locked.admit(slot, now)?;
    locked.settle(now, None, &ctx.patience);
    Ok(locked.close(session, now).await?.status)
}

/// Counts the executions of a run that wait for it.
///
/// # Errors
/// [`QueryError::Store`].
pub(super) async fn count_waiting(
    ctx: &Context,
    project: ProjectId,
    run: RunId,
    now: Timestamp,
) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let mut locked = LockedRun::lock(&mut session, project, run).await?;
    locked.count_waiting(&mut session).await?;
    locked.close(session, now).await?;
    Ok(())
}

/// A client is done. Answers where the run stands now: going on while other
/// shards do, waiting for files, or over.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Token`], [`QueryError::Life`].
pub async fn finish(
    ctx: &Context,
    run: RunId,
    token: Option<&str>,
    fields: &RunFields,
    now: Timestamp,
) -> Result<RunStatus> {
    let bearer = bearer::recognise(ctx, run, token, TokenKind::Stream, now).await?;
    let mut attempt = 1;
    loop {
        match finish_once(ctx, run, bearer, fields, now).await {
            Err(QueryError::Store(error)) if error.is_conflict() && attempt < CONFLICT_ATTEMPTS => {
                attempt += 1
            }
            done => return done,
        }
    }
}

async fn finish_once(
    ctx: &Context,
    run: RunId,
    bearer: Bearer,
    fields: &RunFields,
    now: Timestamp,
) -> Result<RunStatus> {
    let Bearer { project, slot, .. } = bearer;
    let mut session = ctx.store.db().begin().await?;
    let mut locked = LockedRun::lock(&mut session, project, run).await?;
    if locked.slot(slot)?.slot.state == SlotState::Finished {
        return Ok(locked.run.status);
    }
    locked.admit(slot, now)?;
    let started = locked.slot(slot)?.slot.start_time.millis();
    let duration = fields.duration_ms.unwrap_or_else(|| (now.millis() - started).max(0));
    locked.finish_slot(slot, fields.status, Some(duration), fields.has_pending_uploads, now)?;
    describing::describe(&mut session, &mut locked, slot, fields, Plan::Told, None).await?;
    locked.note(announce::run_progress(&locked.run));
    locked.settle(now, None, &ctx.patience);
    Ok(locked.close(session, now).await?.status)
}
