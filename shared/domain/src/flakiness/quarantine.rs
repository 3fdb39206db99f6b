//! Which tests to set aside, and when to let them go.
//!
//! Invariant: a test that is probably broken is never proposed, and a release
//! needs so many clean runs that the same flake rate would have shown itself
//! with 95 % probability.

use std::collections::BTreeMap;

use super::{Assessment, FlakyClass};
use crate::status::Outcome;
use crate::test_state::RecentOutcome;

/// Candidates shown at most.
pub const MAX_CANDIDATES: usize = 10;
/// Above this a test may be broken: quarantine would hide a regression.
const MAX_BROKEN: f64 = 0.1;
/// Bounds of the share of runs that were not clean.
const LEAST_SHARE: f64 = 0.02;
/// See [`LEAST_SHARE`].
const MOST_SHARE: f64 = 0.9;
/// −ln(0.05), rounded: how sure a release is.
const SURE: f64 = 3.0;

/// What makes a candidate, and what lets a test go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuarantineSettings {
    /// Least flaky score.
    pub score: i64,
    /// Least time wasted within the window, ms.
    pub waste_ms: i64,
    /// Fewest clean runs before a release is proposed.
    pub release_after: i64,
}

impl Default for QuarantineSettings {
    fn default() -> Self {
        Self { score: 40, waste_ms: 120_000, release_after: 10 }
    }
}

/// Whether a test should be proposed.
#[must_use]
pub fn is_candidate(found: &Assessment, settings: &QuarantineSettings) -> bool {
    found.posterior.class == FlakyClass::Flaky
        && found.posterior.score() >= settings.score
        && found.evidence.wasted_ms >= settings.waste_ms
        && found.broken < MAX_BROKEN
}

/// A test that may be proposed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate<T> {
    /// The test.
    pub test: T,
    /// What its history says.
    pub found: Assessment,
}

/// The proposals among some tests, the most expensive first.
#[must_use]
pub fn candidates<T: Ord + Copy>(
    tests: impl IntoIterator<Item = Candidate<T>>,
    settings: &QuarantineSettings,
) -> Vec<Candidate<T>> {
    let mut all: Vec<_> = tests.into_iter().filter(|test| is_candidate(&test.found, settings)).collect();
    all.sort_by_key(|test| (std::cmp::Reverse(test.found.evidence.wasted_ms), test.test));
    all.truncate(MAX_CANDIDATES);
    all
}

/// How far a quarantined test is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streak {
    /// Clean decided executions in a row, up to now.
    pub passes: i64,
    /// How many it needs.
    pub needed: i64,
    /// Whether the newest decided execution failed in the end.
    pub is_failing: bool,
}

impl Streak {
    /// Whether to propose its release.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.passes >= self.needed
    }
}

/// The streak of the browser project that is furthest from its release, of
/// those in which the test was not always clean; what never failed there says
/// nothing about a repair. Where none is left, everything was clean for as long
/// as outcomes are kept, and all of it counts together. `since` is how many of
/// the newest executions came after the test was set aside: what it did before
/// does not let it go.
#[must_use]
pub fn streak(
    recent: impl DoubleEndedIterator<Item = RecentOutcome> + ExactSizeIterator,
    since: usize,
    settings: &QuarantineSettings,
) -> Streak {
    let mut all: BTreeMap<u8, Vec<(bool, Outcome)>> = BTreeMap::new();
    let before = recent.len().saturating_sub(since);
    for (at, seen) in recent.enumerate() {
        if seen.outcome.is_decided() && !seen.is_mass_failure {
            all.entry(seen.browser_slot).or_default().push((at >= before, seen.outcome));
        }
    }
    let is_clean = |(_, outcome): &(bool, Outcome)| *outcome == Outcome::Passed;
    let unclean = all.values().filter(|runs| !runs.iter().all(is_clean));
    let furthest = unclean.map(|runs| of_series(runs, settings)).reduce(|one, other| {
        let furthest = if other.needed - other.passes > one.needed - one.passes { other } else { one };
        Streak { is_failing: one.is_failing || other.is_failing, ..furthest }
    });
    let together = || {
        let runs: Vec<(bool, Outcome)> = all.into_values().flatten().collect();
        let none = Streak { passes: 0, needed: settings.release_after.max(1), is_failing: false };
        if runs.is_empty() { none } else { of_series(&runs, settings) }
    };
    furthest.unwrap_or_else(together)
}

/// The streak of outcomes, oldest first, each with whether it came after the
/// test was set aside.
fn of_series(runs: &[(bool, Outcome)], settings: &QuarantineSettings) -> Streak {
    let is_clean = |outcome: Outcome| outcome == Outcome::Passed;
    let clean = runs.iter().rev().take_while(|(_, outcome)| is_clean(*outcome));
    let clean_ever = clean.clone().count();
    let passes = clean.filter(|(is_since, _)| *is_since).count();
    let earlier = &runs[..runs.len() - clean_ever];
    let dirty = earlier.iter().filter(|(_, outcome)| !is_clean(*outcome)).count();
    #[expect(clippy::cast_precision_loss, reason = "at most two hundred outcomes")]
    let share = if earlier.is_empty() { LEAST_SHARE } else { dirty as f64 / earlier.len() as f64 };
    let share = share.clamp(LEAST_SHARE, MOST_SHARE);
    #[expect(clippy::cast_possible_truncation, reason = "at most 149")]
    let needed = (SURE / -(1.0 - share).ln()).ceil() as i64;
    Streak {
        passes: i64::try_from(passes).unwrap_or(i64::MAX),
        needed: needed.max(settings.release_after),
        is_failing: runs.last().is_some_and(|(_, last)| last.status().is_failing()),
    }
}
