//! Which accounts reach which projects, from either side.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::ids::ProjectId;
use callboard_http::conditional::tagged_json;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, Path, Query, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::accounts::members::{self, Member, UserProjects};
use callboard_query::resolve;
use http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Done;
use crate::body::{MembersBody, UserProjectsBody};
use crate::subject::{Subject, acting};

/// The projects of an account.
///
/// # Errors
/// 404 `user_not_found`.
#[utoipa::path(get, path = "/api/users/{id}/projects", tag = "users",
    params(("id" = String, Path, description = "User, or `me`")),
    responses((status = 200, body = UserProjects), (status = 304, description = "The client has this state")))]
pub(crate) async fn of_user(
    State(state): State<AppState>,
    site: Site,
    Subject(user): Subject,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    tagged_json(&headers, &members::of_user(&state.context(&site), user).await?)
}

/// The projects of an account were written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserProjectsAnswer {
    /// Always true.
    success: bool,
    /// The projects now.
    #[serde(flatten)]
    projects: UserProjects,
}

/// Assigns projects to an account. The project's members show the same
/// assignments.
///
/// # Errors
/// 400 `no_fields`, `invalid_field` (also for an administrator, who reaches
/// every project); 404 `user_not_found`, `project_not_found`.
#[utoipa::path(put, path = "/api/users/{id}/projects", tag = "users",
    params(("id" = String, Path, description = "User, or `me`")), request_body = UserProjectsBody,
    responses(
        (status = 200, body = UserProjectsAnswer),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`user_not_found`, `project_not_found`")
    ))]
pub(crate) async fn set_of_user(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Subject(user): Subject,
    fields: Fields,
) -> Result<Json<UserProjectsAnswer>, ApiError> {
    let UserProjectsBody { is_global, project_ids } = UserProjectsBody::read(&fields)?;
    let acting = acting(&state, &caller, &visit);
    let projects = members::set_of_user(&state.context(&site), acting, user, is_global, project_ids).await?;
    Ok(Json(UserProjectsAnswer { success: true, projects }))
}

/// Accounts that reach a project, by the name to sign in with.
///
/// # Errors
/// 404 `project_not_found`.
#[utoipa::path(get, path = "/api/projects/{id}/members", tag = "users",
    params(("id" = i64, Path, description = "Project"), PageRequest),
    responses((status = 200, body = Page<Member>)))]
pub(crate) async fn of_project(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Member>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectMembers, &id)?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    Ok(Json(cursors.page(members::of_project(&ctx, project, after, page.rows()).await?)?))
}

/// Assigns a project to exactly these accounts. Assignments of all projects
/// stay, and administrators reach it in any case.
///
/// # Errors
/// 400 `missing_field`, `invalid_field` (also for an administrator); 404
/// `project_not_found`, `user_not_found`.
#[utoipa::path(put, path = "/api/projects/{id}/members", tag = "users",
    params(("id" = i64, Path, description = "Project")), request_body = MembersBody,
    responses(
        (status = 200, body = Done),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`project_not_found`, `user_not_found`")
    ))]
pub(crate) async fn set_of_project(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Json<Done>, ApiError> {
    let MembersBody { user_ids } = MembersBody::read(&fields)?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    members::set_of_project(&ctx, acting(&state, &caller, &visit), project, user_ids).await?;
    Ok(Done::answer())
}
