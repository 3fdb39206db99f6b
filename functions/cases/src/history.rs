//! `GET /api/test-cases/{id}/history`: the executions of one test.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::TestCaseId;
use callboard_domain::status::TestStatus;
use callboard_domain::time::Timestamp;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::resolve;
use callboard_query::shapes::ExecutionWithRun;
use callboard_query::shapes::words::TestStatusWord;
use callboard_query::test_cases::{self, HistoryQuery, LaneQuery};
use serde::Serialize;
use utoipa::IntoParams;

use crate::lane::Lane;

/// Which executions of the test are shown.
#[derive(Debug, Default, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryFilters {
    /// Exact, repeatable; an empty value stands for runs without a branch.
    #[param(required = false)]
    branch: Vec<String>,
    /// Exact, repeatable; an empty value stands for runs without an environment.
    #[param(required = false)]
    environment: Vec<String>,
    /// Exact name of the browser project; an empty value stands for executions without one.
    browser: Option<String>,
    /// Comma list or repeated: passed (with flaky), failed, timedout, interrupted, skipped, didnotrun.
    #[param(required = false, value_type = Vec<TestStatusWord>, example = json!(["failed", "timedout"]), inline)]
    status: Vec<TestStatus>,
    /// Date or date-time; only runs started then or later.
    #[param(value_type = Option<String>, example = "2026-01-01")]
    from: Option<Timestamp>,
    /// Date or date-time; only runs started then or earlier. A date includes its UTC day.
    #[param(value_type = Option<String>, example = "2026-01-31")]
    to: Option<Timestamp>,
}

impl FromQuery for HistoryFilters {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let (from, to) = query.window()?;
        let statuses = TestStatus::ALL.map(TestStatus::as_str);
        Ok(Self {
            branch: query.repeated("branch"),
            environment: query.repeated("environment"),
            browser: query.single("browser")?.map(str::to_owned),
            status: query.words("status", &statuses, TestStatus::parse)?,
            from,
            to,
        })
    }
}

impl HistoryFilters {
    /// Everything in one lane.
    pub(crate) fn from_lane(lane: &Lane) -> Self {
        let LaneQuery { branch, environment } = lane.query();
        Self {
            branch: branch.into_iter().collect(),
            environment: environment.into_iter().collect(),
            ..Self::default()
        }
    }

    /// The question behind the row with the key `after`.
    pub(crate) fn query(&self, after: Option<(i64, i64)>) -> HistoryQuery {
        HistoryQuery {
            branches: self.branch.clone(),
            environments: self.environment.clone(),
            browser: self.browser.clone(),
            statuses: self.status.clone(),
            from: self.from,
            to: self.to,
            after,
        }
    }
}

/// Executions of one test with their runs, newest run first. A page may be
/// short, even empty, while there is a next one: a request looks at a bounded
/// number of days.
///
/// # Errors
/// 404 `test_case_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-cases/{id}/history", tag = "cases",
    params(("id" = i64, Path, description = "Test case"), HistoryFilters, PageRequest),
    responses((status = 200, body = Page<ExecutionWithRun>)))]
pub(crate) async fn history(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<TestCaseId>,
    Query(filters): Query<HistoryFilters>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<ExecutionWithRun>>, ApiError> {
    let cursors = CursorScope::new(RouteId::TestCaseHistory, &(id, &filters))?;
    let query = filters.query(cursors.decode(page.cursor.as_deref())?);
    let ctx = state.context(&site);
    let project = resolve::test_case(&ctx, caller.scope(), id).await?;
    let id = resolve::kept_test(&ctx, project, id).await?;
    Ok(Json(cursors.page(test_cases::history(&ctx, project, id, &query, page.rows()).await?)?))
}
