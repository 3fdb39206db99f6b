//! Evidence of a request on its way into one pack.

use std::collections::HashMap;

use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::endpoints::Captured;
use callboard_domain::evidence::Evidence;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::ingest::TestCaseEntry;
use callboard_domain::time::Timestamp;
use callboard_store::StoreError;
use callboard_store::evidence::{self, Frame, PackWriter, WrittenPack};
use callboard_store::ids::{self, Kind};

use crate::{Context, QueryError, Result};

/// The evidence of a request, written but not recorded yet.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// The pack; none when no entry had evidence.
    pub(super) pack: Option<WrittenPack>,
    /// Where the evidence of each entry lies, by its index.
    pub(super) slices: HashMap<usize, EvidenceSlice>,
    /// The requests its tests made, by index of the entry.
    pub(super) requests: Captured,
    /// The run id that was taken for the pack's key when the run is new.
    pub(super) reserved: Option<RunId>,
}

impl Packed {
    /// Writes the evidence of all entries as one pack, failing attempts first,
    /// and takes it out of the entries.
    pub(super) async fn write(
        ctx: &Context,
        project: ProjectId,
        known: Option<RunId>,
        entries: &mut [TestCaseEntry],
        now: Timestamp,
    ) -> Result<Self> {
        let mut evidence: Vec<(u8, usize, Box<Evidence>)> = entries
            .iter_mut()
            .filter_map(|entry| Some((entry.status.severity(), entry.index, entry.evidence.take()?)))
            .collect();
        if evidence.is_empty() {
            return Ok(Self::default());
        }
        evidence.sort_by_key(|(severity, index, _)| (*severity, *index));
        // Compressing megabytes would hold up other requests of this thread.
        let packed = tokio::task::spawn_blocking(move || {
            let mut writer = PackWriter::new()?;
            let mut frames: Vec<(usize, Frame)> = Vec::with_capacity(evidence.len());
            let mut requests = Captured::default();
            for (_, index, evidence) in &evidence {
                requests.take(*index, &evidence.network_requests);
                frames.push((*index, writer.add(evidence)?));
            }
            Ok::<_, StoreError>((writer, frames, requests))
        });
        let (writer, frames, requests) =
            packed.await.map_err(|_| StoreError::Damaged("evidence could not be compressed"))??;
        let mut session = ctx.store.db().begin().await?;
        let (run, reserved) = match known {
            Some(run) => (run, None),
            None => {
                let run = RunId(ids::allocate_one(&mut session, Kind::Run).await?);
                (run, Some(run))
            }
        };
        let announced = evidence::announce(&mut session, project, run, now).await?;
        session.commit().await?;
        let pack = announced.id;
        let written = writer.write(&ctx.store, announced).await?;
        let slices = frames.into_iter().map(|(index, frame)| (index, frame.of(pack))).collect();
        Ok(Self { pack: Some(written), slices, requests, reserved })
    }

    /// Removes a pack that no row points at. What fails here is logged: the
    /// request's own outcome is what counts.
    pub(super) async fn discard(&self, ctx: &Context, failure: Option<&QueryError>) {
        // A connection that broke may have broken after the commit: then rows
        // point at the pack, and an object too many is better than one too few.
        let may_be_committed = matches!(failure,
            Some(QueryError::Store(error)) if error.is_unavailable() && !error.is_conflict());
        if let Some(pack) = self.pack.as_ref().filter(|_| !may_be_committed)
            && let Err(error) = evidence::discard(&ctx.store, pack).await
        {
            tracing::warn!(%error, "an evidence pack that nothing points at could not be removed");
        }
    }
}
