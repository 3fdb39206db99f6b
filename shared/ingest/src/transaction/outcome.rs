//! How a run ended, from what the client claims and what the tests say.

use callboard_domain::run_life::Slots;
use callboard_domain::status::RunStatus;
use callboard_domain::totals::Totals;
use callboard_store::runs::TestDurations;

/// How a run ended whose client claims nothing: the worst of its tests.
fn told_by(totals: &Totals) -> RunStatus {
    if totals.failed_tests > totals.timed_out_tests {
        RunStatus::Failed
    } else if totals.timed_out_tests > 0 {
        RunStatus::TimedOut
    } else if totals.interrupted_tests > 0 {
        RunStatus::Interrupted
    } else {
        RunStatus::Passed
    }
}

/// How a run ended by what its clients claim and its tests say. Errors outside of the
/// tests fail a run as failed tests do.
#[must_use]
pub fn outcome_of(slots: &Slots<'_>, counted: &Totals, has_errors: bool) -> RunStatus {
    let outcome = never_passed_with_failures(slots.outcome(told_by(counted)), counted);
    if outcome == RunStatus::Passed && has_errors { RunStatus::Failed } else { outcome }
}

/// A claimed `passed` does not outweigh a failed test. A flaky test never
/// makes a run fail unless the client says so.
fn never_passed_with_failures(claimed: RunStatus, totals: &Totals) -> RunStatus {
    if claimed == RunStatus::Passed && totals.failed_tests > 0 { RunStatus::Failed } else { claimed }
}

/// Mean (rounded) and percentiles (nearest rank) of durations.
pub(crate) fn spread(mut durations: Vec<i64>) -> TestDurations {
    if durations.is_empty() {
        return TestDurations::default();
    }
    durations.sort_unstable();
    let count = durations.len();
    let sum: i128 = durations.iter().copied().map(i128::from).sum();
    let n = i128::try_from(count).unwrap_or(i128::MAX);
    let within = |percent: usize| {
        let rank = (count * percent).div_ceil(100).max(1);
        durations.get(rank - 1).copied()
    };
    TestDurations {
        mean: i64::try_from((2 * sum + n) / (2 * n)).ok(),
        p50: within(50),
        p90: within(90),
        p95: within(95),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_outweighs_a_claimed_pass() {
        let failed = Totals { total_tests: 2, passed_tests: 1, failed_tests: 1, ..Totals::default() };
        assert_eq!(never_passed_with_failures(RunStatus::Passed, &failed), RunStatus::Failed);
        assert_eq!(never_passed_with_failures(RunStatus::Interrupted, &failed), RunStatus::Interrupted);
        assert_eq!(told_by(&failed), RunStatus::Failed);
        let flaky = Totals { total_tests: 1, passed_tests: 1, flaky_tests: 1, ..Totals::default() };
        assert_eq!(never_passed_with_failures(RunStatus::Passed, &flaky), RunStatus::Passed);
        assert_eq!(never_passed_with_failures(RunStatus::Failed, &flaky), RunStatus::Failed);
        let timed_out = Totals { total_tests: 1, failed_tests: 1, timed_out_tests: 1, ..Totals::default() };
        assert_eq!(told_by(&timed_out), RunStatus::TimedOut);
    }

    #[test]
    fn the_percentile_is_the_nearest_rank() {
        let of = |durations: Vec<i64>| {
            let TestDurations { mean, p50, p90, p95 } = spread(durations);
            [mean, p50, p90, p95].map(|value| value.unwrap_or(-1))
        };
        assert_eq!(of(vec![]), [-1; 4]);
        assert_eq!(of(vec![7]), [7; 4]);
        assert_eq!(of((1..=10).collect()), [6, 5, 9, 10]);
        assert_eq!(of((1..=11).rev().collect()), [6, 6, 10, 11]);
    }
}
