//! What all attempts and commits of one series say about a test: more than its
//! recent history, which keeps one outcome per run, and asked for one test at a
//! time.

use std::collections::{BTreeSet, HashMap};

use callboard_domain::flakiness::{ExactRun, Posterior, judge_exactly};
use callboard_domain::ids::{ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::time::{Day, Timestamp};
use callboard_store::db::Session;
use callboard_store::executions::{self, HistoryFilter};
use callboard_store::runs::{self, RunRow};

use crate::Result;
use crate::ingest::stored_attempts;

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
        let day = order_at.day();
        let history =
            executions::history(session, self.project, self.test_case, &wanted, day, self.first_seen, RUNS)
                .await?;
        let ids: BTreeSet<i64> = history.rows.iter().map(|(_, row)| row.run.get()).collect();
        let runs = runs::get_many(session, self.project, ids.into_iter().collect()).await?;
        let runs: HashMap<RunId, RunRow> = runs.into_iter().map(|run| (run.id, run)).collect();
        let mut exact = Vec::with_capacity(history.rows.len());
        for (_, row) in history.rows.iter().rev() {
            let run = runs.get(&row.run);
            exact.push(ExactRun {
                commit: run.and_then(|run| run.commit_sha.as_deref()),
                tries: stored_attempts(row)?.decide().map(|decided| decided.tries()).unwrap_or_default(),
                is_mass_failure: run.is_some_and(|run| run.is_mass_failure),
            });
        }
        Ok(judge_exactly(exact, self.failures))
    }
}
