//! How much clean runs prove of a repair.
//!
//! Source: the beta-binomial predictive probability that a failure that still
//! exists stays away by luck, with Jeffreys' prior. The newest failure before
//! the clean runs does not count for the rate: a stretch that is chosen
//! because it ends with a failure has one too many of them. A rate taken from
//! so few runs as if it were known lets one in five repairs of rare failures
//! be proven that never happened.

use crate::status::Outcome;
use crate::test_state::RecentOutcome;

/// Executions before the clean ones from which the rate of failures is told.
const MOST_BEFORE: usize = 30;
/// No failure is taken for rarer than this: proofs have to end some day.
const RAREST: f64 = 0.02;

/// One test in one browser project: how it did before its clean runs, and how
/// many these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Failed and flaky executions among those before.
    pub failures: usize,
    /// Decided executions before, at most 30.
    pub before: usize,
    /// Clean executions since.
    pub clean: usize,
}

impl Series {
    /// The series of a test's recent history, oldest outcome first. Outcomes of
    /// mass failures and those that decide nothing are left out, and so is a
    /// series that never failed.
    pub fn of(recent: impl Iterator<Item = RecentOutcome>) -> Vec<Self> {
        let mut by_browser: [Vec<bool>; 16] = Default::default();
        for outcome in recent.filter(|outcome| !outcome.is_mass_failure) {
            let is_clean = match outcome.outcome {
                Outcome::Passed => true,
                Outcome::Failed | Outcome::TimedOut | Outcome::Flaky => false,
                Outcome::Interrupted | Outcome::Skipped | Outcome::DidNotRun => continue,
            };
            by_browser[usize::from(outcome.browser_slot & 0x0f)].push(is_clean);
        }
        by_browser
            .iter()
            .map(|outcomes| {
                let clean = outcomes.iter().rev().take_while(|is_clean| **is_clean).count();
                let before = &outcomes[..outcomes.len() - clean];
                let before = &before[before.len().saturating_sub(MOST_BEFORE)..];
                let failures = before.iter().filter(|is_clean| !**is_clean).count();
                Self { failures, before: before.len(), clean }
            })
            .filter(|series| series.failures > 0)
            .collect()
    }
}

/// What the clean executions of a series add to the proof: −ln of the chance
/// that as many of them are luck.
#[must_use]
pub fn evidence(series: &Series) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    let (failures, before) = (series.failures as f64, series.before as f64);
    let failing = (failures - 1.0).max(0.5) + 0.5;
    let passing = before - failures + 0.5;
    let (mut proof, mut rare) = (0.0, 0.0);
    for clean in 0..series.clean {
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        let passing = passing + clean as f64;
        proof += ((failing + passing) / passing).ln();
        rare -= (1.0 - RAREST).ln();
    }
    proof.max(rare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(failures: usize, before: usize, clean: usize) -> f64 {
        evidence(&Series { failures, before, clean })
    }

    /// Clean runs after which a repair counts as proven.
    fn needed(failures: usize, before: usize) -> usize {
        (1..).find(|clean| proof(failures, before, *clean) >= 3.0).unwrap_or(usize::MAX)
    }

    #[test]
    fn a_rare_failure_needs_many_clean_runs_and_a_constant_one_few() {
        assert_eq!([needed(30, 30), needed(10, 10), needed(3, 3), needed(1, 1)], [1, 2, 3, 10]);
        assert_eq!([needed(15, 30), needed(6, 30), needed(2, 30), needed(1, 30)], [5, 20, 149, 149]);
    }

    /// Repairs that did not happen: how often the rule believes in them.
    #[test]
    fn a_failure_that_goes_on_is_seldom_taken_for_repaired() {
        let mut state = 7_u64;
        let mut chance = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            #[expect(clippy::cast_precision_loss, reason = "31 bits")]
            let share = (state >> 33) as f64 / f64::from(1_u32 << 31);
            share
        };
        for rate in [0.05, 0.2, 0.5, 1.0] {
            let rounds = 2_000;
            let wrong = (0..rounds)
                .filter(|_| {
                    // Its newest outcome before is a failure; then it goes on as before.
                    let mut failures = 1;
                    failures += (0..29).filter(|_| chance() < rate).count();
                    (0..needed(failures, 30)).all(|_| chance() >= rate)
                })
                .count();
            assert!(wrong * 100 <= rounds * 5, "{rate}: {wrong} of {rounds}");
        }
    }
}
