//! The set of attempts of one execution and how reports enter it.
//!
//! Invariant: `entries` are sorted by key and hold at most one entry per key.
//! A dated report has its start as the key, and without a repetition its worker,
//! as two repetitions may begin in the same millisecond; undated ones of one
//! request are distinct and have their rank within the request, so that sending
//! the request again meets the same keys. Nothing is folded away here: that an
//! undated report and a dated one are the same attempt, or one that names its
//! worker and one that does not, is found in `resolve`, from the whole set,
//! because the other may still be on its way.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::resolve::Resolved;
use super::{Attempt, AttemptFacts, EarlierAttempt, EvidenceSlice, Merged, Reported};
use crate::time::Timestamp;

/// Entries that keep their facts and evidence and are listed.
pub const MAX_LISTED: usize = 100;

/// Entries that are remembered at all. Beyond the listed ones only identity,
/// status and duration are kept: enough for them to influence the decision
/// and to be recognised when they are sent again.
pub const MAX_REMEMBERED: usize = 2_000;

/// All attempts of one execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptSet {
    entries: Vec<Entry>,
}

/// What the contract calls the first three parts of the identity, whether it is a
/// placeholder, which is never the same as a result, and the shard: what ran in two
/// shards are two attempts.
pub(super) type Class = (u32, Option<u32>, u32, bool, Option<i64>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) attempt: Attempt,
    /// Rank among the undated reports of one request. Of a dated one without a
    /// repetition the worker, counted from 1; 0 when it is not known.
    pub(super) slot: u32,
    /// Among the [`MAX_LISTED`].
    pub(super) is_listed: bool,
}

impl Entry {
    /// An attempt, with its rank if it is undated.
    pub(super) fn new(attempt: Attempt, rank: u32) -> Self {
        let slot = match (attempt.started_at, attempt.repetition) {
            (None, _) => rank,
            (Some(_), Some(_)) => 0,
            (Some(_), None) => {
                let worker = attempt.facts.worker_index.and_then(|worker| u32::try_from(worker).ok());
                worker.map_or(0, |worker| worker.saturating_add(1))
            }
        };
        Self { attempt, slot, is_listed: true }
    }

    pub(super) fn class(&self) -> Class {
        let Attempt { generation, repetition, retry, .. } = self.attempt;
        (generation, repetition, retry, self.attempt.is_did_not_run(), self.attempt.facts.shard_index)
    }

    fn key(&self) -> (Class, bool, Option<Timestamp>, u32) {
        (self.class(), self.attempt.started_at.is_none(), self.attempt.started_at, self.slot)
    }

    /// Who keeps facts and evidence first. Depends on the entry alone and only
    /// ever rises, so the outcome does not depend on who came first.
    fn precedence(&self) -> impl Ord + use<> {
        (
            Reverse(self.attempt.generation),
            self.attempt.is_summary,
            self.attempt.status.severity(),
            self.key(),
        )
    }
}

impl AttemptSet {
    /// A set of one attempt: what an execution row without stored attempts
    /// stands for.
    #[must_use]
    pub fn single(attempt: Attempt) -> Self {
        Self::from_entries(vec![Entry::new(attempt, 0)])
    }

