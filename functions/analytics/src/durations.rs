//! How long tests and runs take, folder by folder and day by day.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::{Day, Timestamp};
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::lane::Lane;
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::daily::{self, DayCounts, DaySpan};
use callboard_query::performance::{
    self, DurationsQuery, NewestQuery, RunDuration, SlowTest, SpecHealth, SpecQuery, SpecSort,
};
use callboard_query::shapes::RunCounts;
use callboard_query::timeouts::{self, TimeoutRow};
use callboard_query::{projects, resolve};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::kept;

const FOLDER_SORTS: [&str; 3] = ["prefix", "passRate", "flakyRate"];

callboard_query::vocabularies! {
    /// An order of folders.
    FolderSortWord => FOLDER_SORTS;
}

const DEFAULT_RUNS: usize = 50;
const DEFAULT_DAYS: i64 = 30;
/// Most days a list of days has.
const MOST_DAYS: i64 = 366;

/// How many executions are looked at.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Newest {
    /// Newest passed executions of each test to look at, 4 to 100.
    #[param(value_type = Option<i64>, default = 50, minimum = 4, maximum = 100)]
    runs: usize,
    /// Only tests that ran within this many days, 1 to 366.
    #[param(minimum = 1, maximum = 366)]
    days: Option<i64>,
}

impl FromQuery for Newest {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        kept::refuse(query, &["fullRuns"])?;
        let runs = query.number("runs", 4..=100)?.and_then(|runs| usize::try_from(runs).ok());
        let days = query.number("days", 1..=MOST_DAYS)?;
        Ok(Self { runs: runs.unwrap_or(DEFAULT_RUNS), days })
    }
}

impl Newest {
    fn query(&self, lane: &Lane, today: Day) -> NewestQuery {
        let since = self.days.map(|days| Day(today.0 - days + 1));
        NewestQuery { lane: lane.query(), runs: self.runs, since }
    }
}

/// The slowest tests, by the mean of their newest passed executions.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/slow-tests", tag = "analytics",
    params(("id" = i64, Path, description = "Project"), Newest, Lane, PageRequest),
    responses((status = 200, body = Page<SlowTest>)))]
pub(crate) async fn slow_tests(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(newest): Query<Newest>,
    Query(lane): Query<Lane>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<SlowTest>>, ApiError> {
    let cursors = CursorScope::new(RouteId::SlowTests, &(id, &newest, &lane))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let query = newest.query(&lane, state.now().day());
    let found = performance::slow_tests(&ctx, project, &query, after, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}

/// Timeouts that could be shorter, most worthwhile first: far above what the
/// test ever takes, or on a test marked as slow that is not.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/timeout-opportunities", tag = "analytics",
    params(("id" = i64, Path, description = "Project"), Newest, Lane, PageRequest),
    responses((status = 200, body = Page<TimeoutRow>)))]
pub(crate) async fn timeout_opportunities(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(newest): Query<Newest>,
    Query(lane): Query<Lane>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<TimeoutRow>>, ApiError> {
    let cursors = CursorScope::new(RouteId::TimeoutOpportunities, &(id, &newest, &lane))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let query = newest.query(&lane, state.now().day());
    let found = timeouts::timeout_opportunities(&ctx, project, &query, after, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}

/// Which runs a chart shows.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct Window {
    /// Date or date-time; only runs started then or later.
    #[param(value_type = Option<String>, example = "2026-01-01")]
    from: Option<Timestamp>,
    /// Date or date-time; only runs started then or earlier. A date includes its UTC day.
    #[param(value_type = Option<String>, example = "2026-01-31")]
    to: Option<Timestamp>,
    /// `true`: only full runs, `false`: only partial ones.
    full_runs: Option<bool>,
}

impl FromQuery for Window {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let (from, to) = query.window()?;
        Ok(Self { from, to, full_runs: query.flag("fullRuns")? })
    }
}

/// How far back a chart goes.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Reach {
    /// Only runs of the last so many days of UTC, today included, 1 to 366.
    #[param(minimum = 1, maximum = 366)]
    days: Option<i64>,
}

impl FromQuery for Reach {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { days: query.number("days", 1..=MOST_DAYS)? })
    }
}

impl Reach {
    /// The beginning of a window: the later of what both ask for.
    fn since(&self, from: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let reached = self.days.map(|days| Day(now.day().0 - days + 1).start());
        from.max(reached)
    }
}

/// Which runs a chart shows.
#[derive(Debug)]
pub(crate) struct Chart {
    window: Window,
    reach: Reach,
}

