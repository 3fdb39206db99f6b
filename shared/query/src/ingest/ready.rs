//! Calls that wait, made ready to be worked into their run by one transaction.
//! They are read and looked through before it, and so is what is stored of their
//! tests: on SQLite nobody else can write to a run while it lasts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::endpoints::Captured;
use callboard_domain::ids::{PackId, ProjectId, RunId, SlotId};
use callboard_domain::ingest::TestCaseEntry;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::feed::NewEvent;
use callboard_store::intake::{self as rows, UnmadePack, WaitingCall};
use callboard_store::runs::slots;
use callboard_store::runs::{self, RunRow};
use callboard_store::{evidence, executions, test_cases};

use super::announce::{self, Told};
use super::chunk::{self, Drafted, Known, Target, place_of};
use super::drafting::{Basis, Draft};
use super::intake::Brought;
use super::locked::LockedRun;
use super::merging::{self, Group};
use super::packing::slices;
use super::writer::ENTRIES_PER_TRANSACTION;
use crate::{Context, QueryError, Result};

/// What waits of a run.
pub(super) enum Look {
    /// Nothing.
    Nothing,
    /// Calls of a run that is gone.
    OfNobody,
    /// Calls that can be worked in.
    Ready(Box<Ready>),
}

/// Calls of a run that can be worked in together.
pub(super) struct Ready {
    run: (ProjectId, RunId),
    /// Of the run before anything else was read.
    version: i64,
    most: i64,
    waiting: Vec<WaitingCall>,
    batch: Batch,
    known: Known,
    foreseen: Option<Foreseen>,
}

impl Look {
    /// Looks at the first calls of a run that wait, `most` of them. `first` is set to
    /// the id of the very first, `None` when nothing waits.
    pub(super) async fn of(
        ctx: &Context,
        project: ProjectId,
        run: RunId,
        most: i64,
        first: &mut Option<i64>,
    ) -> Result<Self> {
        let mut reader = ctx.store.db().read().await?;
        let row = runs::get(&mut reader, project, run).await?;
        let waiting = rows::of_run(&mut reader, project, run, most).await?;
        drop(reader);
        *first = waiting.first().map(|call| call.id);
        let Some(row) = row else {
            return Ok(if waiting.is_empty() { Self::Nothing } else { Self::OfNobody });
        };
        let Some(batch) = Batch::of(&waiting)? else { return Ok(Self::Nothing) };
        let known = Known::read(ctx, project, &batch.groups, batch.at).await?;
        let mut reader = ctx.store.db().read().await?;
        let foreseen = Foreseen::read(&mut reader, &row, &batch, &known).await?;
        drop(reader);
        let version = row.version;
        Ok(Self::Ready(Box::new(Ready {
            run: (project, run),
            version,
            most,
            waiting,
            batch,
            known,
            foreseen,
        })))
    }
}

impl Ready {
    /// Whether nothing else waited.
    pub(super) fn is_all(&self) -> bool {
        self.batch.ids.len() == self.waiting.len() && i64::try_from(self.waiting.len()) != Ok(self.most)
    }

    /// When the last of them came.
    pub(super) const fn at(&self) -> Timestamp {
        self.batch.at
    }

    /// Works them into their locked run, which the caller closes, and then
    /// [clears](super::intake::clear) what is left of them. `false`, and nothing was
    /// done, when another process has worked some of them in since they were read.
    pub(super) async fn fold(
        self,
        ctx: &Context,
        session: &mut Session,
        locked: &mut LockedRun,
    ) -> Result<bool> {
        let Self { run: (project, run), version, most, waiting, batch, known, mut foreseen } = self;
        // Whoever adds results to a run, or takes calls of it away, makes a new version of it. Others change rows of
        // results without one, but of these tests there were none.
        if locked.run.version != version {
            // A call is compared whole, as SQLite gives ids that are free again to others.
            let still = rows::of_run(session, project, run, most).await?;
            if !waiting.iter().filter(|call| batch.ids.contains(&call.id)).all(|call| still.contains(call)) {
                return Ok(false);
            }
            foreseen = None;
        }
        batch.fold(ctx, session, locked, &known, foreseen).await?;
        Ok(true)
    }
}

/// What was looked up and worked out before the transaction that folds a batch, all of
/// whose tests are known and have no result in the run yet.
struct Foreseen {
    drafted: Drafted,
    /// What the feed tells of the results, by index of the entry.
    events: HashMap<usize, NewEvent>,
    /// The generation of the slot, and the number of the next execution of the run.
    made_for: (u32, i64),
}

