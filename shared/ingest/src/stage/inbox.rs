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

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use callboard_domain::endpoints::Captured;
use callboard_domain::ids::{PackId, ProjectId, RunId, SlotId};
use callboard_domain::ingest::{IdentityHash, StoredCases, TestCaseEntry};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::evidence::{self, FilledPack, Frame};
use callboard_store::feed::NewEvent;
use callboard_store::intake::{self as rows, ClaimedCall, NewCall};
use callboard_store::{Backend, StoreError, boxed};
use serde::{Deserialize, Serialize};

use crate::aggregate::aggregation;
use crate::apply::batch_prefetch::Look;
use crate::receive::entries;
use crate::stage::evidence_packing::Packed;
use crate::stage::run_token::{self, Claim, Fed};
use crate::transaction::run_events::Shown;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, QueryError, Result};
use callboard_core::retry;

/// Most entries of a row: a larger call takes several, so that folding stays in
/// small transactions.
const MOST_IN_ROW: usize = 500;
/// Rows that one transaction folds.
pub(crate) const MOST_ROWS: i64 = 128;
/// How often somebody who wants to go on with a run tries: each time, one call at
/// most comes nearer to being set aside.
const MOST_ATTEMPTS: u32 = 1_000;
/// Transactions after which one look at a run asks what of it is left.
const BATCHES: usize = 64;
/// Runs that are folded by one look at what waits.
const MOST_RUNS: i64 = 200;

/// What a call brought, as it is stored while it waits.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Brought {
    pub(crate) entries: Vec<TestCaseEntry>,
    /// By index of the entry.
    pub(crate) shown: HashMap<usize, Shown>,
    /// Where the evidence of each entry lies in the pack of the call, by index.
    pub(crate) frames: Vec<(usize, Frame)>,
    pub(crate) requests: Captured,
    /// Events of interest while they happen.
    pub(crate) passing: Vec<NewEvent>,
}

/// A call on its way to its row.
pub(crate) struct Call {
    packed: Packed,
    /// The pack of its evidence, when an id was taken for it before.
    pack: Option<PackId>,
    body: Vec<u8>,
    keys: Vec<i64>,
}

/// Where a call belongs, and when it came.
#[derive(Debug, Clone, Copy)]
struct Origin {
    project: ProjectId,
    run: RunId,
    slot: SlotId,
    at: Timestamp,
}

impl Origin {
    /// Of a client that was recognised.
    const fn of(claim: &Claim, fed: &Fed) -> Self {
        Self { project: fed.project, run: claim.run, slot: fed.slot, at: claim.at }
    }
}

impl Call {
    /// A call that brought little.
    pub(crate) fn small(
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
            let call = Self::of_part(ctx, origin, std::mem::take(&mut passing), part.unwrap_or_default());
            match call.await {
                Ok(call) => calls.push(call),
                Err(error) => {
                    discard(ctx, &calls, &error).await;
                    return Err(error);
                }
            }
        }
    }

    async fn of_part(
        ctx: &Context,
        Origin { project, run, at, .. }: Origin,
        passing: Vec<NewEvent>,
        entries: Vec<(TestCaseEntry, i64)>,
    ) -> Result<Self> {
        let (mut entries, keys): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        let shown = shown_of(&entries);
        let packed = Packed::write(ctx, project, Some(run), &mut entries, at).await?;
        Self::of(ctx, packed, passing, shown, entries, keys)
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
        Ok(Self { packed, pack: None, body, keys })
    }

    /// Takes an id for the pack of its evidence, if it has any.
    pub(crate) async fn take_pack(&mut self, ctx: &Context) -> Result<()> {
        if self.packed.with_rows().is_some() {
            self.pack = Some(ctx.turns.pack_id(ctx).await?);
        }
        Ok(())
    }

    /// Bytes that are kept of it.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len() + self.packed.with_rows().map_or(0, FilledPack::size)
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

    pub(crate) fn of(body: &[u8]) -> Result<Self> {
        let brought = serde_json::from_slice(&rows::told(body)?);
        Ok(brought.map_err(|_| StoreError::Damaged("results that wait"))?)
    }
}

