//! The recent history of a test: outcomes, and of the newest ones durations
//! and identities.
//!
//! Invariant: oldest first, in the order of observations. The identities of
//! the newest few let a result that arrives late, or changes, find its place
//! without reading executions: runs overlap all the time.

use std::collections::VecDeque;

use super::Key;
use crate::ids::RunId;
use crate::status::Outcome;
use crate::time::Timestamp;

/// Outcomes kept.
pub const MAX_RECENT: usize = 200;

/// Durations kept, those of the newest outcomes.
pub const MAX_RECENT_MS: usize = 100;

/// Identities kept, those of the newest outcomes.
pub(super) const MAX_IDENTIFIED: usize = 16;

const MASS_FAILURE: u8 = 1 << 3;

/// One entry of the recent history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentOutcome {
    /// How the execution ended.
    pub outcome: Outcome,
    /// Its run was flagged as a mass failure: scores ignore it.
    pub is_mass_failure: bool,
    /// Low four bits of the browser project's id, so that alternations are
    /// counted within one browser project.
    pub browser_slot: u8,
    /// Duration in milliseconds; `None` once it is too old.
    pub duration_ms: Option<i64>,
    /// Time lost on its other attempts in milliseconds; `None` when it passed
    /// at once.
    pub lost_ms: Option<i64>,
}

impl RecentOutcome {
    /// The slot of a browser project.
    #[must_use]
    pub const fn slot_of(browser: i64) -> u8 {
        (browser & 0x0f) as u8
    }

    /// Whether an outcome costs time on attempts that did not decide.
    pub(super) const fn is_costly(outcome: Outcome) -> bool {
        matches!(outcome, Outcome::Flaky | Outcome::Failed | Outcome::TimedOut)
    }

    /// Outcome in three bits, mass failure in one, slot in four.
    pub(super) const fn to_byte(self) -> u8 {
        let mass_failure = if self.is_mass_failure { MASS_FAILURE } else { 0 };
        self.outcome as u8 | mass_failure | self.browser_slot << 4
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        Some(Self {
            outcome: Outcome::from_code(i64::from(byte & 0x07))?,
            is_mass_failure: byte & MASS_FAILURE != 0,
            browser_slot: byte >> 4,
            duration_ms: None,
            lost_ms: None,
        })
    }
}

/// Whether an outcome found its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    Done,
    Unknown,
}

/// The history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Recent {
    outcomes: VecDeque<RecentOutcome>,
    /// Identities of the newest outcomes, aligned at the end.
    keys: VecDeque<Key>,
}

impl Recent {
    /// Puts history back together; `None` when the parts do not fit.
    pub(super) fn from_parts(outcomes: Vec<RecentOutcome>, keys: Vec<Key>) -> Option<Self> {
        let fits = outcomes.len() <= MAX_RECENT
            && keys.len() <= MAX_IDENTIFIED.min(outcomes.len())
            && keys.is_sorted_by(|one, next| one < next);
        fits.then(|| Self { outcomes: outcomes.into(), keys: keys.into() })
    }

    pub(super) fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = RecentOutcome> + ExactSizeIterator + Clone + '_ {
        self.outcomes.iter().copied()
    }

    /// Identities of the newest outcomes, oldest first.
    pub(super) fn keys(&self) -> impl DoubleEndedIterator<Item = Key> + ExactSizeIterator + '_ {
        self.keys.iter().copied()
    }

    /// Replaces the outcome of that identity, or puts a new one in its place;
    /// `Unknown` when the place is further back than identities reach.
    pub(super) fn place(&mut self, key: Key, outcome: RecentOutcome, is_new: bool) -> Placed {
        let unidentified = self.outcomes.len() - self.keys.len();
        match self.keys.binary_search(&key) {
            Ok(at) => {
                self.outcomes[unidentified + at] = outcome;
                self.trim();
                Placed::Done
            }
            Err(at) if is_new && (at > 0 || unidentified == 0) => {
                self.outcomes.insert(unidentified + at, outcome);
                self.keys.insert(at, key);
                self.trim();
                Placed::Done
            }
            Err(_) => Placed::Unknown,
        }
    }

    /// The newest identified outcome of a kind.
    pub(super) fn newest(&self, is_wanted: impl Fn(&RecentOutcome) -> bool) -> Option<Key> {
        let identified = self.outcomes.iter().rev().zip(self.keys.iter().rev());
        identified.into_iter().find(|(outcome, _)| is_wanted(outcome)).map(|(_, &key)| key)
    }

    /// The newest decided outcome of a browser project before a run; `None` also
    /// when the run is older than identities reach.
    pub(super) fn decided_before(&self, slot: u8, run: (Timestamp, RunId)) -> Option<Outcome> {
        let later = self.keys.iter().rev().take_while(|key| (key.0, key.1.run()) >= run).count();
        if later == self.keys.len() && self.outcomes.len() > later {
            return None;
        }
        let earlier = self.outcomes.iter().rev().skip(later);
        let mut decided = earlier.filter(|seen| seen.browser_slot == slot && seen.outcome.is_decided());
        decided.next().map(|seen| seen.outcome)
    }

    /// Starts over from the newest executions there are, sorted. `unplaced` of
    /// them were not in the history. When there are fewer than the history
    /// holds, the rest is older and its executions are gone: it stays in front.
    /// So do as many fewer as were `retracted`.
    pub(super) fn rebuild(&mut self, rows: Vec<(Key, RecentOutcome)>, unplaced: usize, retracted: usize) {
        let known = rows.len().saturating_sub(unplaced) + retracted;
        let older = self.outcomes.len().saturating_sub(known);
        self.outcomes.truncate(older);
        self.keys.clear();
        for (key, outcome) in rows {
            self.outcomes.push_back(outcome);
            self.keys.push_back(key);
        }
        self.trim();
    }

    fn trim(&mut self) {
        self.outcomes.drain(..self.outcomes.len().saturating_sub(MAX_RECENT));
        self.keys.drain(..self.keys.len().saturating_sub(MAX_IDENTIFIED));
        let without_duration = self.outcomes.len().saturating_sub(MAX_RECENT_MS);
        for outcome in self.outcomes.iter_mut().take(without_duration) {
            outcome.duration_ms = None;
        }
    }
}
