//! Feeding a run: events, signs of life, the end. Every call is a client of
//! one slot, recognised by its token; a run that was taken for over goes on.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use callboard_domain::ids::{PackId, RunId};
use callboard_domain::ingest::{EventsBody, RunFields, Warnings};
use callboard_domain::run_life::{Patience, SlotState};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::db::{Read, Session};
use callboard_store::feed::NewEvent;
use callboard_store::runs::tokens::TokenKind;
use callboard_store::runs::{self, slots};
use callboard_store::{executions, test_cases};

use super::announce::{self, Told};
use super::bearer::{self, Bearer};
use super::chunk::{self, Folded, Group, Known, Target, identities_of as identities};
use super::counting;
use super::describing::{self, Plan};
use super::locked::{ACTIVITY_STEP_MS, LockedRun};
use super::packing::Packed;
use super::turns;
use super::writer::{CONFLICT_ATTEMPTS, chunks};
use crate::{Context, QueryError, Result};

/// Executions that whoever ends a run counts when too many wait in its project.
const LEFT_AT_THE_END: usize = 1_000;

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
    let token = body.stream_token.as_deref();
    let (bearer, known) = if body.completes.entries.is_empty() {
        (bearer::recognise(ctx, run, token, TokenKind::Stream, now).await?, Known::default())
    } else {
        bearer::recognise_feeder(ctx, run, token, now).await?
    };
    let _arrival = ctx.turns.arrival();
    let EventsBody { begun, steps, completes, processed, ignored, .. } = body;
    let (mut entries, warnings) = (completes.entries, completes.warnings);
    let told: HashMap<usize, Told> = entries.iter().map(|entry| (entry.index, Told::of(entry))).collect();
    bearer.refuse_early()?;
    let packed = Packed::write(ctx, bearer.project, Some(run), &mut entries, now).await?;
    let mut passing = Vec::with_capacity(begun.len() + steps.len());
    passing.extend(begun.iter().map(announce::test_begun));
    passing.extend(steps.iter().map(announce::step));
    let groups = chunk::group(entries);
    let known = match known.with(ctx, bearer.project, &groups).await {
        Ok(known) => known,
        Err(error) => {
            packed.discard(ctx, Some(&error)).await;
            return Err(error);
        }
    };
    let patience = ctx.patience;
    let feeding = Arc::new(Feeding { run, bearer, told, packed, passing, groups, known, patience, now });
    let mut fed = Fed::default();
    let done = feeding.feed(ctx, &mut fed).await;
    if fed.recorded.is_none() {
        feeding.packed.discard(ctx, done.as_ref().err()).await;
    }
    done?;
    Ok(EventsTaken { processed, inserted: fed.inserted, ignored, warnings })
}

/// What a call brought.
pub(super) struct Feeding {
    run: RunId,
    bearer: Bearer,
    told: HashMap<usize, Told>,
    packed: Packed,
    /// Events of interest while they happen; they go with the first part.
    passing: Vec<NewEvent>,
    groups: Vec<Group>,
    known: Known,
    patience: Patience,
    now: Timestamp,
}

/// How far a call is.
#[derive(Default)]
struct Fed {
    /// The pack of its evidence, once stored rows point at it.
    recorded: Option<PackId>,
    inserted: usize,
}

/// What one transaction takes of a call.
pub(super) struct Part {
    feeding: Arc<Feeding>,
    groups: Range<usize>,
    /// The pack of the evidence, when rows of earlier parts point at it.
    recorded: Option<PackId>,
}