/// Makes packs that were written before part of the run of their calls, and takes ids
/// for those that go with the rows. The caller commits.
async fn place_packs(session: &mut Session, origin: Origin, calls: &[Call]) -> Result<Vec<Option<PackId>>> {
    let Origin { project, run, at, .. } = origin;
    let count = calls.iter().filter(|call| call.packed.with_rows().is_some()).count();
    let mut ids = evidence::take_ids(session, count).await?.into_iter();
    let mut packs = Vec::with_capacity(calls.len());
    for call in calls {
        packs.push(call.packed.keep(session, (project, run), &mut ids, at).await?);
    }
    Ok(packs)
}

/// Keeps the results of a request that lie in a file: part by part, since together
/// they do not fit into memory. Where it breaks off, what was kept is known when the
/// client sends it again.
pub(crate) async fn keep_stored(
    ctx: &Context,
    claim: &Claim,
    mut passing: Vec<NewEvent>,
    cases: StoredCases,
) -> Result<Fed> {
    let fed = run_token::recognise_feeder(ctx, claim).await?;
    let origin = Origin::of(claim, &fed);
    let parts = cases.parts(MOST_IN_ROW, entries::PART_BYTES);
    let cases = Arc::new(Mutex::new(cases));
    for positions in parts {
        let keys = positions.iter().filter_map(|position| claim.keys.get(*position).copied()).collect();
        let look = |shown: &mut HashMap<usize, Shown>, entry: &TestCaseEntry| {
            shown.extend(Shown::of(entry).map(|of_entry| (entry.index, of_entry)));
        };
        let (entries, packing, shown) = entries::read_stored(&cases, positions, HashMap::new(), look).await?;
        let packed = Packed::placed(ctx, origin.project, Some(origin.run), packing, origin.at).await?;
        let call = Call::of(ctx, packed, std::mem::take(&mut passing), shown, entries, keys)?;
        keep_alone(ctx, origin, &[call]).await?;
    }
    Ok(fed)
}

/// Keeps calls of a client, with the evidence they brought; the caller commits.
async fn keep(
    session: &mut Session,
    origin: Origin,
    calls: &[Call],
    packs: Vec<Option<PackId>>,
) -> Result<()> {
    let Origin { project, run, slot, at } = origin;
    let kept = calls.iter().zip(packs).map(|(Call { packed, body, keys, .. }, pack)| {
        let evidence = packed.with_rows().map(|pack| pack.as_slice().to_vec());
        NewCall { project, run, slot, at, pack, evidence, body: body.clone(), keys: keys.clone() }
    });
    Ok(rows::add(session, kept.collect()).await?)
}

/// Keeps calls of a request. What they wrote is removed when they cannot be kept.
async fn keep_alone(ctx: &Context, origin: Origin, calls: &[Call]) -> Result<()> {
    if ctx.store.backend() == Backend::Postgres {
        let kept = keep_among_runs(ctx, origin, calls).await;
        if let Err(error) = &kept {
            discard(ctx, calls, error).await;
        }
        return kept;
    }
    let placed = place_before(ctx, origin, calls).await;
    if let Err(error) = &placed {
        discard(ctx, calls, error).await;
    }
    let kept = keep_beside(ctx, origin, calls, placed?).await;
    if let Err(error) = &kept {
        for call in calls {
            call.packed.let_go(ctx, origin.project, error, origin.at).await;
        }
    }
    kept
}

/// The packs of calls that are kept in a file of their own: part of the run before
/// that, and should it break off in between, they go with the run.
async fn place_before(ctx: &Context, origin: Origin, calls: &[Call]) -> Result<Vec<Option<PackId>>> {
    if calls.iter().all(|call| call.packed.frames().is_empty()) {
        return Ok(vec![None; calls.len()]);
    }
    let mut session = ctx.store.db().begin().await?;
    let packs = place_packs(&mut session, origin, calls).await?;
    session.commit().await?;
    Ok(packs)
}

