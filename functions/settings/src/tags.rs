//! `/api/tags`: the words projects are grouped by.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_auth::RouteId;
use callboard_domain::ids::TagId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::shapes::Tag;
use callboard_query::tags;
use http::StatusCode;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::answer::Done;
use crate::body::TagBody;

/// Which tags a list shows.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// Only words that contain this, in any case.
    q: Option<String>,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { q: query.text("q")? })
    }
}

/// Tags of projects, alphabetical.
#[utoipa::path(get, path = "/api/tags", tag = "settings", operation_id = "list_tags", params(Params, PageRequest),
    responses((status = 200, body = Page<Tag>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    Query(asked): Query<Params>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Tag>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListTags, &asked)?;
    let after = cursors.decode(page.cursor.as_deref())?;
    Ok(Json(cursors.page(tags::list(&state.context(&site), asked.q.as_deref(), after, page.rows()).await?)?))
}

/// A tag was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TagWritten {
    /// Always true.
    success: bool,
    /// The tag now.
    tag: Tag,
}

/// Creates a tag.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 409 `name_taken`.
#[utoipa::path(post, path = "/api/tags", tag = "settings", operation_id = "create_tag", request_body = TagBody,
    responses(
        (status = 201, body = TagWritten),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 409, description = "`name_taken`")
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    fields: Fields,
) -> Result<Response, ApiError> {
    let (text, color) = TagBody::complete(&fields)?;
    let acting = visit.acting(&caller, state.now());
    let tag = tags::create(&state.context(&site), acting, &text, color).await?;
    Ok((StatusCode::CREATED, Json(TagWritten { success: true, tag })).into_response())
}

/// Changes a tag.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`; 404 `tag_not_found`; 409 `name_taken`.
#[utoipa::path(method(patch, put), path = "/api/tags/{id}", tag = "settings", operation_id = "edit_tag",
    params(("id" = i64, Path, description = "Tag")), request_body = TagBody,
    responses(
        (status = 200, body = TagWritten),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`tag_not_found`"),
        (status = 409, description = "`name_taken`")
    ))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<TagId>,
    fields: Fields,
) -> Result<Json<TagWritten>, ApiError> {
    let TagBody { text, color } = TagBody::read(&fields)?;
    let acting = visit.acting(&caller, state.now());
    let tag = tags::edit(&state.context(&site), acting, id, text, color).await?;
    Ok(Json(TagWritten { success: true, tag }))
}

/// Deletes a tag and takes it off every project.
///
/// # Errors
/// 404 `tag_not_found`.
#[utoipa::path(delete, path = "/api/tags/{id}", tag = "settings", operation_id = "delete_tag",
    params(("id" = i64, Path, description = "Tag")),
    responses((status = 200, body = Done), (status = 404, description = "`tag_not_found`")))]
pub(crate) async fn delete(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<TagId>,
) -> Result<Json<Done>, ApiError> {
    tags::delete(&state.context(&site), visit.acting(&caller, state.now()), id).await?;
    Ok(Done::answer())
}
