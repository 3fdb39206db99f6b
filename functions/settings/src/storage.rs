//! How much is kept, and how many of everything there are.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::ProjectId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::PageRequest;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::resolve;
use callboard_query::retention::PresetEstimate;
use callboard_query::storage::{
    self, Amount, AmountOfKind, Disk, Forecast, Growth, InstanceStats, LastSweep, PendingAmount,
    ProjectAmount, ProjectStorage,
};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// Counts over the whole installation.
#[utoipa::path(get, path = "/api/admin/stats", tag = "settings", operation_id = "instance_stats",
    responses((status = 200, body = InstanceStats)))]
pub(crate) async fn stats(
    State(state): State<AppState>,
    site: Site,
) -> Result<Json<InstanceStats>, ApiError> {
    Ok(Json(storage::instance_stats(&state.context(&site)).await?))
}

/// What the installation keeps.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceStorageAnswer {
    /// In all.
    totals: Amount,
    /// By kind.
    by_kind: Vec<AmountOfKind>,
    /// By project, most recently active first.
    items: Vec<ProjectAmount>,
    /// What waits to be deleted.
    pending: PendingAmount,
    /// How fast it grew in the last days.
    growth: Growth,
    /// How much it will be if that goes on, bytes.
    forecast: Forecast,
    /// The file system that holds the objects; null for a bucket.
    disk: Option<Disk>,
    /// What each preset of retention would free, counted within the last hour.
    presets: Vec<PresetEstimate>,
    /// The last look for objects that nothing refers to; null before the first.
    last_sweep: Option<LastSweep>,
    /// Pass it as `cursor` to read on; null after the last page.
    next_cursor: Option<String>,
}

/// What the installation keeps in the object store, by kind and by project.
#[utoipa::path(get, path = "/api/admin/storage", tag = "settings", operation_id = "instance_storage",
    params(PageRequest), responses((status = 200, body = InstanceStorageAnswer)))]
pub(crate) async fn of_instance(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(page): Query<PageRequest>,
) -> Result<Json<InstanceStorageAnswer>, ApiError> {
    let cursors = CursorScope::new(RouteId::InstanceStorage, &())?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let found = storage::instance_storage(&ctx, state.now()).await?;
    let projects = storage::recently_active(&ctx, caller.scope(), after, page.rows()).await?;
    let projects = cursors.page(projects)?;
    Ok(Json(InstanceStorageAnswer {
        totals: found.totals,
        by_kind: found.by_kind,
        items: projects.items,
        pending: found.pending,
        growth: found.growth,
        forecast: found.forecast,
        disk: found.disk,
        presets: found.presets,
        last_sweep: found.last_sweep,
        next_cursor: projects.next_cursor,
    }))
}

/// How far back.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// Days to show, 1 to 366.
    #[param(required = false, default = 30, minimum = 1, maximum = 366)]
    days: i64,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { days: query.number("days", 1..=366)?.unwrap_or(30) })
    }
}

/// What a project keeps in the object store.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/storage", tag = "settings", operation_id = "project_storage",
    params(("id" = i64, Path, description = "Project"), Params),
    responses((status = 200, body = ProjectStorage)))]
pub(crate) async fn of_project(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(asked): Query<Params>,
) -> Result<Json<ProjectStorage>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    Ok(Json(storage::of_project(&ctx, project, asked.days, state.now()).await?))
}