/// [`keep_alone`] in the file of calls.
async fn keep_beside(
    ctx: &Context,
    origin: Origin,
    calls: &[Call],
    packs: Vec<Option<PackId>>,
) -> Result<()> {
    let mut session = ctx.store.db().intake().await?;
    keep(&mut session, origin, calls, packs).await?;
    Ok(session.commit().await?)
}

/// [`keep_alone`] in a transaction; a call that needs nothing else is its own.
async fn keep_among_runs(ctx: &Context, origin: Origin, calls: &[Call]) -> Result<()> {
    if let [only] = calls
        && (only.packed.frames().is_empty() || only.packed.with_rows().is_some())
    {
        let mut session = ctx.store.db().intake().await?;
        let packs = place_packs(&mut session, origin, calls).await?;
        return keep(&mut session, origin, calls, packs).await;
    }
    let mut session = ctx.store.db().begin().await?;
    let packs = place_packs(&mut session, origin, calls).await?;
    keep(&mut session, origin, calls, packs).await?;
    Ok(session.commit().await?)
}

/// Keeps a request by itself: who sent it is asked before anything is done.
pub(crate) async fn keep_asking_first(
    ctx: &Context,
    claim: &Claim,
    passing: Vec<NewEvent>,
    entries: Vec<TestCaseEntry>,
) -> Result<Fed> {
    let fed = run_token::recognise_feeder(ctx, claim).await?;
    let origin = Origin::of(claim, &fed);
    let entries = entries.into_iter().zip(claim.keys.iter().copied()).collect();
    let calls = Call::of_request(ctx, origin, passing, entries).await?;
    keep_alone(ctx, origin, &calls).await?;
    Ok(fed)
}

/// Keeps calls that brought little for those who are seen at once to be clients, as
/// [`rows::add_of_clients`] does; answers for each who that is.
pub(crate) async fn keep_of_clients(session: Session, calls: &[(&Claim, &Call)]) -> Result<Vec<Option<Fed>>> {
    let claimed: Vec<ClaimedCall<'_>> = calls
        .iter()
        .map(|(claim, call)| ClaimedCall {
            run: claim.run,
            token: claim.token,
            at: claim.at,
            body: &call.body,
            keys: &call.keys,
            evidence: call.packed.with_rows().map(FilledPack::as_slice),
            pack: call.pack,
        })
        .collect();
    let admitted = rows::add_of_clients(session, &claimed).await?;
    let fed = admitted.into_iter().map(|admitted| Some(Fed::of(admitted?)));
    Ok(fed.collect())
}

