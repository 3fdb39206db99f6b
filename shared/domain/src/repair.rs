//! How much clean runs prove of a repair.
//!
//! Source: the beta-binomial predictive probability that a failure that still
//! exists stays away by luck, with Jeffreys' prior. The newest failure before
//! the clean runs does not count for the rate: a stretch that is chosen
//! because it ends with a failure has one too many of them. A rate taken from
//! so few runs as if it were known lets one in five repairs of rare failures
//! be proven that never happened.
//!
//! A test that broke fails from then on: passes from before the break say
//! nothing of how rare its failure is. They are left out where failures that
//! happen at random hardly ever come in such a row.

use crate::status::Outcome;
use crate::test_state::RecentOutcome;

/// Executions before the clean ones from which the rate of failures is told.
const MOST_BEFORE: usize = 30;
/// Failures in a row from which a break is looked for.
const LEAST_STREAK: usize = 3;
/// The chance that a streak is luck up to which it is taken for a break. At one
/// in twenty, flaky tests are too often taken for broken ones, and more than
/// one in twenty of them for repaired.
const BREAK_BY_LUCK: f64 = 0.01;
/// No failure is taken for rarer than this: proofs have to end some day.
const RAREST: f64 = 0.02;
/// The proof from which a failure has stopped: a chance of one in twenty that it
/// stays away by luck.
const STOPPED: f64 = 3.0;
/// What is asked for in addition for every time it fell quiet and came back.
const MORE_PROOF: f64 = 0.7;

/// One test in one browser project: how it did before its clean runs, and how
/// many these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// The browser project, as recent outcomes tell it.
    pub browser_slot: u8,
    /// Failed and flaky executions among those before.
    pub failures: usize,
    /// Decided executions before, at most 30; those since it broke where it did.
    pub before: usize,
    /// Clean passes since: one for each execution, and for one that was repeated
    /// one for each repetition.
    pub clean: usize,
}

impl Series {
    /// The series of a test's recent history, oldest outcome first, of which the
    /// newest `since` are later than the failure that may be repaired: passes
    /// from before it prove nothing, though the test may have failed elsewhere.
    /// Outcomes of mass failures and those that decide nothing are left out, and
    /// so is a series that never failed.
    pub fn from_outcomes(recent: impl ExactSizeIterator<Item = RecentOutcome>, since: usize) -> Vec<Self> {
        let from = recent.len().saturating_sub(since);
        let mut by_browser: [Vec<bool>; 16] = Default::default();
        let mut most_clean = [0; 16];
        for (at, outcome) in recent.enumerate().filter(|(_, outcome)| !outcome.is_mass_failure) {
            let is_clean = match outcome.outcome {
                Outcome::Passed => true,
                Outcome::Failed | Outcome::TimedOut | Outcome::Flaky => false,
                Outcome::Interrupted | Outcome::Skipped | Outcome::DidNotRun => continue,
            };
            let slot = usize::from(outcome.browser_slot & 0x0f);
            by_browser[slot].push(is_clean);
            most_clean[slot] += usize::from(at >= from);
        }
        (0..)
            .zip(by_browser.iter().zip(most_clean))
            .map(|(browser_slot, (outcomes, most))| {
                let clean = outcomes.iter().rev().take(most).take_while(|is_clean| **is_clean).count();
                let before = &outcomes[..outcomes.len() - clean];
                let before = since_break(&before[before.len().saturating_sub(MOST_BEFORE)..]);
                let failures = before.iter().filter(|is_clean| !**is_clean).count();
                Self { browser_slot, failures, before: before.len(), clean }
            })
            .filter(|series| series.failures > 0)
            .collect()
    }
}

