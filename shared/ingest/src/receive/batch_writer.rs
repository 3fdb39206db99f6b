//! The writer of a batch: one transaction for every so many entries, the run
//! held in `running` until the last of them.

use std::collections::HashMap;

use callboard_domain::ids::{ExecutionId, PackId, RunId, SlotId};
use callboard_domain::ingest::SourcePaths;
use callboard_domain::run_life::{EndReason, SlotState};
use callboard_domain::status::RunStatus;
use callboard_store::runs::{self, RunRow};

use crate::apply::attachments::PublishedFile;
use crate::apply::attempt_merge::{Group, ShardIdentity};
use crate::apply::batch_apply::{self, ENTRIES_PER_TRANSACTION, Target};
use crate::apply::project_lookups::ProjectLookups;
use crate::receive::entries::Parts;
use crate::resolve::run_metadata::{self, Plan};
use crate::resolve::run_resolution::{Opened, Opening, RunTarget};
use crate::stage::evidence_packing::Packed;
use crate::transaction::run_events;
use crate::transaction::run_lanes::Lanes;
use crate::transaction::run_transaction::LockedRun;
use crate::{QueryError, Result};
use callboard_core::retry;

/// Times a batch looks for its place when another call changed it.
const PLACE_ATTEMPTS: u32 = 16;

/// One batch on its way into the database.
pub(crate) struct Writer<'a> {
    opening: Opening<'a>,
    span: Option<i64>,
    files: HashMap<usize, Vec<PublishedFile>>,
    /// The run of the batch when it was known before.
    known: Option<RunId>,
    /// The evidence of the part that is being written.
    packed: Packed,
    /// Its pack, once committed rows point at it.
    recorded: Option<PackId>,
    /// The slot of the batch, once a part of it is committed.
    begun: Option<(RunId, SlotId)>,
}

/// A batch that is stored.
pub(crate) struct Written {
    pub(crate) run: RunRow,
    pub(crate) is_known: bool,
    pub(crate) executions: Vec<(usize, ExecutionId)>,
}

/// What one transaction wrote.
struct Step {
    run: RunRow,
    slot: SlotId,
    is_known: bool,
    /// The pack of its evidence, once rows point at it.
    pack: Option<PackId>,
    executions: Vec<(usize, ExecutionId)>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(
        opening: Opening<'a>,
        span: Option<i64>,
        files: HashMap<usize, Vec<PublishedFile>>,
        known: Option<RunId>,
    ) -> Self {
        Self { opening, span, files, known, packed: Packed::default(), recorded: None, begun: None }
    }

    /// Writes everything.
    pub(crate) async fn write(&mut self, parts: &mut Parts) -> Result<Written> {
        let Opening { ctx, project, now, .. } = self.opening;
        let mut executions = Vec::new();
        let mut is_known = false;
        loop {
            let run = self.begun.map(|(run, _)| run).or(self.known);
            let part = parts.next(ctx, project, run, now).await?;
            (self.packed, self.recorded) = (part.packed, None);
            let known = ProjectLookups::read(&ctx.store, project, &part.groups, now).await?;
            let mut chunks = chunks(&part.groups).into_iter().peekable();
            while let Some(groups) = chunks.next() {
                let is_last = part.is_last && chunks.peek().is_none();
                let step = self.step_or_retry(groups, &known, is_last).await?;
                self.recorded = self.recorded.or(step.pack);
                if self.begun.is_none() {
                    self.begun = Some((step.run.id, step.slot));
                    is_known = step.is_known;
                }
                executions.extend(step.executions);
                if is_last {
                    return Ok(Written { run: step.run, is_known, executions });
                }
            }
            if self.recorded.is_none() {
                // Nothing in it was news.
                self.packed.discard(&ctx.store, None).await;
            }
        }
    }

    async fn step_or_retry(&self, groups: &[Group], known: &ProjectLookups, is_last: bool) -> Result<Step> {
        let (mut tries, mut misses) = (1, 1);
        loop {
            match self.step(groups, known, is_last).await {
                Err(QueryError::Store(error)) if error.is_conflict() && tries < retry::ATTEMPTS => {
                    tracing::info!(%error, tries, "a transaction gave way to another and is repeated");
                    tries += 1;
                }
                Ok(None) if misses < PLACE_ATTEMPTS => misses += 1,
                Ok(None) => {
                    return Err(callboard_store::StoreError::Damaged("a start key without a run").into());
                }
                Ok(Some(step)) => return Ok(step),
                Err(error) => return Err(error),
            }
        }
    }

