//! Evidence of a request on its way into one pack.

use std::collections::{BTreeSet, HashMap};

use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::endpoints::Captured;
use callboard_domain::evidence::Evidence;
use callboard_domain::ids::{PackId, ProjectId, RunId};
use callboard_domain::ingest::TestCaseEntry;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::evidence::{self, FilledPack, Frame, PackWriter, WrittenPack};
use callboard_store::ids::{self, Kind};
use callboard_store::{Store, StoreError};

use crate::{QueryError, Result};

/// The evidence of a request, not recorded yet.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    bytes: PackedBytes,
    /// The requests its tests made, by index of the entry.
    pub(crate) requests: Captured,
    /// The run id that was taken for the pack's key when the run is new.
    pub(crate) reserved: Option<RunId>,
}

#[derive(Debug, Default)]
enum PackedBytes {
    /// No entry had evidence.
    #[default]
    None,
    /// They go with the rows that point at them, under an id that is taken then.
    WithRows { pack: FilledPack, frames: Vec<(usize, Frame)> },
    /// They are written.
    InObject { pack: WrittenPack, frames: Vec<(usize, Frame)> },
}

/// Evidence that is being packed.
#[derive(Debug, Default)]
pub(crate) struct Packing {
    writer: PackWriter,
    frames: Vec<(usize, Frame)>,
    requests: Captured,
}

impl Packing {
    fn from_evidence(evidence: &[(usize, Box<Evidence>)]) -> Result<Self, StoreError> {
        let mut packing = Self::default();
        for (index, evidence) in evidence {
            packing.add(*index, evidence)?;
        }
        Ok(packing)
    }

    /// Adds that of an entry.
    pub(crate) fn add(&mut self, index: usize, evidence: &Evidence) -> Result<(), StoreError> {
        self.requests.take(index, &evidence.network_requests);
        self.frames.push((index, self.writer.add(evidence)?));
        Ok(())
    }

    fn filled(self) -> Packed {
        let Self { writer, frames, requests } = self;
        if frames.is_empty() {
            return Packed::default();
        }
        let bytes = PackedBytes::WithRows { pack: writer.filled(), frames };
        Packed { bytes, requests, reserved: None }
    }
}

/// Where the evidence of a request lies for one of its transactions.
pub(crate) struct Placed {
    pack: Option<PackId>,
    /// Whether rows of an earlier transaction point at the pack.
    is_recorded: bool,
    /// Slices by index of the entry.
    pub(crate) slices: HashMap<usize, EvidenceSlice>,
}

impl Packed {
    /// Packs the evidence of all entries, failing attempts first, and takes it
    /// out of the entries. What is too large to go with the rows is written.
    pub(crate) async fn write(
        store: &Store,
        project: ProjectId,
        known: Option<RunId>,
        entries: &mut [TestCaseEntry],
        now: Timestamp,
    ) -> Result<Self> {
        let evidence = taken(entries);
        if evidence.is_empty() {
            return Ok(Self::default());
        }
        // Compressing megabytes would hold up other requests of this thread.
        let packed = tokio::task::spawn_blocking(move || Packing::from_evidence(&evidence));
        let packed = packed.await.map_err(|_| StoreError::Damaged("evidence could not be compressed"))??;
        Self::placed(store, project, known, packed, now).await
    }

    /// [`Packed::write`] of evidence that was packed already.
    pub(crate) async fn placed(
        store: &Store,
        project: ProjectId,
        known: Option<RunId>,
        packing: Packing,
        now: Timestamp,
    ) -> Result<Self> {
        let packed = packing.filled();
        let Self { bytes: PackedBytes::WithRows { pack, frames }, requests, .. } = packed else {
            return Ok(packed);
        };
        if pack.fits_in_row() {
            let bytes = PackedBytes::WithRows { pack, frames };
            return Ok(Self { bytes, requests, reserved: None });
        }
        let mut session = store.db().begin().await?;
        let (run, reserved) = match known {
            Some(run) => (run, None),
            None => {
                let run = RunId(ids::allocate_one(&mut session, Kind::Run).await?);
                (run, Some(run))
            }
        };
        let announced = evidence::announce(&mut session, project, run, now).await?;
        session.commit().await?;
        let pack = pack.write(store, announced).await?;
        Ok(Self { bytes: PackedBytes::InObject { pack, frames }, requests, reserved })
    }

    /// [`Packed::write`] for little evidence, which always goes with the rows.
    pub(crate) fn small(entries: &mut [TestCaseEntry]) -> Result<Self> {
        Ok(Packing::from_evidence(&taken(entries))?.filled())
    }

    /// Where the evidence of each entry lies in the pack, by index of the entry.
    pub(crate) fn frames(&self) -> &[(usize, Frame)] {
        match &self.bytes {
            PackedBytes::None => &[],
            PackedBytes::WithRows { frames, .. } | PackedBytes::InObject { frames, .. } => frames,
        }
    }

