//! Calls of running clients on their way into their run. A call is answered
//! once it is kept as one row ([`keep`]); what follows from it is worked out for
//! all calls that came meanwhile together ([`fold`]), which costs a fraction of
//! doing it for each.
//!
//! What waits is no secret of this process: it is folded a moment later by the
//! process that kept it, and before that by whoever asks for anything that may
//! tell of it ([`settle`]), or wants to change its run. So nobody sees less than
//! was acknowledged, and a process that ends leaves nothing behind that others do
//! not find.

use std::collections::{BTreeSet, HashMap, HashSet};

use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::endpoints::Captured;
use callboard_domain::ids::{PackId, ProjectId, RunId, SlotId};
use callboard_domain::ingest::{IdentityHash, TestCaseEntry};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::evidence::{self, Frame};
use callboard_store::feed::NewEvent;
use callboard_store::intake::{self as rows, ClaimedCall, NewCall, WaitingCall};
use callboard_store::{Backend, StoreError, runs};
use serde::{Deserialize, Serialize};

use super::announce::{self, Shown, Told};
use super::bearer::{self, Claim, Fed};
use super::chunk::{self, Group, Known, Target};
use super::counting;
use super::locked::LockedRun;
use super::packing::{Packed, slices};
use super::writer::{CONFLICT_ATTEMPTS, ENTRIES_PER_TRANSACTION};
use crate::{Context, QueryError, Result};

/// Most entries of a row: a larger call takes several, so that folding stays in
/// small transactions.
const MOST_IN_ROW: usize = 500;
/// Rows that one transaction folds.
const MOST_ROWS: i64 = 128;
/// How often somebody who wants to go on with a run tries: each time, one call at
/// most comes nearer to being set aside.
const MOST_ATTEMPTS: u32 = 1_000;
/// Transactions that one look at a run takes at most.
const MOST_BATCHES: usize = 64;
/// Runs that are folded by one look at what waits.
const MOST_RUNS: i64 = 200;

/// What a call brought, as it is stored while it waits.
#[derive(Debug, Serialize, Deserialize)]
struct Brought {
    entries: Vec<TestCaseEntry>,
    /// By index of the entry.
    shown: HashMap<usize, Shown>,
    /// Where the evidence of each entry lies in the pack of the call, by index.
    frames: Vec<(usize, Frame)>,
    requests: Captured,
    /// Events of interest while they happen.
    passing: Vec<NewEvent>,
}

/// A call on its way to its row.
pub(super) struct Call {
    packed: Packed,
    body: Vec<u8>,
    keys: Vec<i64>,
}

/// Where a call belongs, and when it came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    project: ProjectId,
    run: RunId,
    slot: SlotId,
    at: Timestamp,
}

impl Origin {
    /// Of a client that was recognised.
    pub(super) const fn of(claim: &Claim, fed: &Fed) -> Self {
        Self { project: fed.project, run: claim.run, slot: fed.slot, at: claim.at }
    }
}

impl Call {
    /// A call that brought little.
    pub(super) fn small(
        ctx: &Context,
        passing: Vec<NewEvent>,
        mut entries: Vec<TestCaseEntry>,
        keys: Vec<i64>,
    ) -> Result<Self> {
        let shown = shown_of(&entries);
        let packed = Packed::small(&mut entries)?;
        Self::of(ctx, packed, passing, shown, entries, keys)
    }

    /// Calls of one request that brought much: more than one for many results.
    async fn of_request(
        ctx: &Context,
        origin: Origin,
        mut passing: Vec<NewEvent>,
        entries: Vec<(TestCaseEntry, i64)>,
    ) -> Result<Vec<Self>> {
        let mut calls = Vec::with_capacity(1);
        let mut rest = parts(entries).into_iter();
        loop {
            let part = rest.next();
            if part.is_none() && !calls.is_empty() {
                return Ok(calls);
            }
            let (mut entries, keys): (Vec<_>, Vec<_>) = part.unwrap_or_default().into_iter().unzip();
            let shown = shown_of(&entries);
            let Origin { project, run, at, .. } = origin;
            let packed = match Packed::write(ctx, project, Some(run), &mut entries, at).await {
                Ok(packed) => packed,
                Err(error) => {
                    discard(ctx, &calls, &error).await;
                    return Err(error);
                }
            };
            calls.push(Self::of(ctx, packed, std::mem::take(&mut passing), shown, entries, keys)?);
        }
    }

    fn of(
        ctx: &Context,
        mut packed: Packed,
        passing: Vec<NewEvent>,
        shown: HashMap<usize, Shown>,
        entries: Vec<TestCaseEntry>,
        keys: Vec<i64>,
    ) -> Result<Self> {
        let frames = packed.frames().to_vec();
        let requests = std::mem::take(&mut packed.requests);
        let body = Brought { entries, shown, frames, requests, passing }.to_bytes(ctx.store.backend())?;
        Ok(Self { packed, body, keys })
    }