    /// One transaction: some groups, and the end of the slot after the last.
    /// `None` when another call changed where the batch belongs.
    async fn step(&self, groups: &[Group], known: &ProjectLookups, is_last: bool) -> Result<Option<Step>> {
        let Opening { ctx, project, fields, now, .. } = self.opening;
        let mut session;
        let opened = match self.begun {
            Some((run, slot)) => {
                session = ctx.store.db().begin().await?;
                let locked = LockedRun::lock(&mut session, project, run).await?;
                Opened { locked, slot, is_known: true }
            }
            None => {
                let (place, lanes) = self.place().await?;
                let better = match place.run() {
                    Some(run) => run_metadata::better_lanes(ctx, project, run, fields).await?,
                    None => None,
                };
                session = ctx.store.db().begin().await?;
                let reserved = self.packed.reserved;
                let Some(mut opened) = self.opening.enter(&mut session, place, &lanes, reserved).await?
                else {
                    return Ok(None);
                };
                if !opened.locked.is_fresh {
                    let plan = if opened.is_known { Plan::Told } else { Plan::Another };
                    let (locked, slot) = (&mut opened.locked, opened.slot);
                    run_metadata::describe(&mut session, locked, slot, fields, plan, better, now).await?;
                }
                opened
            }
        };
        let Opened { mut locked, slot, is_known } = opened;
        let shard = ShardIdentity::from_row(locked.slot(slot)?);
        let lanes = locked.lanes.clone();
        let placed = self.packed.place(&mut session, self.recorded).await?;
        let mut target = Target {
            is_fresh: locked.is_fresh,
            run: &mut locked.run,
            lanes: &lanes,
            shard,
            known,
            drafted: None,
            evidence: &placed.slices,
            requests: &self.packed.requests,
            files: &self.files,
            paths: fields.metadata.as_ref().and_then(SourcePaths::from_metadata),
            now,
        };
        let folded = batch_apply::fold(&mut session, &mut target, groups).await?;
        let place = (project, locked.run.id);
        let pack = self.packed.record(&mut session, place, &placed, &folded.used_packs, now).await?;
        locked.counter_deltas.test_cases += folded.new_test_cases;
        locked.count_clusters(folded.clusters.open, folded.clusters.events);
        let mut ended_at = None;
        if is_last {
            let duration = fields.duration_ms.or(self.span);
            locked.finish_slot(slot, fields.status, duration, false, now)?;
            ended_at = locked.judge(|slots| slots.last_end());
        } else {
            locked.touch(slot, now)?;
        }
        let is_fresh = locked.is_fresh;
        locked.recompute_status(now, ended_at, &ctx.patience);
        if !is_fresh && !folded.changed.is_empty() {
            locked.note(run_events::run_progress(&locked.run));
        }
        let run = locked.close(session, now).await?;
        Ok(Some(Step { run, slot, is_known, pack, executions: folded.executions }))
    }

    async fn place(&self) -> Result<(RunTarget, Lanes)> {
        let place = self.opening.look(&mut self.opening.ctx.store.db().read().await?).await?;
        Ok((place, self.opening.lanes(place).await?))
    }

    /// Removes what nothing points at, and ends a run that cannot go on. What
    /// fails here is logged: the submission's own outcome is what counts.
    pub(crate) async fn clean_up(&self, failure: Option<&QueryError>) {
        if self.recorded.is_none() {
            self.packed.discard(&self.opening.ctx.store, failure).await;
        }
        if let Some((run, slot)) = self.begun.filter(|_| failure.is_some())
            && let Err(error) = self.interrupt(run, slot).await
        {
            tracing::warn!(%error, %run, "a run that broke off could not be ended");
        }
    }

    /// The rest of the batch is not coming: its slot is lost, and with it a
    /// run that has no other.
    async fn interrupt(&self, run: RunId, slot: SlotId) -> Result<()> {
        let Opening { ctx, project, now, .. } = self.opening;
        let mut session = ctx.store.db().begin().await?;
        if runs::get(&mut session, project, run).await?.is_none() {
            return Ok(());
        }
        let mut locked = LockedRun::lock(&mut session, project, run).await?;
        if !locked.run.status.is_final() {
            let slot = &mut locked.slot_mut(slot)?.slot;
            // What was sent once more had arrived whole before.
            if slot.state != SlotState::Finished {
                slot.state = SlotState::Lost;
            }
            if locked.run.shard_total.is_none() && !locked.judge(|slots| slots.any_live()) {
                locked.abort(RunStatus::Interrupted, EndReason::Stale, now);
            }
            locked.close(session, now).await?;
        }
        Ok(())
    }
}

/// Splits groups so that one transaction takes at most
/// [`ENTRIES_PER_TRANSACTION`] entries; all entries of one execution stay
/// together. There is always one chunk, even for a run without tests.
fn chunks(groups: &[Group]) -> Vec<&[Group]> {
    let mut chunks = Vec::new();
    let (mut start, mut entries) = (0, 0);
    for (at, group) in groups.iter().enumerate() {
        if entries > 0 && entries + group.entries.len() > ENTRIES_PER_TRANSACTION {
            chunks.push(&groups[start..at]);
            (start, entries) = (at, 0);
        }
        entries += group.entries.len();
    }
    chunks.push(&groups[start..]);
    chunks
}
