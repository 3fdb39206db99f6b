//! The test cases of a batch on their way to its writer: all of them together, or
//! part by part from the file in which a large body lies.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::ingest::{BodyError, StoredCases, TestCaseEntry};
use callboard_domain::time::Timestamp;
use callboard_store::StoreError;

use crate::apply::attempt_merge::{self, Group};
use crate::apply::batch_apply::ENTRIES_PER_TRANSACTION;
use crate::stage::evidence_packing::Packed;
use crate::stage::stored_entries::{PART_BYTES, read_stored, unreadable};
use crate::{Context, Result};

/// The test cases of a batch, one entry per attempt.
#[derive(Debug)]
pub enum Entries {
    /// In memory.
    Parsed(Vec<TestCaseEntry>),
    /// In a file.
    Stored(StoredCases),
}

impl Default for Entries {
    fn default() -> Self {
        Self::Parsed(Vec::new())
    }
}

impl Entries {
    /// Indices of the entries in the list that was sent.
    pub fn indices(&self) -> Box<dyn Iterator<Item = usize> + Send + '_> {
        match self {
            Self::Parsed(entries) => Box::new(entries.iter().map(|entry| entry.index)),
            Self::Stored(cases) => Box::new(cases.indices()),
        }
    }

    /// From the earliest start to the latest end, milliseconds.
    pub(crate) fn span_ms(&self) -> Option<i64> {
        match self {
            Self::Parsed(entries) => span_of(entries),
            Self::Stored(cases) => cases.span_ms(),
        }
    }

    /// Titles of the entries with these indices.
    pub(crate) async fn titles(&mut self, wanted: Vec<usize>) -> Result<HashMap<usize, String>> {
        if let Self::Parsed(entries) = self {
            let by_index: HashMap<usize, &String> =
                entries.iter().map(|entry| (entry.index, &entry.title)).collect();
            let title = |index| Some((index, (*by_index.get(&index)?).clone()));
            return Ok(wanted.into_iter().filter_map(title).collect());
        }
        let Self::Stored(mut cases) = std::mem::take(self) else { return Ok(HashMap::new()) };
        let read = tokio::task::spawn_blocking(move || {
            let mut title = |index| Ok(cases.title(index)?.map(|title| (index, title)));
            let titles: Result<HashMap<usize, String>, BodyError> =
                wanted.into_iter().filter_map(|index| title(index).transpose()).collect();
            titles.map(|titles| (cases, titles))
        });
        let read = read.await.map_err(|_| StoreError::Damaged("test cases could not be read"))?;
        let (cases, titles) = read.map_err(unreadable)?;
        *self = Self::Stored(cases);
        Ok(titles)
    }

    /// The parts that are written one after the other.
    pub(crate) fn into_parts(self) -> Parts {
        match self {
            Self::Parsed(entries) => Parts::Parsed(Some(entries)),
            Self::Stored(cases) => {
                let left = cases.parts(ENTRIES_PER_TRANSACTION, PART_BYTES).into();
                Parts::Stored { cases: Arc::new(Mutex::new(cases)), left }
            }
        }
    }
}

/// From the earliest start to the latest end of the test cases.
fn span_of(entries: &[TestCaseEntry]) -> Option<i64> {
    let first = entries.iter().filter_map(|entry| entry.started_at).min()?;
    let last =
        entries.iter().filter_map(|entry| Some(entry.started_at?.millis() + entry.duration_ms)).max()?;
    Some((last - first.millis()).max(0))
}

/// Entries that are still to be written.
pub(crate) enum Parts {
    /// All of them, until they are taken.
    Parsed(Option<Vec<TestCaseEntry>>),
    /// Positions of each part in the file.
    Stored { cases: Arc<Mutex<StoredCases>>, left: VecDeque<Vec<usize>> },
}

/// What is written next.
pub(crate) struct Part {
    pub(crate) groups: Vec<Group>,
    pub(crate) packed: Packed,
    pub(crate) is_last: bool,
}

impl Parts {
    /// The next part, with its evidence packed for the run if that is known. There
    /// is one even without any entry.
    pub(crate) async fn next(
        &mut self,
        ctx: &Context,
        project: ProjectId,
        known: Option<RunId>,
        now: Timestamp,
    ) -> Result<Part> {
        let (entries, packed, is_last) = match self {
            Self::Parsed(entries) => {
                let mut entries = entries.take().unwrap_or_default();
                let packed = Packed::write(&ctx.store, project, known, &mut entries, now).await?;
                (entries, packed, true)
            }
            Self::Stored { cases, left } => {
                let positions = left.pop_front().unwrap_or_default();
                let (entries, packing, ()) = read_stored(cases, positions, (), |(), _| {}).await?;
                (entries, Packed::placed(&ctx.store, project, known, packing, now).await?, left.is_empty())
            }
        };
        Ok(Part { groups: attempt_merge::group(vec![entries]), packed, is_last })
    }
}
