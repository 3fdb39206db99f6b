//! How results look: every status, outcome and tendency has one tone, and a
//! tone is a word, a glyph and a colour together, never a colour alone.

use callboard_domain::status::{Outcome, RunStatus, TestStatus};
use callboard_query::projects::MenuEntry;
use callboard_query::shapes::{ExecutionItem, Tendency, TestCaseItem};

/// The look of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As expected.
    Passed,
    /// An assertion or an error.
    Failed,
    /// Ran out of time.
    TimedOut,
    /// Passed after a failed attempt.
    Flaky,
    /// Stopped while running.
    Interrupted,
    /// Skipped on purpose.
    Skipped,
    /// Planned, never started.
    DidNotRun,
    /// In progress.
    Running,
    /// Ended by a person or a newer run.
    Cancelled,
    /// Nothing is known yet.
    Unknown,
}

impl Tone {
    /// The class that carries the colour, which is also the glyph's name.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::TimedOut => "timedout",
            Self::Flaky => "flaky",
            Self::Interrupted => "interrupted",
            Self::Skipped => "skipped",
            Self::DidNotRun => "didnotrun",
            Self::Running => "running",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    /// Whether somebody may want to look into it.
    pub(crate) const fn is_trouble(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut | Self::Flaky | Self::Interrupted)
    }

    /// The word people read.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Passed => "Passed",
            Self::Failed => "Failed",
            Self::TimedOut => "Timed out",
            Self::Flaky => "Flaky",
            Self::Interrupted => "Interrupted",
            Self::Skipped => "Skipped",
            Self::DidNotRun => "Did not run",
            Self::Running => "Running",
            Self::Cancelled => "Cancelled",
            Self::Unknown => "No result yet",
        }
    }

    /// The look of a status, which flaky tests share with passed ones.
    pub(crate) const fn of_result(status: TestStatus, is_flaky: bool) -> Self {
        Self::of_outcome(Outcome::from_status(status, is_flaky))
    }

    /// The look of a stored outcome.
    pub(crate) const fn of_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Failed => Self::Failed,
            Outcome::TimedOut => Self::TimedOut,
            Outcome::Flaky => Self::Flaky,
            Outcome::Interrupted => Self::Interrupted,
            Outcome::DidNotRun => Self::DidNotRun,
            Outcome::Skipped => Self::Skipped,
            Outcome::Passed => Self::Passed,
        }
    }

    /// The tone of a test case's category, by its spelling in answers.
    pub(crate) fn of_category(category: &str) -> Self {
        match category {
            "flaky" => Self::Flaky,
            other => TestStatus::parse(other).map_or(Self::Unknown, |status| status.tone()),
        }
    }
}

/// A result of any kind.
pub(crate) trait Toned {
    /// Its look.
    fn tone(&self) -> Tone;

    /// Its word, where it is not the tone's own.
    fn word(&self) -> &'static str {
        self.tone().word()
    }
}

impl<T: Toned> Toned for &T {
    fn tone(&self) -> Tone {
        (*self).tone()
    }

    fn word(&self) -> &'static str {
        (*self).word()
    }
}

impl Toned for Tone {
    fn tone(&self) -> Tone {
        *self
    }
}

impl Toned for TestStatus {
    fn tone(&self) -> Tone {
        Tone::of_outcome(Outcome::from_status(*self, false))
    }
}

impl Toned for ExecutionItem {
    fn tone(&self) -> Tone {
        Tone::of_outcome(Outcome::from_status(self.status, self.flaky))
    }
}

impl Toned for TestCaseItem {
    fn tone(&self) -> Tone {
        Tone::of_category(self.category)
    }
}

impl Toned for RunStatus {
    fn tone(&self) -> Tone {
        match self {
            Self::Initializing | Self::Running | Self::Finalizing => Tone::Running,
            Self::Passed => Tone::Passed,
            Self::Failed => Tone::Failed,
            Self::TimedOut => Tone::TimedOut,
            Self::Interrupted => Tone::Interrupted,
            Self::Cancelled => Tone::Cancelled,
        }
    }
}

/// How a project stands: its tendency; where there are too few runs for one,
/// its latest run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing(pub Tendency, pub Option<RunStatus>);

impl Toned for Standing {
    fn tone(&self) -> Tone {
        match *self {
            Self(Tendency::Unknown, Some(status)) => status.tone(),
            Self(tendency, _) => tendency.tone(),
        }
    }

    fn word(&self) -> &'static str {
        match *self {
            Self(Tendency::Unknown, Some(status)) => status.word(),
            Self(tendency, _) => tendency.word(),
        }
    }
}

impl Toned for MenuEntry {
    fn tone(&self) -> Tone {
        Standing(self.tendency, self.latest).tone()
    }

    fn word(&self) -> &'static str {
        Standing(self.tendency, self.latest).word()
    }
}

impl Toned for Tendency {
    fn tone(&self) -> Tone {
        match self {
            Self::Unknown => Tone::Unknown,
            Self::Failing => Tone::Failed,
            Self::Flaky => Tone::Flaky,
            Self::Passing => Tone::Passed,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Unknown => "Too few runs to tell",
            Self::Failing => "Failing",
            Self::Flaky => "Unsteady",
            Self::Passing => "Passing",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::Asset;

    #[test]
    fn every_tone_has_a_glyph_and_a_colour() {
        let icons = include_str!("../assets/icons.svg");
        let styles = include_str!("../assets/styles/outcome.css");
        assert!(Asset::Icons.url().ends_with(".svg"));
        let runs = RunStatus::ALL.map(|status| status.tone());
        let tests = TestStatus::ALL.map(|status| status.tone());
        for tone in runs.into_iter().chain(tests).chain([Tone::Flaky, Tone::Unknown]) {
            let class = tone.class();
            assert!(icons.contains(&format!("id=\"{class}\"")), "glyph of {class}");
            assert!(styles.contains(&format!(".{class}")), "colour of {class}");
        }
    }
}
