//! `/api/failure-clusters/{id}/commits`.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::ClusterId;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::resolve;
use callboard_query::scm::{self, ClusterRange, ClusterSuspects, SuspectsOf, is_sha};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// Where the commits begin.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RangeParams {
    /// Begins after this commit instead of after the cluster's base commit or the last green run: 7 to 64 hexadecimal digits.
    base: Option<String>,
}

impl FromQuery for RangeParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let base = query.exact("base")?.map(|base| base.to_ascii_lowercase());
        if base.as_deref().is_some_and(|sha| !is_sha(sha)) {
            return Err(ApiError::invalid_query(
                "base",
                "base must be a commit of 7 to 64 hexadecimal digits.",
            ));
        }
        Ok(Self { base })
    }
}

/// What changed before a cluster appeared.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterCommits {
    /// The commits, and which of them may be the cause; null when there are none.
    range: Option<ClusterSuspects>,
    /// Why there are none, as a sentence.
    #[schema(example = "No green run came before this one.")]
    reason: Option<String>,
}

/// Commits from the last green run before a failure cluster, or from its base
/// commit, to the first run that shows it, with the commits and files that may
/// be the cause.
///
/// # Errors
/// 400 `invalid_query`; 404 `cluster_not_found`; 502 `upstream_failed`; 503
/// `not_configured`.
#[utoipa::path(get, path = "/api/failure-clusters/{id}/commits", tag = "scm", operation_id = "list_cluster_commits",
    params(("id" = i64, Path, description = "Cluster"), RangeParams),
    responses(
        (status = 200, body = ClusterCommits),
        (status = 400, description = "`invalid_query`"),
        (status = 404, description = "`cluster_not_found`"),
        (status = 502, description = "`upstream_failed`: the request to the code host failed; `data` has `provider`, `status` and `retryAt`"),
        (status = 503, description = "`not_configured`: the project's `data.setting` is missing")
    ))]
pub(crate) async fn commits(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ClusterId>,
    Query(params): Query<RangeParams>,
) -> Result<Json<ClusterCommits>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    let wanted = SuspectsOf { cluster: id, base: params.base.as_deref() };
    let found = scm::suspects(&ctx, &state.source_control(), project, wanted, state.now()).await?;
    Ok(Json(match found {
        ClusterRange::Suspects(range) => ClusterCommits { range: Some(*range), reason: None },
        ClusterRange::None(_, reason) => ClusterCommits { range: None, reason: Some(reason.to_string()) },
    }))
}
