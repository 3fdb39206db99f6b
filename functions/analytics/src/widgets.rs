//! `GET /api/analytics/…`: one widget each, over the caller's projects.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::ProjectId;
use callboard_http::extract::{Caller, FromQuery, Query, QueryReader};
use callboard_http::lane::Lane;
use callboard_http::page::{Page, PageSize};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::analytics::{
    self, BrowserMatrix, CiTimeTrend, ClusterLandscape, InsightItem, LeaderboardItem, PassRateHeatmap,
    Period, PortfolioItem, RegressionVelocity, SeenProjects, WastedTime, WidgetQuery,
};
use callboard_query::flakiness::Sort;
use callboard_query::network::{self, SlowEndpoint};
use callboard_query::{Context, resolve};
use utoipa::IntoParams;

use crate::kept;

const DEFAULT_DAYS: i64 = 30;
const MOST_DAYS: i64 = 366;

/// What a widget is about.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct Params {
    /// Days up to today, 1 to 366.
    #[param(value_type = Option<i64>, default = 30, minimum = 1, maximum = 366)]
    days: i64,
    /// `true`: only full runs, `false`: only partial ones.
    full_runs: Option<bool>,
    /// Repeatable; only these projects.
    #[param(required = false, value_type = Vec<i64>)]
    project: Vec<ProjectId>,
    /// Rows of a list, 1 to 200; larger numbers count as 200.
    #[param(required = false, default = 20, minimum = 1)]
    limit: u32,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self {
            days: query.number("days", 1..=MOST_DAYS)?.unwrap_or(DEFAULT_DAYS),
            full_runs: query.flag("fullRuns")?,
            project: query.ids("project")?,
            limit: query.limit(PageSize { min: 1, default: 20, max: 200 })?,
        })
    }
}

/// What a widget is about whose numbers are not kept by branch.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct AllBranches {
    /// Days up to today, 1 to 366.
    #[param(value_type = Option<i64>, default = 30, minimum = 1, maximum = 366)]
    days: i64,
    /// Repeatable; only these projects.
    #[param(required = false, value_type = Vec<i64>)]
    project: Vec<ProjectId>,
    /// Rows of a list, 1 to 200; larger numbers count as 200.
    #[param(required = false, default = 20, minimum = 1)]
    limit: u32,
}

impl FromQuery for AllBranches {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        kept::refuse(query, &["branch", "environment", "fullRuns"])?;
        let Params { days, project, limit, .. } = Params::from_query(query)?;
        Ok(Self { days, project, limit })
    }
}

impl AllBranches {
    async fn query(self, ctx: &Context, caller: &Caller) -> Result<WidgetQuery, ApiError> {
        let Self { days, project, limit } = self;
        Params { days, full_runs: None, project, limit }.query(ctx, caller, &Lane::default()).await
    }
}

impl Params {
    /// The question, once the caller may see every project it names.
    async fn query(self, ctx: &Context, caller: &Caller, lane: &Lane) -> Result<WidgetQuery, ApiError> {
        for project in &self.project {
            resolve::project(ctx, caller.scope(), *project).await?;
        }
        Ok(WidgetQuery {
            lane: lane.query(),
            days: self.days,
            full_runs: self.full_runs,
            projects: self.project,
            limit: self.limit as usize,
        })
    }
}

/// Projects side by side, the most recently active first.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied` for a project that is
/// named.
#[utoipa::path(get, path = "/api/analytics/portfolio", tag = "analytics", params(Params, Lane),
    responses((status = 200, body = Page<PortfolioItem>)))]
pub(crate) async fn portfolio(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<Params>,
    Query(lane): Query<Lane>,
) -> Result<Json<Page<PortfolioItem>>, ApiError> {
    let ctx = state.context(&site);
    let query = asked.query(&ctx, &caller, &lane).await?;
    let items = analytics::portfolio(&ctx, caller.scope(), &query, state.now().day()).await?;
    Ok(Json(Page::whole(items)))
}

/// Pass rates by project and day.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied` for a project that is
/// named.
#[utoipa::path(get, path = "/api/analytics/pass-rate-heatmap", tag = "analytics", params(Params, Lane),
    responses((status = 200, body = PassRateHeatmap)))]
pub(crate) async fn pass_rate_heatmap(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<Params>,
    Query(lane): Query<Lane>,
) -> Result<Json<PassRateHeatmap>, ApiError> {
    let ctx = state.context(&site);
    let query = asked.query(&ctx, &caller, &lane).await?;
    let seen = SeenProjects::load(&ctx, caller.scope(), &query).await?;
    Ok(Json(analytics::pass_rate_heatmap(&ctx, &seen, &query, state.now().day()).await?))
}

/// The most probably flaky tests of several projects.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied` for a project that is
/// named.
#[utoipa::path(get, path = "/api/analytics/flaky-leaderboard", tag = "analytics", params(Params, Lane),
    responses((status = 200, body = Page<LeaderboardItem>)))]
pub(crate) async fn flaky_leaderboard(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<Params>,
    Query(lane): Query<Lane>,
) -> Result<Json<Page<LeaderboardItem>>, ApiError> {
    let ctx = state.context(&site);
    let query = asked.query(&ctx, &caller, &lane).await?;
    let seen = SeenProjects::load(&ctx, caller.scope(), &query).await?;
    let today = state.now().day();
    let items = analytics::flaky_leaderboard(&ctx, caller.scope(), &seen, &query, Sort::Score, today).await?;
    Ok(Json(Page::whole(items)))
}

