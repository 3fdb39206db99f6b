//! How a test of one run compares with the same test of another: matched by
//! test case and browser project.
//!
//! Invariant: every pair has exactly one class, and status goes before
//! duration: what failed is never called slower.

use serde::{Serialize, Serializer};

use crate::status::Outcome;

/// Durations closer than this are the same, milliseconds: below it noise of
/// the machine is larger than anything a test can tell.
pub const LEAST_DELTA_MS: i64 = 500;

/// Part of the base duration, percent, that a difference has to reach.
const LEAST_DELTA_PERCENT: i64 = 20;

/// The class of a pair, those that need somebody first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Fails now and did not before.
    NewFailure,
    /// Fails in both.
    StillFailing,
    /// Failed before, passes now, perhaps after a retry.
    Fixed,
    /// Flaky now, passed at the first attempt before.
    NewFlaky,
    /// Only in the newer run.
    Added,
    /// Only in the older run.
    Removed,
    /// Passed in both, and takes notably longer.
    Slower,
    /// Passed in both, and takes notably less time.
    Faster,
    /// None of these.
    Unchanged,
}

impl Change {
    /// All classes.
    pub const ALL: [Self; 9] = [
        Self::NewFailure,
        Self::StillFailing,
        Self::Fixed,
        Self::NewFlaky,
        Self::Added,
        Self::Removed,
        Self::Slower,
        Self::Faster,
        Self::Unchanged,
    ];

    /// The spelling in filters and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NewFailure => "newFailure",
            Self::StillFailing => "stillFailing",
            Self::Fixed => "fixed",
            Self::NewFlaky => "newFlaky",
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Unchanged => "unchanged",
        }
    }

    /// Reads a filter value.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|change| change.as_str() == text)
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A test as one run saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// How it ended.
    pub outcome: Outcome,
    /// Duration of the deciding attempt, milliseconds.
    pub duration_ms: i64,
}

/// The class of a pair; `None` for a pair of nothing.
#[must_use]
pub const fn classify(base: Option<Side>, head: Option<Side>) -> Option<Change> {
    let (base, head) = match (base, head) {
        (Some(base), Some(head)) => (base, head),
        (Some(_), None) => return Some(Change::Removed),
        (None, Some(_)) => return Some(Change::Added),
        (None, None) => return None,
    };
    let (failed, fails) = (is_failing(base.outcome), is_failing(head.outcome));
    Some(if fails {
        if failed { Change::StillFailing } else { Change::NewFailure }
    } else if !is_passed(head.outcome) {
        Change::Unchanged
    } else if failed {
        Change::Fixed
    } else if matches!(head.outcome, Outcome::Flaky) && matches!(base.outcome, Outcome::Passed) {
        Change::NewFlaky
    } else if is_alike(base.outcome, head.outcome) && is_notable(base.duration_ms, head.duration_ms) {
        if head.duration_ms > base.duration_ms { Change::Slower } else { Change::Faster }
    } else {
        Change::Unchanged
    })
}

/// Whether two durations differ by at least 500 ms and 20 % of the first.
#[must_use]
pub const fn is_notable(before_ms: i64, now_ms: i64) -> bool {
    let delta = now_ms.saturating_sub(before_ms).saturating_abs();
    delta >= LEAST_DELTA_MS && delta.saturating_mul(100) >= before_ms.saturating_mul(LEAST_DELTA_PERCENT)
}

/// Whether both passed, each at the first attempt or each after a retry: one
/// that needs no retry any more is not what a faster test is.
const fn is_alike(base: Outcome, head: Outcome) -> bool {
    matches!((base, head), (Outcome::Passed, Outcome::Passed) | (Outcome::Flaky, Outcome::Flaky))
}

const fn is_passed(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Passed | Outcome::Flaky)
}

const fn is_failing(outcome: Outcome) -> bool {
    outcome.status().is_failing()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn side(outcome: Outcome, duration_ms: i64) -> Option<Side> {
        Some(Side { outcome, duration_ms })
    }

    #[test]
    fn status_decides_before_duration() {
        use Outcome::{Failed, Flaky, Passed, Skipped, TimedOut};
        for (base, head, expected) in [
            (Passed, Failed, Change::NewFailure),
            (Flaky, TimedOut, Change::NewFailure),
            (Skipped, Failed, Change::NewFailure),
            (TimedOut, Failed, Change::StillFailing),
            (Failed, Passed, Change::Fixed),
            (TimedOut, Flaky, Change::Fixed),
            (Passed, Flaky, Change::NewFlaky),
            (Flaky, Flaky, Change::Slower),
            (Flaky, Passed, Change::Unchanged),
            (Passed, Passed, Change::Slower),
            (Failed, Skipped, Change::Unchanged),
            (Skipped, Passed, Change::Unchanged),
        ] {
            let found = classify(side(base, 100), side(head, 10_000));
            assert_eq!(found, Some(expected), "{base:?} then {head:?}");
        }
        assert_eq!(classify(None, side(Failed, 1)), Some(Change::Added));
        assert_eq!(classify(side(Failed, 1), None), Some(Change::Removed));
        assert_eq!(classify(None, None), None);
    }

    #[test]
    fn a_difference_counts_from_half_a_second_and_a_fifth_on() {
        let passed = |base, head| classify(side(Outcome::Passed, base), side(Outcome::Passed, head));
        assert_eq!(passed(1000, 1500), Some(Change::Slower));
        assert_eq!(passed(1000, 1499), Some(Change::Unchanged));
        assert_eq!(passed(10_000, 11_999), Some(Change::Unchanged));
        assert_eq!(passed(10_000, 12_000), Some(Change::Slower));
        assert_eq!(passed(10_000, 8_000), Some(Change::Faster));
        assert_eq!(passed(0, 500), Some(Change::Slower));
    }

    #[test]
    fn words_lead_back_to_their_class() {
        for change in Change::ALL {
            assert_eq!(Change::parse(change.as_str()), Some(change));
        }
        assert_eq!(Change::parse("newfailure"), None);
    }

    proptest! {
        #[test]
        fn going_back_undoes_what_going_forth_did(
            base in proptest::sample::select(Outcome::ALL.to_vec()),
            head in proptest::sample::select(Outcome::ALL.to_vec()),
            before in 0..100_000_i64, now in 0..100_000_i64,
        ) {
            let forth = classify(side(base, before), side(head, now));
            let back = classify(side(head, now), side(base, before));
            prop_assert_eq!(forth == Some(Change::StillFailing), back == Some(Change::StillFailing));
            if forth == Some(Change::Fixed) {
                prop_assert_eq!(back, Some(Change::NewFailure));
            }
            prop_assert_eq!(classify(side(base, before), side(base, before)).map(|change| matches!(
                change, Change::Unchanged | Change::StillFailing)), Some(true));
        }
    }
}
