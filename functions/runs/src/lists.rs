//! The lists of runs across projects.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::ProjectId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Query, QueryReader};
use callboard_http::page::{Page, PageRequest};
use callboard_http::run_filters::RunFilters;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::runs::RunQuery;
use callboard_query::shapes::RunItem;
use callboard_query::{resolve, runs};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// The projects whose runs a list shows.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Projects {
    /// Project ids, repeatable or as a comma list; all of the caller's when none is given.
    #[param(required = false, value_type = Vec<i64>)]
    project: Vec<ProjectId>,
}

impl FromQuery for Projects {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { project: query.ids("project")? })
    }
}

/// Runs of the caller's projects by start and id.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied` for a project that is
/// named.
#[utoipa::path(get, path = "/api/test-runs", tag = "runs", params(Projects, RunFilters, PageRequest),
    responses((status = 200, body = Page<RunItem>)))]
pub(crate) async fn test_runs(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(Projects { project: projects }): Query<Projects>,
    Query(filters): Query<RunFilters>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<RunItem>>, ApiError> {
    let filters = RunFilters { projects, ..filters };
    let cursors = CursorScope::new(RouteId::ListRuns, &filters)?;
    let query = filters.query(cursors.decode(page.cursor.as_deref())?);
    let ctx = state.context(&site);
    for project in &filters.projects {
        resolve::project(&ctx, caller.scope(), *project).await?;
    }
    Ok(Json(cursors.page(runs::list(&ctx, caller.scope(), &query, page.rows()).await?)?))
}

/// What is going on, and what was.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecentRuns {
    /// Up to 200 unfinished runs, newest first; the same on every page.
    active: Vec<RunItem>,
    /// Finished runs, newest first.
    #[serde(flatten)]
    finished: Page<RunItem>,
}

/// Unfinished and recently finished runs of the caller's projects.
#[utoipa::path(get, path = "/api/test-runs/recent", tag = "runs", params(PageRequest),
    responses((status = 200, body = RecentRuns)))]
pub(crate) async fn recent(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(page): Query<PageRequest>,
) -> Result<Json<RecentRuns>, ApiError> {
    let cursors = CursorScope::new(RouteId::RecentRuns, &())?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let query = RunQuery { finished: true, after, ..RunQuery::default() };
    let ctx = state.context(&site);
    let active = runs::active(&ctx, caller.scope()).await?;
    let finished = runs::list(&ctx, caller.scope(), &query, page.rows()).await?;
    Ok(Json(RecentRuns { active, finished: cursors.page(finished)? }))
}
