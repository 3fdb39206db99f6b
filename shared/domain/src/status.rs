//! Statuses of runs and executions: their spellings on the wire, and the
//! codes under which executions and rollups store them.

use serde::{Deserialize, Serialize};

/// Where a run stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunStatus {
    /// Registered, tests have not begun.
    Initializing,
    /// Results are arriving.
    Running,
    /// Results are complete, files are still expected.
    Finalizing,
    /// Every test that counts passed.
    Passed,
    /// At least one test failed.
    Failed,
    /// The run as a whole ran out of time.
    TimedOut,
    /// The run ended before its tests did.
    Interrupted,
    /// A person or a newer run ended it.
    Cancelled,
}

impl RunStatus {
    /// All statuses, in the order of a run's life.
    pub const ALL: [Self; 8] = [
        Self::Initializing,
        Self::Running,
        Self::Finalizing,
        Self::Passed,
        Self::Failed,
        Self::TimedOut,
        Self::Interrupted,
        Self::Cancelled,
    ];

    /// The spelling used in SQL and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Running => "running",
            Self::Finalizing => "finalizing",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::TimedOut => "timedout",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads a stored spelling or a filter value; `timedOut`, `canceled` and
    /// `initialising` are accepted besides our own.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "timedOut" => Some(Self::TimedOut),
            "canceled" => Some(Self::Cancelled),
            "initialising" => Some(Self::Initializing),
            _ => Self::ALL.into_iter().find(|status| status.as_str() == text),
        }
    }

    /// Whether nothing more is expected to arrive.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Initializing | Self::Running | Self::Finalizing)
    }
}

impl Serialize for RunStatus {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// How one attempt or one execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TestStatus {
    /// As expected.
    Passed,
    /// An assertion or an error.
    Failed,
    /// The test's own timeout.
    TimedOut,
    /// The run stopped while it was running.
    Interrupted,
    /// Skipped on purpose.
    Skipped,
    /// Planned, never started.
    DidNotRun,
}

impl TestStatus {
    /// All statuses.
    pub const ALL: [Self; 6] =
        [Self::Passed, Self::Failed, Self::TimedOut, Self::Interrupted, Self::Skipped, Self::DidNotRun];

    /// The spelling used in SQL and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::TimedOut => "timedout",
            Self::Interrupted => "interrupted",
            Self::Skipped => "skipped",
            Self::DidNotRun => "didnotrun",
        }
    }

    /// Reads a stored spelling or a filter value (`timedOut` is accepted).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "timedOut" {
            return Some(Self::TimedOut);
        }
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Failed or timed out: what a person calls a red test.
    #[must_use]
    pub const fn is_failing(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }

    /// Order of badness, worst first: what decides among repetitions.
    #[must_use]
    pub const fn severity(self) -> u8 {
        match self {
            Self::Failed => 0,
            Self::TimedOut => 1,
            Self::Interrupted => 2,
            Self::Passed => 3,
            Self::Skipped => 4,
            Self::DidNotRun => 5,
        }
    }
}

impl Serialize for TestStatus {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for TestStatus {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&word).ok_or_else(|| serde::de::Error::custom("not a status of a test"))
    }
}

/// The outcome of an execution as executions and rollups store it: the status
/// with `flaky` (finally passed after a failed attempt) as a value of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i16)]
pub enum Outcome {
    /// Failed.
    Failed = 1,
    /// Timed out.
    TimedOut = 2,
    /// Passed after a failed attempt.
    Flaky = 3,
    /// Interrupted.
    Interrupted = 4,
    /// Planned, never started.
    DidNotRun = 5,
    /// Skipped.
    Skipped = 6,
    /// Passed at the first attempt.
    Passed = 7,
}

impl Outcome {
    /// All outcomes by code.
    pub const ALL: [Self; 7] = [
        Self::Failed,
        Self::TimedOut,
        Self::Flaky,
        Self::Interrupted,
        Self::DidNotRun,
        Self::Skipped,
        Self::Passed,
    ];

    /// Combines a status with the flaky flag.
    #[must_use]
    pub const fn from_status(status: TestStatus, flaky: bool) -> Self {
        match status {
            TestStatus::Failed => Self::Failed,
            TestStatus::TimedOut => Self::TimedOut,
            TestStatus::Interrupted => Self::Interrupted,
            TestStatus::DidNotRun => Self::DidNotRun,
            TestStatus::Skipped => Self::Skipped,
            TestStatus::Passed if flaky => Self::Flaky,
            TestStatus::Passed => Self::Passed,
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
        Self::ALL.into_iter().find(|outcome| outcome.code() == code)
    }

    /// The status on the wire: flaky answers `passed`.
    #[must_use]
    pub const fn status(self) -> TestStatus {
        match self {
            Self::Failed => TestStatus::Failed,
            Self::TimedOut => TestStatus::TimedOut,
            Self::Interrupted => TestStatus::Interrupted,
            Self::DidNotRun => TestStatus::DidNotRun,
            Self::Skipped => TestStatus::Skipped,
            Self::Flaky | Self::Passed => TestStatus::Passed,
        }
    }

    /// The stored sort group, trouble first: 1 failing, 2 flaky,
    /// 3 interrupted, 4 did not run, 5 skipped, 6 passed.
    #[must_use]
    pub const fn rank(self) -> i64 {
        match self {
            Self::Failed | Self::TimedOut => 1,
            Self::Flaky => 2,
            Self::Interrupted => 3,
            Self::DidNotRun => 4,
            Self::Skipped => 5,
            Self::Passed => 6,
        }
    }

    /// Whether the test gave a verdict at all (passed, flaky or failing).
    #[must_use]
    pub const fn is_decided(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut | Self::Flaky | Self::Passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_survive_storage() {
        for status in TestStatus::ALL {
            for flaky in [false, true] {
                let outcome = Outcome::from_status(status, flaky);
                assert_eq!(Outcome::from_code(outcome.code()), Some(outcome));
                assert_eq!(outcome.status(), status);
            }
        }
    }

    #[test]
    fn spellings_are_read_back() {
        for status in RunStatus::ALL {
            assert_eq!(RunStatus::parse(status.as_str()), Some(status));
        }
        for status in TestStatus::ALL {
            assert_eq!(TestStatus::parse(status.as_str()), Some(status));
        }
        assert_eq!(RunStatus::parse("timedOut"), Some(RunStatus::TimedOut));
        assert_eq!(RunStatus::parse("flaky"), None);
    }
}
