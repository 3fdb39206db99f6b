//! `/api/failure-clusters/{id}/branches`.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::ClusterId;
use callboard_http::extract::{Caller, Path};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::resolve;
use callboard_query::scm::{self, ClusterBranch};
use serde::Serialize;
use utoipa::ToSchema;

/// Branches on which a cluster was seen.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterBranches {
    /// The branches that showed it last first, at most 50.
    items: Vec<ClusterBranch>,
}

/// Branches of the newest runs that show a failure cluster, each with its open pull
/// or merge request.
///
/// # Errors
/// 404 `cluster_not_found`; 502 `upstream_failed`; 503 `not_configured`.
#[utoipa::path(get, path = "/api/failure-clusters/{id}/branches", tag = "scm", operation_id = "list_cluster_branches",
    params(("id" = i64, Path, description = "Cluster")),
    responses(
        (status = 200, body = ClusterBranches),
        (status = 404, description = "`cluster_not_found`"),
        (status = 502, description = "`upstream_failed`: the request to the code host failed; `data` has `provider`, `status` and `retryAt`"),
        (status = 503, description = "`not_configured`: the project's `data.setting` is missing")
    ))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ClusterId>,
) -> Result<Json<ClusterBranches>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    let items = scm::cluster_branches(&ctx, &state.source_control(), project, id, state.now()).await?;
    Ok(Json(ClusterBranches { items }))
}
