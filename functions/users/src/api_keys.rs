//! API keys of an account.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, Query, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site, TellsSecret};
use callboard_query::accounts::api_keys::{self, ApiKey, NewApiKey};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Done;
use crate::body::NewKeyBody;
use crate::subject::{Key, Subject, acting};

/// Keys of an account, newest first; revoked ones for 90 days.
///
/// # Errors
/// 403 `insufficient_role`, 404 `user_not_found`.
#[utoipa::path(get, path = "/api/users/{id}/api-keys", tag = "users",
    params(("id" = String, Path, description = "User, or `me`"), PageRequest),
    responses((status = 200, body = Page<ApiKey>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    Subject(user): Subject,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<ApiKey>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListApiKeys, &user.get())?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let found = api_keys::list(&state.context(&site), user, after, page.rows(), state.now()).await?;
    Ok(Json(cursors.page(found)?))
}

/// A key that was created.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreatedKeyAnswer {
    /// Always true.
    success: bool,
    /// The key itself. It is told this once.
    #[schema(example = "pd_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")]
    key: String,
    /// The beginning of the key, which lists show.
    #[schema(example = "pd_01234567")]
    prefix: String,
    /// What it is for.
    name: String,
    /// As lists show it.
    api_key: ApiKey,
}

/// Creates a key of an account. It reaches at most what its owner does; made
/// with another key it reaches and lasts at most as that one does, and is
/// revoked with it.
///
/// An `Idempotency-Key` does not bring the answer back, because the key is
/// kept nowhere.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 403 `insufficient_role`,
/// `key_scope_denied`, `project_access_denied`; 404 `user_not_found`,
/// `project_not_found`; 413 `too_many_items` beyond a hundred live keys.
#[utoipa::path(post, path = "/api/users/{id}/api-keys", tag = "users",
    params(("id" = String, Path, description = "User, or `me`")), request_body = NewKeyBody,
    responses(
        (status = 201, body = CreatedKeyAnswer),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 403, description = "`insufficient_role`, `key_scope_denied`, `project_access_denied`"),
        (status = 404, description = "`user_not_found`, `project_not_found`"),
        (status = 413, description = "`too_many_items`: there are a hundred live keys")
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Subject(user): Subject,
    fields: Fields,
) -> Result<Response, ApiError> {
    let NewKeyBody { name, expires_at, permission, project_ids } = NewKeyBody::read(&fields)?;
    let new = NewApiKey { name, permission, projects: project_ids, expires_at };
    let created = api_keys::create(&state.context(&site), acting(&state, &caller, &visit), user, new).await?;
    let answer = CreatedKeyAnswer {
        success: true,
        key: created.text,
        prefix: created.key.key_prefix.clone(),
        name: created.key.name.clone(),
        api_key: created.key,
    };
    Ok(TellsSecret.mark((StatusCode::CREATED, Json(answer))))
}

/// Revokes a key, with every key that was made with it; they open nothing
/// from the next request on.
///
/// # Errors
/// 403 `insufficient_role`, 404 `api_key_not_found`.
#[utoipa::path(delete, path = "/api/users/{id}/api-keys/{keyId}", tag = "users",
    params(("id" = String, Path, description = "User, or `me`"), ("keyId" = i64, Path, description = "Key")),
    responses((status = 200, body = Done), (status = 404, description = "`api_key_not_found`")))]
pub(crate) async fn revoke(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Subject(user): Subject,
    Key(key): Key,
) -> Result<Json<Done>, ApiError> {
    api_keys::revoke(&state.context(&site), acting(&state, &caller, &visit), user, key).await?;
    Ok(Done::answer())
}
