//! `GET /api/failure-clusters/{id}/fix-plan`: what to change, and how to see
//! that it helped.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::ClusterId;
use callboard_http::extract::{Caller, Path};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::failures::{self, FixPlan};
use callboard_query::resolve;

/// Edits that heal the locators of a cluster, the tests that fail for it, who
/// looks after them, and the command that shows whether a repair holds. Made
/// from what is stored; what is not known is left out.
///
/// # Errors
/// 404 `cluster_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/failure-clusters/{id}/fix-plan", tag = "clusters", operation_id = "fix_plan",
    params(("id" = i64, Path, description = "Cluster")),
    responses((status = 200, body = FixPlan)))]
pub(crate) async fn fix_plan(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ClusterId>,
) -> Result<Json<FixPlan>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    Ok(Json(failures::fix_plan(&ctx, project, id).await?))
}
