//! The `flags` column of an execution, and how it compares with the last
//! decided outcome of the same browser project in an earlier run.
//!
//! Invariant: without a known predecessor nothing is called new or fixed.

use super::{is_failing, is_passed};
use crate::status::Outcome;

/// A set of flag bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExecutionFlags(i64);

impl ExecutionFlags {
    /// Expected to fail and did.
    pub const EXPECTED_FAILURE: Self = Self(1);
    /// Fails now, passed before.
    pub const NEW_REGRESSION: Self = Self(2);
    /// Flaky now, passed at the first attempt before.
    pub const NEW_FLAKY: Self = Self(4);
    /// Passes now (perhaps after a retry), failed before.
    pub const FIXED: Self = Self(8);
    /// The test was in quarantine.
    pub const QUARANTINED: Self = Self(16);
    /// More attempts than are listed.
    pub const ATTEMPTS_DROPPED: Self = Self(32);
    /// A predecessor was known; without this bit the comparison says nothing.
    pub const BASELINE_KNOWN: Self = Self(64);
    /// The test is marked as slow.
    pub const MARKED_SLOW: Self = Self(128);
    /// The bits [`flags_for`] decides.
    pub const COMPARISON: Self =
        Self(Self::NEW_REGRESSION.0 | Self::NEW_FLAKY.0 | Self::FIXED.0 | Self::BASELINE_KNOWN.0);

    /// The stored number.
    #[must_use]
    pub const fn bits(self) -> i64 {
        self.0
    }

    /// Reads the stored number.
    #[must_use]
    pub const fn from_bits(bits: i64) -> Self {
        Self(bits)
    }

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the bits of `other` when `condition` holds, else without them.
    #[must_use]
    pub const fn set(self, other: Self, condition: bool) -> Self {
        Self(if condition { self.0 | other.0 } else { self.0 & !other.0 })
    }

    /// With the comparison bits of `comparison` instead of its own.
    #[must_use]
    pub const fn compared(self, comparison: Self) -> Self {
        Self(self.set(Self::COMPARISON, false).0 | (comparison.0 & Self::COMPARISON.0))
    }
}

/// Compares an outcome with the last decided one of the same browser project
/// in an earlier run ([`super::TestState::decided_before`]).
#[must_use]
pub fn flags_for(previous_decided: Option<Outcome>, now: Outcome) -> ExecutionFlags {
    let Some(previous) = previous_decided else {
        return ExecutionFlags::default();
    };
    ExecutionFlags::BASELINE_KNOWN
        .set(ExecutionFlags::NEW_REGRESSION, is_passed(previous) && is_failing(now))
        .set(ExecutionFlags::NEW_FLAKY, previous == Outcome::Passed && now == Outcome::Flaky)
        .set(ExecutionFlags::FIXED, is_failing(previous) && is_passed(now))
}
