//! Where a failing attempt left the way of one that passed: both lists of
//! steps are aligned by their longest common subsequence (Wagner and Fischer,
//! 1974), and the first step outside of it is told.

use crate::evidence::url_text::redact_queries;

/// Steps compared of each side.
const MAX_STEPS: usize = 500;

/// The first difference of two lists of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Divergence {
    /// Place of the step only the failing attempt has.
    pub failing: Option<usize>,
    /// Place of the step only the passing attempt has.
    pub passed: Option<usize>,
}

/// Compares titles without their digits and the values of parameters. `None` when nothing differs, or
/// nothing is known of one side.
#[must_use]
pub fn first_divergence(failing: &[&str], passed: &[&str]) -> Option<Divergence> {
    if failing.is_empty() || passed.is_empty() {
        return None;
    }
    let keys =
        |titles: &[&str]| -> Vec<String> { titles.iter().take(MAX_STEPS).map(|title| key(title)).collect() };
    let (one, other) = (keys(failing), keys(passed));
    let width = other.len() + 1;
    // lengths[i][j]: the longest common part of one[i..] and other[j..].
    let mut lengths = vec![0_u16; (one.len() + 1) * width];
    for i in (0..one.len()).rev() {
        for j in (0..other.len()).rev() {
            lengths[i * width + j] = if one[i] == other[j] {
                lengths[(i + 1) * width + j + 1] + 1
            } else {
                lengths[(i + 1) * width + j].max(lengths[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < one.len() && j < other.len() && one[i] == other[j] {
        i += 1;
        j += 1;
    }
    if i == one.len() && j == other.len() {
        return None;
    }
    let skips_failing =
        i < one.len() && (j == other.len() || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]);
    let skips_passed =
        j < other.len() && (i == one.len() || lengths[i * width + j + 1] >= lengths[(i + 1) * width + j]);
    Some(Divergence { failing: skips_failing.then_some(i), passed: skips_passed.then_some(j) })
}

/// A title without values of parameters, and with every run of digits as one mark.
fn key(title: &str) -> String {
    let mut key = String::with_capacity(title.len());
    let title = redact_queries(title.trim().to_owned());
    for char in title.chars() {
        if !char.is_ascii_digit() {
            key.push(char);
        } else if !key.ends_with('#') {
            key.push('#');
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_step_that_only_one_side_has_is_told() {
        let passed = ["goto /", "fill Email", "click Pay 12", "see Thanks"];
        let at =
            |failing: &[&str]| first_divergence(failing, &passed).map(|found| (found.failing, found.passed));
        assert_eq!(at(&["goto /", "fill Email", "click Pay 7", "see Thanks"]), None);
        assert_eq!(at(&["goto /", "fill Email"]), Some((None, Some(2))));
        assert_eq!(
            at(&["goto /", "fill Email", "retry", "click Pay 3", "see Thanks"]),
            Some((Some(2), None))
        );
        assert_eq!(at(&["goto /", "fill Email", "click Log in"]), Some((Some(2), Some(2))));
        assert_eq!(at(&[]), None);
    }

    proptest! {
        #[test]
        fn what_is_told_is_the_first_difference(failing in prop::collection::vec("[ab]", 1..20), passed in prop::collection::vec("[ab]", 1..20)) {
            let (one, other): (Vec<&str>, Vec<&str>) = (failing.iter().map(String::as_str).collect(), passed.iter().map(String::as_str).collect());
            match first_divergence(&one, &other) {
                None => prop_assert_eq!(one, other),
                Some(found) => {
                    let at = found.failing.or(found.passed).expect("one side");
                    prop_assert_eq!(&one[..at.min(one.len())], &other[..at.min(other.len())]);
                    prop_assert!(one.get(at) != other.get(at));
                }
            }
        }
    }
}
