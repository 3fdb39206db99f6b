//! Which commit turned a test red, from what its commits changed and from every
//! run of the test on one of them, and which commit to test next.
//!
//! The posterior is that of flake-aware culprit finding (Henderson et al.,
//! "Flake Aware Culprit Finding", ICST 2023): the prior of a commit times the
//! probability of each observed run if that commit broke the test. The commit to
//! test next is the one whose outcome is expected to say most: the largest
//! difference between the entropy now and the expected entropy afterwards
//! (Lindley, "On a measure of the information provided by an experiment", 1956).

use std::collections::BTreeMap;

use super::posterior::{Observation, likelihood, weighted};

/// Share of the prior that all commits have in common, whatever they changed:
/// the ranking by changes does not know every cause.
const UNIFORM_SHARE: f64 = 0.2;
/// How improbable it has to be that all failures from which the range is read
/// happened by chance.
const CHANCE_OF_STREAK: f64 = 0.02;
/// Most failures that are waited for.
const MAX_REDS: usize = 4;
/// Probability from which on no further run is proposed.
const SETTLED: f64 = 0.95;
/// Least information, in bits, for which a run is proposed.
const LEAST_GAIN: f64 = 0.02;

/// How many failures in a row it takes until chance is out of the question: the
/// range ends at the commit of the last of them. `flake_rate` is the probability
/// that a run of the test fails although nothing broke it.
#[must_use]
pub fn reds_needed(flake_rate: f64) -> usize {
    let rate = if flake_rate.is_finite() { flake_rate.clamp(0.0, 1.0) } else { 1.0 };
    let mut chance = rate;
    let mut reds = 1;
    while chance > CHANCE_OF_STREAK && reds < MAX_REDS {
        chance *= rate;
        reds += 1;
    }
    reds
}

/// A run that is worth making.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NextRun {
    /// Place of the commit in the range, 0 for the newest.
    pub place: usize,
    /// Expected information, bits.
    pub gain: f64,
}

/// How probable each commit of a range is, and what to do next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Culprit {
    /// Probability of each commit, in the order of the range; they sum to 1.
    pub probabilities: Vec<f64>,
    /// The run to make next; `None` when the culprit is known well enough.
    pub next: Option<NextRun>,
}

/// Finds the commit of a range that turned a test red.
///
/// `commits` are the hashes of the range, the newest first, with their priors,
/// which need not sum to 1; `observations` are runs of the test on any commits,
/// of which others are ignored; `flake_rate` is that of a run to come.
#[must_use]
pub fn locate(commits: &[(&str, f64)], observations: &[Observation], flake_rate: f64) -> Culprit {
    if commits.is_empty() {
        return Culprit::default();
    }
    let count = commits.len() as f64;
    let prior = |value: f64| if value.is_finite() && value > 0.0 { value } else { 0.0 };
    let sum: f64 = commits.iter().map(|(_, value)| prior(*value)).sum();
    let of_changes = |value: f64| if sum > 0.0 { prior(value) / sum } else { 1.0 / count };
    let logarithms: Vec<f64> = commits
        .iter()
        .map(|(_, value)| (of_changes(*value) * (1.0 - UNIFORM_SHARE) + UNIFORM_SHARE / count).ln())
        .collect();
    let order: BTreeMap<&str, usize> =
        commits.iter().enumerate().map(|(place, (sha, _))| (*sha, place)).collect();
    let probabilities = weighted(&logarithms, &order, observations);
    let next = next_run(&probabilities, flake_rate);
    Culprit { probabilities, next }
}

/// The commit whose outcome says most about the culprit.
fn next_run(probabilities: &[f64], flake_rate: f64) -> Option<NextRun> {
    if probabilities.iter().any(|probability| *probability >= SETTLED) {
        return None;
    }
    let now = entropy(probabilities.iter().copied());
    let mut best: Option<NextRun> = None;
    for place in 0..probabilities.len() {
        let gain = now - expected_entropy(probabilities, place, flake_rate);
        if gain >= LEAST_GAIN && best.is_none_or(|best| gain > best.gain) {
            best = Some(NextRun { place, gain });
        }
    }
    best
}

