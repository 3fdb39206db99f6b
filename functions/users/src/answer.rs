//! What the answers of this function have in common: that a write was done,
//! and that the caller's own session goes on after one that ended the others.

use axum::Json;
use axum::response::{IntoResponse, Response};
use callboard_auth::session_cookie::SessionClaims;
use callboard_http::{ApiError, AppState};
use http::HeaderMap;
use http::header::SET_COOKIE;
use serde::Serialize;
use utoipa::ToSchema;

/// It is done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Done {
    /// Always true.
    success: bool,
}

impl Done {
    pub(crate) const fn answer() -> Json<Self> {
        Json(Self { success: true })
    }
}

/// An answer after which the caller's own session goes on in another epoch of
/// its account; its cookie says so.
pub(crate) fn moved_to(
    state: &AppState,
    headers: &HeaderMap,
    epoch: Option<i64>,
    answer: impl IntoResponse,
) -> Result<Response, ApiError> {
    let mut response = answer.into_response();
    let form = state.cookie_form(headers);
    let opened = epoch.zip(state.cookies().open::<SessionClaims>(headers, form, state.now()));
    if let Some((epoch, opened)) = opened {
        let mut claims = opened.value;
        claims.epoch = epoch;
        let cookie = state.cookies().set(&claims, form)?;
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}
