//! `/api/projects/{id}/repository/test`.

use axum::Json;
use axum::extract::State;
use callboard_auth::limits::CONNECTION_TEST;
use callboard_domain::ids::ProjectId;
use callboard_http::extract::{Caller, Path};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::resolve;
use callboard_query::scm::{self, ConnectionTest};
use serde::Serialize;
use utoipa::ToSchema;

/// The repository can be read.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Connected {
    /// Always true.
    success: bool,
    #[serde(flatten)]
    test: ConnectionTest,
}

/// Tests whether the project's repository can be read with its token, as both
/// are saved. Nothing is changed.
///
/// # Errors
/// 404 `project_not_found`; 429 `rate_limited`; 502 `upstream_failed`; 503
/// `not_configured`.
#[utoipa::path(post, path = "/api/projects/{id}/repository/test", tag = "scm", operation_id = "test_repository",
    params(("id" = i64, Path, description = "Project")),
    responses(
        (status = 200, body = Connected),
        (status = 404, description = "`project_not_found`"),
        (status = 429, description = "`rate_limited`: more than 10 tests a minute"),
        (status = 502, description = "`upstream_failed`: `message` says in one sentence what is wrong"),
        (status = 503, description = "`not_configured`: the project's `data.setting` is missing")
    ))]
pub(crate) async fn test(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
) -> Result<Json<Connected>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    state.limits().await?.check(CONNECTION_TEST, &caller.credential().into_bytes(), state.now()).await?;
    let test = scm::test_connection(&ctx, &state.source_control(), project, state.now()).await?;
    Ok(Json(Connected { success: true, test }))
}
