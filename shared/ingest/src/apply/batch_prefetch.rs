//! Reading and planning a batch of pending rows before the transaction that applies it.
//! Where all tests are known and new in the run, the executions, their numbers and their
//! events are planned too: on SQLite no other request can write while the transaction
//! lasts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::endpoints::Captured;
use callboard_domain::ids::{PackId, ProjectId, RunId, SlotId};
use callboard_domain::ingest::{SourcePaths, TestCaseEntry};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::feed::NewEvent;
use callboard_store::intake::{self as rows, UnmadePack, WaitingCall};
use callboard_store::memory_budget::{APPLY_BYTES, APPLY_LARGE_BYTES, Applying};
use callboard_store::runs::{self, RunRow, slots};
use callboard_store::test_cases::{self, Resolved};
use callboard_store::{StoreError, evidence, executions};

use crate::apply::attempt_merge::{self, Group, ShardIdentity};
use crate::apply::batch_apply::{self, ENTRIES_PER_TRANSACTION, Target};
use crate::apply::execution_plan::{Basis, ExecutionPlan, Stored};
use crate::apply::project_lookups::ProjectLookups;
use crate::stage::evidence_packing::slices;
use crate::stage::staged_request::StagedPayload;
use crate::transaction::run_events::{self, Told};
use crate::transaction::run_lanes::place_of;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, QueryError, Result};

/// Bytes of the requests of one transaction, as received and without evidence:
/// parsed they take several times as much. A single request may have more.
const USUAL_BYTES: usize = 2 * 1024 * 1024;

/// The pending rows of a run.
pub(crate) enum PendingBatch {
    /// Nothing.
    Empty,
    /// Rows of a run that is gone.
    Orphaned,
    /// Rows that can be applied together.
    Found(Box<LoadedBatch>),
}

/// Rows of a run that can be applied together, as they were read.
pub(crate) struct LoadedBatch {
    /// Before anything else was read.
    run: RunRow,
    most: i64,
    waiting: Vec<WaitingCall>,
    batch: Batch,
    _memory: Applying,
}

impl PendingBatch {
    /// Reads up to `most` pending rows of a run. `first` is set to the id of the first
    /// row, `None` when there is none.
    pub(crate) async fn load(
        ctx: &Context,
        project: ProjectId,
        run: RunId,
        most: i64,
        first: &mut Option<i64>,
    ) -> Result<Self> {
        loop {
            // Waiting for memory must not hold a connection.
            let mut memory = ctx.store.memory().applying(APPLY_BYTES).await;
            let mut reader = ctx.store.db().read().await?;
            let row = runs::get(&mut reader, project, run).await?;
            let mut waiting = rows::of_run(&mut reader, project, run, most).await?;
            drop(reader);
            *first = waiting.first().map(|call| call.id);
            let Some(run) = row else {
                return Ok(if waiting.is_empty() { Self::Empty } else { Self::Orphaned });
            };
            let Some((large, later)) = waiting.split_first_mut() else { return Ok(Self::Empty) };
            if is_large(large)? {
                // It is applied alone.
                later.iter_mut().for_each(|call| call.body = None);
                drop(memory);
                memory = ctx.store.memory().applying(APPLY_LARGE_BYTES).await;
                let mut reader = ctx.store.db().read().await?;
                let body = rows::body_of(&mut reader, run.project, run.id, large.id).await?;
                // Another process may have applied it meanwhile.
                let Some(body) = body else { continue };
                large.body = Some(body);
            }
            let Some(batch) = Batch::from_calls(&waiting)? else { return Ok(Self::Empty) };
            return Ok(Self::Found(Box::new(LoadedBatch { run, most, waiting, batch, _memory: memory })));
        }
    }
}

/// Whether a request is larger than the usual ones of a batch together.
fn is_large(call: &WaitingCall) -> Result<bool> {
    Ok(match &call.body {
        Some(body) => rows::told_bytes(body)? > USUAL_BYTES,
        None => true,
    })
}

impl LoadedBatch {
    /// Whether no other row was pending.
    pub(crate) fn is_all(&self) -> bool {
        self.batch.ids.len() == self.waiting.len() && i64::try_from(self.waiting.len()) != Ok(self.most)
    }

    /// When the last of them was received.
    pub(crate) const fn at(&self) -> Timestamp {
        self.batch.at
    }

    /// Reads and plans what does not need the lock of the run.
    pub(crate) async fn prepare(self: Box<Self>, ctx: &Context) -> Result<PreparedBatch> {
        let Self { run, batch, .. } = &*self;
        let known = ProjectLookups::read(&ctx.store, run.project, &batch.groups, batch.at).await?;
        let mut reader = ctx.store.db().read().await?;
        let looked = StoredState::load(&mut reader, run, batch).await?;
        drop(reader);
        let foreseen = match looked {
            Some(looked) => SpeculativePlan::new(run.clone(), looked, batch, &known)?,
            None => None,
        };
        Ok(PreparedBatch { found: self, known, foreseen })
    }
}

