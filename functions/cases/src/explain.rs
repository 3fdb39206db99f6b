//! Why an execution failed, and how its environment differs.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::ExecutionId;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::failures::{self, Detail, EnvironmentDiff, Explanation};
use callboard_query::resolve;
use utoipa::IntoParams;

callboard_query::vocabularies! {
    /// How much is told.
    DetailWord => Detail::WORDS;
}

/// How much is told.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// `summary`, `default` or `full`: how many changes are told.
    #[param(required = false, value_type = DetailWord, example = "default", inline)]
    detail: Detail,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { detail: query.word("detail", Detail::WORDS, Detail::parse)?.unwrap_or_default() })
    }
}

/// Why an execution failed: what it says itself, what changed since the last
/// pass that precedes it, and where to look next. The same evidence always
/// gives the same answer; no model is asked.
///
/// # Errors
/// 400 `invalid_query`; 404 `execution_not_found`, 403
/// `project_access_denied`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}/explain", tag = "cases", operation_id = "explain_execution",
    params(("id" = i64, Path, description = "Execution"), Params),
    responses((status = 200, body = Explanation), (status = 400, description = "`invalid_query`")))]
pub(crate) async fn explanation(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Query(asked): Query<Params>,
) -> Result<Json<Explanation>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    Ok(Json(failures::explain(&ctx, project, id, asked.detail).await?))
}

/// What surrounded an execution, compared with the last pass of its test that
/// precedes it.
///
/// # Errors
/// 404 `execution_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}/environment-diff", tag = "cases", operation_id = "environment_diff",
    params(("id" = i64, Path, description = "Execution")),
    responses((status = 200, body = EnvironmentDiff)))]
pub(crate) async fn environment(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
) -> Result<Json<EnvironmentDiff>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    Ok(Json(failures::environment_diff(&ctx, project, id).await?))
}