impl Foreseen {
    /// Looks it up; `None` where something has to be made or changed. As long as the
    /// run has no newer version, no result of the tests has come into it.
    async fn read(session: &mut Session, run: &RunRow, batch: &Batch, known: &Known) -> Result<Option<Self>> {
        let Batch { slot, groups, evidence, told, .. } = batch;
        if groups.is_empty() {
            return Ok(None);
        }
        let identities = chunk::identities(groups);
        let resolved = test_cases::resolved(session, run.project, &identities, run.order_at).await?;
        let Some(resolved) = resolved else { return Ok(None) };
        let (place, cases) = (place_of(run), resolved.ids.values().map(|id| id.get()).collect());
        let (rows, before) = executions::of_batch_with_predecessors(session, place, cases).await?;
        if !rows.is_empty() {
            return Ok(None);
        }
        let slots = slots::of_run(session, run.project, run.id).await?;
        let Some(generation) = slots.iter().find(|row| row.id == *slot).map(chunk::generation_of) else {
            return Ok(None);
        };
        let basis = Basis { place, generation, known, resolved: &resolved, evidence, files: &HashMap::new() };
        let mut draft = Draft::of(basis, HashMap::new(), groups)?;
        // Whoever holds the run tells that it is full.
        if draft.number(&mut run.clone()).is_err() {
            return Ok(None);
        }
        let event = |(index, row)| Some((index, announce::test_completed(row, told.get(&index)?)));
        let events = draft.states().filter_map(event).collect();
        let made_for = (generation, run.next_ordinal);
        Ok(Some(Self { drafted: Drafted { draft, before }, events, made_for }))
    }

    /// Whether the locked run still is what it was made for.
    fn holds(&self, run: &RunRow, generation: u32) -> bool {
        self.made_for == (generation, run.next_ordinal)
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
    fn of(waiting: &[WaitingCall]) -> Result<Option<Self>> {
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
        let (mut requests, mut count) = (Vec::with_capacity(waiting.len()), 0);
        for call in waiting.iter().filter(|call| call.slot == first.slot) {
            let brought = Brought::of(&call.body)?;
            count += brought.entries.len();
            if !batch.ids.is_empty() && count > ENTRIES_PER_TRANSACTION {
                break;
            }
            requests.push(batch.take(call, brought));
        }
        batch.groups = merging::group(requests);
        Ok(Some(batch))
    }

    /// Takes a call; answers its entries, which are numbered after those that are
    /// there.
    fn take(&mut self, call: &WaitingCall, brought: Brought) -> Vec<TestCaseEntry> {
        let Brought { mut entries, mut shown, frames, requests, passing } = brought;
        let first = self.order.last().map_or(0, |(_, end)| *end);
        let mut end = first;
        for entry in &mut entries {
            let shown = shown.remove(&entry.index);
            entry.index += first;
            end = end.max(entry.index + 1);
            self.told.insert(entry.index, Told::of(entry, shown));
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
        known: &Known,
        foreseen: Option<Foreseen>,
    ) -> Result<()> {
        let Self { ids, slot, at, groups, told, evidence, packs, unmade, requests, order } = self;
        let project = locked.run.project;
        match locked.admit(slot, at) {
            // They were acknowledged before the run ended, and are late results of it.
            Ok(()) | Err(QueryError::Life(_)) => {}
            Err(error) => return Err(error),
        }
        let generation = chunk::generation_of(locked.slot(slot)?);
        let foreseen = foreseen.filter(|foreseen| foreseen.holds(&locked.run, generation));
        let (drafted, mut events) =
            foreseen.map_or_else(Default::default, |foreseen| (Some(foreseen.drafted), foreseen.events));
        let lanes = locked.lanes.clone();
        let mut target = Target {
            run: &mut locked.run,
            lanes: &lanes,
            is_fresh: false,
            generation,
            known,
            drafted,
            evidence: &evidence,
            requests: &requests,
            files: &HashMap::new(),
            now: at,
        };
        let folded = chunk::fold(session, &mut target, &groups).await?;
        locked.growth.test_cases += folded.new_test_cases;
        locked.growth.open_clusters += folded.open_clusters;
        let has_changed = !folded.changed.is_empty();
        let mut changed: HashMap<usize, _> = folded.changed.into_iter().collect();
        let mut index = 0;
        for (passing, end) in order {
            passing.into_iter().for_each(|event| locked.note(event));
            for index in std::mem::replace(&mut index, end)..end {
                if let (Some(row), Some(told)) = (changed.remove(&index), told.get(&index)) {
                    let event = events.remove(&index);
                    locked.note(event.unwrap_or_else(|| announce::test_completed(&row, told)));
                }
            }
        }
        locked.settle(at, None, &ctx.patience);
        if has_changed {
            locked.note(announce::run_progress(&locked.run));
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
