//! What is remarkable about the durations of a run: tests that changed, and
//! workers that had more to do than others.

use crate::comparison::is_notable;

/// Earlier passes that a duration is measured against.
pub const EARLIER_PASSES: usize = 20;

/// A duration and what the test took before, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    /// Now.
    pub now_ms: i64,
    /// Median of the earlier passes.
    pub before_ms: i64,
}

impl Shift {
    /// The difference; positive when it takes longer now.
    #[must_use]
    pub const fn delta_ms(self) -> i64 {
        self.now_ms.saturating_sub(self.before_ms)
    }
}

/// Measures a passed test against up to [`EARLIER_PASSES`] of its newest
/// earlier passes (`earlier`, oldest first). `None` when there are none or the
/// difference is below 500 ms or 20 %.
#[must_use]
pub fn shift(now_ms: i64, earlier: &[i64]) -> Option<Shift> {
    let newest = &earlier[earlier.len().saturating_sub(EARLIER_PASSES)..];
    let before_ms = median(newest)?;
    is_notable(before_ms, now_ms).then_some(Shift { now_ms, before_ms })
}

/// The median; of an even number the mean of the two in the middle, rounded
/// down.
#[must_use]
pub fn median(values: &[i64]) -> Option<i64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(sorted.len() / 2 - 1)?;
    Some(lower + (upper - lower) / 2)
}

/// How much longer the busiest worker took than the mean of all: 0 when they
/// are even or there is only one, `None` without any.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "durations of one run")]
pub fn imbalance(durations_ms: &[i64]) -> Option<f64> {
    let most = *durations_ms.iter().max()?;
    let sum: i64 = durations_ms.iter().sum();
    if sum <= 0 {
        return Some(0.0);
    }
    let mean = sum as f64 / durations_ms.len() as f64;
    Some(((most as f64 / mean - 1.0) * 10_000.0).round() / 10_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_measured_against_the_median_of_its_newest_passes() {
        assert_eq!(shift(3000, &[1000, 1000, 9000]), Some(Shift { now_ms: 3000, before_ms: 1000 }));
        assert_eq!(shift(1400, &[1000, 1000, 9000]), None);
        assert_eq!(shift(3000, &[]), None);
        let long_ago = [vec![9000; 50], vec![1000; EARLIER_PASSES]].concat();
        assert_eq!(shift(3000, &long_ago).map(Shift::delta_ms), Some(2000));
        assert_eq!(shift(100, &[1000, 1001]).map(Shift::delta_ms), Some(-900));
    }

    #[test]
    fn workers_are_even_or_not() {
        assert_eq!(imbalance(&[]), None);
        assert_eq!(imbalance(&[500]), Some(0.0));
        assert_eq!(imbalance(&[0, 0]), Some(0.0));
        assert_eq!(imbalance(&[300, 100]), Some(0.5));
    }
}
