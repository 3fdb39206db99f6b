//! The exact form: attempts and commits of executions that were read, instead
//! of outcomes alone.

use super::filter::{Code, Filter, Posterior};

/// One decided execution of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactRun {
    /// The commit it tested; unknown counts as another one.
    pub commit: Option<String>,
    /// Its attempts in order, `true` for a failed one.
    pub attempts: Vec<bool>,
    /// Its run failed as a whole.
    pub is_mass_failure: bool,
}

/// Judges one series of decided executions, oldest first.
#[must_use]
pub fn assess_exact(runs: &[ExactRun]) -> Posterior {
    let mut filter = Filter::default();
    let mut before: Option<&str> = None;
    for run in runs {
        let commit = run.commit.as_deref();
        let code = if commit.is_some() && commit == before { Code::Same } else { Code::New };
        before = commit;
        if run.is_mass_failure {
            filter.skip(code);
        } else {
            filter.run(code, run.attempts.iter().copied());
        }
    }
    filter.posterior()
}