impl Feeding {
    async fn feed(self: &Arc<Self>, ctx: &Context, fed: &mut Fed) -> Result<()> {
        let mut start = 0;
        for groups in chunks(&self.groups) {
            let range = start..start + groups.len();
            start = range.end;
            let mut attempt = 1;
            let folded = loop {
                let part = Part { feeding: Arc::clone(self), groups: range.clone(), recorded: fed.recorded };
                match turns::write(ctx, part).await {
                    Err(QueryError::Store(error)) if error.is_conflict() && attempt < CONFLICT_ATTEMPTS => {
                        tracing::info!(%error, attempt, "a transaction gave way to another and is repeated");
                        attempt += 1;
                    }
                    done => break done?,
                }
            };
            fed.recorded = fed.recorded.or(folded.pack);
            fed.inserted += folded.new_attempts;
            if folded.is_due {
                counting::count_next(ctx, self.bearer.project).await;
            }
        }
        Ok(())
    }
}

impl Part {
    /// The run it goes to.
    pub(super) fn run(&self) -> RunId {
        self.feeding.run
    }

    fn groups(&self) -> &[Group] {
        &self.feeding.groups[self.groups.clone()]
    }

    /// What [`Part::write`] asks of the run, of its tests and of its evidence.
    pub(super) fn first_reads(&self) -> Vec<Read> {
        let project = self.feeding.bearer.project;
        let mut reads: Vec<Read> = runs::lock_reads(project, self.run()).into();
        if !self.groups().is_empty() {
            reads.push(test_cases::resolve_read(project, identities(self.groups())));
        }
        reads.extend(self.feeding.packed.place_read(self.recorded));
        reads
    }

    /// What it asks then, once those were read ahead; nothing where that
    /// depends on more.
    pub(super) fn further_reads(&self, session: &Session) -> Result<Vec<Read>> {
        let project = self.feeding.bearer.project;
        let Some(run) = runs::seen(session, project, self.run())? else { return Ok(Vec::new()) };
        let Some(cases) = test_cases::seen(session, project, identities(self.groups()))? else {
            return Ok(Vec::new());
        };
        Ok(executions::batch_reads(chunk::place_of(&run), cases).into())
    }

    /// Writes the part; the caller commits.
    pub(super) async fn write(&self, session: &mut Session) -> Result<Folded> {
        let Feeding { run, bearer, told, packed, passing, known, patience, now, .. } = &*self.feeding;
        let now = *now;
        let mut locked = LockedRun::lock(session, bearer.project, *run).await?;
        locked.admit(bearer.slot, now)?;
        if self.groups.start == 0 {
            passing.iter().for_each(|event| locked.note(event.clone()));
        }
        let generation = locked.slot(bearer.slot)?.slot.generation;
        let no_files = HashMap::new();
        let lanes = locked.lanes.clone();
        let placed = packed.place(session, self.recorded).await?;
        let mut target = Target {
            run: &mut locked.run,
            lanes: &lanes,
            is_fresh: false,
            generation: u32::try_from(generation).unwrap_or_default(),
            known,
            evidence: &placed.slices,
            requests: &packed.requests,
            files: &no_files,
            now,
        };
        let mut folded = chunk::fold(session, &mut target, self.groups()).await?;
        packed.record(session, (bearer.project, *run), &placed, &mut folded, now).await?;
        locked.growth.test_cases += folded.new_test_cases;
        locked.growth.open_clusters += folded.open_clusters;
        for (index, row) in &folded.changed {
            if let Some(told) = told.get(index) {
                locked.note(announce::test_completed(row, told));
            }
        }
        locked.settle(now, None, patience);
        if !folded.changed.is_empty() {
            locked.note(announce::run_progress(&locked.run));
        }
        folded.is_due = counting::is_due(&locked.run, now);
        locked.write(session, now).await?;
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
        if counting::has_waited(&row, now) {
            counting::count_next(ctx, project).await;
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
    let status = loop {
        match finish_once(ctx, run, bearer, fields, now).await {
            Err(QueryError::Store(error)) if error.is_conflict() && attempt < CONFLICT_ATTEMPTS => {
                attempt += 1
            }
            done => break done?,
        }
    };
    counting::keep_up(ctx, bearer.project, LEFT_AT_THE_END).await;
    Ok(status)
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
