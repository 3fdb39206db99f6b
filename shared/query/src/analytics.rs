//! Widgets over several projects, from daily counts and stored states. The
//! projects of a widget are bounded; days are those of UTC.

mod browsers;
mod insights;
mod landscape;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::ids::ProjectId;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Day;
use callboard_domain::totals::{mean, rate};
use callboard_store::boxed;
use callboard_store::db::Session;
use callboard_store::projects::ProjectRow;
use callboard_store::rollups::{self, DaySpan, LaneOfEach, RunContribution, Windows};
use serde::Serialize;
use utoipa::ToSchema;

use crate::daily::sum;
use crate::flakiness::{self, FlakyTest, Sort};
use crate::projects::{self, Told};
use crate::shapes::{ProjectRef, RunBrief, Tendency};
use crate::test_cases::LaneQuery;
use crate::{Context, Result};
use callboard_ingest::read_session_with_fresh_aggregates_in;

pub use browsers::{BrowserMatrix, BrowserRow, browser_matrix};
pub use insights::{InsightItem, insights};
pub use landscape::{ClusterLandscape, ErrorTypeCount, cluster_landscape};

/// Projects a widget looks at, the most recently active ones.
const MOST_PROJECTS: usize = 100;
/// Projects of which a share of the waste is told.
const WASTEFUL: usize = 8;

/// What a widget is asked for.
#[derive(Debug, Clone, Default)]
pub struct WidgetQuery {
    /// Branch and environment.
    pub lane: LaneQuery,
    /// Days up to today.
    pub days: i64,
    /// Only full, or only partial runs.
    pub full_runs: Option<bool>,
    /// Only these projects.
    pub projects: Vec<ProjectId>,
    /// Rows of a list.
    pub limit: usize,
}

impl WidgetQuery {
    pub(crate) fn span(&self, today: Day) -> DaySpan {
        DaySpan { since: Day(today.0 - self.days + 1), until: today, full: self.full_runs }
    }

    /// The window and the equal one before it.
    fn with_before(&self, today: Day) -> DaySpan {
        DaySpan { since: Day(today.0 - 2 * self.days + 1), until: today, full: self.full_runs }
    }

    /// The lane asked for, of each of some projects.
    fn lane_of_each(&self, projects: Vec<i64>) -> LaneOfEach {
        LaneOfEach { projects, lane: self.lane.key() }
    }

    pub(crate) fn scope(&self, scope: &Scope) -> Scope {
        if self.projects.is_empty() {
            scope.clone()
        } else {
            scope.narrowed_to(self.projects.iter().copied())
        }
    }
}

/// The projects that a widget looks at, the most recently active ones of those
/// the caller sees. Reading them is the only way to have some.
#[derive(Debug)]
pub struct SeenProjects {
    rows: Vec<ProjectRow>,
    references: Vec<ProjectRef>,
}

impl SeenProjects {
    /// Reads them.
    ///
    /// # Errors
    /// [`QueryError::Store`](crate::QueryError::Store).
    pub async fn load(ctx: &Context, scope: &Scope, query: &WidgetQuery) -> Result<Self> {
        let rows = projects::recent(ctx, &query.scope(scope), MOST_PROJECTS).await?;
        Ok(Self { references: rows.iter().map(ProjectRef::from_row).collect(), rows })
    }

    pub(crate) fn ids(&self) -> Vec<ProjectId> {
        self.rows.iter().map(|project| project.id).collect()
    }

    pub(crate) fn keys(&self) -> Vec<i64> {
        self.rows.iter().map(|project| project.id.get()).collect()
    }
}

/// A project of the portfolio.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortfolioItem {
    /// The project.
    pub project: ProjectRef,
    /// Finished runs of the window.
    pub run_count: i64,
    /// Passed / (passed + failed) tests.
    pub pass_rate: Option<f64>,
    /// How much more than in the equal window before.
    pub pass_rate_delta: Option<f64>,
    /// Tests that are flaky with a probability of nine in ten; a thousand at most.
    pub flaky_tests: i64,
    /// Mean wall clock of its runs, ms.
    pub avg_run_duration: Option<i64>,
    /// Failure clusters that wait for a repair.
    pub open_clusters: i64,
    /// Newest full runs in a row that failed, 20 at most: of the branch that is
    /// asked for, or else of the one the project is judged by. What was ended
    /// before it was through says neither.
    pub failing_streak: i64,
    /// The newest of the recent runs.
    pub latest_run: Option<RunBrief>,
    /// Newest runs of the branch that is asked for, or of all, oldest first, 20
    /// at most.
    pub recent_runs: Vec<RunBrief>,
    /// The branch its streak counts, empty for runs without one; none where
    /// nothing tells which.
    #[serde(skip)]
    pub judged_branch: Option<String>,
    /// How it has been doing there, and how the newest run that says so ended;
    /// for drawings.
    #[serde(skip)]
    pub standing: (Tendency, Option<RunStatus>),
}

