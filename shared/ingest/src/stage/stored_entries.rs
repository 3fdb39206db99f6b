//! Entries of a body that lies in a file because it is too large for memory.

use std::sync::{Arc, Mutex, PoisonError};

use callboard_domain::ingest::{BodyError, StoredCases, TestCaseEntry};
use callboard_store::StoreError;

use crate::Result;
use crate::stage::evidence_packing::Packing;

/// Most bytes of test cases that are read from a file at a time: one transaction
/// takes them, and memory holds what they become.
pub(crate) const PART_BYTES: u64 = 6 * 1024 * 1024;

/// Reads entries one after the other, off the async threads; the evidence of each
/// is packed before the next one is read, after `look` has seen it.
pub(crate) async fn read_stored<T: Send + 'static>(
    cases: &Arc<Mutex<StoredCases>>,
    positions: Vec<usize>,
    mut seen: T,
    mut look: impl FnMut(&mut T, &TestCaseEntry) + Send + 'static,
) -> Result<(Vec<TestCaseEntry>, Packing, T)> {
    let cases = Arc::clone(cases);
    let read = tokio::task::spawn_blocking(move || {
        let mut cases = cases.lock().unwrap_or_else(PoisonError::into_inner);
        let mut packing = Packing::default();
        let mut entries = Vec::with_capacity(positions.len());
        for position in positions {
            let mut entry = cases.read(position).map_err(unreadable)?;
            look(&mut seen, &entry);
            if let Some(evidence) = entry.evidence.take() {
                packing.add(entry.index, &evidence)?;
            }
            entries.push(entry);
        }
        Ok((entries, packing, seen))
    });
    read.await.map_err(|_| StoreError::Damaged("test cases could not be read"))?
}

pub(crate) fn unreadable(error: BodyError) -> StoreError {
    tracing::error!(%error, "a body that lies in a file could not be read");
    StoreError::Damaged("a body that lies in a file could not be read")
}
