//! Making two clusters one, and one two.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_domain::ids::ClusterId;
use callboard_http::extract::{Caller, Fields, Path, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::shapes::ClusterItem;
use callboard_query::{clusters, resolve};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::body::{ExtractBody, MergeBody};
use crate::edit::ClusterWritten;

/// Makes a cluster part of another one of its project, which is the answer.
/// From now on all their failures belong to that one.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `cluster_not_found`.
#[utoipa::path(post, path = "/api/failure-clusters/{id}/merge", tag = "clusters", operation_id = "merge_cluster",
    params(("id" = i64, Path, description = "Cluster that ends")), request_body = MergeBody,
    responses(
        (status = 200, body = ClusterWritten),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 403, description = "`project_access_denied`"),
        (status = 404, description = "`cluster_not_found`")
    ))]
pub(crate) async fn merge(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ClusterId>,
    fields: Fields,
) -> Result<Json<ClusterWritten>, ApiError> {
    let MergeBody { into_id } = MergeBody::read(&fields)?;
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    resolve::cluster(&ctx, caller.scope(), into_id).await?;
    let acting = visit.acting(&caller, state.now());
    Ok(ClusterWritten::answer(clusters::merge(&ctx, acting, project, id, into_id).await?))
}

/// Tests were taken out of a cluster.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CasesExtracted {
    /// Always true.
    success: bool,
    /// The new cluster.
    cluster: ClusterItem,
    /// How many tests it was made of.
    extracted_count: usize,
    /// Occurrences the old cluster is left with.
    remaining_occurrences: i64,
}

/// Takes tests out of a cluster, into a new one. Their later failures of this
/// kind belong to the new one, too.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `cluster_not_found`, `test_case_not_found`; 413 `too_many_items`.
#[utoipa::path(post, path = "/api/failure-clusters/{id}/extract-cases", tag = "clusters",
    operation_id = "extract_cluster_cases",
    params(("id" = i64, Path, description = "Cluster")), request_body = ExtractBody,
    responses(
        (status = 201, body = CasesExtracted),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 403, description = "`project_access_denied`"),
        (status = 404, description = "`cluster_not_found`, `test_case_not_found`"),
        (status = 413, description = "`too_many_items`")
    ))]
pub(crate) async fn extract(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ClusterId>,
    fields: Fields,
) -> Result<Response, ApiError> {
    let ExtractBody { test_case_ids, note } = ExtractBody::read(&fields)?;
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    let mut kept = BTreeSet::new();
    for test in test_case_ids {
        let in_project = resolve::test_case(&ctx, caller.scope(), test).await?;
        kept.insert(resolve::kept_test(&ctx, in_project, test).await?);
    }
    let acting = visit.acting(&caller, state.now());
    let done = clusters::extract(&ctx, acting, project, id, &kept, note.as_deref()).await?;
    let answer = CasesExtracted {
        success: true,
        cluster: done.cluster,
        extracted_count: done.extracted,
        remaining_occurrences: done.remaining_occurrences,
    };
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}
