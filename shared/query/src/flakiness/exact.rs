//! What all attempts and commits of one series say about a test: more than its
//! recent history, which keeps one outcome per run, and asked for one test at a
//! time.

use callboard_domain::attempts::{Attempt, AttemptFacts, AttemptSet};
use callboard_domain::flakiness::{ExactRun, Posterior, judge_exactly};
use callboard_domain::ids::{ExecutionId, ProjectId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::time::{Day, Timestamp};
use callboard_store::StoreError;
use callboard_store::db::Session;
use callboard_store::executions::{HistoryFilter, TriedExecution, Walk};

use crate::Result;

/// Newest decided executions of a series that are judged.
const RUNS: i64 = 200;

/// A test in one browser project, up to one of its executions.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) project: ProjectId,
    pub(crate) test_case: TestCaseId,
    pub(crate) browser: i64,
    /// Only runs of these lanes.
    pub(crate) lanes: Option<Vec<i64>>,
    /// The newest one that counts: start of its run, and its id.
    pub(crate) until: (Timestamp, ExecutionId),
    /// Nothing is older.
    pub(crate) first_seen: Day,
    /// Whether executions that failed in the end are believed.
    pub(crate) failures: bool,
}

impl Series {
    /// Judges it after its newest execution.
    pub(crate) async fn posterior(&self, session: &mut Session) -> Result<Posterior> {
        let decided = Outcome::ALL.into_iter().filter(|outcome| outcome.is_decided());
        let (order_at, newest) = self.until;
        let wanted = HistoryFilter {
            lanes: self.lanes.clone(),
            browser: Some(self.browser),
            outcomes: Some(decided.map(Outcome::code).collect()),
            // Of this key and what comes after it nothing is read.
            after: Some((order_at.millis(), newest.get() + 1)),
            ..HistoryFilter::default()
        };
        let walk = Walk {
            project: self.project,
            test_case: self.test_case,
            wanted: &wanted,
            newest: order_at.day(),
            first_seen: self.first_seen,
            limit: RUNS,
        };
        let tried = walk.tried(session).await?;
        let mut exact = Vec::with_capacity(tried.len());
        for row in tried.iter().rev() {
            let decision = attempts_of(row)?.decide();
            exact.push(ExactRun {
                commit: row.commit.as_deref(),
                has_failed: decision.as_ref().is_some_and(|decision| decision.status.is_failing()),
                tries: decision.map(|decision| decision.tries()).unwrap_or_default(),
                is_mass_failure: row.is_mass_failure,
            });
        }
        Ok(judge_exactly(exact, self.failures))
    }
}

/// The attempts of an execution; of one that had only one, what its row says.
fn attempts_of(row: &TriedExecution) -> Result<AttemptSet> {
    if let Some(json) = &row.attempts {
        let attempts = AttemptSet::from_json(json);
        return Ok(attempts.map_err(|_| StoreError::Damaged("the attempts of an execution"))?);
    }
    Ok(AttemptSet::single(Attempt {
        retry: u32::try_from(row.retries).unwrap_or_default(),
        repetition: None,
        generation: 0,
        status: row.outcome.status(),
        duration_ms: 0,
        started_at: None,
        flaky_claimed: false,
        facts: AttemptFacts::default(),
        evidence: None,
        is_summary: false,
    }))
}
