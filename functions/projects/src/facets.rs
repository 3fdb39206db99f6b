//! `GET /api/projects/{id}/facets`: what filter menus offer.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::ProjectId;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::PageSize;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::shapes::Facets;
use callboard_query::{projects, resolve};
use utoipa::IntoParams;

/// What the menus are narrowed to.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct Params {
    /// Only branches that contain this, in upper or lower case.
    branch_q: Option<String>,
    /// Most values of each menu, 1 to 200; larger numbers count as 200.
    #[param(required = false, default = 200, minimum = 1)]
    limit: u32,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let limit = query.limit(PageSize { min: 1, default: 200, max: 200 })?;
        Ok(Self { branch_q: query.text("branchQ")?, limit })
    }
}

/// Values a project's lists can be filtered by; branches and environments by
/// their newest run.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/facets", tag = "projects",
    params(("id" = i64, Path, description = "Project"), Params),
    responses((status = 200, body = Facets)))]
pub(crate) async fn facets(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(asked): Query<Params>,
) -> Result<Json<Facets>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let facets = projects::facets(&ctx, project, asked.branch_q.as_deref(), asked.limit as usize).await?;
    Ok(Json(facets))
}
