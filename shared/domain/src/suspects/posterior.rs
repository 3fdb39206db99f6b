//! Probabilities of commits, from their scores and from what the test did on
//! commits in between.

use std::collections::BTreeMap;

/// Difference of two scores at which one commit is e times as likely as the
/// other: a removed text of the locator (8) outweighs one weak tie (2) 20 times.
const TEMPERATURE: f64 = 2.0;
/// Probability that a test passes although what broke it is there.
const PASS_WHILE_BROKEN: f64 = 0.02;
/// Least and largest probability that it fails although nothing broke it.
const CHANCE_FAILURE: (f64, f64) = (0.02, 0.5);

/// An execution of the failing test on a commit of the range.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Commit that was tested: whole hash.
    pub sha: String,
    /// Whether the test failed there.
    pub has_failed: bool,
    /// How probably the test fails by chance.
    pub flake_rate: f64,
}

/// The probability of each commit: the softmax of the scores, times how well
/// the observations fit if that commit broke the test. `order` is the place of
/// each commit, the newest first.
pub(super) fn probabilities(
    scores: &[f64],
    order: &BTreeMap<&str, usize>,
    observations: &[Observation],
) -> Vec<f64> {
    let priors: Vec<f64> = scores.iter().map(|score| score / TEMPERATURE).collect();
    weighted(&priors, order, observations)
}

/// The probability of each commit from the logarithms of what is proportional to
/// its prior, times how well the observations fit.
pub(super) fn weighted(
    priors: &[f64],
    order: &BTreeMap<&str, usize>,
    observations: &[Observation],
) -> Vec<f64> {
    let seen: Vec<(usize, &Observation)> =
        observations.iter().filter_map(|seen| Some((*order.get(seen.sha.as_str())?, seen))).collect();
    let logarithms: Vec<f64> = priors
        .iter()
        .enumerate()
        .map(|(culprit, prior)| {
            let fits = seen.iter().map(|(place, seen)| likelihood(seen, *place <= culprit).ln());
            prior + fits.sum::<f64>()
        })
        .collect();
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logarithms.iter().map(|logarithm| (logarithm - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// How probable an outcome is on a commit that has what broke the test, or not.
pub(super) fn likelihood(seen: &Observation, is_broken: bool) -> f64 {
    let chance = seen.flake_rate.clamp(CHANCE_FAILURE.0, CHANCE_FAILURE.1);
    match (is_broken, seen.has_failed) {
        (true, true) => 1.0 - PASS_WHILE_BROKEN,
        (true, false) => PASS_WHILE_BROKEN,
        (false, true) => chance,
        (false, false) => 1.0 - chance,
    }
}