/// The failures since a break, where outcomes end with one; else all of them.
///
/// A break is a streak that the outcomes before it make improbable: after f
/// failures among n outcomes the next one fails with (f + ½) / (n + 1), Jeffreys'
/// prior. Its first failure is left out of the product: there is always one
/// before the clean runs.
fn since_break(outcomes: &[bool]) -> &[bool] {
    let streak = outcomes.iter().rev().take_while(|is_clean| !**is_clean).count();
    let (earlier, since) = outcomes.split_at(outcomes.len() - streak);
    if streak < LEAST_STREAK || earlier.is_empty() {
        return outcomes;
    }
    let failures = earlier.iter().filter(|is_clean| !**is_clean).count();
    let mut luck = 1.0;
    for (failures, count) in (failures..).zip(earlier.len()..outcomes.len() - 1) {
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        let rate = (failures as f64 + 0.5) / (count as f64 + 1.0);
        luck *= rate;
    }
    if luck <= BREAK_BY_LUCK { since } else { outcomes }
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

/// The proof that a failure has stopped which fell quiet and came back so often.
#[must_use]
pub fn proof_asked(false_quiets: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let false_quiets = false_quiets as f64;
    STOPPED + MORE_PROOF * false_quiets
}

/// How many clean passes more of every series it takes until all together prove
/// as much as asked for; `None` when `most` are too few.
#[must_use]
pub fn passes_needed(all: &[Series], proof: f64, most: usize) -> Option<usize> {
    let proven = |more: usize| -> f64 {
        all.iter().map(|series| evidence(&Series { clean: series.clean + more, ..*series })).sum()
    };
    (0..=most).find(|more| proven(*more) >= proof)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(failures: usize, before: usize, clean: usize) -> f64 {
        evidence(&Series { browser_slot: 0, failures, before, clean })
    }

    /// Clean runs after which a repair counts as proven.
    fn needed(failures: usize, before: usize) -> usize {
        (1..).find(|clean| proof(failures, before, *clean) >= 3.0).unwrap_or(usize::MAX)
    }

    #[test]
    fn passes_of_all_series_add_up_and_those_there_are_count() {
        let series = |clean| Series { browser_slot: 0, failures: 6, before: 30, clean };
        assert_eq!(passes_needed(&[series(0)], 3.0, 100), Some(20));
        assert_eq!(passes_needed(&[series(15)], 3.0, 100), Some(5));
        assert_eq!(passes_needed(&[series(0)], 3.0, 19), None);
        assert_eq!(passes_needed(&[series(30)], 3.0, 0), Some(0));
        assert!(passes_needed(&[series(0), series(0)], 3.0, 100).is_some_and(|needed| needed < 20));
        assert_eq!(passes_needed(&[], 3.0, 100), None);
    }

    #[test]
    fn a_rare_failure_needs_many_clean_runs_and_a_constant_one_few() {
        assert_eq!([needed(30, 30), needed(10, 10), needed(3, 3), needed(1, 1)], [1, 2, 3, 10]);
        assert_eq!([needed(15, 30), needed(6, 30), needed(2, 30), needed(1, 30)], [5, 20, 149, 149]);
    }

    /// The series of a history, oldest outcome first: `F` failed, `.` passed.
    fn series(history: &str) -> (usize, usize, usize) {
        series_since(history, history.len())
    }

    /// The same, of which the newest `since` are later than the failure.
    fn series_since(history: &str, since: usize) -> (usize, usize, usize) {
        let outcomes: Vec<char> = history.chars().collect();
        let recent = outcomes.into_iter().map(|char| RecentOutcome {
            outcome: if char == 'F' { Outcome::Failed } else { Outcome::Passed },
            browser_slot: 0,
            is_mass_failure: false,
            duration_ms: None,
            lost_ms: None,
        });
        let found = Series::from_outcomes(recent, since);
        assert_eq!(found.len(), 1, "{history}");
        (found[0].failures, found[0].before, found[0].clean)
    }

    #[test]
    fn passes_before_a_break_do_not_make_its_failure_rare() {
        let broken = format!("{}{}", ".".repeat(20), "F".repeat(10));
        assert_eq!(series(&broken), (10, 10, 0));
        assert_eq!(series(&format!("{broken}..")), (10, 10, 2));
        assert_eq!(series(&format!("..F{}FFF", ".".repeat(24))), (3, 3, 0));
        assert_eq!([needed(3, 3), needed(10, 10)], [3, 2]);
        // What fails now and then has such rows too.
        assert_eq!(series("..F...F....F...F...F..FFF"), (8, 25, 0));
        assert_eq!(series(&format!("{}FF", ".".repeat(28))), (2, 30, 0));
        assert_eq!(series(".FFF"), (3, 4, 0));
    }

    #[test]
    fn passes_from_before_the_failure_prove_nothing() {
        assert_eq!(series_since("FFF....", 4), (3, 3, 4));
        assert_eq!(series_since("FFF....", 1), (3, 6, 1));
        assert_eq!(series_since("FFF....", 0), (3, 7, 0));
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
        for (rate, count) in [0.05, 0.2, 0.5, 0.8, 1.0].into_iter().flat_map(|rate| [(rate, 10), (rate, 30)])
        {
            let rounds = 8_000;
            let wrong = (0..rounds)
                .filter(|_| {
                    // Its newest outcome before is a failure; then it goes on as before.
                    let before = (1..count).map(|_| if chance() < rate { 'F' } else { '.' });
                    let (failures, before, _) = series(&before.chain(['F']).collect::<String>());
                    (0..needed(failures, before)).all(|_| chance() >= rate)
                })
                .count();
            assert!(wrong * 100 <= rounds * 5, "{rate} of {count}: {wrong} of {rounds}");
        }
    }
}
