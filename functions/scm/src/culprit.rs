//! `/api/test-runs/{id}/culprit`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use callboard_auth::limits::CULPRIT;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, ProjectId, RunId};
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::scm::{self, CulpritSearch, CulpritState};
use callboard_query::{Context, Entity, QueryError, resolve};
use utoipa::{IntoParams, ToSchema};

/// Which test of the run.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct CulpritParams {
    /// Execution of the run that failed.
    #[param(value_type = i64)]
    execution_id: ExecutionId,
}

impl FromQuery for CulpritParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let execution_id = query.id("executionId")?.ok_or_else(|| {
            ApiError::invalid_query("executionId", "executionId must name a failed execution of the run.")
        })?;
        Ok(Self { execution_id })
    }
}

/// A test of the run.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body in the API document; it is read field by field")]
pub(crate) struct CulpritBody {
    /// Execution of the run that failed.
    #[schema(value_type = i64)]
    execution_id: ExecutionId,
}

/// The project, where the execution belongs to the run.
async fn authorized(
    ctx: &Context,
    caller: &Caller,
    run: RunId,
    execution: ExecutionId,
) -> Result<Authorized<ProjectId>, ApiError> {
    let project = resolve::run(ctx, caller.scope(), run).await?;
    if execution.run() != run {
        return Err(QueryError::not_found(Entity::Execution, execution).into());
    }
    Ok(project)
}

/// Which commit turned a test red, as far as it is known: the commits between the
/// last pass before the execution and the failure that cannot be chance, each with
/// its probability.
///
/// # Errors
/// 400 `invalid_query`; 404 `run_not_found`, `execution_not_found`; 503 `not_configured`.
#[utoipa::path(get, path = "/api/test-runs/{id}/culprit", tag = "scm", operation_id = "get_culprit",
    params(("id" = i64, Path, description = "Run"), CulpritParams),
    responses(
        (status = 200, body = CulpritSearch),
        (status = 400, description = "`invalid_query`"),
        (status = 404, description = "`run_not_found`, `execution_not_found`"),
        (status = 503, description = "`not_configured`: the project's `data.setting` is missing")
    ))]
pub(crate) async fn get(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(params): Query<CulpritParams>,
) -> Result<Json<CulpritSearch>, ApiError> {
    let ctx = state.context(&site);
    let execution = params.execution_id;
    let project = authorized(&ctx, &caller, id, execution).await?;
    Ok(Json(scm::culprit(&ctx, &state.source_control(), project, execution, state.now()).await?))
}

/// Searches the commit that turned a test red. A job reads the commits, once for
/// each range; a search that runs or is done is returned.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `run_not_found`,
/// `execution_not_found`; 429 `rate_limited`; 503 `not_configured`.
#[utoipa::path(post, path = "/api/test-runs/{id}/culprit", tag = "scm", operation_id = "find_culprit",
    params(("id" = i64, Path, description = "Run")),
    request_body = CulpritBody,
    responses(
        (status = 200, body = CulpritSearch, description = "It is done, or there is nothing to search"),
        (status = 202, body = CulpritSearch, description = "It is queued or runs"),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`run_not_found`, `execution_not_found`"),
        (status = 429, description = "`rate_limited`: more than 30 searches a minute"),
        (status = 503, description = "`not_configured`: the project's `data.setting` is missing")
    ))]
pub(crate) async fn find(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    fields: Fields,
) -> Result<Response, ApiError> {
    fields.require(&["executionId"])?;
    let execution = fields.id::<ExecutionId>("executionId")?.into_value();
    let execution = execution.ok_or_else(|| ApiError::missing_fields(&["executionId"]))?;
    let ctx = state.context(&site);
    let project = authorized(&ctx, &caller, id, execution).await?;
    state.limits().await?.check(CULPRIT, &caller.credential().into_bytes(), state.now()).await?;
    let found = scm::request_culprit(&ctx, &state.source_control(), project, execution, state.now()).await?;
    let status = if found.state == CulpritState::Running { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(found)).into_response())
}
