//! A run seen from other sides: by file, by worker and time, as what to run
//! again, and as what changed since it was green.

mod regression;
mod tested;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::rerun::{self, Target};
use callboard_domain::status::{Outcome, TestStatus};
use callboard_domain::test_state::ExecutionFlags as Flags;
use callboard_domain::time::Timestamp;
use callboard_domain::totals::Totals as StoredTotals;
use callboard_store::executions::brief::{self, TimeKey};
use callboard_store::executions::{self, ExecutionFilter, ExecutionOrder, FlagMask};
use callboard_store::{boxed, lanes, test_cases};
use serde::Serialize;
use utoipa::ToSchema;

use crate::executions::show;
use crate::page::{Slice, fetch};
use crate::runs::required_run;
use crate::shapes::Totals;
use crate::shapes::words::TestStatusWord;
use crate::{Context, Result};
use callboard_ingest::read_session_with_fresh_aggregates;

pub use regression::{
    CodePlace, CommitRange, MetadataDifference, RegressionContext, RunPlace, SinceGreen, regression_context,
    since_green,
};
pub use tested::{TestedCommit, TestedCommits, tested_since};

/// How files are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum SpecSort {
    /// Most failed tests first.
    #[default]
    Failed,
    /// Longest first.
    Duration,
    /// By path.
    File,
}

/// Place in a list of files: what it is sorted by, and the path.
pub type SpecKey = (i64, String);

/// The tests of one file in a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpecItem {
    /// File of the tests.
    pub file_path: String,
    /// Totals.
    #[serde(flatten)]
    pub totals: Totals,
    /// Sum over all attempts.
    pub duration: i64,
}

/// The files of a run; bounded by the run.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn specs(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    sort: SpecSort,
    after: Option<SpecKey>,
    limit: usize,
) -> Result<Slice<SpecItem, SpecKey>> {
    let mut session = ctx.store.db().read().await?;
    required_run(&mut session, project.get(), run).await?;
    let files = brief::by_file(&mut session, project.get(), run).await?;
    let mut items: Vec<SpecItem> = files
        .into_iter()
        .map(|(file_path, sums)| {
            let mut totals = StoredTotals::default();
            for (outcome, count) in sums.outcomes {
                totals.count(outcome, count);
            }
            SpecItem { file_path, totals: totals.into(), duration: sums.duration_ms }
        })
        .collect();
    let key = |item: &SpecItem| {
        let number = match sort {
            SpecSort::Failed => -item.totals.failed_tests,
            SpecSort::Duration => -item.duration,
            SpecSort::File => 0,
        };
        (number, item.file_path.clone())
    };
    items.retain(|item| after.as_ref().is_none_or(|after| key(item) > *after));
    items.sort_by_cached_key(key);
    Ok(Slice::cut(items, limit, key))
}

/// A test in the time line of a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineItem {
    /// Execution.
    pub execution_id: i64,
    /// Title of the test.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// Worker of the deciding attempt.
    pub worker_index: i64,
    /// Its slot among the parallel workers.
    pub parallel_index: Option<i64>,
    /// Its shard.
    pub shard_index: Option<i64>,
    /// Start of the earliest attempt.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// Sum over all attempts.
    pub duration: i64,
    /// Status.
    #[schema(value_type = TestStatusWord)]
    pub status: TestStatus,
    /// Passed after a failed attempt.
    pub flaky: bool,
}

