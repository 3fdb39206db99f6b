//! What people say of clusters.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::ClusterId;
use callboard_http::extract::{Caller, Fields, Path, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::shapes::ClusterItem;
use callboard_query::{clusters, resolve};
use serde::Serialize;
use utoipa::ToSchema;

use crate::body::{BulkBody, CommitBody, EditBody, StatusBody};

/// A cluster was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterWritten {
    /// Always true.
    success: bool,
    /// The cluster now.
    cluster: ClusterItem,
}

impl ClusterWritten {
    pub(crate) const fn answer(cluster: ClusterItem) -> Json<Self> {
        Json(Self { success: true, cluster })
    }
}

/// Sets the status of a cluster, from any status; doing it again changes
/// nothing. A note that is absent is kept.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `cluster_not_found`.
#[utoipa::path(patch, path = "/api/failure-clusters/{id}/status", tag = "clusters",
    operation_id = "set_cluster_status",
    params(("id" = i64, Path, description = "Cluster")), request_body = StatusBody,
    responses(
        (status = 200, body = ClusterWritten),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`cluster_not_found`")
    ))]
pub(crate) async fn set_status(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ClusterId>,
    fields: Fields,
) -> Result<Json<ClusterWritten>, ApiError> {
    let StatusBody { status, note } = StatusBody::read(&fields)?;
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    let changed = clusters::set_status(&ctx, acting, project, id, status, note).await?;
    Ok(ClusterWritten::answer(changed.cluster))
}

/// Sets the commit that changes are compared with.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`; 404 `cluster_not_found`.
#[utoipa::path(patch, path = "/api/failure-clusters/{id}/base-commit", tag = "clusters",
    operation_id = "set_cluster_base_commit",
    params(("id" = i64, Path, description = "Cluster")), request_body = CommitBody,
    responses(
        (status = 200, body = ClusterWritten),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`cluster_not_found`")
    ))]
pub(crate) async fn set_base_commit(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ClusterId>,
    fields: Fields,
) -> Result<Json<ClusterWritten>, ApiError> {
    let CommitBody { commit } = CommitBody::read(&fields)?;
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    Ok(ClusterWritten::answer(clusters::set_base_commit(&ctx, acting, project, id, commit).await?))
}

/// Changes title, assignee and snooze of a cluster.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`; 404 `cluster_not_found`, `user_not_found`.
#[utoipa::path(method(patch, put), path = "/api/failure-clusters/{id}", tag = "clusters",
    operation_id = "edit_cluster",
    params(("id" = i64, Path, description = "Cluster")), request_body = EditBody,
    responses(
        (status = 200, body = ClusterWritten),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`cluster_not_found`, `user_not_found`")
    ))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ClusterId>,
    fields: Fields,
) -> Result<Json<ClusterWritten>, ApiError> {
    let change = EditBody::read(&fields)?.edit();
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    Ok(ClusterWritten::answer(clusters::edit(&ctx, acting, project, id, change).await?))
}

/// Several clusters were changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkWritten {
    /// Always true.
    success: bool,
    /// How many clusters are so now.
    updated: usize,
}

/// Changes several clusters: all of them, or none.
///
/// # Errors
/// 400 `missing_field`, `no_fields`, `invalid_field`; 404 `cluster_not_found`, `user_not_found`; 413
/// `too_many_items`.
#[utoipa::path(post, path = "/api/failure-clusters/bulk", tag = "clusters", operation_id = "bulk_clusters",
    request_body = BulkBody,
    responses(
        (status = 200, body = BulkWritten),
        (status = 400, description = "`missing_field`, `no_fields`, `invalid_field`"),
        (status = 403, description = "`project_access_denied`"),
        (status = 404, description = "`cluster_not_found`, `user_not_found`"),
        (status = 413, description = "`too_many_items`")
    ))]
pub(crate) async fn bulk(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    fields: Fields,
) -> Result<Json<BulkWritten>, ApiError> {
    let body = BulkBody::read(&fields)?;
    let ctx = state.context(&site);
    let acting = visit.acting(&caller, state.now());
    let updated = clusters::bulk(&ctx, acting, caller.scope(), &body.ids, &body.edit()).await?;
    Ok(Json(BulkWritten { success: true, updated }))
}
