//! Why a run is not green beyond its failed tests: its errors that belong to
//! no test, an end that came early, a failure that no test explains.

use crate::run_life::EndReason;
use crate::status::RunStatus;
use crate::totals::Totals;

/// What is known about how a run ended.
#[derive(Debug, Clone, Copy)]
pub struct RunEnd<'a> {
    /// Its status.
    pub status: RunStatus,
    /// Why it ended otherwise than by its results.
    pub end_reason: Option<EndReason>,
    /// Its totals.
    pub totals: &'a Totals,
    /// Number of its errors that belong to no test.
    pub errors: i64,
    /// Headline of the first of them.
    pub first_error: Option<&'a str>,
}

impl RunEnd<'_> {
    /// The reason in one line; `None` of a run that goes on, that passed, or
    /// whose failed tests say it all.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        if let Some(first) = self.first_error.filter(|_| self.errors > 0) {
            let others = self.errors - 1;
            return Some(match others {
                0 => first.to_owned(),
                1 => format!("{first} (and 1 more error)"),
                _ => format!("{first} (and {others} more errors)"),
            });
        }
        match self.status {
            RunStatus::Initializing | RunStatus::Running | RunStatus::Finalizing | RunStatus::Passed => None,
            RunStatus::Interrupted | RunStatus::Cancelled => Some(early_end(self.end_reason).to_owned()),
            RunStatus::TimedOut if self.is_cut_off() || self.totals.failed_tests == 0 => {
                Some("The run reached its global timeout before all tests had a result".to_owned())
            }
            RunStatus::Failed if self.totals.failed_tests == 0 => Some(if self.totals.flaky_tests > 0 {
                "The run failed although no test did; flaky tests may count as failures".to_owned()
            } else {
                "The run failed although no test did".to_owned()
            }),
            RunStatus::Failed | RunStatus::TimedOut => None,
        }
    }

    const fn is_cut_off(&self) -> bool {
        self.totals.interrupted_tests + self.totals.did_not_run_tests > 0
    }
}

const fn early_end(reason: Option<EndReason>) -> &'static str {
    match reason {
        None | Some(EndReason::Client) => "The run was interrupted before all tests had a result",
        Some(EndReason::User) => "The run was cancelled by a person",
        Some(EndReason::Superseded) => "The run was replaced by a newer one of the same pipeline",
        Some(EndReason::Stale) => "The connection to the test runner was lost",
        Some(EndReason::SetupTimeout) => "The global set-up did not finish in time",
        Some(EndReason::ShardsMissing) => "Some shards never started",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(status: RunStatus, totals: Totals, errors: i64) -> Option<String> {
        let first_error = (errors > 0).then_some("Global set-up failed: db is down");
        RunEnd { status, end_reason: None, totals: &totals, errors, first_error }.reason()
    }

    #[test]
    fn only_what_failed_tests_do_not_explain_has_a_reason() {
        let passed = Totals { total_tests: 2, passed_tests: 2, ..Totals::default() };
        let failed = Totals { total_tests: 2, passed_tests: 1, failed_tests: 1, ..Totals::default() };
        let flaky = Totals { flaky_tests: 1, ..passed };
        let cut_off = Totals { total_tests: 3, did_not_run_tests: 1, ..failed };
        for (status, totals, expected) in [
            (RunStatus::Passed, passed, None),
            (RunStatus::Running, passed, None),
            (RunStatus::Failed, failed, None),
            (RunStatus::TimedOut, failed, None),
            (RunStatus::Failed, cut_off, None),
            (RunStatus::TimedOut, cut_off, Some("The run reached its global timeout")),
            (RunStatus::TimedOut, passed, Some("The run reached its global timeout")),
            (RunStatus::Failed, passed, Some("The run failed although no test did")),
            (RunStatus::Failed, flaky, Some("The run failed although no test did; flaky")),
            (RunStatus::Interrupted, failed, Some("The run was interrupted")),
        ] {
            let found = reason(status, totals, 0);
            match expected {
                None => assert_eq!(found, None, "{status:?}"),
                Some(begin) => {
                    assert!(found.as_ref().is_some_and(|found| found.starts_with(begin)), "{found:?}")
                }
            }
        }
        assert_eq!(reason(RunStatus::Failed, failed, 1).unwrap(), "Global set-up failed: db is down");
        assert_eq!(
            reason(RunStatus::Failed, failed, 3).unwrap(),
            "Global set-up failed: db is down (and 2 more errors)"
        );
    }
}
