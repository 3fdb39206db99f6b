//! `POST /api/test-runs/{id}/cancel`: ends a run by hand.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::RunId;
use callboard_http::extract::{Caller, Path, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::shapes::RunItem;
use callboard_query::{resolve, runs};
use serde::Serialize;
use utoipa::ToSchema;

/// A run that was cancelled.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CancelAnswer {
    /// Always true.
    success: bool,
    /// The run.
    run: RunItem,
}

/// Cancels an unfinished run. What its clients still send is refused.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`, 409
/// `run_already_finished`.
#[utoipa::path(post, path = "/api/test-runs/{id}/cancel", tag = "runs",
    params(("id" = i64, Path, description = "Run")),
    responses(
        (status = 200, body = CancelAnswer),
        (status = 409, description = "`run_already_finished`")
    ))]
pub(crate) async fn cancel(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<RunId>,
) -> Result<Json<CancelAnswer>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    callboard_ingest::cancel(&ctx, visit.acting(&caller, state.now()), project, id).await?;
    Ok(Json(CancelAnswer { success: true, run: runs::get(&ctx, project, id).await? }))
}