/// Time spent on fixed waits and on attempts that did not decide, by day.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied` for a project that is
/// named.
#[utoipa::path(get, path = "/api/analytics/wasted-time", tag = "analytics", params(Params, Lane),
    responses((status = 200, body = WastedTime)))]
pub(crate) async fn wasted_time(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<Params>,
    Query(lane): Query<Lane>,
) -> Result<Json<WastedTime>, ApiError> {
    let ctx = state.context(&site);
    let query = asked.query(&ctx, &caller, &lane).await?;
    let seen = SeenProjects::load(&ctx, caller.scope(), &query).await?;
    let period = Period::load(&ctx, &seen, &query, state.now().day()).await?;
    Ok(Json(analytics::wasted_time(&period)))
}

/// Time that runs took, by day.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied` for a project that is
/// named.
#[utoipa::path(get, path = "/api/analytics/ci-time-trend", tag = "analytics", params(Params, Lane),
    responses((status = 200, body = CiTimeTrend)))]
pub(crate) async fn ci_time_trend(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<Params>,
    Query(lane): Query<Lane>,
) -> Result<Json<CiTimeTrend>, ApiError> {
    let ctx = state.context(&site);
    let query = asked.query(&ctx, &caller, &lane).await?;
    let seen = SeenProjects::load(&ctx, caller.scope(), &query).await?;
    let period = Period::load(&ctx, &seen, &query, state.now().day()).await?;
    Ok(Json(analytics::ci_time_trend(&period)))
}

/// Tests that broke or became flaky, by day.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied` for a project that is
/// named.
#[utoipa::path(get, path = "/api/analytics/regression-velocity", tag = "analytics", params(Params, Lane),
    responses((status = 200, body = RegressionVelocity)))]
pub(crate) async fn regression_velocity(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<Params>,
    Query(lane): Query<Lane>,
) -> Result<Json<RegressionVelocity>, ApiError> {
    let ctx = state.context(&site);
    let query = asked.query(&ctx, &caller, &lane).await?;
    let seen = SeenProjects::load(&ctx, caller.scope(), &query).await?;
    let period = Period::load(&ctx, &seen, &query, state.now().day()).await?;
    Ok(Json(analytics::regression_velocity(&period)))
}

/// The slowest endpoints of the applications under test, by the time that nine
/// in ten captured requests took at most.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied` for a project that is
/// named; 400 `invalid_query` for a branch or an environment, which requests
/// are not kept by.
#[utoipa::path(get, path = "/api/analytics/slow-endpoints", tag = "analytics", params(AllBranches),
    responses((status = 200, body = Page<SlowEndpoint>)))]
pub(crate) async fn slow_endpoints(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<AllBranches>,
) -> Result<Json<Page<SlowEndpoint>>, ApiError> {
    let ctx = state.context(&site);
    let query = asked.query(&ctx, &caller).await?;
    let seen = SeenProjects::load(&ctx, caller.scope(), &query).await?;
    let items = network::slow_endpoints(&ctx, &seen, &query, state.now().day()).await?;
    Ok(Json(Page::whole(items)))
}

/// Pass rates by project and browser project.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied` for a project that is
/// named; 400 `invalid_query` for a branch or an environment, which these
/// numbers are not kept by.
#[utoipa::path(get, path = "/api/analytics/browser-matrix", tag = "analytics", params(AllBranches),
    responses((status = 200, body = BrowserMatrix)))]
pub(crate) async fn browser_matrix(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<AllBranches>,
) -> Result<Json<BrowserMatrix>, ApiError> {
    let ctx = state.context(&site);
    let query = asked.query(&ctx, &caller).await?;
    let seen = SeenProjects::load(&ctx, caller.scope(), &query).await?;
    Ok(Json(analytics::browser_matrix(&ctx, &seen, &query, state.now().day()).await?))
}

/// Open failure clusters: by type of error, and those that failed most often.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied` for a project that is
/// named; 400 `invalid_query` for a branch or an environment, which clusters
/// are not kept by.
#[utoipa::path(get, path = "/api/analytics/cluster-landscape", tag = "analytics", params(AllBranches),
    responses((status = 200, body = ClusterLandscape)))]
pub(crate) async fn cluster_landscape(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<AllBranches>,
) -> Result<Json<ClusterLandscape>, ApiError> {
    let ctx = state.context(&site);
    let query = asked.query(&ctx, &caller).await?;
    let seen = SeenProjects::load(&ctx, caller.scope(), &query).await?;
    let now = state.now();
    Ok(Json(analytics::cluster_landscape(&ctx, caller.scope(), &seen, &query, now.day(), now).await?))
}

/// What stands out against the equal window before, ten at most: what concerns
/// more time first.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied` for a project that is
/// named.
#[utoipa::path(get, path = "/api/analytics/insights", tag = "analytics", params(Params, Lane),
    operation_id = "widget_insights",
    responses((status = 200, body = Page<InsightItem>)))]
pub(crate) async fn insights(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<Params>,
    Query(lane): Query<Lane>,
) -> Result<Json<Page<InsightItem>>, ApiError> {
    let ctx = state.context(&site);
    let query = asked.query(&ctx, &caller, &lane).await?;
    let seen = SeenProjects::load(&ctx, caller.scope(), &query).await?;
    let now = state.now();
    let endpoints = network::slow_endpoints(&ctx, &seen, &query, now.day()).await?;
    let items = analytics::insights(&ctx, caller.scope(), &seen, &query, &endpoints, now).await?;
    Ok(Json(Page::whole(items)))
}
