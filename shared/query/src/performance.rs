//! Questions about durations: of runs over time, of the slowest tests, and of
//! folders.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::durations::{Spread, Trend};
use callboard_domain::ids::ProjectId;
use callboard_domain::status::RunStatus;
use callboard_domain::time::{Day, Timestamp};
use callboard_domain::totals::{mean, rate};
use callboard_store::boxed;
use callboard_store::rollups::scores::{self, Durations};
use callboard_store::rollups::{self, Folder};
use callboard_store::runs::RunFilter;
use callboard_store::test_cases;
use serde::Serialize;
use utoipa::ToSchema;

use crate::page::{Slice, fetch};
use crate::runs::{RunKey, RunQuery};
use crate::shapes::non_empty;
use crate::shapes::words::{RunStatusWord, TrendWord};
use crate::test_cases::LaneQuery;
use crate::{Context, Result, runs};
use callboard_ingest::read_session_with_fresh_aggregates;

/// Days of tests up to which a project is drawn file by file: so many rows are
/// read for it.
const DRAWN_TEST_DAYS: i64 = 6_000;

/// A run as a point of a chart.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunDuration {
    /// Run id.
    pub run_id: i64,
    /// Start of the run.
    #[schema(value_type = String, format = DateTime)]
    pub start_time: Timestamp,
    /// Wall clock, ms.
    pub duration: Option<i64>,
    /// Mean duration of its tests, ms.
    pub avg_test_duration: Option<i64>,
    /// Median of the durations of its tests, ms.
    pub p50_test_duration: Option<i64>,
    /// 90th percentile of the durations of its tests, ms.
    pub p90_test_duration: Option<i64>,
    /// 95th percentile of the durations of its tests, ms.
    pub p95_test_duration: Option<i64>,
    /// Status.
    #[schema(value_type = RunStatusWord)]
    pub status: RunStatus,
    /// Tests.
    pub total_tests: i64,
    /// Commit.
    pub commit: Option<String>,
    /// Branch.
    pub branch: Option<String>,
    /// Whether the whole suite was asked for.
    pub is_full_run: bool,
}

/// Which runs a chart of durations shows.
#[derive(Debug, Clone, Default)]
pub struct DurationsQuery {
    /// Branch and environment.
    pub lane: LaneQuery,
    /// Started at this moment or later.
    pub from: Option<Timestamp>,
    /// Started before this moment.
    pub before: Option<Timestamp>,
    /// Only full, or only partial runs.
    pub full_runs: Option<bool>,
    /// Key of the oldest row of the page before.
    pub after: Option<RunKey>,
}

/// The newest finished runs, the oldest of the page first.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn of_runs(
    ctx: &Context,
    scope: &Scope,
    project: Authorized<ProjectId>,
    query: &DurationsQuery,
    limit: usize,
) -> Result<Slice<RunDuration, RunKey>> {
    if query.full_runs.is_none() {
        return newest(ctx, project, query, limit).await;
    }
    let query = RunQuery {
        projects: vec![project.get()],
        branches: query.lane.branch.iter().cloned().collect(),
        environments: query.lane.environment.iter().cloned().collect(),
        from: query.from,
        before: query.before,
        full_runs: query.full_runs,
        finished: true,
        after: query.after,
        ..RunQuery::default()
    };
    let mut found = runs::list(ctx, scope, &query, limit).await?;
    found.items.reverse();
    Ok(found.map(|run| RunDuration {
        run_id: run.brief.id,
        start_time: run.brief.start_time,
        duration: run.brief.duration,
        avg_test_duration: run.avg_test_duration,
        p50_test_duration: run.p50_test_duration,
        p90_test_duration: run.p90_test_duration,
        p95_test_duration: run.p95_test_duration,
        status: run.brief.status,
        total_tests: run.brief.totals.total_tests,
        commit: run.brief.commit,
        branch: run.brief.branch,
        is_full_run: run.brief.is_full_run,
    }))
}

