//! Whether a run that claims to be full can be one, by its number of tests: a
//! `test.only` that was left in, or a filter its client says nothing of, makes
//! a run of a few tests look like a suite that passed.

/// Newest earlier runs that are looked at.
pub const LOOKED_AT: usize = 10;
/// Newest full runs whose median is what a full run is expected to have.
const COMPARED: usize = 5;
/// A run with less than this share of the expected tests, in percent, is doubted.
const LEAST_PERCENT: i64 = 60;
/// Fewer missing tests are no sign, as in a suite of two.
const LEAST_MISSING: i64 = 3;
/// So many earlier runs of about the same size are a suite that shrank, or a
/// second suite of the project: the size is normal.
const ALIKE_TO_BELIEVE: usize = 3;
/// How far the sizes of two runs may be apart to be about the same, in percent
/// of the greater.
const ALIKE_PERCENT: i64 = 10;

/// An earlier run of the same branch and environment that claimed to be full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierRun {
    /// Its tests.
    pub tests: i64,
    /// Whether it was doubted, and counts as partial.
    pub is_doubted: bool,
}

/// The expected number of tests when a full run with `tests` is doubted because
/// too many are missing; `None` when it is believed. `earlier` holds the runs
/// before it, newest first.
#[must_use]
pub fn expected_tests(tests: i64, earlier: &[EarlierRun]) -> Option<i64> {
    let earlier = &earlier[..earlier.len().min(LOOKED_AT)];
    let full = earlier.iter().filter(|run| !run.is_doubted).take(COMPARED);
    let expected = median(full.map(|run| run.tests).collect())?;
    let misses_many = tests.saturating_mul(100) < expected.saturating_mul(LEAST_PERCENT)
        && expected - tests >= LEAST_MISSING;
    let alike = earlier.iter().filter(|run| are_alike(run.tests, tests)).count();
    (misses_many && alike < ALIKE_TO_BELIEVE).then_some(expected)
}

/// The median, of an even number the lower one.
fn median(mut sizes: Vec<i64>) -> Option<i64> {
    sizes.sort_unstable();
    sizes.get(sizes.len().saturating_sub(1) / 2).copied()
}

fn are_alike(one: i64, other: i64) -> bool {
    (one - other).abs().saturating_mul(100) <= one.max(other).saturating_mul(ALIKE_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of these sizes one after the other, oldest first: whether each was doubted.
    fn doubted(sizes: &[i64]) -> Vec<bool> {
        let mut earlier: Vec<EarlierRun> = Vec::new();
        for &tests in sizes {
            let is_doubted = expected_tests(tests, &earlier).is_some();
            earlier.insert(0, EarlierRun { tests, is_doubted });
        }
        earlier.iter().rev().map(|run| run.is_doubted).collect()
    }

    #[test]
    fn a_run_of_a_focused_test_is_doubted() {
        let earlier = [EarlierRun { tests: 40, is_doubted: false }; 5];
        assert_eq!(expected_tests(1, &earlier), Some(40));
        assert_eq!(expected_tests(23, &earlier), Some(40));
        assert_eq!(expected_tests(24, &earlier), None);
        assert_eq!(expected_tests(400, &earlier), None);
        assert_eq!(expected_tests(1, &earlier[..1]), Some(40), "one full run is enough to know better");
    }

    #[test]
    fn a_first_run_and_a_small_suite_are_believed() {
        assert_eq!(expected_tests(1, &[]), None);
        let earlier = [EarlierRun { tests: 3, is_doubted: false }];
        assert_eq!((expected_tests(1, &earlier), expected_tests(0, &earlier)), (None, Some(3)));
    }

    #[test]
    fn a_suite_that_shrank_is_normal_after_three_runs() {
        assert_eq!(
            doubted(&[40, 40, 40, 40, 40, 10, 10, 11, 10, 10, 10, 10]),
            [false, false, false, false, false, true, true, true, false, false, false, false]
        );
        // It may grow again immediately.
        assert_eq!(doubted(&[40, 10, 10, 10, 10, 40]), [false, true, true, true, false, false]);
    }

    #[test]
    fn a_small_suite_beside_a_large_one_becomes_normal_as_well() {
        let sizes = [500, 20, 500, 20, 500, 20, 500, 20, 500, 20];
        let found = doubted(&sizes);
        assert_eq!(found[..8], [false, true, false, true, false, true, false, false]);
        assert!(!found[8] && !found[9]);
    }

    #[test]
    fn runs_that_are_too_small_in_different_ways_are_never_normal() {
        let found = doubted(&[40, 1, 40, 5, 40, 9, 40, 2, 40, 14]);
        assert_eq!(found.iter().filter(|is_doubted| **is_doubted).count(), 5);
    }
}
