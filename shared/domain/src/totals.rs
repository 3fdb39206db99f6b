//! Totals of a run: they count tests, never attempts.

use serde::Serialize;

use crate::status::Outcome;

/// `total = passed + failed + interrupted + skipped + did_not_run`; timed out
/// tests are also in `failed`, flaky ones also in `passed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// All tests of the run.
    pub total_tests: i64,
    /// Passed, flaky ones included.
    pub passed_tests: i64,
    /// Failed, timed out ones included.
    pub failed_tests: i64,
    /// Timed out.
    pub timed_out_tests: i64,
    /// Interrupted.
    pub interrupted_tests: i64,
    /// Skipped on purpose.
    pub skipped_tests: i64,
    /// Planned, never started.
    pub did_not_run_tests: i64,
    /// Passed after a failed attempt.
    pub flaky_tests: i64,
}

impl Totals {
    /// Adds (`sign` 1) or takes back (`sign` -1) one execution.
    pub fn count(&mut self, outcome: Outcome, sign: i64) {
        self.total_tests += sign;
        match outcome {
            Outcome::Passed => self.passed_tests += sign,
            Outcome::Flaky => {
                self.passed_tests += sign;
                self.flaky_tests += sign;
            }
            Outcome::Failed => self.failed_tests += sign,
            Outcome::TimedOut => {
                self.failed_tests += sign;
                self.timed_out_tests += sign;
            }
            Outcome::Interrupted => self.interrupted_tests += sign,
            Outcome::Skipped => self.skipped_tests += sign,
            Outcome::DidNotRun => self.did_not_run_tests += sign,
        }
    }

    /// The counts that are not zero: `3 failed, 1 flaky, 116 passed`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let counts = [
            (self.failed_tests, "failed"),
            (self.interrupted_tests, "interrupted"),
            (self.flaky_tests, "flaky"),
            (self.passed_tests - self.flaky_tests, "passed"),
            (self.skipped_tests, "skipped"),
            (self.did_not_run_tests, "did not run"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = counts.map(|(count, word)| format!("{count} {word}")).collect();
        if parts.is_empty() { "0 tests".to_owned() } else { parts.join(", ") }
    }

    /// Passed / (passed + failed), four decimals; `None` when neither occurred.
    #[must_use]
    pub fn pass_rate(&self) -> Option<f64> {
        rate(self.passed_tests, self.passed_tests + self.failed_tests)
    }
}

/// A rate of 0..1 rounded to four decimals; `None` when the denominator is 0.
#[must_use]
pub fn rate(part: i64, whole: i64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    (whole != 0).then(|| (part as f64 / whole as f64 * 10_000.0).round() / 10_000.0)
}

/// The mean of `count` whole numbers that add up to `sum`, rounded half up;
/// `None` of none.
#[must_use]
pub fn mean(sum: impl Into<i128>, count: i64) -> Option<i64> {
    let count = i128::from(count);
    if count > 0 { i64::try_from((2 * sum.into() + count).div_euclid(2 * count)).ok() } else { None }
}

/// The interval in which a share lies with 95 % confidence after `part` of
/// `whole` (Wilson, 1927); `None` when the whole is empty.
#[must_use]
pub fn wilson(part: i64, whole: i64) -> Option<(f64, f64)> {
    if whole <= 0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let (n, share) = (whole as f64, part as f64 / whole as f64);
    let z = 1.959_963_984_540_054_f64;
    let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let reach = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    Some(((middle - reach).max(0.0), (middle + reach).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_rounded_half_up() {
        assert_eq!([mean(0, 0), mean(5, 2), mean(4, 3), mean(5, 3)], [None, Some(3), Some(1), Some(2)]);
    }

    #[test]
    fn three_of_three_are_less_convincing_than_thirty_of_thirty() {
        assert_eq!(wilson(0, 0), None);
        let (few, _) = wilson(3, 3).unwrap();
        let (many, upper) = wilson(30, 30).unwrap();
        assert!((few - 0.4385).abs() < 1e-4 && (many - 0.8865).abs() < 1e-4, "{few} {many}");
        assert!((upper - 1.0).abs() < 1e-9);
    }
}