/// The same of full and partial runs together, which one index leads to: only
/// what the chart shows is read.
async fn newest(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &DurationsQuery,
    limit: usize,
) -> Result<Slice<RunDuration, RunKey>> {
    let wanted = RunFilter {
        branch: query.lane.branch.clone(),
        environment: query.lane.environment.clone(),
        from: query.from,
        before: query.before,
        finished: true,
        after: query.after,
        ..RunFilter::default()
    };
    let mut session = ctx.store.db().read().await?;
    let rows = callboard_store::runs::durations(&mut session, project.get(), &wanted, fetch(limit)).await?;
    let mut found = Slice::cut(rows, limit, |run| (run.order_at.millis(), run.id.get()));
    found.items.reverse();
    Ok(found.map(|run| RunDuration {
        run_id: run.id.get(),
        start_time: run.start_time,
        duration: run.duration_ms,
        avg_test_duration: run.test_durations.mean,
        p50_test_duration: run.test_durations.p50,
        p90_test_duration: run.test_durations.p90,
        p95_test_duration: run.test_durations.p95,
        status: run.status,
        total_tests: run.total_tests,
        commit: run.commit_sha,
        branch: non_empty(&run.branch),
        is_full_run: run.is_full,
    }))
}

/// Which executions a list of durations looks at.
#[derive(Debug, Clone, Default)]
pub struct NewestQuery {
    /// Branch and environment.
    pub lane: LaneQuery,
    /// Newest passed executions of each test.
    pub runs: usize,
    /// Only tests that ran on this day or later.
    pub since: Option<Day>,
}

/// A test by how long it takes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlowTest {
    /// Test case id.
    pub test_case_id: i64,
    /// Title.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// Mean duration of its passed executions, ms.
    pub avg_duration: i64,
    /// The shortest, ms.
    pub min_duration: i64,
    /// The longest, ms.
    pub max_duration: i64,
    /// 95th percentile (nearest rank), ms.
    pub p95_duration: i64,
    /// Passed executions these numbers are about.
    pub run_count: i64,
    /// Duration of the newest of them, ms.
    pub latest_duration: i64,
    /// faster, slower or stable: the newer half against the older one.
    #[schema(value_type = TrendWord)]
    pub trend: Trend,
}

/// The slowest tests of a lane by the mean of their newest passed
/// executions. Bounded by the tests of the project, whatever their history.
/// The key is the mean and the id of the last test seen.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn slow_tests(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &NewestQuery,
    after: Option<(i64, i64)>,
    limit: usize,
) -> Result<Slice<SlowTest, (i64, i64)>> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let Some(lane) = query.lane.find(&mut session, project).await? else {
        return Ok(Slice { items: Vec::new(), next: None });
    };
    let found = scores::durations(&mut session, project, lane, query.runs, query.since).await?;
    let mut tests: Vec<(Spread, Durations)> =
        found.into_iter().filter_map(|test| Some((Spread::from_durations(&test.passed_ms)?, test))).collect();
    let key = |(spread, test): &(Spread, Durations)| (Reverse(spread.mean), test.case.get());
    if let Some((mean, id)) = after {
        tests.retain(|test| key(test) > (Reverse(mean), id));
    }
    tests.sort_unstable_by_key(key);
    tests.truncate(limit + 1);
    let page = Slice::cut(tests, limit, |(spread, test)| (spread.mean, test.case.get()));
    let ids = page.items.iter().map(|(_, test)| test.case.get()).collect();
    let mut cases = test_cases::get_many(&mut session, project, ids).await?;
    let items = page.items.into_iter().filter_map(|(spread, test)| {
        let case = cases.remove(&test.case)?;
        Some(SlowTest {
            test_case_id: case.id.get(),
            title: case.title,
            file_path: case.file_path,
            suite_path: case.suite_path,
            avg_duration: spread.mean,
            min_duration: spread.min,
            max_duration: spread.max,
            p95_duration: spread.p95,
            run_count: spread.count,
            latest_duration: *test.passed_ms.last()?,
            trend: Trend::from_durations(&test.passed_ms),
        })
    });
    Ok(Slice { items: items.collect(), next: page.next })
}

/// A folder of tests, or one of its files.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpecHealth {
    /// The first two segments of the paths of its tests; a test that lies less deep counts in its folder.
    /// The whole path where the files of one folder were asked for.
    #[schema(example = "tests/checkout")]
    pub prefix: String,
    /// Passed / (passed + failed).
    pub pass_rate: Option<f64>,
    /// Passed on a retry / (passed + failed).
    pub flaky_rate: Option<f64>,
    /// Failed or timed out executions.
    pub failure_count: i64,
    /// Tests that ran.
    pub test_count: i64,
    /// Executions.
    pub execution_count: i64,
    /// Mean duration of passed executions, ms.
    pub avg_duration: Option<i64>,
}

