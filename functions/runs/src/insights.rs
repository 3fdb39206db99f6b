//! `GET /api/test-runs/{id}/insights`: what is remarkable about a run.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::RunId;
use callboard_http::extract::{Caller, Path};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::insights::{self, RunInsights};
use callboard_query::resolve;

/// What is remarkable about a run: what broke and what recovered since it was
/// green or since each test ran last, what became slower, and who had most to
/// do. Lists are short; `counts` has their whole lengths. Without anything to
/// compare with, every comparing field is null.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-runs/{id}/insights", tag = "runs",
    params(("id" = i64, Path, description = "Run")),
    responses((status = 200, body = RunInsights)))]
pub(crate) async fn of_run(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
) -> Result<Json<RunInsights>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    Ok(Json(insights::of_run(&ctx, project, id).await?))
}
