//! `GET /api/failure-clusters/{id}/fix-plan`: what to change, and how to see
//! that it helped.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::ClusterId;
use callboard_http::extract::{Caller, Path};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::failures::{self, FixPlan};
use callboard_query::resolve;
use callboard_query::scm::{self, ClusterSuspects, SuspectsOf};
use serde::Serialize;
use utoipa::ToSchema;

/// What to do about a failure cluster.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FixPlanWithSuspects {
    #[serde(flatten)]
    plan: FixPlan,
    /// Commits and files that may be the cause, as they were read last; null until somebody asked for them.
    suspects: Option<ClusterSuspects>,
}

/// Edits that heal the locators of a cluster, the tests that fail for it, who
/// looks after them, and the command that shows whether a repair holds. Made
/// from what is stored; what is not known is left out.
///
/// # Errors
/// 404 `cluster_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/failure-clusters/{id}/fix-plan", tag = "clusters", operation_id = "fix_plan",
    params(("id" = i64, Path, description = "Cluster")),
    responses((status = 200, body = FixPlanWithSuspects)))]
pub(crate) async fn fix_plan(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ClusterId>,
) -> Result<Json<FixPlanWithSuspects>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    let plan = failures::fix_plan(&ctx, project, id).await?;
    let (access, wanted) = (state.source_control(), SuspectsOf { cluster: id, base: None });
    let suspects = scm::stored_suspects(&ctx, &access, project, wanted, state.now()).await?;
    Ok(Json(FixPlanWithSuspects { plan, suspects }))
}