impl SpecHealth {
    fn from_folder(Folder { prefix, counts, tests, files: _ }: Folder) -> Self {
        Self {
            prefix,
            pass_rate: rate(counts.passed, counts.passed + counts.failed),
            flaky_rate: rate(counts.flaky, counts.passed + counts.failed),
            failure_count: counts.failed,
            test_count: tests,
            execution_count: counts.runs,
            avg_duration: mean(counts.dur_sum, counts.dur_n),
        }
    }
}

/// What a list of folders or files comes to on all its pages together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpecTotals {
    /// Folders, or files where those of one folder were asked for.
    pub rows: i64,
    /// Files whose tests ran.
    pub files: i64,
    /// Tests that ran.
    pub tests: i64,
}

/// How folders are sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum SpecSort {
    /// By name.
    #[default]
    Prefix,
    /// Least steady first.
    PassRate,
    /// Most flaky first.
    FlakyRate,
}

impl SpecSort {
    /// Rates are compared in parts of ten thousand, as they are shown; folders
    /// without a rate come last.
    fn key(self, folder: &Folder) -> i64 {
        let decided = folder.counts.passed + folder.counts.failed;
        let parts = |part: i64| if decided > 0 { part * 10_000 / decided } else { -1 };
        match self {
            Self::Prefix => 0,
            Self::PassRate if decided == 0 => i64::MAX,
            Self::PassRate => parts(folder.counts.passed),
            Self::FlakyRate => -parts(folder.counts.flaky),
        }
    }
}

/// Which folders or files are asked for, over which days.
#[derive(Debug, Clone)]
pub struct SpecQuery {
    /// Where their tests ran.
    pub lane: LaneQuery,
    /// The first and the last day.
    pub days: (Day, Day),
    /// The folder whose files are wanted; `None` for the folders.
    pub folder: Option<String>,
    /// Order.
    pub sort: SpecSort,
}

/// Folders over some days, or the files of one of them. Bounded by the days and
/// by the tests of the project. The key is what the list is sorted by, and the
/// name; beside the page stands what all pages come to.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn spec_health(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &SpecQuery,
    after: Option<(i64, String)>,
    limit: usize,
) -> Result<(Slice<SpecHealth, (i64, String)>, SpecTotals)> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let Some(lane) = query.lane.find(&mut session, project).await? else {
        return Ok((Slice { items: Vec::new(), next: None }, SpecTotals::default()));
    };
    let found = match &query.folder {
        None => rollups::folders(&mut session, project, lane, query.days).await?,
        Some(folder) => rollups::files(&mut session, project, lane, query.days, Some(folder)).await?,
    };
    let totals = found.iter().fold(SpecTotals::default(), |sum, folder| SpecTotals {
        rows: sum.rows + 1,
        files: sum.files + folder.files,
        tests: sum.tests + folder.tests,
    });
    let mut keyed: Vec<((i64, String), Folder)> =
        found.into_iter().map(|folder| ((query.sort.key(&folder), folder.prefix.clone()), folder)).collect();
    if let Some(after) = &after {
        keyed.retain(|(key, _)| key > after);
    }
    keyed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    keyed.truncate(limit + 1);
    let page = Slice::cut(keyed, limit, |(key, _)| key.clone());
    Ok((page.map(|(_, folder)| SpecHealth::from_folder(folder)), totals))
}

/// The files of all folders by the folder they count in, for a project that is
/// small enough to be drawn file by file; of a larger one nothing.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn spec_files(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &SpecQuery,
    totals: SpecTotals,
) -> Result<BTreeMap<String, Vec<SpecHealth>>> {
    let mut found: BTreeMap<String, Vec<SpecHealth>> = BTreeMap::new();
    let days = query.days.1.0 - query.days.0.0 + 1;
    if totals.tests * days > DRAWN_TEST_DAYS {
        return Ok(found);
    }
    let mut session = ctx.store.db().read().await?;
    let Some(lane) = query.lane.find(&mut session, project.get()).await? else { return Ok(found) };
    for file in rollups::files(&mut session, project.get(), lane, query.days, None).await? {
        let folder = rollups::folder_of(&file.prefix).to_owned();
        found.entry(folder).or_default().push(SpecHealth::from_folder(file));
    }
    Ok(found)
}
