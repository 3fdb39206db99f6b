//! Staging: a request of a running client is answered once it is stored as one row of
//! the inbox. `apply::pending` applies all rows of a run together, which costs a
//! fraction of applying each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use callboard_domain::ids::PackId;
use callboard_domain::ingest::{StoredCases, TestCaseEntry};
use callboard_store::db::Session;
use callboard_store::evidence::{self, FilledPack};
use callboard_store::feed::NewEvent;
use callboard_store::intake::{self as rows, ClaimedCall, NewCall};
use callboard_store::{Backend, Store};

use crate::Result;
use crate::stage::evidence_packing::Packed;
use crate::stage::run_token::{self, Claim, Producer};
use crate::stage::staged_request::{MOST_IN_ROW, Origin, StagedRequest, discard};
use crate::stage::stored_entries::{PART_BYTES, read_stored};
use crate::transaction::run_events::Preview;

/// Records packs that are written already as part of the run, and allocates ids for
/// those that go with the rows. The caller commits.
async fn place_packs(
    session: &mut Session,
    origin: Origin,
    calls: &[StagedRequest],
) -> Result<Vec<Option<PackId>>> {
    let Origin { project, run, at, .. } = origin;
    let count = calls.iter().filter(|call| call.packed.with_rows().is_some()).count();
    let mut ids = evidence::take_ids(session, count).await?.into_iter();
    let mut packs = Vec::with_capacity(calls.len());
    for call in calls {
        packs.push(call.packed.keep(session, (project, run), &mut ids, at).await?);
    }
    Ok(packs)
}

/// Stages a request whose body lies in a file, part by part, since it does not fit
/// into memory. When it fails half-way, the staged parts are recognised when the client
/// sends it again.
pub(crate) async fn stage_stored(
    store: &Store,
    claim: &Claim,
    mut passing: Vec<NewEvent>,
    cases: StoredCases,
) -> Result<Producer> {
    let producer = run_token::recognise_producer(store, claim).await?;
    let origin = Origin::from_claim(claim, &producer);
    let parts = cases.parts(MOST_IN_ROW, PART_BYTES);
    let cases = Arc::new(Mutex::new(cases));
    for positions in parts {
        let keys = positions.iter().filter_map(|position| claim.keys.get(*position).copied()).collect();
        let look = |shown: &mut HashMap<usize, Preview>, entry: &TestCaseEntry| {
            shown.extend(Preview::from_entry(entry).map(|of_entry| (entry.index, of_entry)));
        };
        let (entries, packing, shown) = read_stored(&cases, positions, HashMap::new(), look).await?;
        let packed = Packed::placed(store, origin.project, Some(origin.run), packing, origin.at).await?;
        let call = StagedRequest::new(store, packed, std::mem::take(&mut passing), shown, entries, keys)?;
        stage_alone(store, origin, &[call]).await?;
    }
    Ok(producer)
}

/// Writes requests and their evidence to the inbox; the caller commits.
async fn stage(
    session: &mut Session,
    origin: Origin,
    calls: &[StagedRequest],
    packs: Vec<Option<PackId>>,
) -> Result<()> {
    let Origin { project, run, slot, at } = origin;
    let kept = calls.iter().zip(packs).map(|(StagedRequest { packed, body, keys, .. }, pack)| {
        let evidence = packed.with_rows().map(|pack| pack.as_slice().to_vec());
        NewCall { project, run, slot, at, pack, evidence, body: body.clone(), keys: keys.clone() }
    });
    Ok(rows::add(session, kept.collect()).await?)
}

/// Stages the parts of one request. Their objects are removed when that fails.
async fn stage_alone(store: &Store, origin: Origin, calls: &[StagedRequest]) -> Result<()> {
    if store.backend() == Backend::Postgres {
        let kept = stage_among_runs(store, origin, calls).await;
        if let Err(error) = &kept {
            discard(store, calls, error).await;
        }
        return kept;
    }
    let placed = place_before(store, origin, calls).await;
    if let Err(error) = &placed {
        discard(store, calls, error).await;
    }
    let kept = stage_in_own_file(store, origin, calls, placed?).await;
    if let Err(error) = &kept {
        for call in calls {
            call.packed.let_go(store, origin.project, error, origin.at).await;
        }
    }
    kept
}

/// Records packs in the main file before the requests are staged in a file of their own.
/// When staging fails in between, the packs are deleted with the run.
async fn place_before(store: &Store, origin: Origin, calls: &[StagedRequest]) -> Result<Vec<Option<PackId>>> {
    if calls.iter().all(|call| call.packed.frames().is_empty()) {
        return Ok(vec![None; calls.len()]);
    }
    let mut session = store.db().begin().await?;
    let packs = place_packs(&mut session, origin, calls).await?;
    session.commit().await?;
    Ok(packs)
}

/// [`stage_alone`] on SQLite, where the inbox is a file of its own.
async fn stage_in_own_file(
    store: &Store,
    origin: Origin,
    calls: &[StagedRequest],
    packs: Vec<Option<PackId>>,
) -> Result<()> {
    let mut session = store.db().intake().await?;
    stage(&mut session, origin, calls, packs).await?;
    Ok(session.commit().await?)
}

/// [`stage_alone`] on PostgreSQL; a request that needs one statement is its own
/// transaction.
async fn stage_among_runs(store: &Store, origin: Origin, calls: &[StagedRequest]) -> Result<()> {
    if let [only] = calls
        && (only.packed.frames().is_empty() || only.packed.with_rows().is_some())
    {
        let mut session = store.db().intake().await?;
        let packs = place_packs(&mut session, origin, calls).await?;
        return stage(&mut session, origin, calls, packs).await;
    }
    let mut session = store.db().begin().await?;
    let packs = place_packs(&mut session, origin, calls).await?;
    stage(&mut session, origin, calls, packs).await?;
    Ok(session.commit().await?)
}

/// Stages a request on its own, after its sender is authenticated.
pub(crate) async fn stage_after_check(
    store: &Store,
    claim: &Claim,
    passing: Vec<NewEvent>,
    entries: Vec<TestCaseEntry>,
) -> Result<Producer> {
    let producer = run_token::recognise_producer(store, claim).await?;
    let origin = Origin::from_claim(claim, &producer);
    let entries = entries.into_iter().zip(claim.keys.iter().copied()).collect();
    let calls = StagedRequest::of_request(store, origin, passing, entries).await?;
    stage_alone(store, origin, &calls).await?;
    Ok(producer)
}

/// Stages small requests whose senders [`rows::add_of_clients`] sees to be clients;
/// returns the producer of each, `None` where it does not see one.
pub(crate) async fn stage_for_clients(
    session: Session,
    calls: &[(&Claim, &StagedRequest)],
) -> Result<Vec<Option<Producer>>> {
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
    let producer = admitted.into_iter().map(|admitted| Some(Producer::from_admitted(admitted?)));
    Ok(producer.collect())
}

/// Stages a prepared request on its own, after its sender is authenticated.
pub(crate) async fn stage_prepared(store: &Store, claim: &Claim, call: StagedRequest) -> Result<Producer> {
    let producer = run_token::recognise_producer(store, claim).await?;
    stage_alone(store, Origin::from_claim(claim, &producer), &[call]).await?;
    Ok(producer)
}