    /// Whether evidence is kept with it.
    pub(super) fn has_evidence(&self) -> bool {
        !self.packed.frames().is_empty()
    }
}

fn shown_of(entries: &[TestCaseEntry]) -> HashMap<usize, Shown> {
    entries.iter().filter_map(|entry| Some((entry.index, Shown::of(entry)?))).collect()
}

/// Entries in rows of at most [`MOST_IN_ROW`]; those of one test stay together,
/// as what is one request tells repetitions apart.
fn parts(entries: Vec<(TestCaseEntry, i64)>) -> Vec<Vec<(TestCaseEntry, i64)>> {
    if entries.len() <= MOST_IN_ROW {
        return vec![entries];
    }
    let mut places: HashMap<IdentityHash, usize> = HashMap::new();
    let mut parts: Vec<Vec<(TestCaseEntry, i64)>> = vec![Vec::new()];
    for entry in entries {
        let newest = parts.len() - 1;
        let place = *places.entry(entry.0.identity).or_insert(newest);
        parts[place].push(entry);
        if parts[newest].len() >= MOST_IN_ROW {
            parts.push(Vec::new());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

impl Brought {
    fn to_bytes(&self, backend: Backend) -> Result<Vec<u8>> {
        let json =
            serde_json::to_vec(self).map_err(|_| StoreError::Damaged("results without a stored form"))?;
        Ok(rows::stored(json, backend)?)
    }

    fn of(body: &[u8]) -> Result<Self> {
        let brought = serde_json::from_slice(&rows::told(body)?);
        Ok(brought.map_err(|_| StoreError::Damaged("results that wait"))?)
    }
}

/// Keeps calls, with the evidence they brought; the caller commits.
pub(super) async fn keep(session: &mut Session, calls: &[(Origin, &Call)]) -> Result<()> {
    let count = calls.iter().filter(|(_, call)| call.packed.needs_id()).count();
    let mut ids = evidence::take_ids(session, count).await?.into_iter();
    let mut kept = Vec::with_capacity(calls.len());
    for (Origin { project, run, slot, at }, Call { packed, body, keys }) in calls.iter().copied() {
        let pack = packed.keep(session, (project, run), &mut ids, at).await?;
        kept.push(NewCall { project, run, slot, at, pack, body: body.clone(), keys: keys.clone() });
    }
    Ok(rows::add(session, kept).await?)
}

/// Keeps calls of a request in a transaction; one that needs nothing else is its
/// own on PostgreSQL. What they wrote is removed when they cannot be kept.
async fn keep_alone(ctx: &Context, origin: Origin, calls: &[Call]) -> Result<()> {
    let kept = async {
        let placed: Vec<(Origin, &Call)> = calls.iter().map(|call| (origin, call)).collect();
        if ctx.store.backend() == Backend::Postgres
            && let [only] = calls
            && !only.has_evidence()
        {
            return keep(&mut ctx.store.db().read().await?, &placed).await;
        }
        let mut session = ctx.store.db().begin().await?;
        keep(&mut session, &placed).await?;
        Ok(session.commit().await?)
    };
    let kept = kept.await;
    if let Err(error) = &kept {
        discard(ctx, calls, error).await;
    }
    kept
}

/// Keeps a request by itself: who sent it is asked before anything is done.
pub(super) async fn keep_asking_first(
    ctx: &Context,
    claim: &Claim,
    passing: Vec<NewEvent>,
    entries: Vec<TestCaseEntry>,
) -> Result<Fed> {
    let fed = bearer::recognise_feeder(ctx, claim).await?;
    let origin = Origin::of(claim, &fed);
    let entries = entries.into_iter().zip(claim.keys.iter().copied()).collect();
    let calls = Call::of_request(ctx, origin, passing, entries).await?;
    keep_alone(ctx, origin, &calls).await?;
    Ok(fed)
}

/// Keeps calls without evidence for those who are seen at once to be clients, as
/// [`rows::add_of_clients`] does; answers for each who that is.
pub(super) async fn keep_of_clients(session: Session, calls: &[(&Claim, &Call)]) -> Result<Vec<Option<Fed>>> {
    let claimed: Vec<ClaimedCall<'_>> = calls
        .iter()
        .map(|(claim, call)| ClaimedCall {
            run: claim.run,
            token: claim.token,
            at: claim.at,
            body: &call.body,
            keys: &call.keys,
        })
        .collect();
    let admitted = rows::add_of_clients(session, &claimed).await?;
    let fed = admitted.into_iter().map(|admitted| Some(Fed::of(admitted?)));
    Ok(fed.collect())
}

/// Keeps a call that is ready by itself.
pub(super) async fn keep_ready(ctx: &Context, claim: &Claim, call: Call) -> Result<Fed> {
    let fed = bearer::recognise_feeder(ctx, claim).await?;
    keep_alone(ctx, Origin::of(claim, &fed), &[call]).await?;
    Ok(fed)
}

/// Removes what calls wrote that are not kept.
async fn discard(ctx: &Context, calls: &[Call], failure: &QueryError) {
    for call in calls {
        call.packed.discard(ctx, Some(failure)).await;
    }
}

/// Works everything in that waits.
///
/// # Errors
/// [`QueryError::Store`]; what could not be worked in goes on waiting.
pub async fn settle(ctx: &Context) -> Result<()> {
    let waiting = rows::waiting(&mut ctx.store.db().read().await?, MOST_RUNS).await?;
    let mut settled = Ok(());
    for (project, run) in waiting {
        // One that cannot be worked in keeps no other from it.
        if let Err(error) = fold_once(ctx, project, run).await {
            settled = Err(error);
        }
    }
    settled
}

/// Works in what waits of a run, for somebody who wants to go on with it: what
/// cannot be worked in is set aside.
///
/// # Errors
/// [`QueryError::Store`]; what could not be worked in goes on waiting.
pub(crate) async fn fold(ctx: &Context, project: ProjectId, run: RunId) -> Result<()> {
    let mut attempt: u32 = 1;
    loop {
        match fold_once(ctx, project, run).await {
            Err(error) if is_refusal(&error) && attempt < MOST_ATTEMPTS => attempt += 1,
            folded => return folded.map(drop),
        }
    }
}

/// Whether something is wrong with what was to be written, and not with where it
/// was to be written to.
fn is_refusal(error: &QueryError) -> bool {
    !matches!(error, QueryError::Store(error) if error.is_unavailable())
}

/// [`fold`] as far as it goes, once; answers whether results of the run have waited
/// to be counted for long enough.
pub(super) async fn fold_once(ctx: &Context, project: ProjectId, run: RunId) -> Result<bool> {
    // Who waited here for the turn finds nothing left, mostly.
    let _turn = ctx.turns.to_fold(run).await;
    let (mut attempt, mut most, mut is_due) = (1, MOST_ROWS, false);
    // What comes meanwhile is for whoever brings it.
    for _ in 0..MOST_BATCHES {
        match fold_some(ctx, project, run, most).await {
            Err(QueryError::Store(error)) if error.is_conflict() && attempt < CONFLICT_ATTEMPTS => {
                tracing::info!(%error, attempt, "a transaction gave way to another and is repeated");
                attempt += 1;
            }
            // One of them is to blame.
            Err(error) if is_refusal(&error) && most > 1 => most = 1,
            Err(error) if is_refusal(&error) => {
                refuse_first(ctx, project, run, &error).await?;
                return Err(error);
            }
            Err(error) => return Err(error),
            Ok(folded) => {
                is_due |= folded.is_due;
                if !folded.is_more {
                    break;
                }
            }
        }
    }
    Ok(is_due)
}

/// What one transaction did.
struct Passed {
    /// Whether more may wait.
    is_more: bool,
    /// Whether results of the run have waited to be counted for long enough.
    is_due: bool,
}

/// Notes that the first call that waits of a run could not be worked in.
async fn refuse_first(ctx: &Context, project: ProjectId, run: RunId, error: &QueryError) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let first = rows::of_run(&mut session, project, run, 1).await?.pop();
    if let Some(call) = first {
        let is_set_aside = rows::refuse(&mut session, call.id).await?;
        session.commit().await?;
        if is_set_aside {
            tracing::error!(%error, %run, call = call.id, "results that were acknowledged are set aside: they cannot be worked into their run");
        }
    }
    Ok(())
}

/// One transaction of at most so many calls. They are read and made ready before
/// it: on SQLite nobody else can write while it lasts.
async fn fold_some(ctx: &Context, project: ProjectId, run: RunId, most: i64) -> Result<Passed> {
    let mut reader = ctx.store.db().read().await?;
    let waiting = rows::of_run(&mut reader, project, run, most).await?;
    if waiting.is_empty() {
        return Ok(Passed { is_more: false, is_due: false });
    }
    let is_there = runs::get(&mut reader, project, run).await?.is_some();
    drop(reader);
    if !is_there {
        return let_go_of_all(ctx, project, run).await;
    }
    let Some(batch) = Batch::of(&waiting)? else { return Ok(Passed { is_more: false, is_due: false }) };
    let is_more = batch.ids.len() < waiting.len() || i64::try_from(waiting.len()) == Ok(most);
    let at = batch.at;
    let known = Known::read(ctx, project, &batch.groups, at).await?;
    let mut session = ctx.store.db().begin().await?;
    let mut locked = match LockedRun::lock(&mut session, project, run).await {
        Err(QueryError::Store(StoreError::RunGone)) => {
            drop(session);
            return let_go_of_all(ctx, project, run).await;
        }
        locked => locked?,
    };
    // Another process may have worked some of them in since they were read. A call is compared whole, as SQLite gives
    // ids that are free again to others.
    let still = rows::of_run(&mut session, project, run, most).await?;
    if !waiting.iter().filter(|call| batch.ids.contains(&call.id)).all(|call| still.contains(call)) {
        return Ok(Passed { is_more: true, is_due: false });
    }
    batch.fold(ctx, &mut session, &mut locked, &known).await?;
    let is_due = counting::is_due(&locked.run, at);
    locked.close(session, at).await?;
    Ok(Passed { is_more, is_due })
}

/// Nobody asks for the results of a run that is gone.
async fn let_go_of_all(ctx: &Context, project: ProjectId, run: RunId) -> Result<Passed> {
    let mut session = ctx.store.db().begin().await?;
    match LockedRun::lock(&mut session, project, run).await {
        Err(QueryError::Store(StoreError::RunGone)) => {}
        locked => return locked.map(|_| Passed { is_more: true, is_due: false }),
    }
    rows::remove_all(&mut session, project, run).await?;
    session.commit().await?;
    Ok(Passed { is_more: false, is_due: false })
}

/// Calls that are worked in together: of one slot, and none of them about a test
/// that another one is about, so that each result is told in its turn.
struct Batch {
    ids: Vec<i64>,
    slot: SlotId,
    /// When the last of them came.
    at: Timestamp,
    groups: Vec<Group>,
    told: HashMap<usize, Told>,
    evidence: HashMap<usize, EvidenceSlice>,
    packs: BTreeSet<PackId>,
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
            requests: Captured::default(),
            order: Vec::new(),
        };
        let (mut entries, mut tests) = (Vec::new(), HashSet::new());
        for call in waiting.iter().filter(|call| call.slot == first.slot) {
            let brought = Brought::of(&call.body)?;
            let about: HashSet<(IdentityHash, String)> =
                brought.entries.iter().map(|entry| (entry.identity, entry.browser_project.clone())).collect();
            let is_full = entries.len() + brought.entries.len() > ENTRIES_PER_TRANSACTION;
            if !batch.ids.is_empty() && (is_full || !tests.is_disjoint(&about)) {
                break;
            }
            tests.extend(about);
            batch.take(call, brought, &mut entries);
        }
        batch.groups = chunk::group(entries);
        Ok(Some(batch))
    }

    /// Takes a call, whose entries are numbered after those that are there.
    fn take(&mut self, call: &WaitingCall, brought: Brought, entries: &mut Vec<TestCaseEntry>) {
        let Brought { entries: more, mut shown, frames, requests, passing } = brought;
        let first = self.order.last().map_or(0, |(_, end)| *end);
        let mut end = first;
        for mut entry in more {
            let shown = shown.remove(&entry.index);
            entry.index += first;
            end = end.max(entry.index + 1);
            self.told.insert(entry.index, Told::of(&entry, shown));
            entries.push(entry);
        }
        if let Some(pack) = call.pack {
            self.packs.insert(pack);
            self.evidence
                .extend(slices(&frames, pack).into_iter().map(|(index, slice)| (first + index, slice)));
        }
        self.requests.absorb(requests, first);
        self.order.push((passing, end));
        self.ids.push(call.id);
        self.at = self.at.max(call.at);
    }

    /// Works the calls into their locked run, which the caller closes.
    async fn fold(
        self,
        ctx: &Context,
        session: &mut Session,
        locked: &mut LockedRun,
        known: &Known,
    ) -> Result<()> {
        let Self { ids, slot, at, groups, told, evidence, packs, requests, order } = self;
        let project = locked.run.project;
        match locked.admit(slot, at) {
            // They were acknowledged before the run ended, and are late results of it.
            Ok(()) | Err(QueryError::Life(_)) => {}
            Err(error) => return Err(error),
        }
        let generation = locked.slot(slot)?.slot.generation;
        let lanes = locked.lanes.clone();
        let mut target = Target {
            run: &mut locked.run,
            lanes: &lanes,
            is_fresh: false,
            generation: u32::try_from(generation).unwrap_or_default(),
            known,
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
                    locked.note(announce::test_completed(&row, told));
                }
            }
        }
        locked.settle(at, None, &ctx.patience);
        if has_changed {
            locked.note(announce::run_progress(&locked.run));
        }
        for pack in packs.difference(&folded.used_packs) {
            evidence::let_go(session, project, *pack, at).await?;
        }
        Ok(rows::remove(session, project, locked.run.id, ids).await?)
    }
}
