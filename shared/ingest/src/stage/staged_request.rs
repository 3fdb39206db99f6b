//! A request on its way into the inbox, and what a row of the inbox holds.

use std::collections::HashMap;

use callboard_domain::endpoints::Captured;
use callboard_domain::ids::{PackId, ProjectId, RunId, SlotId};
use callboard_domain::ingest::{IdentityHash, TestCaseEntry};
use callboard_domain::time::Timestamp;
use callboard_store::evidence::{FilledPack, Frame};
use callboard_store::feed::NewEvent;
use callboard_store::intake as rows;
use callboard_store::{Backend, Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::stage::evidence_packing::Packed;
use crate::stage::run_token::{Claim, Producer};
use crate::transaction::run_events::Preview;
use crate::{QueryError, Result};

/// Most entries of a row: a larger call takes several, so that folding stays in
/// small transactions.
pub(crate) const MOST_IN_ROW: usize = 500;

/// What a call brought, as it is stored while it waits.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StagedPayload {
    pub(crate) entries: Vec<TestCaseEntry>,
    /// By index of the entry.
    pub(crate) shown: HashMap<usize, Preview>,
    /// Where the evidence of each entry lies in the pack of the call, by index.
    pub(crate) frames: Vec<(usize, Frame)>,
    pub(crate) requests: Captured,
    /// Events of interest while they happen.
    pub(crate) passing: Vec<NewEvent>,
}

/// A call on its way to its row.
pub(crate) struct StagedRequest {
    pub(crate) packed: Packed,
    /// The pack of its evidence, when an id was taken for it before.
    pub(crate) pack: Option<PackId>,
    pub(crate) body: Vec<u8>,
    pub(crate) keys: Vec<i64>,
}

/// Where a call belongs, and when it came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) project: ProjectId,
    pub(crate) run: RunId,
    pub(crate) slot: SlotId,
    pub(crate) at: Timestamp,
}

impl Origin {
    /// Of a client that was recognised.
    pub(crate) const fn from_claim(claim: &Claim, producer: &Producer) -> Self {
        Self { project: producer.project, run: claim.run, slot: producer.slot, at: claim.at }
    }
}

impl StagedRequest {
    /// A call that brought little.
    pub(crate) fn small(
        store: &Store,
        passing: Vec<NewEvent>,
        mut entries: Vec<TestCaseEntry>,
        keys: Vec<i64>,
    ) -> Result<Self> {
        let shown = preview_of(&entries);
        let packed = Packed::small(&mut entries)?;
        Self::new(store, packed, passing, shown, entries, keys)
    }

    /// Calls of one request that brought much: more than one for many results.
    pub(crate) async fn of_request(
        store: &Store,
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
            let call = Self::of_part(store, origin, std::mem::take(&mut passing), part.unwrap_or_default());
            match call.await {
                Ok(call) => calls.push(call),
                Err(error) => {
                    discard(store, &calls, &error).await;
                    return Err(error);
                }
            }
        }
    }

    async fn of_part(
        store: &Store,
        Origin { project, run, at, .. }: Origin,
        passing: Vec<NewEvent>,
        entries: Vec<(TestCaseEntry, i64)>,
    ) -> Result<Self> {
        let (mut entries, keys): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        let shown = preview_of(&entries);
        let packed = Packed::write(store, project, Some(run), &mut entries, at).await?;
        Self::new(store, packed, passing, shown, entries, keys)
    }

    pub(crate) fn new(
        store: &Store,
        mut packed: Packed,
        passing: Vec<NewEvent>,
        shown: HashMap<usize, Preview>,
        entries: Vec<TestCaseEntry>,
        keys: Vec<i64>,
    ) -> Result<Self> {
        let frames = packed.frames().to_vec();
        let requests = std::mem::take(&mut packed.requests);
        let body = StagedPayload { entries, shown, frames, requests, passing }.to_bytes(store.backend())?;
        Ok(Self { packed, pack: None, body, keys })
    }

    /// Whether its evidence needs an id for its pack.
    pub(crate) const fn has_pack(&self) -> bool {
        self.packed.with_rows().is_some()
    }

    /// Bytes that are kept of it.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len() + self.packed.with_rows().map_or(0, FilledPack::size)
    }
}

fn preview_of(entries: &[TestCaseEntry]) -> HashMap<usize, Preview> {
    entries.iter().filter_map(|entry| Some((entry.index, Preview::from_entry(entry)?))).collect()
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

impl StagedPayload {
    fn to_bytes(&self, backend: Backend) -> Result<Vec<u8>> {
        let json =
            serde_json::to_vec(self).map_err(|_| StoreError::Damaged("results without a stored form"))?;
        Ok(rows::stored(json, backend)?)
    }

    pub(crate) fn from_body(body: &[u8]) -> Result<Self> {
        let brought = serde_json::from_slice(&rows::told(body)?);
        Ok(brought.map_err(|_| StoreError::Damaged("results that wait"))?)
    }
}

/// Removes what requests wrote that are not staged.
pub(crate) async fn discard(store: &Store, calls: &[StagedRequest], failure: &QueryError) {
    for call in calls {
        call.packed.discard(store, Some(failure)).await;
    }
}
