//! What a person would call a test.
//!
//! Invariant: codes follow the sort groups of outcomes, trouble first, so the
//! smaller of two categories is the one that needs attention.

use serde::{Serialize, Serializer};

use crate::status::Outcome;

/// The catalogue's category of a test in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
pub enum TestCategory {
    /// Failed or timed out.
    Failed = 1,
    /// Passed after a failed attempt.
    Flaky = 2,
    /// Interrupted.
    Interrupted = 3,
    /// Planned, never started.
    DidNotRun = 4,
    /// Skipped.
    Skipped = 5,
    /// Passed at the first attempt.
    Passed = 6,
    /// Never appeared in the lane: there is no state row.
    NeverRun = 7,
}

impl TestCategory {
    /// All categories by code.
    pub const ALL: [Self; 7] = [
        Self::Failed,
        Self::Flaky,
        Self::Interrupted,
        Self::DidNotRun,
        Self::Skipped,
        Self::Passed,
        Self::NeverRun,
    ];

    /// The category of a single outcome.
    #[must_use]
    pub const fn from_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Failed | Outcome::TimedOut => Self::Failed,
            Outcome::Flaky => Self::Flaky,
            Outcome::Interrupted => Self::Interrupted,
            Outcome::DidNotRun => Self::DidNotRun,
            Outcome::Skipped => Self::Skipped,
            Outcome::Passed => Self::Passed,
        }
    }

    /// The stored code, 1..=7.
    #[must_use]
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// Reads a stored code.
    #[must_use]
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.code() == code)
    }

    /// The spelling used in filters and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Flaky => "flaky",
            Self::Interrupted => "interrupted",
            Self::DidNotRun => "didnotrun",
            Self::Skipped => "skipped",
            Self::Passed => "passed",
            Self::NeverRun => "never-run",
        }
    }

    /// Reads a filter value.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.as_str() == text)
    }
}

impl Serialize for TestCategory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