/// What ran when, worker by worker. Tests that do not say when and where they
/// ran are left out.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn timeline(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    worker: Option<i64>,
    after: Option<TimeKey>,
    limit: usize,
) -> Result<Slice<TimelineItem, TimeKey>> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    required_run(&mut session, project, run).await?;
    let rows = brief::timeline(&mut session, project, run, worker, after, fetch(limit)).await?;
    let cases = rows.iter().map(|row| row.test_case.get()).collect();
    let cases = test_cases::get_many(&mut session, project, cases).await?;
    let key = |row: &brief::BriefRow| {
        let started = row.started_at.map_or(0, Timestamp::millis);
        (row.worker_index.unwrap_or_default(), started, row.id.get())
    };
    let rows = Slice::cut(rows, limit, key);
    let items = rows.items.iter().filter_map(|row| {
        let case = cases.get(&row.test_case)?;
        Some(TimelineItem {
            execution_id: row.id.get(),
            title: case.title.clone(),
            file_path: case.file_path.clone(),
            worker_index: row.worker_index?,
            parallel_index: row.parallel_index,
            shard_index: row.shard_index,
            started_at: row.started_at?,
            duration: row.total_duration_ms,
            status: row.outcome.status(),
            flaky: row.outcome == Outcome::Flaky,
        })
    });
    Ok(Slice { items: items.collect(), next: rows.next })
}

/// Which tests are to run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RerunSelect {
    /// Failed and timed out ones.
    #[default]
    Failed,
    /// Flaky ones.
    Flaky,
    /// Those that passed before and fail now.
    New,
    /// Those that were interrupted or never started.
    NotRun,
}

/// Tests to run again.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rerun {
    /// Number of tests, each in each browser project, those beyond `limit`
    /// included.
    pub count: i64,
    /// The tests, `limit` at most.
    pub items: Vec<RerunItem>,
    /// Runs the ones listed; empty when there are none.
    #[schema(example = "npx playwright test tests/cart.spec.ts:7")]
    pub command: String,
}

impl Rerun {
    /// Whether there are more tests than are listed.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        i64::try_from(self.items.len()).is_ok_and(|listed| listed < self.count)
    }
}

/// A test to run again.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RerunItem {
    /// `file:line`; the file alone when the line is not known.
    #[schema(example = "tests/cart.spec.ts:7")]
    pub target: String,
    /// Title of the test.
    pub title: String,
    /// Name of the browser project; empty when there is none.
    pub browser_project: String,
}

/// The tests of a run that are to run again, with the arguments that select
/// them.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn rerun(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    select: RerunSelect,
    limit: usize,
) -> Result<(Rerun, String)> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    required_run(&mut session, project, run).await?;
    let outcomes: &[Outcome] = match select {
        RerunSelect::Failed | RerunSelect::New => &[Outcome::Failed, Outcome::TimedOut],
        RerunSelect::Flaky => &[Outcome::Flaky],
        RerunSelect::NotRun => &[Outcome::DidNotRun, Outcome::Interrupted],
    };
    // As insights and gates count them: those in quarantine are known.
    let (new, aside) = (Flags::NEW_REGRESSION, Flags::QUARANTINED);
    let is_new = FlagMask { asked: new.set(aside, true).bits(), wanted: new.bits() };
    let filter = ExecutionFilter {
        outcomes: Some(outcomes.iter().map(|outcome| outcome.code()).collect()),
        flags: (select == RerunSelect::New).then_some(is_new),
        ..ExecutionFilter::default()
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows =
        executions::list(&mut session, project, run, &filter, &ExecutionOrder::Id(None), limit).await?;
    let listed = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let count = match listed == limit {
        true => executions::count(&mut session, project, run, &filter, i64::MAX).await?,
        false => listed,
    };
    let browsers = lanes::browsers(&mut session, project).await?;
    let tests = show(&mut session, project, &rows, &browsers).await?;
    let targets: Vec<Target> = tests
        .iter()
        .map(|test| Target {
            file_path: test.file_path.clone(),
            line: test.line,
            browser_project: test.browser_project.clone(),
        })
        .collect();
    let items = targets.iter().zip(&tests).map(|(target, test)| RerunItem {
        target: target.shown(),
        title: test.title.clone(),
        browser_project: test.browser_project.clone(),
    });
    let rerun = Rerun { count, items: items.collect(), command: rerun::command(&targets) };
    let arguments = rerun::arguments(&targets);
    Ok((rerun, arguments))
}
