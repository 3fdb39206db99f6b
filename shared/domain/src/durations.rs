//! What the recorded durations of a test say: whether it becomes slower, and
//! whether its timeout fits.
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
    pub fn of(durations: &[i64]) -> Self {
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
    pub fn of(durations: &[i64]) -> Option<Self> {
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

/// When a timeout is too generous, and what to set instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutRules {
    /// Fewest passed runs to judge by.
    pub min_runs: i64,
    /// How many times the longest run a timeout may be.
    pub factor: i64,
    /// Timeouts below this are left alone, ms.
    pub floor_ms: i64,
    /// How many times the 95 % quantile is recommended.
    pub safety: i64,
    /// The least that is recommended, ms.
    pub recommended_floor_ms: i64,
    /// Below this 95 % quantile a test is not slow any more, ms.
    pub slow_stale_p95_ms: i64,
}

impl Default for TimeoutRules {
    fn default() -> Self {
        Self {
            min_runs: 5,
            factor: 3,
            floor_ms: 20_000,
            safety: 2,
            recommended_floor_ms: 5_000,
            slow_stale_p95_ms: 10_000,
        }
    }
}

/// What is odd about a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutKind {
    /// Far longer than the test ever takes.
    Oversized,
    /// The test is marked slow and is not.
    StaleSlow,
}

impl TimeoutKind {
    /// The spelling in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Oversized => "oversized-timeout",
            Self::StaleSlow => "stale-slow",
        }
    }
}

impl Serialize for TimeoutKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A timeout that could be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutOpportunity {
    /// What is odd.
    pub kind: TimeoutKind,
    /// Whole seconds that leave room for twice the usual, ms.
    pub recommended_ms: i64,
    /// What the timeouts of the window would have cost less, ms.
    pub saving_ms: i64,
    /// For ordering, the greater the more it is worth.
    pub impact: i64,
}

/// Judges the timeout of a test. `fails` counts its timed out executions in
/// the window.
#[must_use]
pub fn timeout_opportunity(
    durations: &Spread,
    timeout_ms: Option<i64>,
    fails: i64,
    is_marked_slow: bool,
    rules: &TimeoutRules,
) -> Option<TimeoutOpportunity> {
    let enough = rules.recommended_floor_ms.max(rules.safety.saturating_mul(durations.p95));
    let enough = enough.max(durations.max.saturating_mul(6).saturating_add(4) / 5);
    let recommended_ms = enough.saturating_add(999) / 1000 * 1000;
    // 0 means that the test may take for ever.
    let timeout = timeout_ms.filter(|&timeout| timeout > 0);
    // How long a test may take at most is not known from a few runs; a mark is stale by any of them.
    let is_known = durations.count >= rules.min_runs;
    let is_oversized = timeout.filter(|_| is_known).is_some_and(|timeout| {
        timeout >= rules.floor_ms && timeout >= rules.factor.saturating_mul(durations.max)
    });
    let kind = if is_oversized {
        TimeoutKind::Oversized
    } else if is_marked_slow && durations.p95 < rules.slow_stale_p95_ms {
        TimeoutKind::StaleSlow
    } else {
        return None;
    };
    let less = match timeout {
        Some(timeout) if timeout <= recommended_ms => return None,
        Some(timeout) => timeout - recommended_ms,
        None => 0,
    };
    let saving_ms = fails.saturating_mul(less);
    let impact = saving_ms.saturating_mul(fails + 1).saturating_add(less / 1000);
    Some(TimeoutOpportunity { kind, recommended_ms, saving_ms, impact })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_needs_four_samples_and_a_tenth() {
        assert_eq!(Trend::of(&[100, 100, 200]), Trend::Stable);
        assert_eq!(Trend::of(&[100, 100, 111, 111]), Trend::Slower);
        assert_eq!(Trend::of(&[100, 100, 110, 110]), Trend::Stable);
        assert_eq!(Trend::of(&[100, 100, 90, 90]), Trend::Stable);
        assert_eq!(Trend::of(&[100, 100, 89, 89]), Trend::Faster);
        assert_eq!(Trend::of(&[100, 100, 100, 100, 145]), Trend::Slower, "the middle one is new");
    }

    #[test]
    fn a_spread_is_by_nearest_rank() {
        let durations: Vec<i64> = (1..=20).rev().collect();
        let spread = Spread::of(&durations).unwrap();
        assert_eq!(spread, Spread { count: 20, mean: 11, min: 1, max: 20, p50: 10, p95: 19 });
        assert_eq!(Spread::of(&[]), None);
    }

    fn opportunity(durations: &[i64], timeout: i64, fails: i64, slow: bool) -> Option<TimeoutOpportunity> {
        let spread = Spread::of(durations).unwrap();
        timeout_opportunity(&spread, Some(timeout), fails, slow, &TimeoutRules::default())
    }

    #[test]
    fn a_timeout_far_above_the_longest_run_could_be_shorter() {
        let found = opportunity(&[2_000, 2_100, 2_200, 2_300, 4_000], 30_000, 2, false).unwrap();
        assert_eq!((found.kind, found.recommended_ms), (TimeoutKind::Oversized, 8_000));
        assert_eq!((found.saving_ms, found.impact), (44_000, 132_022));
        assert_eq!(opportunity(&[2_000; 4], 30_000, 0, false), None, "too few runs");
        assert_eq!(opportunity(&[11_000; 5], 30_000, 0, false), None, "less than three times");
        assert_eq!(opportunity(&[100; 5], 19_000, 0, false), None, "below the floor");
        assert_eq!(opportunity(&[100; 5], 0, 3, false), None, "no timeout at all");
    }

    #[test]
    fn a_test_marked_slow_that_is_not_slow_is_stale() {
        let found = opportunity(&[9_000; 5], 20_000, 1, true).unwrap();
        assert_eq!(
            (found.kind, found.recommended_ms, found.saving_ms),
            (TimeoutKind::StaleSlow, 18_000, 2_000)
        );
        assert_eq!(opportunity(&[10_000; 5], 20_000, 1, true), None);
        assert_eq!(opportunity(&[9_000; 5], 15_000, 1, true), None, "it needs more than it has");
        assert_eq!(opportunity(&[9_000; 5], 18_000, 1, true), None, "it has what it needs");
        assert_eq!(
            opportunity(&[100], 60_000, 0, true).map(|found| found.kind),
            Some(TimeoutKind::StaleSlow)
        );
    }
}