/// Rows of a run that are ready to be applied together.
pub(crate) struct PreparedBatch {
    found: Box<LoadedBatch>,
    known: ProjectLookups,
    foreseen: Option<SpeculativePlan>,
}

impl PreparedBatch {
    /// Applies them to their locked run. The caller closes the run, then
    /// [removes](crate::apply::pending::clear) the rows. `false`, without any change, when
    /// another process has applied some of them since they were read.
    pub(crate) async fn fold(
        self,
        ctx: &Context,
        session: &mut Session,
        locked: &mut LockedRun,
    ) -> Result<bool> {
        let Self { found, known, foreseen } = self;
        let LoadedBatch { run, most, waiting, batch, _memory } = *found;
        // Removing rows of a run makes a new version of it.
        if locked.run.version != run.version {
            // Rows are compared whole, as SQLite reuses ids.
            let mut still = rows::of_run(session, run.project, run.id, most).await?;
            if let (Some(first), Some(large)) = (waiting.first(), still.first_mut())
                && large.body.is_none()
            {
                large.body = rows::body_of(session, run.project, run.id, first.id).await?;
            }
            if !waiting.iter().filter(|call| batch.ids.contains(&call.id)).all(|call| still.contains(call)) {
                return Ok(false);
            }
        }
        batch.fold(ctx, session, locked, &known, foreseen).await?;
        Ok(true)
    }
}

/// What is stored of the tests of a batch, all of which are known and have no result in
/// the run yet.
struct StoredState {
    tests: Resolved,
    stored: Stored,
    /// Of the slot the batch came through.
    shard: ShardIdentity,
}

impl StoredState {
    /// Looks it up; `None` when there is something to be made or changed.
    async fn load(session: &mut Session, run: &RunRow, batch: &Batch) -> Result<Option<Self>> {
        if batch.groups.is_empty() {
            return Ok(None);
        }
        let identities = batch_apply::identities(&batch.groups);
        let tests = test_cases::resolved(session, run.project, &identities, run.order_at).await?;
        let Some(tests) = tests.filter(|tests| !tests.has_joined_pairs()) else { return Ok(None) };
        let cases = tests.ids.values().map(|id| id.get()).collect();
        let (rows, predecessors) =
            executions::of_batch_with_predecessors(session, place_of(run), cases).await?;
        if !rows.is_empty() {
            return Ok(None);
        }
        let slots = slots::of_run(session, run.project, run.id).await?;
        let shard = slots.iter().find(|row| row.id == batch.slot).map(ShardIdentity::from_row);
        let stored = Stored { predecessors, ..Stored::default() };
        Ok(shard.map(|shard| Self { tests, stored, shard }))
    }
}

/// What a batch will make of its run as it was read.
struct SpeculativePlan {
    draft: ExecutionPlan,
    /// What the feed tells of the results, by index of the entry.
    events: HashMap<usize, NewEvent>,
    /// The version of the run.
    version: i64,
    /// Of the slot the batch came through.
    shard: ShardIdentity,
}

impl SpeculativePlan {
    /// Works it out; `None` when the run is full, which is told by whoever holds it.
    fn new(
        mut run: RunRow,
        looked: StoredState,
        batch: &Batch,
        known: &ProjectLookups,
    ) -> Result<Option<Self>> {
        let StoredState { tests, stored, shard } = looked;
        let Batch { groups, evidence, told, .. } = batch;
        let (place, files) = (place_of(&run), HashMap::new());
        let basis = Basis { place, shard, known, resolved: &tests, evidence, files: &files };
        let mut draft = ExecutionPlan::new(basis, stored, groups)?;
        match draft.number(&mut run) {
            Err(QueryError::Store(StoreError::RunFull)) => return Ok(None),
            numbered => numbered?,
        }
        let event = |(index, row)| Some((index, run_events::test_completed(row, told.get(&index)?)));
        let events = draft.states().filter_map(event).collect();
        Ok(Some(Self { draft, events, version: run.version, shard }))
    }

    /// Whether it can be written to the locked run. Whoever adds results to a run makes a
    /// new version of it. Others change rows of results without one, but of these tests
    /// there were none.
    fn holds(&self, run: &RunRow, shard: ShardIdentity) -> bool {
        (self.version, self.shard) == (run.version, shard)
    }
}

/// Calls of one slot that are worked in together.
struct Batch {
    ids: Vec<i64>,
    slot: SlotId,
    /// When the last of them came.
    at: Timestamp,
    groups: Vec<Group>,
    told: HashMap<usize, Told>,
    evidence: HashMap<usize, EvidenceSlice>,
    packs: BTreeSet<PackId>,
    /// Those of them that are made of the evidence of a call.
    unmade: BTreeMap<PackId, UnmadePack>,
    requests: Captured,
    /// What the feed tells of each call: its passing events, then its results up to
    /// an index.
    order: Vec<(Vec<NewEvent>, usize)>,
}

