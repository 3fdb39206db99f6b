//! Judging a run by a policy, and what was said before.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::gate::{Policy, PolicyError};
use callboard_domain::ids::RunId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, JsonBody, Path, Query, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::gates::{self, GateResult, PolicyChoice};
use callboard_query::resolve;
use callboard_query::shapes::GateBrief;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// By what to judge: rules, or the name of a stored policy. Without either the
/// default policy of the project is used.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body in the OpenAPI document; it is read key by key")]
pub(crate) struct GateBody {
    /// Name of a stored policy.
    policy: Option<String>,
    /// Tags none of whose tests may fail.
    require_tags: Option<Vec<String>>,
    /// Most failed tests.
    #[schema(example = 0)]
    max_failed: Option<i64>,
    /// Most tests that passed before and fail now.
    max_new_regressions: Option<i64>,
    /// Most tests that were stable before and are flaky now.
    max_new_flaky: Option<i64>,
    /// Most tests in quarantine.
    max_quarantined: Option<i64>,
    /// Whether a failure nobody has seen before violates.
    fail_on_new_cluster: Option<bool>,
    /// Whether a flaky test violates.
    fail_on_flaky: Option<bool>,
    /// Least part of the tests that has to pass, 0 to 1.
    min_pass_rate: Option<f64>,
    /// Whether there has to be something to compare with.
    require_baseline: Option<bool>,
    /// Whether the run may have errors outside of its tests, or have failed although no test did. A run that stopped early
    /// or has no results never passes.
    allow_run_errors: Option<bool>,
}

/// The answer to rules that cannot be used.
pub(crate) fn unusable(error: &PolicyError) -> ApiError {
    match error {
        PolicyError::Field { key, .. } => ApiError::invalid_field(key, error.to_string()),
        PolicyError::Empty => ApiError::invalid_body("", error.to_string()),
    }
}

fn asked(body: &Map<String, Value>) -> Result<PolicyChoice, ApiError> {
    let name = match body.get("policy") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) if !name.is_empty() => Some(name.clone()),
        Some(_) => {
            return Err(ApiError::invalid_field("policy", "policy must be the name of a stored policy."));
        }
    };
    match name {
        Some(_) if Policy::is_in(body) => {
            Err(ApiError::invalid_body("policy", "Send rules or the name of a policy, not both."))
        }
        Some(name) => Ok(PolicyChoice::Named(name)),
        None => match Policy::read(body) {
            Ok(policy) => Ok(PolicyChoice::Inline(policy)),
            // Rules that all say "no" ask nothing, and are not the same as no rules.
            Err(PolicyError::Empty) if !Policy::is_in(body) => Ok(PolicyChoice::Default),
            Err(error) => Err(unusable(&error)),
        },
    }
}

/// Judges a final run. The run itself comes first: one with errors outside of
/// its tests, one that stopped early and one without results never passes,
/// whatever the policy. Tests in quarantine count neither as failed nor as
/// regressions. What the gate says is kept when an administrator or reporter
/// asks.
///
/// # Errors
/// 404 `run_not_found` or `policy_not_found`, 403 `project_access_denied`, 400
/// `invalid_body` when there is nothing to judge by, 409 `run_not_finished`.
#[utoipa::path(post, path = "/api/test-runs/{id}/gate", tag = "runs",
    params(("id" = i64, Path, description = "Run")), request_body = GateBody,
    responses((status = 200, body = GateResult)))]
pub(crate) async fn judge(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<RunId>,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<Json<GateResult>, ApiError> {
    let asked = asked(&body)?;
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    // A demo answers and keeps nothing.
    let keep_for = (!state.config().demo).then(|| visit.acting(&caller, state.now()));
    Ok(Json(gates::judge(&ctx, keep_for, project, id, asked).await?))
}

/// What gates said about a run, newest first.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-runs/{id}/gate-results", tag = "runs",
    params(("id" = i64, Path, description = "Run"), PageRequest),
    responses((status = 200, body = Page<GateBrief>)))]
pub(crate) async fn results(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<GateBrief>>, ApiError> {
    let cursors = CursorScope::new(RouteId::GateResults, &id)?;
    let before = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    Ok(Json(cursors.page(gates::results(&ctx, project, id, before, page.rows()).await?)?))
}
