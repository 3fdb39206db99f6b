//! How flaky tests are, what that costs and what to do about it.
//!
//! A test is judged by a Bayesian filter over its attempts: `filter` is the
//! filter itself, `series` applies it to the recent history a state keeps.
//! `root_cause` guesses why a test is flaky, `place` tells where failures
//! gather, `quarantine` proposes whom to set aside and whom to let go.
//!
//! Invariant: everything is a function of its arguments; the counts shown
//! beside a score explain it and are not part of it. A score made of such
//! counts alone lists about as many tests that were broken and repaired as
//! tests that are flaky.
//!
//! Sources: a probabilistic flakiness score from the outcomes of retries as
//! described by Machalica et al. (Facebook, 2020), the flip rate of Kowalczyk
//! et al. (Apple, 2020); the hidden broken state and its transitions are our
//! own.

mod filter;
mod place;
mod quarantine;
mod root_cause;
mod series;
mod settings;
#[cfg(test)]
mod tests;

pub use filter::{Code, Filter, Posterior};
pub use place::Place;
pub use quarantine::{
    Candidate, MAX_CANDIDATES, QuarantineSettings, Streak, candidates, is_candidate, streak,
};
pub use root_cause::{Because, Beside, FailingAttempt, Finding, RootCause, categorise};
pub use series::{
    Assessment, DEFAULT_WINDOW, Evidence, ExactRun, ScoreAt, Window, assess, course, judge_exactly,
};
pub use settings::{FLAKINESS_KEYS, FlakinessOverrides, FlakinessSettings};

use serde::{Serialize, Serializer};

/// What a test is called by its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlakyClass {
    /// It fails because something is wrong.
    Broken,
    /// It fails by chance.
    Flaky,
    /// It probably fails by chance.
    Suspected,
    /// Neither.
    Healthy,
}

impl FlakyClass {
    /// The spelling in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Flaky => "flaky",
            Self::Suspected => "suspected",
            Self::Healthy => "healthy",
        }
    }

    /// Whether lists of flaky tests show it.
    #[must_use]
    pub const fn is_listed(self) -> bool {
        matches!(self, Self::Flaky | Self::Suspected)
    }
}

impl Serialize for FlakyClass {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The number stored as a test's flaky score: 0 when nothing failed within the
/// standard window, else one hundred times the probability that it is flaky.
#[must_use]
pub fn score_of(state: &crate::test_state::TestState, failures: bool) -> i64 {
    assess(state.recent(), Window::standard(failures)).map_or(0, |found| found.posterior.score())
}

/// Whether a test has become flaky with its newest `newest` executions: its score has reached `least`, and did not before,
/// at least since it was below `calm` the last time. A test whose score goes back and forth becomes flaky once.
#[must_use]
pub fn newly_flaky(
    state: &crate::test_state::TestState,
    failures: bool,
    newest: usize,
    (least, calm): (i64, i64),
) -> Option<i64> {
    let window = Window::standard(failures);
    let all = state.recent().len();
    let score_after =
        |known: usize| assess(state.recent().take(known), window).map_or(0, |found| found.posterior.score());
    let score = score_after(all);
    if score < least {
        return None;
    }
    for known in (0..=all.saturating_sub(newest)).rev() {
        match score_after(known) {
            before if before >= least => return None,
            before if before < calm => break,
            _ => {}
        }
    }
    Some(score)
}

/// The class of a test by its state in a lane: of one branch (`failures`) or
/// over several.
#[must_use]
pub fn class_of(state: &crate::test_state::TestState, failures: bool) -> FlakyClass {
    assess(state.recent(), Window::standard(failures))
        .map_or(FlakyClass::Healthy, |found| found.posterior.class)
}

/// Whether a run failed as a whole, so that it says nothing about its tests:
/// at least five decided tests, and `rate` of them or more failing.
#[must_use]
pub fn is_mass_failure(totals: &crate::totals::Totals, rate: f64) -> bool {
    let decided = totals.passed_tests + totals.failed_tests;
    #[expect(clippy::cast_possible_truncation, reason = "a share")]
    let rate = (rate * 10_000.0).round() as i64;
    decided >= 5 && totals.failed_tests * 10_000 >= decided * rate
}