/// Projects side by side, the most recently active first.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn portfolio(
    ctx: &Context,
    scope: &Scope,
    query: &WidgetQuery,
    today: Day,
) -> Result<Vec<PortfolioItem>> {
    let environment = query.lane.environment.as_deref();
    let found = projects::overview(ctx, &query.scope(scope), environment, None, query.limit).await?;
    let ids: Vec<ProjectId> = found.items.iter().map(|item| ProjectId(item.reference.id)).collect();
    let mut session = read_session_with_fresh_aggregates_in(ctx, Some(&ids)).await?;
    let mut of_branch = match query.lane.branch.as_deref() {
        Some(branch) => {
            let ids = found.items.iter().map(|overview| overview.reference.id).collect();
            Some(projects::of_branch(&mut session, ids, branch, environment).await?)
        }
        None => None,
    };
    let flaky = flakiness::counts_in(&mut session, &ids, &query.lane).await?;
    let windows = windows(&mut session, &ids, query, today).await?;
    let mut items = Vec::with_capacity(found.items.len());
    for overview in found.items {
        let project = ProjectId(overview.reference.id);
        let (told, recent_runs, judged) = match &mut of_branch {
            Some(of_branch) => {
                let (told, runs) = of_branch.remove(&project).unwrap_or_default();
                (told, runs, query.lane.branch.clone())
            }
            None => {
                let told =
                    Told { tendency: overview.tendency, run: overview.telling_run, streak: overview.streak };
                let judged = told.run.as_ref().map(|run| run.branch.clone().unwrap_or_default());
                (told, overview.recent_runs, judged)
            }
        };
        let Windows { now, before } = windows.get(&project).copied().unwrap_or_default();
        let (pass_rate, earlier) = (now.totals.pass_rate(), before.totals.pass_rate());
        let delta = pass_rate.zip(earlier).map(|(now, before)| (now - before) * 10_000.0);
        let is_telling = |run: &&RunBrief| {
            let branch = run.branch.as_deref().unwrap_or_default();
            run.status.is_final() && judged.as_deref().is_none_or(|judged| judged == branch)
        };
        let latest = || recent_runs.iter().rev().find(is_telling).map(|run| run.status);
        let standing = (told.tendency, told.run.map(|run| run.status).or_else(latest));
        items.push(PortfolioItem {
            run_count: now.runs,
            pass_rate,
            pass_rate_delta: delta.map(|delta| delta.round() / 10_000.0),
            flaky_tests: flaky.get(&project).copied().unwrap_or(0),
            avg_run_duration: mean(now.run_ms, now.runs),
            open_clusters: overview.open_clusters,
            failing_streak: told.streak.runs,
            latest_run: recent_runs.last().cloned(),
            recent_runs,
            judged_branch: judged,
            standing,
            project: overview.reference,
        });
    }
    Ok(items)
}

/// What each of some projects did in the window asked for and in the one before.
async fn windows(
    session: &mut Session,
    projects: &[ProjectId],
    query: &WidgetQuery,
    today: Day,
) -> Result<HashMap<ProjectId, Windows>> {
    let lanes = query.lane_of_each(projects.iter().map(|project| project.get()).collect());
    let (both, now) = (query.with_before(today), query.span(today).since);
    Ok(rollups::windows_of_each(session, lanes, both, now).await?)
}

/// What some projects did in a window and in the equal one before it, for every
/// widget that shows sums of them.
#[derive(Debug)]
pub struct Period {
    since: Day,
    /// Days with runs, those before the window included.
    days: Vec<(Day, RunContribution)>,
    /// The most recently active projects with what they did in the window.
    projects: Vec<(ProjectRef, RunContribution)>,
}

