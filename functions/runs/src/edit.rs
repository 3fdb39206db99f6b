//! What people change about a run: its label, and that it is kept.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::RunId;
use callboard_http::extract::{Caller, Fields, Path, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::run_editing::{self, RunEdit};
use callboard_query::shapes::RunItem;
use callboard_query::{resolve, runs};
use serde::Serialize;
use utoipa::ToSchema;

/// Most characters of a label.
const LABEL_CHARS: usize = 200;
/// Most characters of an environment.
const ENVIRONMENT_CHARS: usize = 100;
/// Most characters of a reason.
const REASON_CHARS: usize = 200;

/// What changes of a run.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the body in the OpenAPI document; it is read field by field")]
pub(crate) struct RunBody {
    /// Display label, at most 200 characters; null clears it. Clients do not overwrite an edited one.
    label: Option<String>,
    /// Where it ran, at most 100 characters; null for nowhere in particular. Its results are counted there soon
    /// after.
    environment: Option<String>,
}

/// Why a run is kept.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the body in the OpenAPI document; it is read field by field")]
pub(crate) struct PinBody {
    /// At most 200 characters.
    reason: Option<String>,
}

/// A run that was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunChanged {
    /// Always true.
    success: bool,
    /// The run.
    run: RunItem,
}

/// Changes the label or the environment of a run. What its results count for
/// moves to the environment soon after; which tests are new regressions stays
/// as it was told when they came.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`, 400 `no_fields`,
/// `invalid_field`; 409 `run_not_finished` for the environment of a run that
/// goes on.
#[utoipa::path(method(patch, put), path = "/api/test-runs/{id}", tag = "runs",
    params(("id" = i64, Path, description = "Run")), request_body = RunBody,
    responses((status = 200, body = RunChanged), (status = 409, description = "`run_not_finished`")))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<RunId>,
    fields: Fields,
) -> Result<Json<RunChanged>, ApiError> {
    fields.require_any(&["label", "environment"])?;
    let edit = RunEdit {
        label: fields.line("label", LABEL_CHARS)?,
        environment: fields.line("environment", ENVIRONMENT_CHARS)?,
    };
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    run_editing::edit(&ctx, visit.acting(&caller, state.now()), project, id, edit).await?;
    Ok(Json(RunChanged { success: true, run: runs::get(&ctx, project, id).await? }))
}

/// Keeps a run: retention touches neither it nor its evidence.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(put, path = "/api/test-runs/{id}/pin", tag = "runs",
    params(("id" = i64, Path, description = "Run")), request_body = PinBody,
    responses((status = 200, body = RunChanged)))]
pub(crate) async fn pin(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<RunId>,
    fields: Fields,
) -> Result<Json<RunChanged>, ApiError> {
    let reason = fields.line("reason", REASON_CHARS)?.into_value();
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    run_editing::pin(&ctx, visit.acting(&caller, state.now()), project, id, reason).await?;
    Ok(Json(RunChanged { success: true, run: runs::get(&ctx, project, id).await? }))
}

/// Leaves a run to retention again.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(delete, path = "/api/test-runs/{id}/pin", tag = "runs",
    params(("id" = i64, Path, description = "Run")),
    responses((status = 200, body = RunChanged)))]
pub(crate) async fn unpin(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<RunId>,
) -> Result<Json<RunChanged>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    run_editing::unpin(&ctx, visit.acting(&caller, state.now()), project, id).await?;
    Ok(Json(RunChanged { success: true, run: runs::get(&ctx, project, id).await? }))
}