impl Batch {
    /// The first of those that wait, `None` for none.
    fn from_calls(waiting: &[WaitingCall]) -> Result<Option<Self>> {
        let Some(first) = waiting.first() else { return Ok(None) };
        let mut batch = Self {
            ids: Vec::new(),
            slot: first.slot,
            at: first.at,
            groups: Vec::new(),
            told: HashMap::new(),
            evidence: HashMap::new(),
            packs: BTreeSet::new(),
            unmade: BTreeMap::new(),
            requests: Captured::default(),
            order: Vec::new(),
        };
        let (mut requests, mut count, mut bytes) = (Vec::with_capacity(waiting.len()), 0, 0);
        for call in waiting.iter().filter(|call| call.slot == first.slot) {
            let Some(body) = &call.body else { break };
            bytes += rows::told_bytes(body)?;
            if !batch.ids.is_empty() && bytes > USUAL_BYTES {
                break;
            }
            let brought = StagedPayload::from_body(body)?;
            count += brought.entries.len();
            if !batch.ids.is_empty() && count > ENTRIES_PER_TRANSACTION {
                break;
            }
            requests.push(batch.take(call, brought));
        }
        batch.groups = attempt_merge::group(requests);
        Ok(Some(batch))
    }

    /// Takes a call; answers its entries, which are numbered after those that are
    /// there.
    fn take(&mut self, call: &WaitingCall, brought: StagedPayload) -> Vec<TestCaseEntry> {
        let StagedPayload { mut entries, mut shown, frames, requests, passing } = brought;
        let first = self.order.last().map_or(0, |(_, end)| *end);
        let mut end = first;
        for entry in &mut entries {
            let shown = shown.remove(&entry.index);
            entry.index += first;
            end = end.max(entry.index + 1);
            self.told.insert(entry.index, Told::from_entry(entry, shown));
        }
        if let Some(pack) = call.pack {
            self.packs.insert(pack);
            if let Some(bytes) = call.evidence_bytes {
                let slices = i64::try_from(frames.len()).unwrap_or(i64::MAX);
                self.unmade.insert(pack, UnmadePack { call: call.id, slices, bytes });
            }
            self.evidence
                .extend(slices(&frames, pack).into_iter().map(|(index, slice)| (first + index, slice)));
        }
        self.requests.absorb(requests, first);
        self.order.push((passing, end));
        self.ids.push(call.id);
        self.at = self.at.max(call.at);
        entries
    }

    /// Works the calls into their locked run, which the caller closes.
    async fn fold(
        self,
        ctx: &Context,
        session: &mut Session,
        locked: &mut LockedRun,
        known: &ProjectLookups,
        foreseen: Option<SpeculativePlan>,
    ) -> Result<()> {
        let Self { ids, slot, at, groups, told, evidence, packs, unmade, requests, order } = self;
        let project = locked.run.project;
        match locked.resume_client(slot, at) {
            // They were acknowledged before the run ended, and are late results of it.
            Ok(()) | Err(QueryError::Life(_)) => {}
            Err(error) => return Err(error),
        }
        let shard = ShardIdentity::from_row(locked.slot(slot)?);
        let foreseen = foreseen.filter(|foreseen| foreseen.holds(&locked.run, shard));
        let (drafted, mut events) =
            foreseen.map_or_else(Default::default, |foreseen| (Some(foreseen.draft), foreseen.events));
        let lanes = locked.lanes.clone();
        let paths = if drafted.is_none() {
            SourcePaths::from_json(&runs::details(session, project, locked.run.id).await?.metadata)
        } else {
            None
        };
        let mut target = Target {
            run: &mut locked.run,
            lanes: &lanes,
            is_fresh: false,
            shard,
            known,
            drafted,
            evidence: &evidence,
            requests: &requests,
            files: &HashMap::new(),
            paths,
            now: at,
        };
        let folded = batch_apply::fold(session, &mut target, &groups).await?;
        locked.counter_deltas.test_cases += folded.new_test_cases;
        locked.count_clusters(folded.clusters.open, folded.clusters.events);
        let has_changed = !folded.changed.is_empty();
        let mut changed: HashMap<usize, _> = folded.changed.into_iter().collect();
        let mut index = 0;
        for (passing, end) in order {
            passing.into_iter().for_each(|event| locked.note(event));
            for index in std::mem::replace(&mut index, end)..end {
                if let (Some(row), Some(told)) = (changed.remove(&index), told.get(&index)) {
                    let event = events.remove(&index);
                    locked.note(event.unwrap_or_else(|| run_events::test_completed(&row, told)));
                }
            }
        }
        locked.recompute_status(at, None, &ctx.patience);
        if has_changed {
            locked.note(run_events::run_progress(&locked.run));
        }
        for pack in packs.difference(&folded.used_packs).filter(|pack| !unmade.contains_key(pack)) {
            evidence::let_go(session, project, *pack, at).await?;
        }
        let made = unmade.into_iter().filter(|(pack, _)| folded.used_packs.contains(pack));
        let made: Vec<UnmadePack> = made.map(|(_, made)| made).collect();
        let run = locked.run.id;
        rows::make_packs(session, project, run, &made).await?;
        Ok(rows::let_go(session, project, run, locked.slot_mut(slot)?, ids).await?)
    }
}
