//! Storage quotas of the instance and of projects.

use axum::Json;
use axum::response::Response;
use callboard_domain::ids::ProjectId;
use callboard_domain::storage_quota::{QUOTA_KEYS, StorageQuota};
use callboard_http::ApiError;
use callboard_http::conditional::tagged_json;
use callboard_http::extract::{Fields, Path};
use callboard_query::settings::OfInstance;
use callboard_query::storage_quota;
use http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{GroupHistory, Written, refused};
use crate::desk::Desk;
use crate::group;

/// A storage quota. It refuses and deletes nothing; subscribers of `storage.quota` are notified at 80, 95 and 100%.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read and written key by key")]
pub(crate) struct QuotaBody {
    /// Bytes, from 1 MB to 1 PB; null for no quota.
    #[schema(example = 50_000_000_000_i64, minimum = 1_000_000)]
    quota_bytes: Option<i64>,
}

/// The storage quota of the instance.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuotaAnswer {
    /// What holds.
    #[schema(value_type = QuotaBody)]
    settings: StorageQuota,
    #[serde(flatten)]
    history: GroupHistory,
}

impl From<OfInstance<StorageQuota>> for QuotaAnswer {
    fn from(found: OfInstance<StorageQuota>) -> Self {
        Self { settings: found.set, history: GroupHistory::new(found.updated_at, found.updated_by) }
    }
}

/// The storage quota of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProjectQuotaAnswer {
    /// What holds.
    #[schema(value_type = QuotaBody)]
    settings: StorageQuota,
}

impl From<StorageQuota> for ProjectQuotaAnswer {
    fn from(settings: StorageQuota) -> Self {
        Self { settings }
    }
}

/// The storage quota of the instance.
#[utoipa::path(get, path = "/api/settings/storage-quota", tag = "settings", operation_id = "instance_storage_quota",
    responses((status = 200, body = QuotaAnswer), (status = 304, description = "The client has this state")))]
pub(crate) async fn of_instance(desk: Desk, headers: HeaderMap) -> Result<Response, ApiError> {
    group::get::<StorageQuota, QuotaAnswer>(&desk, &headers).await
}

/// Changes the storage quota of the instance.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`.
#[utoipa::path(method(patch, put), path = "/api/settings/storage-quota", tag = "settings",
    operation_id = "edit_instance_storage_quota", request_body = QuotaBody,
    responses(
        (status = 200, body = Written<QuotaAnswer>),
        (status = 400, description = "`no_fields`, `invalid_field`")
    ))]
pub(crate) async fn edit_instance(
    desk: Desk,
    fields: Fields,
) -> Result<Json<Written<QuotaAnswer>>, ApiError> {
    group::edit::<StorageQuota, QuotaAnswer>(&desk, &fields, &QUOTA_KEYS).await
}

/// The storage quota of a project.
///
/// # Errors
/// 404 `project_not_found`.
#[utoipa::path(get, path = "/api/projects/{id}/storage-quota", tag = "settings", operation_id = "project_storage_quota",
    params(("id" = i64, Path, description = "Project")),
    responses(
        (status = 200, body = ProjectQuotaAnswer),
        (status = 304, description = "The client has this state"),
        (status = 404, description = "`project_not_found`")
    ))]
pub(crate) async fn of_project(
    desk: Desk,
    Path(id): Path<ProjectId>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let project = desk.project(id).await?;
    let found = storage_quota::of_project(&desk.ctx, project).await?;
    tagged_json(&headers, &ProjectQuotaAnswer::from(found))
}

/// Changes the storage quota of a project.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`; 404 `project_not_found`.
#[utoipa::path(method(patch, put), path = "/api/projects/{id}/storage-quota", tag = "settings",
    operation_id = "edit_project_storage_quota",
    params(("id" = i64, Path, description = "Project")), request_body = QuotaBody,
    responses(
        (status = 200, body = Written<ProjectQuotaAnswer>),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`project_not_found`")
    ))]
pub(crate) async fn edit_project(
    desk: Desk,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Json<Written<ProjectQuotaAnswer>>, ApiError> {
    let project = desk.project(id).await?;
    fields.require_any(&QUOTA_KEYS)?;
    storage_quota::edit_project(&desk.ctx, desk.acting(), project, fields.as_map())
        .await?
        .map_err(refused)?;
    Ok(Written::answer(storage_quota::of_project(&desk.ctx, project).await?))
}
