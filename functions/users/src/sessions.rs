//! Sessions of an account.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Query, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::accounts::sessions::{self, SessionItem};
use http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Done, moved_to};
use crate::subject::{Session, Subject, acting};

/// Live sessions of an account, newest first.
///
/// # Errors
/// 403 `insufficient_role`, 404 `user_not_found`.
#[utoipa::path(get, path = "/api/users/{id}/sessions", tag = "users",
    params(("id" = String, Path, description = "User, or `me`"), PageRequest),
    responses((status = 200, body = Page<SessionItem>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Subject(user): Subject,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<SessionItem>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListSessions, &user.get())?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let acting = acting(&state, &caller, &visit);
    let found = sessions::list(&state.context(&site), acting, user, after, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}

/// Ends one session of an account.
///
/// # Errors
/// 400 `invalid_session_id`, 403 `insufficient_role`, 404 `user_not_found`,
/// `session_not_found`.
#[utoipa::path(delete, path = "/api/users/{id}/sessions/{sessionId}", tag = "users",
    params(
        ("id" = String, Path, description = "User, or `me`"),
        ("sessionId" = String, Path, description = "Session, as the list names it")
    ),
    responses((status = 200, body = Done), (status = 404, description = "`user_not_found`, `session_not_found`")))]
pub(crate) async fn end(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Subject(user): Subject,
    Session(name): Session,
) -> Result<Json<Done>, ApiError> {
    sessions::end(&state.context(&site), acting(&state, &caller, &visit), user, &name).await?;
    Ok(Done::answer())
}

/// An account was signed out.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SignedOutAnswer {
    /// Always true.
    success: bool,
    /// Sessions that ended.
    ended: u64,
}

/// Ends every session of an account. Whoever asks for it in a session of that
/// account goes on in it.
///
/// # Errors
/// 403 `insufficient_role`, 404 `user_not_found`.
#[utoipa::path(post, path = "/api/users/{id}/sign-out", tag = "users",
    params(("id" = String, Path, description = "User, or `me`")),
    responses((status = 200, description = "Sets the session cookie anew where the caller's session goes on",
        body = SignedOutAnswer)))]
pub(crate) async fn sign_out(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Subject(user): Subject,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let done = sessions::sign_out(&state.context(&site), acting(&state, &caller, &visit), user).await?;
    let answer = Json(SignedOutAnswer { success: true, ended: done.ended });
    moved_to(&state, &headers, done.own_session_moved_to, answer)
}