/// Keeps a call that is ready by itself.
pub(crate) async fn keep_ready(ctx: &Context, claim: &Claim, call: Call) -> Result<Fed> {
    let fed = run_token::recognise_feeder(ctx, claim).await?;
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
#[boxed]
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
pub async fn fold(ctx: &Context, project: ProjectId, run: RunId) -> Result<()> {
    let mut attempt: u32 = 1;
    loop {
        match fold_once(ctx, project, run).await {
            Err(error) if is_refusal(&error) && attempt < MOST_ATTEMPTS => attempt += 1,
            folded => return folded.map(drop),
        }
    }
}

/// Whether something is wrong with what was to be written, and not with where it
/// was to be written to. A deleted project may be restored.
fn is_refusal(error: &QueryError) -> bool {
    !matches!(error, QueryError::Store(error) if error.is_unavailable() || matches!(error, StoreError::ProjectGone))
}

/// [`fold`] as far as it goes, once; answers whether results of the run have waited
/// to be counted for long enough.
pub(crate) async fn fold_once(ctx: &Context, project: ProjectId, run: RunId) -> Result<bool> {
    // Who waited here for the turn finds nothing left, mostly.
    let _turn = ctx.turns.to_fold(run).await;
    let (mut attempt, mut most, mut is_due) = (1, MOST_ROWS, false);
    let (mut batches, mut left, mut tried) = (0, None, None);
    loop {
        match fold_some(ctx, project, run, most, &mut tried).await {
            Err(QueryError::Store(error)) if error.is_conflict() && attempt < retry::ATTEMPTS => {
                tracing::info!(%error, attempt, "a transaction gave way to another and is repeated");
                attempt += 1;
            }
            // One of them is to blame.
            Err(error) if is_refusal(&error) && most > 1 => most = 1,
            Err(error) if is_refusal(&error) => {
                if let Some(call) = tried {
                    refuse(ctx, run, call, &error).await?;
                }
                return Err(error);
            }
            Err(error) => return Err(error),
            Ok(folded) => {
                is_due |= folded.is_due;
                batches += 1;
                if !folded.is_more || batches % BATCHES == 0 && !is_left(ctx, project, run, &mut left).await?
                {
                    break;
                }
            }
        }
    }
    Ok(is_due)
}

/// Whether some of what waits of a run waited already when this was asked first:
/// what came since is for whoever brought it. `left` is between which places that
/// is.
async fn is_left(
    ctx: &Context,
    project: ProjectId,
    run: RunId,
    left: &mut Option<(i64, i64)>,
) -> Result<bool> {
    let Some((first, last)) = rows::span(&mut ctx.store.db().read().await?, project, run).await? else {
        return Ok(false);
    };
    let is_left = match *left {
        None => true,
        // Where nothing got on, somebody else is at it.
        Some((before, newest)) => first <= newest && first != before,
    };
    *left = Some((first, left.map_or(last, |(_, newest)| newest)));
    Ok(is_left)
}

/// What one transaction did.
struct Passed {
    /// Whether more may wait.
    is_more: bool,
    /// Whether results of the run have waited to be counted for long enough.
    is_due: bool,
}

/// Notes that a call that waits of a run could not be worked in.
async fn refuse(ctx: &Context, run: RunId, call: i64, error: &QueryError) -> Result<()> {
    if rows::refuse(ctx.store.db(), run, call).await? {
        tracing::error!(%error, %run, call, "results that were acknowledged are set aside: they cannot be worked into their run");
    }
    Ok(())
}

/// One transaction of at most so many calls; `tried` is set to the id of the first
/// of them, if it came to any.
async fn fold_some(
    ctx: &Context,
    project: ProjectId,
    run: RunId,
    most: i64,
    tried: &mut Option<i64>,
) -> Result<Passed> {
    *tried = None;
    let found = match Look::of(ctx, project, run, most, tried).await? {
        Look::Nothing => return Ok(Passed { is_more: false, is_due: false }),
        Look::OfNobody => return let_go_of_all(ctx, project, run).await,
        Look::Found(found) => found,
    };
    let (is_more, at) = (!found.is_all(), found.at());
    let ready = found.ready(ctx).await?;
    let mut session = ctx.store.db().begin().await?;
    let mut locked = match LockedRun::lock(&mut session, project, run).await {
        Err(QueryError::Store(StoreError::RunGone)) => {
            drop(session);
            return let_go_of_all(ctx, project, run).await;
        }
        locked => locked?,
    };
    if !ready.fold(ctx, &mut session, &mut locked).await? {
        return Ok(Passed { is_more: true, is_due: false });
    }
    let is_due = aggregation::is_due(&locked.run, at);
    locked.close(session, at).await?;
    clear(ctx, project, run).await;
    Ok(Passed { is_more, is_due })
}

/// Removes calls that are worked in, where they did not go with that. What fails here is
/// logged: they are known by their slot.
pub(crate) async fn clear(ctx: &Context, project: ProjectId, run: RunId) {
    if let Err(error) = rows::clear(ctx.store.db(), project, run).await {
        tracing::warn!(%error, %run, "results that were worked into their run are still kept beside it");
    }
}

/// Nobody asks for the results of a run that is gone.
async fn let_go_of_all(ctx: &Context, project: ProjectId, run: RunId) -> Result<Passed> {
    let mut session = ctx.store.db().begin().await?;
    match LockedRun::lock(&mut session, project, run).await {
        Err(QueryError::Store(StoreError::RunGone)) => {}
        locked => return locked.map(|_| Passed { is_more: true, is_due: false }),
    }
    drop(session);
    rows::remove_all(ctx.store.db(), project, run).await?;
    Ok(Passed { is_more: false, is_due: false })
}
