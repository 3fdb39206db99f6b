//! `GET /api/projects/{id}`: one project with its newest runs.

use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::ids::ProjectId;
use callboard_http::conditional::tagged_json;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::PageSize;
use callboard_http::run_filters::RunFilters;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::shapes::{Project, RunItem};
use callboard_query::{projects, resolve, runs};
use http::HeaderMap;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// How many runs come with the project.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// Newest runs to show, 0 to 200; larger numbers count as 200.
    #[param(required = false, default = 20, minimum = 0)]
    limit: u32,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { limit: query.limit(PageSize { min: 0, default: 20, max: 200 })? })
    }
}

/// A project with its newest runs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProjectAnswer {
    /// The project.
    #[serde(flatten)]
    project: Project,
    /// Newest runs first.
    test_runs: Vec<RunItem>,
    /// Cursor that continues at `/api/test-runs?project=<id>`; null when there are no more runs or none were
    /// asked for.
    test_runs_next_cursor: Option<String>,
}

/// One project with its newest runs.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}", tag = "projects",
    params(("id" = i64, Path, description = "Project"), Params),
    responses((status = 200, body = ProjectAnswer), (status = 304, description = "The client has this state")))]
pub(crate) async fn project(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(asked): Query<Params>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let project = projects::get(&ctx, resolve::project(&ctx, caller.scope(), id).await?).await?;
    let filters = RunFilters { projects: vec![id], ..RunFilters::default() };
    let runs = runs::list(&ctx, caller.scope(), &filters.query(None), asked.limit as usize).await?;
    let cursors = CursorScope::new(RouteId::ListRuns, &filters)?;
    let next = runs.next.map(|key| cursors.encode(&key)).transpose()?;
    tagged_json(&headers, &ProjectAnswer { project, test_runs: runs.items, test_runs_next_cursor: next })
}
