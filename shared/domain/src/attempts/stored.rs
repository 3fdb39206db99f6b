//! The JSON of the `attempts` column of an execution.
//!
//! Invariant: equal sets give equal text, and reading it back gives the equal
//! set. A plain single attempt is not stored, the row itself describes it.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::set::Entry;
use super::{Attempt, AttemptFacts, AttemptSet, EvidenceSlice, is_false, is_zero};
use crate::ids::PackId;
use crate::status::{Outcome, TestStatus};
use crate::time::Timestamp;

/// Stored attempts that cannot be read.
#[derive(Debug, Error)]
pub enum StoredAttemptsError {
    /// Not the JSON this module writes.
    #[error("stored attempts are not readable: {0}")]
    Json(#[from] serde_json::Error),
    /// A status code that does not exist.
    #[error("stored attempts hold the unknown status code {0}")]
    Status(i64),
}

#[derive(Serialize, Deserialize)]
struct StoredAttempt {
    #[serde(rename = "r", default, skip_serializing_if = "is_zero_index")]
    retry: u32,
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    repetition: Option<u32>,
    #[serde(rename = "g", default, skip_serializing_if = "is_zero_index")]
    generation: u32,
    /// Outcome code of the status, never flaky.
    #[serde(rename = "s")]
    status: i64,
    #[serde(rename = "d", default, skip_serializing_if = "is_zero")]
    duration_ms: i64,
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    started_at: Option<i64>,
    #[serde(rename = "c", default, skip_serializing_if = "is_false")]
    flaky_claimed: bool,
    #[serde(rename = "h", default, skip_serializing_if = "is_false")]
    is_summary: bool,
    /// Pack, offset, length.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    evidence: Option<(i64, i64, i64)>,
    #[serde(rename = "f", default, skip_serializing_if = "has_no_facts")]
    facts: AttemptFacts,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero_index(number: &u32) -> bool {
    *number == 0
}

fn has_no_facts(facts: &AttemptFacts) -> bool {
    *facts == AttemptFacts::default()
}

impl AttemptSet {
    /// What `executions.attempts` stores; `None` when the row's own columns say
    /// it all: no attempt, or one that is whole, of generation 0, without an
    /// index and not called flaky by the client.
    #[must_use]
    pub fn to_json(&self) -> Option<String> {
        let is_plain = |attempt: &Attempt| {
            attempt.generation == 0
                && attempt.repetition.is_none()
                && !attempt.flaky_claimed
                && !attempt.is_summary
        };
        match self.entries() {
            [] => None,
            [only] if is_plain(&only.attempt) => None,
            entries => {
                let stored: Vec<StoredAttempt> =
                    entries.iter().map(|entry| (&entry.attempt).into()).collect();
                // Writing plain structs to a string has no way to fail.
                serde_json::to_string(&stored).ok()
            }
        }
    }

    /// Reads what [`Self::to_json`] wrote.
    ///
    /// # Errors
    /// When the text is not such JSON.
    pub fn from_json(text: &str) -> Result<Self, StoredAttemptsError> {
        let mut stored: Vec<StoredAttempt> = serde_json::from_str(text)?;
        add_shards(&mut stored);
        let mut entries: Vec<Entry> = Vec::with_capacity(stored.len());
        for one in stored {
            let mut entry = Entry::new(one.try_into()?, 0);
            if let Some(previous) = entries.last()
                && entry.attempt.started_at.is_none()
                && previous.attempt.started_at.is_none()
                && previous.class() == entry.class()
            {
                entry.slot = previous.slot + 1;
            }
            entries.push(entry);
        }
        Ok(Self::from_entries(entries))
    }
}

/// Histories of before did not name the shard that sent them: where all attempts that were
/// reported themselves are of one shard, they are as well.
fn add_shards(stored: &mut [StoredAttempt]) {
    let mut reported = stored.iter().filter(|one| !one.is_summary).map(|one| one.facts.shard_index);
    let Some(Some(first)) = reported.next() else { return };
    if reported.all(|shard| shard == Some(first)) {
        for one in stored.iter_mut().filter(|one| one.is_summary) {
            one.facts.shard_index = Some(first);
        }
    }
}

impl From<&Attempt> for StoredAttempt {
    fn from(attempt: &Attempt) -> Self {
        Self {
            retry: attempt.retry,
            repetition: attempt.repetition,
            generation: attempt.generation,
            status: Outcome::from_status(attempt.status, false).code(),
            duration_ms: attempt.duration_ms,
            started_at: attempt.started_at.map(Timestamp::millis),
            flaky_claimed: attempt.flaky_claimed,
            is_summary: attempt.is_summary,
            evidence: attempt.evidence.map(|slice| (slice.pack.get(), slice.offset, slice.length)),
            facts: attempt.facts.clone(),
        }
    }
}

impl TryFrom<StoredAttempt> for Attempt {
    type Error = StoredAttemptsError;

    fn try_from(stored: StoredAttempt) -> Result<Self, Self::Error> {
        let status: TestStatus =
            Outcome::from_code(stored.status).ok_or(StoredAttemptsError::Status(stored.status))?.status();
        Ok(Self {
            retry: stored.retry,
            repetition: stored.repetition,
            generation: stored.generation,
            status,
            duration_ms: stored.duration_ms,
            started_at: stored.started_at.map(Timestamp),
            flaky_claimed: stored.flaky_claimed,
            facts: stored.facts,
            evidence: stored.evidence.map(|(pack, offset, length)| EvidenceSlice {
                pack: PackId(pack),
                offset,
                length,
            }),
            is_summary: stored.is_summary,
        })
    }
}
