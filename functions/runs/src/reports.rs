//! `GET /api/test-runs/{id}/reports`: the reports stored with a run.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::RunId;
use callboard_http::extract::{Caller, Path};
use callboard_http::page::Page;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::shapes::Report;
use callboard_query::{resolve, runs};

/// Reports of a run.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-runs/{id}/reports", tag = "runs",
    params(("id" = i64, Path, description = "Run")),
    responses((status = 200, body = Page<Report>)))]
pub(crate) async fn reports(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
) -> Result<Json<Page<Report>>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    Ok(Json(Page::whole(runs::reports(&ctx, project, id).await?)))
}