impl Period {
    /// Reads it.
    ///
    /// # Errors
    /// [`QueryError::Store`](crate::QueryError::Store).
    #[boxed]
    pub async fn load(ctx: &Context, seen: &SeenProjects, query: &WidgetQuery, today: Day) -> Result<Self> {
        let mut session = ctx.store.db().read().await?;
        let lanes = query.lane_of_each(seen.keys());
        let days = rollups::days_together(&mut session, lanes, query.with_before(today)).await?;
        let windows = windows(&mut session, &seen.ids(), query, today).await?;
        let now = |project: &ProjectRef| windows.get(&ProjectId(project.id)).copied().unwrap_or_default().now;
        let projects = seen.references.iter().map(|project| (project.clone(), now(project))).collect();
        Ok(Self { since: query.span(today).since, days, projects })
    }

    /// The days of the window.
    fn days(&self) -> impl Iterator<Item = &(Day, RunContribution)> {
        self.days.iter().filter(|(day, _)| *day >= self.since)
    }

    /// The sums of the window, and of the one before.
    fn totals(&self) -> (RunContribution, RunContribution) {
        self.days.iter().fold(<_>::default(), |(now, before), (day, sums)| {
            if *day >= self.since { (sum(&now, sums), before) } else { (now, sum(&before, sums)) }
        })
    }
}

/// Relative change between two sums; `None` from nothing.
fn delta_rate(now: i64, before: i64) -> Option<f64> {
    rate(now - before, before)
}

/// Pass rates of projects by day.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PassRateHeatmap {
    /// Days, oldest first.
    #[schema(value_type = Vec<String>)]
    pub buckets: Vec<Day>,
    /// Projects.
    pub rows: Vec<HeatmapRow>,
}

/// A project of the heatmap.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct HeatmapRow {
    /// The project.
    pub project: ProjectRef,
    /// Passed / (passed + failed) tests on each day; null without any.
    pub cells: Vec<Option<f64>>,
}

/// Pass rates of projects by day.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn pass_rate_heatmap(
    ctx: &Context,
    seen: &SeenProjects,
    query: &WidgetQuery,
    today: Day,
) -> Result<PassRateHeatmap> {
    let span = query.span(today);
    let buckets: Vec<Day> = (span.since.0..=span.until.0).map(Day).collect();
    let lanes = query.lane_of_each(seen.keys());
    let mut decided = rollups::decided_days(&mut ctx.store.db().read().await?, lanes, span).await?;
    let rows = seen.references.iter().filter_map(|project| {
        let days = decided.remove(&ProjectId(project.id))?.into_iter();
        let days: BTreeMap<Day, Option<f64>> =
            days.map(|of| (of.day, rate(of.passed, of.passed + of.failed))).collect();
        let cells: Vec<Option<f64>> = buckets.iter().map(|day| *days.get(day)?).collect();
        cells.iter().any(Option::is_some).then(|| HeatmapRow { project: project.clone(), cells })
    });
    let rows = rows.collect();
    Ok(PassRateHeatmap { buckets, rows })
}

/// A flaky test with its project.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LeaderboardItem {
    /// The test.
    #[serde(flatten)]
    pub test: FlakyTest,
    /// Its project.
    pub project: ProjectRef,
}

/// The flaky tests of several projects: those that are most probably flaky, or
/// those that cost most.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn flaky_leaderboard(
    ctx: &Context,
    scope: &Scope,
    seen: &SeenProjects,
    query: &WidgetQuery,
    sort: Sort,
    today: Day,
) -> Result<Vec<LeaderboardItem>> {
    let authorized: Vec<Authorized<ProjectId>> = seen
        .ids()
        .into_iter()
        .map(|project| scope.authorize(project))
        .collect::<std::result::Result<_, _>>()?;
    let leaders = flakiness::leaders(ctx, &authorized, &query.lane, sort, today, query.limit).await?;
    let items = leaders.into_iter().filter_map(|(project, test)| {
        let project = seen.references.iter().find(|seen| seen.id == project.get())?.clone();
        Some(LeaderboardItem { test, project })
    });
    Ok(items.collect())
}

/// Wasted time by day.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WastedTime {
    /// Days with runs, oldest first.
    pub points: Vec<WastePoint>,
    /// All days together.
    pub totals: Waste,
    /// The most wasteful projects, eight at most.
    pub by_project: Vec<WasteOfProject>,
}

