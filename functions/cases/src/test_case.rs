//! `GET /api/test-cases/{id}`: one test across runs.

use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::ids::TestCaseId;
use callboard_http::conditional::tagged_json;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::PageSize;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::quarantine::Quarantine;
use callboard_query::shapes::{ExecutionWithRun, TestCaseDetail};
use callboard_query::{quarantine, resolve, test_cases};
use http::HeaderMap;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::history::HistoryFilters;
use crate::lane::Lane;

/// How many executions come with the test.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// Newest executions to show, 1 to 50; larger numbers count as 50.
    #[param(required = false, default = 20, minimum = 1)]
    limit: u32,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { limit: query.limit(PageSize { min: 1, default: 20, max: 50 })? })
    }
}

/// A test with its newest executions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestCaseAnswer {
    /// The test.
    #[serde(flatten)]
    test_case: TestCaseDetail,
    /// Newest executions first.
    recent_executions: Vec<ExecutionWithRun>,
    /// Cursor that continues at `/api/test-cases/{id}/history` with the same branch and environment.
    recent_next_cursor: Option<String>,
    /// The quarantine it is in.
    quarantine: Option<Quarantine>,
}

/// One test with its numbers on a branch and in an environment, or in all, and
/// its newest executions there.
///
/// # Errors
/// 404 `test_case_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-cases/{id}", tag = "cases",
    params(("id" = i64, Path, description = "Test case"), Lane, Params),
    responses((status = 200, body = TestCaseAnswer), (status = 304, description = "The client has this state")))]
pub(crate) async fn test_case(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<TestCaseId>,
    Query(lane): Query<Lane>,
    Query(asked): Query<Params>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::test_case(&ctx, caller.scope(), id).await?;
    let id = resolve::kept_test(&ctx, project, id).await?;
    let test_case = test_cases::detail(&ctx, project, id, &lane.query()).await?;
    let quarantine = quarantine::of_test(&ctx, project, id, state.now()).await?;
    let filters = HistoryFilters::from_lane(&lane);
    let recent = test_cases::history(&ctx, project, id, &filters.query(None), asked.limit as usize).await?;
    let cursors = CursorScope::new(RouteId::TestCaseHistory, &(id, &filters))?;
    let next = recent.next.map(|key| cursors.encode(&key)).transpose()?;
    tagged_json(
        &headers,
        &TestCaseAnswer { test_case, recent_executions: recent.items, recent_next_cursor: next, quarantine },
    )
}
