//! What the recorded durations of a test say: how long it takes, and whether it
//! becomes slower.
//!
//! Invariant: only passed executions count; failures end early or in a timeout
//! and say nothing about how long a test takes.

use serde::{Serialize, Serializer};

use crate::sketch::nearest_rank;
use crate::totals::mean;

/// Fewest samples of a trend.
const TREND_SAMPLES: usize = 4;

/// Whether a test takes longer than it used to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// The newer half took at least a tenth less than the older one.
    Faster,
    /// It took at least a tenth more.
    Slower,
    /// Neither, or too few samples to tell.
    Stable,
}

impl Trend {
    /// The spelling in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Stable => "stable",
        }
    }

    /// Compares the newer half of durations (oldest first) with the older one;
    /// an odd one in the middle belongs to the newer half.
    #[must_use]
    pub fn from_durations(durations: &[i64]) -> Self {
        if durations.len() < TREND_SAMPLES {
            return Self::Stable;
        }
        let (older, newer) = durations.split_at(durations.len() / 2);
        let sum = |part: &[i64]| part.iter().copied().map(i128::from).sum::<i128>();
        let count = |part: &[i64]| i128::try_from(part.len()).unwrap_or(1);
        // Means over a common denominator, so that nothing is rounded.
        let (before, now) = (sum(older) * count(newer), sum(newer) * count(older));
        if now * 10 > before * 11 {
            Self::Slower
        } else if now * 10 < before * 9 {
            Self::Faster
        } else {
            Self::Stable
        }
    }
}

impl Serialize for Trend {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Numbers of some durations, ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// How many there are.
    pub count: i64,
    /// Mean, rounded half up.
    pub mean: i64,
    /// The shortest.
    pub min: i64,
    /// The longest.
    pub max: i64,
    /// Median by nearest rank.
    pub p50: i64,
    /// 95 % quantile by nearest rank.
    pub p95: i64,
}

impl Spread {
    /// Of these durations; `None` of none.
    #[must_use]
    pub fn from_durations(durations: &[i64]) -> Option<Self> {
        let mut sorted = durations.to_vec();
        sorted.sort_unstable();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let count = i64::try_from(sorted.len()).ok()?;
        let sum: i128 = sorted.iter().copied().map(i128::from).sum();
        let at = |q| {
            let rank = nearest_rank(sorted.len() as u64, q)?;
            sorted.get(usize::try_from(rank).ok()? - 1).copied()
        };
        Some(Self { count, mean: mean(sum, count)?, min, max, p50: at(0.5)?, p95: at(0.95)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_needs_four_samples_and_a_tenth() {
        assert_eq!(Trend::from_durations(&[100, 100, 200]), Trend::Stable);
        assert_eq!(Trend::from_durations(&[100, 100, 111, 111]), Trend::Slower);
        assert_eq!(Trend::from_durations(&[100, 100, 110, 110]), Trend::Stable);
        assert_eq!(Trend::from_durations(&[100, 100, 90, 90]), Trend::Stable);
        assert_eq!(Trend::from_durations(&[100, 100, 89, 89]), Trend::Faster);
        assert_eq!(Trend::from_durations(&[100, 100, 100, 100, 145]), Trend::Slower, "the middle one is new");
    }

    #[test]
    fn a_spread_is_by_nearest_rank() {
        let durations: Vec<i64> = (1..=20).rev().collect();
        let spread = Spread::from_durations(&durations).unwrap();
        assert_eq!(spread, Spread { count: 20, mean: 11, min: 1, max: 20, p50: 10, p95: 19 });
        assert_eq!(Spread::from_durations(&[]), None);
    }
}
