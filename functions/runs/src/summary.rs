//! `GET /api/test-runs/{id}/summary`: a run in the light form for scripts.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::RunId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::executions::{self, ExecutionQuery, Sort};
use callboard_query::shapes::{ExecutionSummary, RunItem};
use callboard_query::{resolve, runs};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// How many executions come with the run.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SummaryPage {
    /// Executions per page, 1 to 200; larger numbers count as 200.
    #[param(required = false, default = 200, minimum = 1)]
    limit: u32,
    /// Where to continue: `nextCursor` of the page before.
    cursor: Option<String>,
}

impl FromQuery for SummaryPage {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let PageRequest { limit, cursor } = query.page(PageSize { min: 1, default: 200, max: 200 })?;
        Ok(Self { limit, cursor })
    }
}

/// A run with a page of its executions, both in short.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SummaryAnswer {
    /// The run; the same on every page.
    #[serde(flatten)]
    run: RunItem,
    /// Executions by id.
    test_cases: Vec<ExecutionSummary>,
    /// Pass it as `cursor` to read on; null after the last page.
    next_cursor: Option<String>,
}

/// One run with its executions in short.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-runs/{id}/summary", tag = "runs",
    params(("id" = i64, Path, description = "Run"), SummaryPage),
    responses((status = 200, body = SummaryAnswer)))]
pub(crate) async fn summary(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(page): Query<SummaryPage>,
) -> Result<Json<SummaryAnswer>, ApiError> {
    let cursors = CursorScope::new(RouteId::RunSummary, &id)?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let query = ExecutionQuery { sort: Sort::Id, after, ..ExecutionQuery::default() };
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    let run = runs::get(&ctx, project, id).await?;
    let found = executions::list(&ctx, project, id, &query, page.limit as usize).await?;
    let found = cursors.page(found.map(ExecutionSummary::from))?;
    Ok(Json(SummaryAnswer { run, test_cases: found.items, next_cursor: found.next_cursor }))
}
