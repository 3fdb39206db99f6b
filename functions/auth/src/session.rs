//! Login, logout, and who the caller is.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_auth::Scheme;
use callboard_http::extract::{Caller, JsonBody};
use callboard_http::{ApiError, AppState};
use http::HeaderMap;
use http::header::SET_COOKIE;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cookie;
use crate::user::PublicUser;

/// Name and password.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Credentials {
    /// Name to sign in with.
    #[schema(required = true, value_type = String, example = "ci")]
    username: Option<String>,
    /// Password, exactly as it was set.
    #[schema(required = true, value_type = String, format = Password)]
    password: Option<String>,
}

/// A session was started.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LoginAnswer {
    /// Always true.
    success: bool,
    /// Who is signed in.
    user: PublicUser,
}

/// The session is over.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogoutAnswer {
    /// Always true.
    success: bool,
}

/// Who the caller is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MeAnswer {
    /// Whether the caller may do anything.
    authenticated: bool,
    /// Whether callers have to sign in at all.
    auth_enabled: bool,
    /// The caller.
    user: Option<PublicUser>,
}

/// Starts a session. With authentication off every name and password is
/// accepted and the cookie opens nothing.
#[utoipa::path(post, path = "/api/auth/login", tag = "auth", request_body = Credentials,
    responses(
        (status = 200, description = "Signed in; sets the session cookie", body = LoginAnswer),
        (status = 400, description = "`missing_field`, `invalid_field`")
    ))]
pub(crate) async fn login(
    State(state): State<AppState>,
    headers: HeaderMap,
    JsonBody(credentials): JsonBody<Credentials>,
) -> Result<Response, ApiError> {
    let given = [("username", credentials.username), ("password", credentials.password)];
    let missing: Vec<&str> =
        given.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        return Err(ApiError::missing_fields(&missing));
    }
    if let Some((name, _)) = given.iter().find(|(_, value)| value.as_deref().is_some_and(str::is_empty)) {
        return Err(ApiError::invalid_field(name, format!("{name} must not be empty.")));
    }
    let answer = LoginAnswer { success: true, user: PublicUser::virtual_administrator() };
    Ok(([(SET_COOKIE, cookie::inert(scheme(&state, &headers)))], Json(answer)).into_response())
}

/// Ends the session; without one it does nothing.
#[utoipa::path(post, path = "/api/auth/logout", tag = "auth", responses((status = 200, body = LogoutAnswer)))]
pub(crate) async fn logout(State(state): State<AppState>, headers: HeaderMap) -> Response {
    let cookie = cookie::cleared(scheme(&state, &headers));
    ([(SET_COOKIE, cookie)], Json(LogoutAnswer { success: true })).into_response()
}

/// Who the caller is; never an error.
#[utoipa::path(get, path = "/api/auth/me", tag = "auth", responses((status = 200, body = MeAnswer)))]
pub(crate) async fn me(State(state): State<AppState>, caller: Caller) -> Json<MeAnswer> {
    let user = PublicUser::of(&caller);
    Json(MeAnswer { authenticated: user.is_some(), auth_enabled: state.authenticator().is_enabled(), user })
}

/// The scheme of the outermost connection.
fn scheme(state: &AppState, headers: &HeaderMap) -> Scheme {
    state.gate().effective_origin(headers).map_or(Scheme::Http, |origin| origin.scheme())
}
