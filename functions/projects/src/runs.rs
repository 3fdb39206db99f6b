//! The runs of a project: the list, and the newest one that fits.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::ProjectId;
use callboard_domain::status::RunStatus;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{Page, PageRequest};
use callboard_http::run_filters::{RunFilters, run_statuses};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::shapes::words::RunStatusWord;
use callboard_query::shapes::{RunBrief, RunItem};
use callboard_query::{resolve, runs};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// Runs of a project by start and id.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/test-runs", tag = "projects",
    params(("id" = i64, Path, description = "Project"), RunFilters, PageRequest),
    responses((status = 200, body = Page<RunItem>)))]
pub(crate) async fn test_runs(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(filters): Query<RunFilters>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<RunItem>>, ApiError> {
    let filters = RunFilters { projects: vec![id], ..filters };
    let cursors = CursorScope::new(RouteId::ProjectRuns, &filters)?;
    let query = filters.query(cursors.decode(page.cursor.as_deref())?);
    let ctx = state.context(&site);
    resolve::project(&ctx, caller.scope(), id).await?;
    Ok(Json(cursors.page(runs::list(&ctx, caller.scope(), &query, page.rows()).await?)?))
}

/// Which run counts as the latest.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct LatestFilters {
    /// Exact, repeatable; an empty value stands for runs without a branch.
    #[param(required = false)]
    branch: Vec<String>,
    /// Exact, repeatable; an empty value stands for runs without an environment.
    #[param(required = false)]
    environment: Vec<String>,
    /// Comma list or repeated.
    #[param(required = false, value_type = Vec<RunStatusWord>, example = json!(["passed"]), inline)]
    status: Vec<RunStatus>,
    /// `true`: only full runs, `false`: only partial ones.
    full_runs: Option<bool>,
}

impl FromQuery for LatestFilters {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self {
            branch: query.repeated("branch"),
            environment: query.repeated("environment"),
            status: run_statuses(query)?,
            full_runs: query.flag("fullRuns")?,
        })
    }
}

/// The newest run that fits.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LatestRun {
    /// Null when no run fits.
    run: Option<RunBrief>,
}

/// The newest run that fits, by start and id.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/latest-run", tag = "projects",
    params(("id" = i64, Path, description = "Project"), LatestFilters),
    responses((status = 200, body = LatestRun)))]
pub(crate) async fn latest_run(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(LatestFilters { branch, environment, status, full_runs }): Query<LatestFilters>,
) -> Result<Json<LatestRun>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let filters = RunFilters { branch, environment, status, full_runs, ..RunFilters::default() };
    Ok(Json(LatestRun { run: runs::latest(&ctx, project, &filters.query(None)).await? }))
}