impl FromQuery for Chart {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { window: Window::from_query(query)?, reach: Reach::from_query(query)? })
    }
}

/// Durations of runs, and of how many runs they can be.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunDurations {
    /// Oldest first.
    items: Vec<RunDuration>,
    /// Pass it as `cursor` to read on; null after the last page.
    next_cursor: Option<String>,
    /// Runs of the project.
    project_runs: RunCounts,
}

/// Durations of the newest finished runs whose details are kept, the oldest of
/// the page first. The next page is older.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/performance", tag = "analytics",
    params(("id" = i64, Path, description = "Project"), Window, Reach, Lane, PageRequest),
    responses((status = 200, body = RunDurations)))]
pub(crate) async fn performance(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(Chart { window, reach }): Query<Chart>,
    Query(lane): Query<Lane>,
    Query(page): Query<PageRequest>,
) -> Result<Json<RunDurations>, ApiError> {
    let cursors = CursorScope::new(RouteId::Performance, &(id, &window, &reach, &lane))?;
    let query = DurationsQuery {
        lane: lane.query(),
        from: reach.since(window.from, state.now()),
        before: window.to.map(|to| Timestamp(to.millis() + 1)),
        full_runs: window.full_runs,
        after: cursors.decode(page.cursor.as_deref())?,
    };
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let project_runs = projects::run_counts(&ctx, project).await?;
    let found = performance::of_runs(&ctx, caller.scope(), project, &query, page.rows()).await?;
    let Page { items, next_cursor } = cursors.page(found)?;
    Ok(Json(RunDurations { items, next_cursor, project_runs }))
}

/// Which folders are shown, and in which order.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Folders {
    /// Days up to today, 1 to 90.
    #[param(value_type = Option<i64>, default = 30, minimum = 1, maximum = 90)]
    days: i64,
    /// `prefix` (by name, the default), `passRate` (least steady first) or `flakyRate` (most flaky first).
    #[param(value_type = Option<FolderSortWord>, example = "prefix", inline)]
    sort: SpecSort,
    /// The files of this folder, which is the `prefix` of an item, instead of the folders.
    #[param(value_type = Option<String>, example = "tests/checkout")]
    folder: Option<String>,
}

impl FromQuery for Folders {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let sort = query.word("sort", &FOLDER_SORTS, |word| match word {
            "prefix" => Some(SpecSort::Prefix),
            "passRate" => Some(SpecSort::PassRate),
            "flakyRate" => Some(SpecSort::FlakyRate),
            _ => None,
        })?;
        kept::refuse(query, &["fullRuns"])?;
        Ok(Self {
            days: query.number("days", 1..=90)?.unwrap_or(DEFAULT_DAYS),
            sort: sort.unwrap_or_default(),
            folder: query.recorded("folder")?,
        })
    }
}

/// Folders of tests over the last days: how steady they are and how long they
/// take.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/spec-health", tag = "analytics",
    params(("id" = i64, Path, description = "Project"), Folders, Lane, PageRequest),
    responses((status = 200, body = Page<SpecHealth>)))]
pub(crate) async fn spec_health(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(folders): Query<Folders>,
    Query(lane): Query<Lane>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<SpecHealth>>, ApiError> {
    let cursors = CursorScope::new(RouteId::SpecHealth, &(id, &folders, &lane))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let today = state.now().day();
    let query = SpecQuery {
        lane: lane.query(),
        days: (Day(today.0 - folders.days + 1), today),
        folder: folders.folder,
        sort: folders.sort,
    };
    let (found, _) = performance::spec_health(&ctx, project, &query, after, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}

/// The days of a project on which runs started, oldest first: at most 366, by
/// default the last thirty.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/daily", tag = "analytics",
    params(("id" = i64, Path, description = "Project"), Window, Lane),
    responses((status = 200, body = Page<DayCounts>)))]
pub(crate) async fn daily(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(window): Query<Window>,
    Query(lane): Query<Lane>,
) -> Result<Json<Page<DayCounts>>, ApiError> {
    let until = window.to.map_or_else(|| state.now().day(), Timestamp::day);
    let since = window.from.map_or(Day(until.0 - DEFAULT_DAYS + 1), Timestamp::day);
    let span = DaySpan { since: Day(since.0.max(until.0 - MOST_DAYS + 1)), until, full: window.full_runs };
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    Ok(Json(Page::whole(daily::counts(&ctx, &[project], &lane.query(), span).await?)))
}
