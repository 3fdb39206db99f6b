//! `GET /api/projects/{id}/flaky-tests`: the tests that fail by chance, and why.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::flakiness::RootCause;
use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::ingest::Priority;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::lane::Lane;
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::flakiness::{self, FlakyQuery, FlakyTest, Sort};
use callboard_query::resolve;
use callboard_query::shapes::words::{PriorityWord, RootCauseWord};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::kept;

const SORTS: [&str; 2] = ["score", "impact"];

callboard_query::vocabularies! {
    /// An order of flaky tests.
    SortWord => SORTS;
}

/// Which flaky tests are shown, and in which order.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct FlakyFilters {
    /// Newest decided runs to judge by, 3 to 200.
    #[param(default = 50, minimum = 3, maximum = 200)]
    runs: Option<i64>,
    /// Only tests that failed or passed on a retry within this many days, 1 to 366.
    #[param(minimum = 1, maximum = 366)]
    days: Option<i64>,
    /// Least score, 0 to 100.
    #[param(minimum = 0, maximum = 100)]
    min_score: Option<i64>,
    /// Comma list or repeated, with or without `@`; only tests with all of these tags.
    #[param(required = false)]
    tags: Vec<String>,
    /// Exact owner.
    owner: Option<String>,
    /// critical, high, medium or low.
    #[param(value_type = Option<PriorityWord>, example = "high", inline)]
    priority: Option<Priority>,
    /// timing, network, assertion, environment or other.
    #[param(value_type = Option<RootCauseWord>, example = "timing", inline)]
    root_cause: Option<RootCause>,
    /// `score` (most probably flaky first, the default) or `impact` (most expensive first); equal ones by id.
    #[param(value_type = Option<SortWord>, example = "score", inline)]
    sort: Sort,
}

impl FromQuery for FlakyFilters {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let sort = query.word("sort", &SORTS, |word| match word {
            "score" => Some(Sort::Score),
            "impact" => Some(Sort::Impact),
            _ => None,
        })?;
        kept::refuse(query, &["fullRuns"])?;
        Ok(Self {
            runs: query.number("runs", 3..=200)?,
            days: query.number("days", 1..=366)?,
            min_score: query.number("minScore", 0..=100)?,
            tags: query.list("tags")?,
            owner: query.exact("owner")?,
            priority: query.word("priority", &Priority::ALL.map(Priority::as_str), Priority::parse)?,
            root_cause: query.word("rootCause", &RootCause::ALL.map(RootCause::as_str), RootCause::parse)?,
            sort: sort.unwrap_or_default(),
        })
    }
}

impl FlakyFilters {
    fn query(&self, lane: &Lane, after: Option<(i64, i64)>) -> FlakyQuery {
        FlakyQuery {
            lane: lane.query(),
            runs: self.runs.and_then(|runs| usize::try_from(runs).ok()),
            days: self.days,
            min_score: self.min_score,
            tags: self.tags.clone(),
            owner: self.owner.clone(),
            priority: self.priority.map(|priority| priority.as_str().to_owned()),
            root_cause: self.root_cause,
            sort: self.sort,
            after,
        }
    }
}

/// The tests that are flaky, or suspected to be. Tests that were broken and
/// repaired are not among them, and runs in which nearly everything failed do
/// not count. Without a branch, the default branch speaks for the project once
/// it has twenty runs.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/flaky-tests", tag = "analytics",
    params(("id" = i64, Path, description = "Project"), FlakyFilters, Lane, PageRequest),
    responses((status = 200, body = Page<FlakyTest>)))]
pub(crate) async fn flaky_tests(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(filters): Query<FlakyFilters>,
    Query(lane): Query<Lane>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<FlakyTest>>, ApiError> {
    let cursors = CursorScope::new(RouteId::FlakyTests, &(id, &filters, &lane))?;
    let query = filters.query(&lane, cursors.decode(page.cursor.as_deref())?);
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let (found, _) = flakiness::list(&ctx, project, &query, state.now().day(), page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}

/// A test whose cause is asked for.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body in the API document; it is read field by field")]
pub(crate) struct ClassifyBody {
    /// The test.
    #[schema(value_type = i64)]
    test_case_id: TestCaseId,
}

/// Why a test is flaky.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Classified {
    /// The test.
    #[schema(value_type = i64)]
    test_case_id: TestCaseId,
    /// timing, network, assertion, environment or other.
    #[schema(value_type = RootCauseWord)]
    root_cause: RootCause,
}

/// Finds out why a test is flaky from its newest executions, and notes it. The
/// end of a run does the same for the tests that failed in it.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `project_not_found`,
/// `test_case_not_found`.
#[utoipa::path(post, path = "/api/projects/{id}/flaky-classify", tag = "analytics",
    params(("id" = i64, Path, description = "Project")), request_body = ClassifyBody,
    responses(
        (status = 200, body = Classified),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`project_not_found`, `test_case_not_found`")
    ))]
pub(crate) async fn classify(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Json<Classified>, ApiError> {
    fields.require(&["testCaseId"])?;
    let case = fields.id::<TestCaseId>("testCaseId")?.into_value();
    let test_case_id = case.ok_or_else(|| ApiError::missing_fields(&["testCaseId"]))?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let in_project = resolve::test_case(&ctx, caller.scope(), test_case_id).await?;
    let test_case_id = resolve::kept_test(&ctx, in_project, test_case_id).await?;
    let acting = visit.acting(&caller, state.now());
    let root_cause = callboard_query::flakiness::classify(&ctx, acting, project, test_case_id).await?;
    Ok(Json(Classified { test_case_id, root_cause }))
}