    pub(super) fn from_entries(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(Entry::key);
        let mut set = Self { entries };
        set.trim();
        set
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether nothing was reported yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The distinct attempts that are listed, at most [`MAX_LISTED`], in
    /// canonical order.
    #[must_use]
    pub fn attempts(&self) -> Vec<Attempt> {
        self.resolved().into_iter().filter(|one| one.is_listed).map(|one| one.attempt).collect()
    }

    /// How many attempts influence the decision without being listed; stops
    /// growing at [`MAX_REMEMBERED`] minus [`MAX_LISTED`].
    #[must_use]
    pub fn dropped(&self) -> u32 {
        let dropped = self.resolved().iter().filter(|one| !one.is_listed).count();
        u32::try_from(dropped).unwrap_or(u32::MAX)
    }

    /// Says where the evidence of each attempt lies from now on, or that it is
    /// gone.
    pub fn move_evidence(&mut self, mut place: impl FnMut(EvidenceSlice) -> Option<EvidenceSlice>) {
        for entry in &mut self.entries {
            entry.attempt.evidence = entry.attempt.evidence.and_then(&mut place);
        }
    }

    /// Gives each attempt the generation it belongs to, as the slot it came through may
    /// turn out to have taken the place of another.
    pub fn regenerate(&mut self, generation: impl Fn(&Attempt) -> u32) {
        for mut entry in std::mem::take(&mut self.entries) {
            entry.attempt.generation = generation(&entry.attempt);
            self.place(entry);
        }
        self.trim();
    }

    pub(super) fn resolved(&self) -> Vec<Resolved> {
        super::resolve::resolve(&self.entries)
    }

    /// Merges everything **one request** reported about this execution and
    /// tells, for each report in the given order, what it did. Merging the
    /// same request again changes nothing.
    pub fn merge(&mut self, request: Vec<Reported>) -> Vec<Merged> {
        let before = self.clone();
        let mut results = vec![Merged::Unchanged; request.len()];
        for Placement { report, entry } in placements(request) {
            let is_history = entry.attempt.is_summary;
            let merged = self.place(entry);
            let merged = if is_history { merged.min(Merged::Filled) } else { merged };
            results[report] = results[report].max(merged);
        }
        self.trim();
        if *self == before {
            results.fill(Merged::Unchanged);
        }
        results
    }

    fn place(&mut self, entry: Entry) -> Merged {
        match self.entries.binary_search_by_key(&entry.key(), Entry::key) {
            Ok(position) => {
                let known = &mut self.entries[position].attempt;
                let mut joined = known.clone();
                joined.join(&entry.attempt);
                if joined == *known {
                    return Merged::Unchanged;
                }
                *known = joined;
                Merged::Filled
            }
            Err(position) => {
                let (class, is_dated) = (entry.class(), entry.attempt.started_at.is_some());
                let (dated, undated) = self.count(class);
                let is_told_apart = !self.entries.iter().any(|known| is_same_but_for_worker(known, &entry));
                self.entries.insert(position, entry);
                // One undated and one dated report may be the same attempt.
                let is_new = is_told_apart && if is_dated { dated >= undated } else { undated >= dated };
                if is_new { Merged::Inserted } else { Merged::Filled }
            }
        }
    }

    /// How many dated and undated entries a class has.
    fn count(&self, class: Class) -> (usize, usize) {
        let start = self.entries.partition_point(|entry| entry.class() < class);
        let members = self.entries[start..].iter().take_while(|entry| entry.class() == class);
        members.fold((0, 0), |(dated, undated), entry| match entry.attempt.started_at {
            Some(_) => (dated + 1, undated),
            None => (dated, undated + 1),
        })
    }

    /// Takes facts and evidence from entries beyond [`MAX_LISTED`] and forgets
    /// those beyond [`MAX_REMEMBERED`].
    fn trim(&mut self) {
        if self.entries.len() <= MAX_LISTED {
            self.entries.iter_mut().for_each(|entry| entry.is_listed = true);
            return;
        }
        self.entries.sort_by_cached_key(Entry::precedence);
        self.entries.truncate(MAX_REMEMBERED);
        for (position, entry) in self.entries.iter_mut().enumerate() {
            entry.is_listed = position < MAX_LISTED;
            if !entry.is_listed {
                // Its worker and shard are part of what it is known by.
                let AttemptFacts { worker_index, shard_index, .. } = entry.attempt.facts;
                entry.attempt.facts = AttemptFacts { worker_index, shard_index, ..AttemptFacts::default() };
                entry.attempt.evidence = None;
            }
        }
        self.entries.sort_by_key(Entry::key);
    }
}

/// Whether two dated entries are one attempt of which one names the worker and the
/// other does not.
fn is_same_but_for_worker(one: &Entry, another: &Entry) -> bool {
    let start = one.attempt.started_at;
    start.is_some()
        && start == another.attempt.started_at
        && one.class() == another.class()
        && (one.slot == 0) != (another.slot == 0)
}

/// The retry of the attempt whose history holds a line; `None` for attempts
/// that were reported themselves.
type HistoryOf = Option<u32>;

/// An entry with the position of the report it came from.
struct Placement {
    report: usize,
    entry: Entry,
}

/// Gives every report of a request, and every line of history, its key.
///
/// Undated reports of one class are distinct attempts, ranked worst first so
/// that their order in the request does not matter. Undated lines of history
/// are distinct only when their attempts have the same retry: then they belong
/// to different repetitions; otherwise they tell the same story twice.
fn placements(request: Vec<Reported>) -> Vec<Placement> {
    let mut placed = Vec::with_capacity(request.len());
    let mut undated: BTreeMap<(Class, HistoryOf), Vec<(usize, Attempt)>> = BTreeMap::new();
    for (report, Reported { attempt, history }) in request.into_iter().enumerate() {
        let parent_retry = attempt.retry;
        let earlier = history.iter().filter(|line| line.retry < parent_retry);
        let summaries: Vec<Attempt> = earlier.map(|line| summary(&attempt, *line)).collect();
        let members = summaries.into_iter().map(|one| (one, Some(parent_retry)));
        for (attempt, parent) in members.chain(std::iter::once((attempt, None))) {
            let entry = Entry::new(attempt, 0);
            if entry.attempt.started_at.is_some() {
                placed.push(Placement { report, entry });
            } else {
                undated.entry((entry.class(), parent)).or_default().push((report, entry.attempt));
            }
        }
    }
    for mut members in undated.into_values() {
        members.sort_by(|(_, one), (_, another)| {
            let rank = |attempt: &Attempt| (attempt.status.severity(), Reverse(attempt.duration_ms));
            rank(one)
                .cmp(&rank(another))
                .then_with(|| one.facts.cmp(&another.facts))
                .then_with(|| one.flaky_claimed.cmp(&another.flaky_claimed))
                .then_with(|| one.evidence.cmp(&another.evidence))
        });
        for (slot, (report, attempt)) in (0..).zip(members) {
            placed.push(Placement { report, entry: Entry::new(attempt, slot) });
        }
    }
    placed
}

fn summary(parent: &Attempt, line: EarlierAttempt) -> Attempt {
    Attempt {
        retry: line.retry,
        repetition: parent.repetition,
        generation: parent.generation,
        status: line.status,
        duration_ms: line.duration_ms,
        started_at: line.started_at,
        flaky_claimed: false,
        facts: AttemptFacts { shard_index: parent.facts.shard_index, ..AttemptFacts::default() },
        evidence: None,
        is_summary: true,
    }
}
