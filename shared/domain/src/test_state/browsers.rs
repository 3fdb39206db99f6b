//! What each browser project said last about a test: the base of regression,
//! flaky and fixed flags.
//!
//! Invariant: of each of the sixty-four browser projects with the lowest ids, the
//! newest outcome and the two newest decided ones, by order of observation and
//! never by arrival.

use std::collections::BTreeMap;

use super::{Key, RecentOutcome};
use crate::ids::RunId;
use crate::status::Outcome;
use crate::time::Timestamp;

/// Browser projects remembered.
pub(super) const MAX_BROWSERS: usize = 64;

/// Decided outcomes remembered of each: the last and the one before it.
pub(super) const MAX_DECIDED: usize = 2;

/// An outcome and the execution it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) key: Key,
    pub(super) outcome: Outcome,
}

/// The outcomes of one browser project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Series {
    pub(super) last: Seen,
    /// Newest first.
    pub(super) decided: Vec<Seen>,
}

/// The outcomes by browser project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Browsers {
    series: BTreeMap<i64, Series>,
}

impl Browsers {
    pub(super) const fn from_series(series: BTreeMap<i64, Series>) -> Self {
        Self { series }
    }

    pub(super) const fn series(&self) -> &BTreeMap<i64, Series> {
        &self.series
    }

    /// Notes a new or changed outcome. `false` when one of the two decided
    /// outcomes was taken back, so that a third would have to be found.
    pub(super) fn note(&mut self, browser: i64, key: Key, outcome: Outcome) -> bool {
        let seen = Seen { key, outcome };
        let series = self.series.entry(browser).or_insert_with(|| Series { last: seen, decided: Vec::new() });
        let is_complete = series.note(seen);
        if self.series.len() > MAX_BROWSERS {
            self.series.pop_last();
        }
        is_complete
    }

    /// Forgets one observation.
    pub(super) fn forget(&mut self, browser: i64, key: Key) {
        let Some(series) = self.series.get_mut(&browser) else { return };
        series.decided.retain(|seen| seen.key != key);
        if series.last.key == key {
            match series.decided.first() {
                Some(&newest) => series.last = newest,
                None => {
                    self.series.remove(&browser);
                }
            }
        }
    }

    /// The newest outcome of a kind that is remembered.
    pub(super) fn newest(&self, is_wanted: impl Fn(Outcome) -> bool) -> Option<Key> {
        let seen =
            self.series.values().flat_map(|series| std::iter::once(&series.last).chain(&series.decided));
        seen.filter(|seen| is_wanted(seen.outcome)).map(|seen| seen.key).max()
    }

    /// The last outcomes that belong to a run.
    pub(super) fn outcomes_in(&self, run: RunId) -> impl Iterator<Item = Outcome> + '_ {
        let last = self.series.values().map(|series| series.last);
        last.filter(move |seen| seen.key.1.run() == run).map(|seen| seen.outcome)
    }

    /// Whether a browser project may have decided outcomes before the ones known
    /// here, and the recent history tells it from all others.
    pub(super) fn is_longer_than_known(&self, browser: i64) -> bool {
        self.is_alone_in_slot(browser) && self.may_have_forgotten(browser)
    }

    /// Whether a browser project may have decided outcomes before the ones known
    /// here.
    pub(super) fn may_have_forgotten(&self, browser: i64) -> bool {
        self.series.get(&browser).is_some_and(|series| series.decided.len() == MAX_DECIDED)
    }

    /// Whether the recent history tells a browser project from all others.
    pub(super) fn is_alone_in_slot(&self, browser: i64) -> bool {
        let slot = RecentOutcome::slot_of(browser);
        let shares = |other: &i64| *other != browser && RecentOutcome::slot_of(*other) == slot;
        self.series.len() < MAX_BROWSERS && !self.series.keys().any(shares)
    }

    /// The last decided observations of a browser project, newest first.
    pub(super) fn decided(&self, browser: i64) -> impl Iterator<Item = Key> + '_ {
        self.series.get(&browser).into_iter().flat_map(|series| &series.decided).map(|seen| seen.key)
    }

    /// Whether a browser project appeared in a run behind a place and is not known
    /// to have decided anything before.
    pub(super) fn may_begin_behind(&self, browser: i64, place: (Timestamp, RunId)) -> bool {
        let is_behind = match self.series.get(&browser) {
            Some(series) => (series.last.key.0, series.last.key.1.run()) > place,
            // More browser projects than are remembered.
            None => self.series.len() == MAX_BROWSERS,
        };
        is_behind && self.decided_before(browser, place).is_none()
    }

    /// The newest decided outcome before a run.
    pub(super) fn decided_before(&self, browser: i64, run: (Timestamp, RunId)) -> Option<Outcome> {
        let decided = &self.series.get(&browser)?.decided;
        decided.iter().find(|seen| (seen.key.0, seen.key.1.run()) < run).map(|seen| seen.outcome)
    }
}

impl Series {
    fn note(&mut self, seen: Seen) -> bool {
        if seen.key >= self.last.key {
            self.last = seen;
        }
        let was_full = self.decided.len() == MAX_DECIDED;
        let known = self.decided.len();
        self.decided.retain(|other| other.key != seen.key);
        let was_decided = self.decided.len() < known;
        if seen.outcome.is_decided() {
            let at = self.decided.partition_point(|other| other.key > seen.key);
            self.decided.insert(at, seen);
            self.decided.truncate(MAX_DECIDED);
            return true;
        }
        !(was_full && was_decided)
    }
}
