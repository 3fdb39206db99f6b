//! Tests set aside: `/api/projects/{id}/quarantine` and the plan for reporters.

use axum::Json;
use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::response::{IntoResponse, Response};
use callboard_auth::RouteId;
use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::time::Timestamp;
use callboard_http::conditional::tagged_json;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, EntityId as _, Fields, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::lane::Lane;
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::quarantine::{
    self, Debt, Proposal, Quarantine, QuarantineQuery, SetAside, SetAsideTest,
};
use callboard_query::resolve;
use http::StatusCode;
use http::header::HeaderMap;
use http::request::Parts;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

const STANDINGS: [&str; 2] = ["active", "released"];

callboard_query::vocabularies! {
    /// Whether a test still is in quarantine.
    StandingWord => STANDINGS;
}

const MAX_REASON_CHARS: usize = 500;

/// Which tests are shown.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// `active` (the default) or `released`.
    #[param(value_type = Option<StandingWord>, example = "active", inline)]
    state: Standing,
    /// Whether to propose tests that should be set aside.
    candidates: Option<bool>,
    /// Exact owner of the tests; debt and candidates are those of all.
    owner: Option<String>,
}

/// Whether a test still is in quarantine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
enum Standing {
    #[default]
    Active,
    Released,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let state = query.word("state", &STANDINGS, |word| match word {
            "active" => Some(Standing::Active),
            "released" => Some(Standing::Released),
            _ => None,
        })?;
        Ok(Self {
            state: state.unwrap_or_default(),
            candidates: query.flag("candidates")?,
            owner: query.exact("owner")?,
        })
    }
}

/// The quarantine of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuarantinePage {
    /// The rows.
    #[serde(flatten)]
    page: Page<Quarantine>,
    /// What quarantine costs.
    debt: Debt,
    /// Whom to set aside, the most expensive first; ten at most, and none unless asked for.
    candidates: Vec<Proposal>,
}

/// The tests in quarantine, or those that were, newest first.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/quarantine", tag = "cases",
    params(("id" = i64, Path, description = "Project"), Params, PageRequest),
    responses((status = 200, body = QuarantinePage)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(asked): Query<Params>,
    Query(page): Query<PageRequest>,
) -> Result<Json<QuarantinePage>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListQuarantine, &(id, asked.state, &asked.owner))?;
    let query = QuarantineQuery {
        is_active: asked.state == Standing::Active,
        candidates: asked.candidates.unwrap_or(false),
        owner: asked.owner,
        before: cursors.decode(page.cursor.as_deref())?,
    };
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let found = quarantine::list(&ctx, project, query, state.now(), page.rows()).await?;
    Ok(Json(QuarantinePage {
        page: cursors.page(found.page)?,
        debt: found.debt,
        candidates: found.candidates,
    }))
}

/// A test to set aside.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body in the API document; it is read field by field")]
pub(crate) struct QuarantineBody {
    /// The test.
    #[schema(value_type = i64)]
    test_case_id: TestCaseId,
    /// Why, at most 500 characters.
    reason: Option<String>,
    /// `manual` (the default), or `proposed` when it was one of the candidates.
    #[schema(example = "manual")]
    source: Option<String>,
    /// Until when at most.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// A test was set aside, or let go.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuarantineWritten {
    /// Always true.
    success: bool,
    /// Its quarantine now.
    quarantine: Quarantine,
}

/// Puts a test into quarantine: it runs and is counted, and its failures are
/// marked from the next run on. 200 when it already is there.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `project_not_found`,
/// `test_case_not_found`.
#[utoipa::path(post, path = "/api/projects/{id}/quarantine", tag = "cases",
    params(("id" = i64, Path, description = "Project")), request_body = QuarantineBody,
    responses(
        (status = 201, body = QuarantineWritten),
        (status = 200, description = "It already is there", body = QuarantineWritten),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`project_not_found`, `test_case_not_found`")
    ))]
pub(crate) async fn set_aside(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, ApiError> {
    fields.require(&["testCaseId"])?;
    let case = fields.id::<TestCaseId>("testCaseId")?.into_value();
    let now = state.now();
    let expires_at = fields.moment("expiresAt")?.into_value();
    if expires_at.is_some_and(|at| at <= now) {
        return Err(ApiError::invalid_field("expiresAt", "expiresAt must be in the future."));
    }
    let is_proposed = fields.word("source", &["manual", "proposed"], |word| match word {
        "manual" => Some(false),
        "proposed" => Some(true),
        _ => None,
    })?;
    let mut wanted = SetAside {
        case: case.ok_or_else(|| ApiError::missing_fields(&["testCaseId"]))?,
        reason: fields.prose("reason", MAX_REASON_CHARS)?.into_value(),
        is_proposed: is_proposed.unwrap_or(false),
        expires_at,
    };
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let in_project = resolve::test_case(&ctx, caller.scope(), wanted.case).await?;
    wanted.case = resolve::kept_test(&ctx, in_project, wanted.case).await?;
    let (quarantine, is_new) =
        quarantine::set_aside(&ctx, visit.acting(&caller, now), project, &wanted).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(QuarantineWritten { success: true, quarantine })).into_response())
}

/// The `{testCaseId}` of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfCase(TestCaseId);

impl FromRequestParts<AppState> for OfCase {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|_| TestCaseId::invalid())?;
        let text = params.iter().find(|(key, _)| *key == "testCaseId").map(|(_, value)| value.to_owned());
        text.and_then(|text| TestCaseId::parse_id(&text)).map(Self).ok_or_else(TestCaseId::invalid)
    }
}

/// Why a test is let go.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Released {
    /// At most 500 characters.
    reason: Option<String>,
}

impl FromQuery for Released {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let reason = query.exact("reason")?;
        if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON_CHARS) {
            let message = format!("reason must have at most {MAX_REASON_CHARS} characters.");
            return Err(ApiError::invalid_query("reason", message));
        }
        Ok(Self { reason })
    }
}

/// Lets a test go. Its failures count again from the next run on.
///
/// # Errors
/// 404 `project_not_found`, and `test_case_not_found` when it is not in
/// quarantine.
#[utoipa::path(delete, path = "/api/projects/{id}/quarantine/{testCaseId}", tag = "cases",
    params(("id" = i64, Path, description = "Project"), ("testCaseId" = i64, Path, description = "Test case"), Released),
    responses(
        (status = 200, body = QuarantineWritten),
        (status = 404, description = "`project_not_found`, `test_case_not_found`")
    ))]
pub(crate) async fn release(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
    OfCase(case): OfCase,
    Query(released): Query<Released>,
) -> Result<Json<QuarantineWritten>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    let quarantine = quarantine::release(&ctx, acting, project, case, released.reason).await?;
    Ok(Json(QuarantineWritten { success: true, quarantine }))
}

/// The tests reporters need not fail for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuarantinePlan {
    /// Changes with the tests.
    version: String,
    /// Until when the plan may be used without asking again: the end of the next UTC day.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// By file; at most five thousand.
    items: Vec<SetAsideTest>,
}

/// The tests in quarantine as reporters need them. Branch and environment are
/// accepted: a test is in quarantine everywhere.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/quarantine-plan", tag = "cases",
    params(("id" = i64, Path, description = "Project"), Lane),
    responses((status = 200, body = QuarantinePlan), (status = 304, description = "The client has this plan")))]
pub(crate) async fn plan(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(_lane): Query<Lane>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let plan = quarantine::plan(&ctx, project, state.now()).await?;
    let plan = QuarantinePlan { version: plan.version, expires_at: plan.expires_at, items: plan.items };
    tagged_json(&headers, &plan)
}