    /// The pack that goes with the rows that point at it.
    pub(crate) const fn with_rows(&self) -> Option<&FilledPack> {
        match &self.bytes {
            PackedBytes::WithRows { pack, .. } => Some(pack),
            PackedBytes::None | PackedBytes::InObject { .. } => None,
        }
    }

    /// Makes the pack part of a run before rows point at it; answers which it is. One
    /// that goes [with them](Packed::with_rows) only takes one of the ids.
    pub(crate) async fn keep(
        &self,
        session: &mut Session,
        (project, run): (ProjectId, RunId),
        ids: &mut impl Iterator<Item = PackId>,
        now: Timestamp,
    ) -> Result<Option<PackId>> {
        match &self.bytes {
            PackedBytes::None => Ok(None),
            PackedBytes::WithRows { .. } => {
                Ok(Some(ids.next().ok_or(StoreError::Damaged("a sequence gave no id"))?))
            }
            PackedBytes::InObject { pack, .. } => {
                evidence::record(session, project, run, pack, now).await?;
                Ok(Some(pack.id))
            }
        }
    }

    /// Where the evidence lies for a transaction; `recorded` is the pack of an
    /// earlier one that its rows point at.
    pub(crate) async fn place(&self, session: &mut Session, recorded: Option<PackId>) -> Result<Placed> {
        let is_recorded = recorded.is_some();
        Ok(match &self.bytes {
            PackedBytes::None => Placed { pack: None, is_recorded, slices: HashMap::new() },
            PackedBytes::WithRows { frames, .. } => {
                let id = match recorded {
                    Some(id) => id,
                    None => evidence::take_id(session).await?,
                };
                Placed { pack: Some(id), is_recorded, slices: slices(frames, id) }
            }
            PackedBytes::InObject { pack, frames } => {
                Placed { pack: Some(pack.id), is_recorded, slices: slices(frames, pack.id) }
            }
        })
    }

    /// Records the pack in the first transaction whose rows point at it; answers
    /// which pack that is, if they do.
    pub(crate) async fn record(
        &self,
        session: &mut Session,
        place: (ProjectId, RunId),
        placed: &Placed,
        used_packs: &BTreeSet<PackId>,
        now: Timestamp,
    ) -> Result<Option<PackId>> {
        let used = placed.pack.filter(|pack| used_packs.contains(pack));
        match (&self.bytes, used.filter(|_| !placed.is_recorded)) {
            (PackedBytes::WithRows { pack, .. }, Some(id)) => pack.keep(session, place, id, now).await?,
            (PackedBytes::InObject { pack, .. }, Some(_)) => {
                evidence::record(session, place.0, place.1, pack, now).await?;
            }
            _ => {}
        }
        Ok(used)
    }

    /// Removes a pack that no row points at. What fails here is logged: the
    /// request's own outcome is what counts.
    pub(crate) async fn discard(&self, store: &Store, failure: Option<&QueryError>) {
        // A connection that broke may have broken after the commit: then rows
        // point at the pack, and an object too many is better than one too few.
        let may_be_committed = matches!(failure,
            Some(QueryError::Store(error)) if error.is_unavailable() && !error.is_conflict());
        if let PackedBytes::InObject { pack, .. } = &self.bytes
            && !may_be_committed
            && let Err(error) = evidence::discard(store, pack).await
        {
            tracing::warn!(%error, "an evidence pack that nothing points at could not be removed");
        }
    }

    /// [`Packed::discard`] of a pack that is part of its run, of which no row is known to
    /// have been kept.
    pub(crate) async fn let_go(
        &self,
        store: &Store,
        project: ProjectId,
        failure: &QueryError,
        now: Timestamp,
    ) {
        let PackedBytes::InObject { pack, .. } = &self.bytes else { return };
        if matches!(failure, QueryError::Store(error) if error.is_in_doubt()) {
            return;
        }
        let gone = async {
            let mut session = store.db().begin().await?;
            evidence::let_go(&mut session, project, pack.id, now).await?;
            session.commit().await
        };
        if let Err(error) = gone.await {
            tracing::warn!(%error, "an evidence pack that nothing points at could not be let go");
        }
    }
}

/// Takes the evidence out of entries, by index, that of failing attempts first.
fn taken(entries: &mut [TestCaseEntry]) -> Vec<(usize, Box<Evidence>)> {
    let mut evidence: Vec<(u8, usize, Box<Evidence>)> = entries
        .iter_mut()
        .filter_map(|entry| Some((entry.status.severity(), entry.index, entry.evidence.take()?)))
        .collect();
    evidence.sort_by_key(|(severity, index, _)| (*severity, *index));
    evidence.into_iter().map(|(_, index, evidence)| (index, evidence)).collect()
}

/// The slices of a pack, by index of the entry.
pub(crate) fn slices(frames: &[(usize, Frame)], pack: PackId) -> HashMap<usize, EvidenceSlice> {
    frames.iter().map(|(index, frame)| (*index, frame.in_pack(pack))).collect()
}
