//! Markers on the time line of a project.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_auth::RouteId;
use callboard_domain::annotations::MarkerCategory;
use callboard_domain::ids::{MarkerId, ProjectId};
use callboard_domain::time::Timestamp;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::markers::{self, Marker, MarkerFilters};
use callboard_query::resolve;
use http::StatusCode;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::answer::Done;
use crate::body::{MarkerBody, marker_edit, new_marker};

/// Which markers a list shows.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// A date or date-time.
    #[param(value_type = Option<String>)]
    from: Option<Timestamp>,
    /// A date or date-time; a date includes that UTC day.
    #[param(value_type = Option<String>)]
    to: Option<Timestamp>,
    /// `deploy`, `config`, `infra`, `incident`, `release` or `event`.
    #[param(value_type = Option<String>)]
    category: Option<MarkerCategory>,
    /// Only in this environment.
    environment: Option<String>,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let (from, to) = query.window()?;
        Ok(Self {
            from,
            to,
            category: query.word("category", MarkerCategory::WORDS, MarkerCategory::parse)?,
            environment: query.text("environment")?,
        })
    }
}

/// Markers of a project, newest first.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/markers", tag = "settings", operation_id = "list_markers",
    params(("id" = i64, Path, description = "Project"), Params, PageRequest),
    responses((status = 200, body = Page<Marker>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(asked): Query<Params>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Marker>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListMarkers, &(id, &asked))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let Params { from, to, category, environment } = asked;
    let wanted = MarkerFilters { from, to, category, environment };
    Ok(Json(cursors.page(markers::list(&ctx, project, wanted, after, page.rows()).await?)?))
}

/// A marker was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MarkerWritten {
    /// Always true.
    success: bool,
    /// The marker now.
    marker: Marker,
}

/// Sets a marker.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `project_not_found`,
/// `run_not_found`.
#[utoipa::path(post, path = "/api/projects/{id}/markers", tag = "settings", operation_id = "create_marker",
    params(("id" = i64, Path, description = "Project")), request_body = MarkerBody,
    responses(
        (status = 201, body = MarkerWritten),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`project_not_found`, `run_not_found`")
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, ApiError> {
    let wanted = new_marker(&fields)?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let marker = markers::create(&ctx, visit.acting(&caller, state.now()), project, wanted).await?;
    Ok((StatusCode::CREATED, Json(MarkerWritten { success: true, marker })).into_response())
}

/// Changes a marker.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`; 404 `marker_not_found`, `run_not_found`.
#[utoipa::path(method(patch, put), path = "/api/markers/{id}", tag = "settings", operation_id = "edit_marker",
    params(("id" = i64, Path, description = "Marker")), request_body = MarkerBody,
    responses(
        (status = 200, body = MarkerWritten),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`marker_not_found`, `run_not_found`")
    ))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<MarkerId>,
    fields: Fields,
) -> Result<Json<MarkerWritten>, ApiError> {
    let wanted = marker_edit(&fields)?;
    let ctx = state.context(&site);
    let project = markers::resolve_marker(&ctx, caller.scope(), id).await?;
    let marker = markers::edit(&ctx, visit.acting(&caller, state.now()), project, id, wanted).await?;
    Ok(Json(MarkerWritten { success: true, marker }))
}

/// Removes a marker.
///
/// # Errors
/// 404 `marker_not_found`.
#[utoipa::path(delete, path = "/api/markers/{id}", tag = "settings", operation_id = "delete_marker",
    params(("id" = i64, Path, description = "Marker")),
    responses((status = 200, body = Done), (status = 404, description = "`marker_not_found`")))]
pub(crate) async fn delete(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<MarkerId>,
) -> Result<Json<Done>, ApiError> {
    let ctx = state.context(&site);
    let project = markers::resolve_marker(&ctx, caller.scope(), id).await?;
    markers::delete(&ctx, visit.acting(&caller, state.now()), project, id).await?;
    Ok(Done::answer())
}