/// Time that was wasted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waste {
    /// Fixed waits, ms.
    pub wait_ms: i64,
    /// Attempts that a retry made good, and the retries of tests that failed in the end, ms.
    pub failed_ms: i64,
}

/// Time that was wasted on a day.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct WastePoint {
    /// Day.
    #[schema(value_type = String, format = Date)]
    pub date: Day,
    /// What was wasted.
    #[serde(flatten)]
    pub waste: Waste,
}

/// Time that was wasted in a project.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WasteOfProject {
    /// The project.
    pub project: ProjectRef,
    /// What was wasted.
    #[serde(flatten)]
    pub waste: Waste,
}

fn waste(sums: &RunContribution) -> Waste {
    Waste { wait_ms: sums.wasted_ms, failed_ms: sums.lost_ms }
}

/// Time spent on fixed waits and on attempts that did not decide.
#[must_use]
pub fn wasted_time(period: &Period) -> WastedTime {
    let of = |(project, sums): &(ProjectRef, RunContribution)| WasteOfProject {
        project: project.clone(),
        waste: waste(sums),
    };
    let mut by_project: Vec<WasteOfProject> =
        period.projects.iter().map(of).filter(|row| row.waste != Waste::default()).collect();
    by_project.sort_by_key(|row| (Reverse(row.waste.wait_ms + row.waste.failed_ms), row.project.id));
    by_project.truncate(WASTEFUL);
    let points = period.days().map(|(date, sums)| WastePoint { date: *date, waste: waste(sums) });
    WastedTime { points: points.collect(), totals: waste(&period.totals().0), by_project }
}

/// Time that runs took, by day.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CiTimeTrend {
    /// Days with runs, oldest first.
    pub points: Vec<CiTimePoint>,
    /// All days together.
    pub totals: CiTime,
    /// Change of the time against the equal window before, as a share of that.
    pub delta_rate: Option<f64>,
}

/// Time that runs took.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CiTime {
    /// Wall clock of all runs, ms.
    pub duration_ms: i64,
    /// Runs.
    pub run_count: i64,
}

/// Time that the runs of a day took.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct CiTimePoint {
    /// Day.
    #[schema(value_type = String, format = Date)]
    pub date: Day,
    /// What its runs took.
    #[serde(flatten)]
    pub time: CiTime,
}

fn ci_time(sums: &RunContribution) -> CiTime {
    CiTime { duration_ms: sums.run_ms, run_count: sums.runs }
}

/// Time that runs took, by day.
#[must_use]
pub fn ci_time_trend(period: &Period) -> CiTimeTrend {
    let (totals, before) = period.totals();
    let points = period.days().map(|(date, sums)| CiTimePoint { date: *date, time: ci_time(sums) });
    CiTimeTrend {
        points: points.collect(),
        totals: ci_time(&totals),
        delta_rate: delta_rate(totals.run_ms, before.run_ms),
    }
}

/// Tests that broke or became flaky, by day.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegressionVelocity {
    /// Days with runs, oldest first.
    pub points: Vec<RegressionPoint>,
    /// All days together.
    pub totals: Regressions,
    /// Change of the regressions against the equal window before, as a share of that.
    pub delta_rate: Option<f64>,
}

/// Tests that broke or became flaky.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Regressions {
    /// Passed before, failed then.
    pub regressions: i64,
    /// Passed on the first attempt before, on a retry then.
    pub new_flaky: i64,
}

/// Tests that broke or became flaky on a day.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct RegressionPoint {
    /// Day.
    #[schema(value_type = String, format = Date)]
    pub date: Day,
    /// How many.
    #[serde(flatten)]
    pub regressions: Regressions,
}

fn regressions(sums: &RunContribution) -> Regressions {
    Regressions { regressions: sums.new_regressions, new_flaky: sums.new_flaky }
}

/// Tests that broke or became flaky, by day.
#[must_use]
pub fn regression_velocity(period: &Period) -> RegressionVelocity {
    let (totals, before) = period.totals();
    let points =
        period.days().map(|(date, sums)| RegressionPoint { date: *date, regressions: regressions(sums) });
    RegressionVelocity {
        points: points.collect(),
        totals: regressions(&totals),
        delta_rate: delta_rate(totals.new_regressions, before.new_regressions),
    }
}
