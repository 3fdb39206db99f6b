//! The cookies of this function's answers. With authentication off the
//! session's value is a word; no version of this service opens anything with
//! it.

use axum::response::{IntoResponse, Response};
use callboard_auth::cookies::{CookieForm, CookieKind};
use callboard_auth::session_cookie::SessionClaims;
use callboard_http::{ApiError, AppState};
use http::header::SET_COOKIE;
use http::{HeaderMap, HeaderValue};

/// Not a sealed session, and too short to be mistaken for one.
const INERT: &str = "authentication-off";

/// The cookie of a login with authentication off.
pub(crate) fn inert(form: CookieForm) -> HeaderValue {
    CookieKind::Session.set(form, INERT)
}

/// The cookie that makes the browser forget its session.
pub(crate) fn cleared(form: CookieForm) -> HeaderValue {
    CookieKind::Session.clear(form)
}

/// The cookie of a session.
pub(crate) fn session(
    state: &AppState,
    headers: &HeaderMap,
    claims: &SessionClaims,
) -> Result<HeaderValue, ApiError> {
    Ok(state.cookies().set(claims, state.cookie_form(headers))?)
}

/// An answer that sets cookies.
pub(crate) fn with_cookies(
    answer: impl IntoResponse,
    cookies: impl IntoIterator<Item = HeaderValue>,
) -> Response {
    let mut response = answer.into_response();
    for cookie in cookies {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}
