//! `GET /api/test-runs/{id}`: one run with its first executions.

use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::ids::RunId;
use callboard_http::conditional::tagged_json;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::PageSize;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::shapes::{ExecutionItem, RunDetail};
use callboard_query::{executions, resolve, runs};
use http::HeaderMap;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::executions::ExecutionFilters;

/// How many executions come with the run.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// Executions to show, trouble first, 0 to 200; larger numbers count as 200.
    #[param(required = false, default = 50, minimum = 0)]
    limit: u32,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { limit: query.limit(PageSize { min: 0, default: 50, max: 200 })? })
    }
}

/// A run with its first executions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunAnswer {
    /// The run.
    #[serde(flatten)]
    run: RunDetail,
    /// Executions, trouble first.
    test_cases: Vec<ExecutionItem>,
    /// Cursor that continues at `/api/test-runs/{id}/executions`; null when there are no more or none were
    /// asked for.
    test_cases_next_cursor: Option<String>,
}

/// One run with its first executions, trouble first. The answer is bounded
/// whatever the size of the run.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-runs/{id}", tag = "runs",
    params(("id" = i64, Path, description = "Run"), Params),
    responses((status = 200, body = RunAnswer), (status = 304, description = "The client has this state")))]
pub(crate) async fn test_run(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(asked): Query<Params>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    let run = runs::detail(&ctx, project, id).await?;
    let filters = ExecutionFilters::default();
    let first = executions::list(&ctx, project, id, &filters.query(None), asked.limit as usize).await?;
    let cursors = CursorScope::new(RouteId::RunExecutions, &(id, &filters))?;
    let next = first.next.map(|key| cursors.encode(&key)).transpose()?;
    tagged_json(&headers, &RunAnswer { run, test_cases: first.items, test_cases_next_cursor: next })
}
