//! `/api/links`: addresses outside that belong to something inside.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_auth::RouteId;
use callboard_domain::annotations::LinkTarget;
use callboard_domain::ids::LinkId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::links::{self, Hook, Link};
use callboard_query::scm;
use http::StatusCode;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::answer::Done;
use crate::body::{LinkBody, NewLinkBody};

/// What the links hang on.
#[derive(Debug, Serialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct Params {
    /// `test_run`, `execution`, `test_case` or `failure_cluster`.
    #[param(value_type = String, example = "test_run")]
    entity_type: LinkTarget,
    /// Its id.
    entity_id: i64,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let missing = |name: &str| ApiError::invalid_query(name, format!("{name} is required."));
        let target = query.word("entityType", LinkTarget::WORDS, LinkTarget::read)?;
        let id = query.number("entityId", 1..=(1 << 53) - 1)?;
        Ok(Self {
            entity_type: target.ok_or_else(|| missing("entityType"))?,
            entity_id: id.ok_or_else(|| missing("entityId"))?,
        })
    }
}

/// Links of a run, an execution, a test case or a failure cluster, in the
/// order they were made.
///
/// # Errors
/// 404 for what they hang on, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/links", tag = "settings", operation_id = "list_links", params(Params, PageRequest),
    responses(
        (status = 200, body = Page<Link>),
        (status = 404, description = "`run_not_found`, `execution_not_found`, `test_case_not_found`, `cluster_not_found`")
    ))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<Params>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Link>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListLinks, &asked)?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let hook = Hook { target: asked.entity_type, id: asked.entity_id };
    let project = links::resolve_hook(&ctx, caller.scope(), hook).await?;
    let mut found = links::list(&ctx, project, hook, after, page.rows()).await?;
    scm::add_states(&ctx, project, &mut found.items, state.now()).await?;
    Ok(Json(cursors.page(found)?))
}

/// A link was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LinkWritten {
    /// Always true.
    success: bool,
    /// The link now.
    link: Link,
}

/// Hangs a link on a run, an execution, a test case or a failure cluster.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 for what it hangs on.
#[utoipa::path(post, path = "/api/links", tag = "settings", operation_id = "create_link", request_body = NewLinkBody,
    responses(
        (status = 201, body = LinkWritten),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`run_not_found`, `execution_not_found`, `test_case_not_found`, `cluster_not_found`")
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    fields: Fields,
) -> Result<Response, ApiError> {
    let body = NewLinkBody::read(&fields)?;
    let hook = body.hook();
    let ctx = state.context(&site);
    let project = links::resolve_hook(&ctx, caller.scope(), hook).await?;
    let acting = visit.acting(&caller, state.now());
    let link = links::create(&ctx, acting, project, hook, body.url, body.title).await?;
    Ok((StatusCode::CREATED, Json(LinkWritten { success: true, link })).into_response())
}

/// Changes a link.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`; 404 `link_not_found`.
#[utoipa::path(method(patch, put), path = "/api/links/{id}", tag = "settings", operation_id = "edit_link",
    params(("id" = i64, Path, description = "Link")), request_body = LinkBody,
    responses(
        (status = 200, body = LinkWritten),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`link_not_found`")
    ))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<LinkId>,
    fields: Fields,
) -> Result<Json<LinkWritten>, ApiError> {
    let LinkBody { url, title } = LinkBody::read(&fields)?;
    let ctx = state.context(&site);
    let project = links::resolve_link(&ctx, caller.scope(), id).await?;
    let link = links::edit(&ctx, visit.acting(&caller, state.now()), project, id, url, title).await?;
    Ok(Json(LinkWritten { success: true, link }))
}

/// Takes a link off.
///
/// # Errors
/// 404 `link_not_found`.
#[utoipa::path(delete, path = "/api/links/{id}", tag = "settings", operation_id = "delete_link",
    params(("id" = i64, Path, description = "Link")),
    responses((status = 200, body = Done), (status = 404, description = "`link_not_found`")))]
pub(crate) async fn delete(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<LinkId>,
) -> Result<Json<Done>, ApiError> {
    let ctx = state.context(&site);
    let project = links::resolve_link(&ctx, caller.scope(), id).await?;
    links::delete(&ctx, visit.acting(&caller, state.now()), project, id).await?;
    Ok(Done::answer())
}

/// Has the address of a link looked at again; the title it tells is there soon
/// after. A title that a person gave stays.
///
/// # Errors
/// 404 `link_not_found`.
#[utoipa::path(post, path = "/api/links/{id}/refresh", tag = "settings", operation_id = "refresh_link",
    params(("id" = i64, Path, description = "Link")),
    responses((status = 200, body = LinkWritten), (status = 404, description = "`link_not_found`")))]
pub(crate) async fn refresh(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<LinkId>,
) -> Result<Json<LinkWritten>, ApiError> {
    let ctx = state.context(&site);
    let project = links::resolve_link(&ctx, caller.scope(), id).await?;
    let link = links::refresh(&ctx, visit.acting(&caller, state.now()), project, id).await?;
    Ok(Json(LinkWritten { success: true, link }))
}
