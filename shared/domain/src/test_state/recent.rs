//! The recent history of a test: outcomes, and of the newest ones durations
//! and identities.
//!
//! Invariant: oldest first, in the order of observations. The identities of
//! the newest few let a result that arrives late, or changes, find its place
//! without reading executions: runs overlap all the time.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

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
    /// on the first attempt.
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

    /// Whether both can tell of one execution, as far as both know.
    fn may_be(self, other: Self) -> bool {
        let is_known_to_differ =
            self.duration_ms.zip(other.duration_ms).is_some_and(|(own, other)| own != other);
        self.to_byte() == other.to_byte() && !is_known_to_differ
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
    /// them are not in the history in the form they have now; `stale` is what
    /// stands in it and is no more, or has another form. When there are fewer
    /// than the history holds, the executions of the others are gone: those keep
    /// their places, between the rows as well, since retention keeps some runs
    /// longer than others.
    pub(super) fn rebuild(
        &mut self,
        rows: Vec<(Key, RecentOutcome)>,
        unplaced: usize,
        stale: &BTreeMap<Key, RecentOutcome>,
    ) {
        let mut changed = 0;
        for (&key, outcome) in stale {
            match rows.binary_search_by_key(&key, |row| row.0) {
                Ok(_) => changed += 1,
                Err(_) => self.take_out(key, *outcome),
            }
        }
        let new = unplaced.saturating_sub(changed);
        let is_all = rows.len() >= (self.outcomes.len() + new).min(MAX_RECENT);
        let places = if is_all {
            rows.into_iter().map(|(key, outcome)| (Some(key), outcome)).collect()
        } else {
            self.joined_with(&rows, stale)
        };
        self.keys = places.iter().rev().map_while(|(key, _)| *key).take(MAX_IDENTIFIED).collect();
        self.keys.make_contiguous().reverse();
        self.outcomes = places.into_iter().map(|(_, outcome)| outcome).collect();
        self.trim();
    }

    /// Removes what stands for an execution, as far as it can be told.
    fn take_out(&mut self, key: Key, outcome: RecentOutcome) {
        let unidentified = self.outcomes.len() - self.keys.len();
        match self.keys.binary_search(&key) {
            Ok(at) => {
                self.keys.remove(at);
                self.outcomes.remove(unidentified + at);
            }
            Err(0) => {
                let same = (0..unidentified).rev().find(|&at| self.outcomes[at].may_be(outcome));
                same.map(|at| self.outcomes.remove(at));
            }
            // The history knows nothing of it.
            Err(_) => {}
        }
    }

    /// The history with the rows in it. Each row stands where the history tells
    /// of it, which is known of the identified ones; of the others as many as
    /// possible are taken for the same, in their order. Those that changed stand
    /// there in their former form.
    fn joined_with(
        &self,
        rows: &[(Key, RecentOutcome)],
        former: &BTreeMap<Key, RecentOutcome>,
    ) -> Vec<(Option<Key>, RecentOutcome)> {
        let unidentified = self.outcomes.len() - self.keys.len();
        let keys = std::iter::repeat_n(None, unidentified).chain(self.keys.iter().copied().map(Some));
        let own: Vec<(Option<Key>, RecentOutcome)> = keys.zip(self.outcomes.iter().copied()).collect();
        let oldest_identified = self.keys.front();
        let is_same = |(key, outcome): (Option<Key>, RecentOutcome), row: (Key, RecentOutcome)| match key {
            Some(key) => key == row.0,
            None => {
                let told = former.get(&row.0).copied().unwrap_or(row.1);
                oldest_identified.is_none_or(|oldest| row.0 < *oldest) && outcome.may_be(told)
            }
        };
        // Of the first i of the history and the first j rows, how many can be the same.
        let mut same = vec![vec![0_usize; rows.len() + 1]; own.len() + 1];
        for i in 1..=own.len() {
            for j in 1..=rows.len() {
                same[i][j] = if is_same(own[i - 1], rows[j - 1]) {
                    same[i - 1][j - 1] + 1
                } else {
                    same[i - 1][j].max(same[i][j - 1])
                };
            }
        }
        let (mut i, mut j) = (own.len(), rows.len());
        let mut joined = Vec::with_capacity(i + j);
        while i > 0 || j > 0 {
            let is_own = match (i.checked_sub(1), j.checked_sub(1)) {
                (Some(last), Some(row)) if is_same(own[last], rows[row]) => {
                    i = last;
                    false
                }
                (Some(last), Some(row)) => match same[last][j].cmp(&same[i][row]) {
                    Ordering::Equal => own[last].0.is_some_and(|key| key > rows[row].0),
                    order => order.is_gt(),
                },
                (own, _) => own.is_some(),
            };
            if is_own {
                i -= 1;
                joined.push(own[i]);
            } else {
                j -= 1;
                joined.push((Some(rows[j].0), rows[j].1));
            }
        }
        joined.reverse();
        joined
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