/// The entropy that is left, on average, after a run on a commit.
fn expected_entropy(probabilities: &[f64], place: usize, flake_rate: f64) -> f64 {
    let after = |has_failed: bool| {
        let seen = Observation { sha: String::new(), has_failed, flake_rate };
        let joint: Vec<f64> = probabilities
            .iter()
            .enumerate()
            .map(|(culprit, probability)| probability * likelihood(&seen, place <= culprit))
            .collect();
        let chance: f64 = joint.iter().sum();
        if chance <= 0.0 { 0.0 } else { chance * entropy(joint.iter().map(|part| part / chance)) }
    };
    after(true) + after(false)
}

/// In bits.
fn entropy(probabilities: impl Iterator<Item = f64>) -> f64 {
    probabilities.filter(|probability| *probability > 0.0).map(|part| -part * part.log2()).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(sha: &str, has_failed: bool, flake_rate: f64) -> Observation {
        Observation { sha: sha.to_owned(), has_failed, flake_rate }
    }

    fn even(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("c{number}")).collect()
    }

    fn places(shas: &[String]) -> Vec<(&str, f64)> {
        shas.iter().map(|sha| (sha.as_str(), 1.0)).collect()
    }

    #[test]
    fn without_flakes_the_middle_is_tested_next_and_halves_the_range() {
        let shas = even(8);
        let found = locate(&places(&shas), &[], 0.0);
        let next = found.next.expect("something to test");
        assert_eq!(next.place, 4, "four commits before it, four from it on");
        assert!(next.gain > 0.8 && next.gain <= 1.0, "{next:?}");
        let found = locate(&places(&shas), &[seen("c4", true, 0.0)], 0.0);
        let older: f64 = found.probabilities[4..].iter().sum();
        assert!(older > 0.95, "{found:?}");
    }

    #[test]
    fn one_failure_of_a_flaky_test_says_less_than_two() {
        let shas = even(10);
        let older =
            |runs: &[Observation]| locate(&places(&shas), runs, 0.3).probabilities[5..].iter().sum::<f64>();
        let one = older(&[seen("c5", true, 0.3)]);
        let two = older(&[seen("c5", true, 0.3), seen("c5", true, 0.3)]);
        assert!(one > 0.5 && two > one + 0.1, "{one} {two}");
    }

    #[test]
    fn the_rarer_flakes_are_the_fewer_failures_are_needed() {
        assert_eq!([0.0, 0.01, 0.1, 0.3, 1.0, f64::NAN].map(reds_needed), [1, 1, 2, 4, 4, 4]);
    }

    #[test]
    fn one_commit_is_the_culprit_and_an_empty_range_has_none() {
        let only = locate(&[("a", 0.0)], &[], 0.1);
        assert_eq!((only.probabilities.as_slice(), only.next), ([1.0].as_slice(), None));
        assert_eq!(locate(&[], &[], 0.1), Culprit::default());
    }

    proptest! {
        #[test]
        fn probabilities_sum_to_one_in_any_order_of_runs(
            priors in proptest::collection::vec(0.0..10.0_f64, 1..40),
            runs in proptest::collection::vec((0..60_usize, any::<bool>(), 0.0..1.0_f64), 0..20),
            rate in 0.0..1.0_f64,
        ) {
            let shas = even(priors.len());
            let commits: Vec<(&str, f64)> =
                shas.iter().zip(&priors).map(|(sha, prior)| (sha.as_str(), *prior)).collect();
            let mut observed: Vec<Observation> =
                runs.iter().map(|(at, failed, rate)| seen(&format!("c{at}"), *failed, *rate)).collect();
            let found = locate(&commits, &observed, rate);
            observed.reverse();
            let reversed = locate(&commits, &observed, rate);
            let sum: f64 = found.probabilities.iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
            for (one, other) in found.probabilities.iter().zip(&reversed.probabilities) {
                prop_assert!((one - other).abs() < 1e-9);
            }
            if let Some(next) = found.next {
                prop_assert!(next.place < priors.len() && next.gain > 0.0 && next.gain <= 1.0 + 1e-9);
            }
        }

        #[test]
        fn a_failure_moves_the_blame_to_older_commits_and_a_pass_to_newer_ones(
            count in 2..30_usize, at in 0..30_usize, rate in 0.0..0.5_f64,
        ) {
            let shas = even(count);
            let at = at % count;
            let older = |runs: &[Observation]| {
                locate(&places(&shas), runs, rate).probabilities[at..].iter().sum::<f64>()
            };
            let (before, sha) = (older(&[]), format!("c{at}"));
            prop_assert!(older(&[seen(&sha, true, rate)]) >= before - 1e-9);
            prop_assert!(older(&[seen(&sha, false, rate)]) <= before + 1e-9);
        }
    }
}
