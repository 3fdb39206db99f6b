//! How many attempts of one test a request may bring, and with how much detail.
//! An execution remembers a bounded number of attempts and lists fewer; what is
//! above would be held in memory only to be dropped. The worst attempts stay,
//! as in [`AttemptSet`](crate::attempts::AttemptSet).

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::test_case::TestCaseEntry;
use super::warnings::Warnings;
use crate::attempts::MAX_REMEMBERED;
use crate::text::cut;

/// Bytes of the attempts of one test, as they were sent, that are kept with their
/// details.
const MAX_DETAILED_BYTES: u64 = 12 * MIB;
const MIB: u64 = 1024 * 1024;
/// Characters of the error of an attempt that is kept without its details.
const MAX_BARE_ERROR_CHARS: usize = 2_000;

/// An attempt, as far as it matters here.
pub(super) struct AttemptSize<K> {
    /// The same for attempts of one test in one browser project.
    pub(super) test: K,
    /// Index in the list that was sent.
    pub(super) index: usize,
    /// Smaller is worse.
    pub(super) severity: u8,
    /// Length as it was sent.
    pub(super) bytes: u64,
}

/// Attempts that do not stay as they are, by position.
#[derive(Debug, Default)]
pub(super) struct Excess {
    /// They are left out.
    pub(super) dropped: HashSet<usize>,
    /// They lose their details.
    pub(super) bare: HashSet<usize>,
}

impl Excess {
    /// Finds those among the attempts of a request, and warns of them.
    pub(super) fn from_attempts<K: Eq + Hash>(attempts: &[AttemptSize<K>], warnings: &mut Warnings) -> Self {
        let mut by_test: HashMap<&K, (Vec<usize>, u64)> = HashMap::new();
        for (position, attempt) in attempts.iter().enumerate() {
            let (positions, bytes) = by_test.entry(&attempt.test).or_default();
            positions.push(position);
            *bytes += attempt.bytes;
        }
        let is_large = |(positions, bytes): &(Vec<usize>, u64)| {
            positions.len() > MAX_REMEMBERED || *bytes > MAX_DETAILED_BYTES
        };
        let mut large: Vec<Vec<usize>> =
            by_test.into_values().filter(is_large).map(|(positions, _)| positions).collect();
        large.sort_unstable();
        let mut excess = Self::default();
        for mut positions in large {
            positions.sort_by_key(|position| attempts[*position].severity);
            let mut dropped = positions.split_off(positions.len().min(MAX_REMEMBERED));
            let mut bytes = 0;
            positions.retain(|position| {
                bytes += attempts[*position].bytes;
                bytes > MAX_DETAILED_BYTES
            });
            let mut bare = positions;
            let first = |positions: &mut Vec<usize>| {
                positions.sort_unstable();
                positions.first().map(|position| attempts[*position].index)
            };
            if let Some(index) = first(&mut dropped) {
                warnings.add("attempts_dropped", Some(index), || {
                    let count = dropped.len();
                    format!(
                        "{count} attempts of one test, the first of them testCases[{index}], were left out: \
                         {MAX_REMEMBERED} of one test are kept."
                    )
                });
            }
            if let Some(index) = first(&mut bare) {
                warnings.add("entry_cut", Some(index), || {
                    let (count, limit) = (bare.len(), MAX_DETAILED_BYTES / MIB);
                    format!(
                        "{count} attempts of one test, the first of them testCases[{index}], were stored without \
                         details: {limit} MiB of the attempts of one test are kept with them."
                    )
                });
            }
            excess.dropped.extend(dropped);
            excess.bare.extend(bare);
        }
        excess
    }
}

/// Leaves out attempts of one test above those that are kept. Bodies in memory
/// are too small for attempts to lose their details.
pub(super) fn drop_excess(entries: &mut Vec<TestCaseEntry>, warnings: &mut Warnings) {
    if entries.len() <= MAX_REMEMBERED {
        return;
    }
    let size = |entry: &TestCaseEntry| AttemptSize {
        test: (entry.identity, entry.browser_project.clone()),
        index: entry.index,
        severity: entry.status.severity(),
        bytes: 0,
    };
    let sizes: Vec<_> = entries.iter().map(size).collect();
    let excess = Excess::from_attempts(&sizes, warnings);
    if !excess.dropped.is_empty() {
        let mut position = 0..;
        entries.retain(|_| position.next().is_none_or(|position| !excess.dropped.contains(&position)));
    }
}

/// An attempt without what takes much memory.
pub(super) fn strip_details(entry: &mut TestCaseEntry) {
    entry.evidence = None;
    entry.locator_snapshots = None;
    entry.error = entry.error.take().map(|error| cut(error, MAX_BARE_ERROR_CHARS));
}
