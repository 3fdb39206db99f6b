//! How long the runs of a project take, and their tests.

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::durations::Trend;
use callboard_domain::ids::ProjectId;
use callboard_domain::status::RunStatus;
use callboard_domain::test_state::MAX_RECENT_MS;
use callboard_domain::time::Timestamp;
use callboard_domain::timeouts::TimeoutKind;
use callboard_http::ApiError;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_query::performance::{self, NewestQuery, SlowTest};
use callboard_query::runs::{self, RunQuery};
use callboard_query::shapes::{Facets, RunItem};
use callboard_query::test_cases::LaneQuery;
use callboard_query::timeouts::{self, TimeoutRow};

use super::Head;
use crate::address::chosen;
use crate::components::{FilterBar, LineOf, MarkerList, Point, Series, ShiftList, name_of, nearest_rank};
use crate::filters;
use crate::shell::Shell;
use crate::text::{date_and_time, day_of, duration};
use crate::visit::{Visit, answer};

/// Runs the charts show.
const RUNS: usize = 80;
/// Tests each list names.
const SLOWEST: usize = 10;
/// Passed executions the numbers of a test are about: as many as its own page
/// counts.
const SAMPLES: usize = MAX_RECENT_MS;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Params {
    branch: Option<String>,
    environment: Option<String>,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let one = |name: &str| chosen(query, name).into_iter().next();
        Ok(Self { branch: one("branch"), environment: one("environment") })
    }
}

impl Params {
    fn bar(&self, visit: &Visit, facets: &Facets) -> FilterBar {
        FilterBar::new(&visit.address, &["tab"])
            .branches(facets, "All branches", self.branch.as_slice())
            .environments(facets, self.environment.as_slice())
    }
}

/// Inputs of `pages/project_performance.html`.
#[derive(Template)]
#[template(path = "pages/project_performance.html")]
struct PerformanceTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    tests: Series,
    test_shifts: ShiftList,
    whole: Series,
    run_shifts: ShiftList,
    markers: MarkerList,
    slow_tests: Vec<SlowTest>,
    timeouts: Vec<TimeoutRow>,
    /// Whether a shorter timeout would have saved anything so far.
    saves: bool,
    count: usize,
    is_filtered: bool,
}

/// The durations of a project's full runs.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    asked: Params,
) -> Result<Response, ApiError> {
    let query = RunQuery {
        projects: vec![project.get()],
        branches: asked.branch.iter().cloned().collect(),
        environments: asked.environment.iter().cloned().collect(),
        full_runs: Some(true),
        // How long one took that broke off, or was cut by the timeout of the whole run, tells nothing.
        statuses: vec![RunStatus::Passed, RunStatus::Failed],
        ..RunQuery::default()
    };
    let mut found = runs::list(&visit.ctx, visit.scope(), &query, RUNS).await?.items;
    found.reverse();
    let facets = visit.places(project).await?;
    let lane = LaneQuery { branch: asked.branch.clone(), environment: asked.environment.clone() };
    let newest = NewestQuery { lane, runs: SAMPLES, since: None };
    let slow_tests = performance::slow_tests(&visit.ctx, project, &newest, None, SLOWEST).await?.items;
    let timeouts = timeouts::timeout_opportunities(&visit.ctx, project, &newest, None, SLOWEST).await?.items;
    let first = found.first().map_or(visit.now, |run| run.brief.start_time);
    let markers = MarkerList::since(&visit, project, first, asked.environment.as_deref()).await?;
    let times: Vec<Timestamp> = found.iter().map(|run| run.brief.start_time).collect();
    let test_shifts = ShiftList::of_runs(&found, "mean of a test", |run| run.avg_test_duration, visit.now);
    let run_shifts = ShiftList::of_runs(&found, "wall clock", |run| run.brief.duration, visit.now);
    answer(&PerformanceTab {
        filters: asked.bar(&visit, &facets).tally(
            if found.len() == RUNS { "newest full run" } else { "full run" },
            found.len(),
            false,
            None,
        ),
        tests: of_tests(&found)
            .with_markers(&times, markers.markers())
            .with_marks(ShiftList::MARKS, &test_shifts.marks()),
        test_shifts,
        whole: of_runs(&found)
            .with_markers(&times, markers.markers())
            .with_marks(ShiftList::MARKS, &run_shifts.marks()),
        run_shifts,
        markers,
        slow_tests,
        saves: timeouts.iter().any(|row| row.estimated_saving_ms > 0),
        timeouts,
        count: found.len(),
        is_filtered: asked.branch.is_some() || asked.environment.is_some(),
        shell,
        head,
    })
}

fn points(runs: &[RunItem]) -> Vec<Point> {
    let point = |run: &RunItem| Point {
        label: date_and_time(run.brief.start_time),
        note: Some(match &run.brief.branch {
            Some(branch) => format!("{} on {branch}", name_of(run)),
            None => name_of(run),
        }),
        href: Some(format!("/test-runs/{}", run.brief.id)),
    };
    runs.iter().map(point).collect()
}

/// The day is enough at the ends of the axis.
fn by_day(series: Series, runs: &[RunItem]) -> Series {
    let day = |run: Option<&RunItem>| run.map(|run| day_of(run.brief.start_time.day())).unwrap_or_default();
    series.between(day(runs.first()), day(runs.last()))
}

/// Durations of single tests.
fn of_tests(runs: &[RunItem]) -> Series {
    let lines = [
        LineOf { name: "Median", values: runs.iter().map(|run| run.p50_test_duration).collect() },
        LineOf { name: "p90", values: runs.iter().map(|run| run.p90_test_duration).collect() },
        LineOf { name: "p95", values: runs.iter().map(|run| run.p95_test_duration).collect() },
    ];
    by_day(Series::new("Duration of a test", points(runs), &lines, duration), runs)
}

/// Durations of whole runs.
fn of_runs(runs: &[RunItem]) -> Series {
    let mut walls: Vec<i64> = runs.iter().filter_map(|run| run.brief.duration).collect();
    walls.sort_unstable();
    let lines = [
        LineOf { name: "Wall clock", values: runs.iter().map(|run| run.brief.duration).collect() },
        LineOf {
            name: "All tests together",
            values: runs.iter().map(|run| Some(run.tests_duration)).collect(),
        },
    ];
    let series = by_day(Series::new("Duration of a run", points(runs), &lines, duration), runs);
    [(50, "median"), (90, "p90"), (95, "p95")].into_iter().fold(series, |series, (share, name)| {
        match nearest_rank(&walls, share) {
            Some(wall) => series.measure(name, duration(wall)),
            None => series,
        }
    })
}

/// How a trend of durations reads, and its class.
const fn trend_words(trend: &Trend) -> (&'static str, &'static str) {
    match trend {
        Trend::Faster => ("faster", "passed-tag"),
        Trend::Slower => ("slower", "failed-tag"),
        Trend::Stable => ("steady", ""),
    }
}
