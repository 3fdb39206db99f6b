//! Signing in as it is asked for: by programs and scripts in JSON, or with the
//! form of a page in a browser that runs no scripts. A form is always answered
//! with a page: the one it was in the place of, or the form again with what was
//! wrong and the name that was typed.

use axum::extract::{FromRequest, Request};
use axum::response::{Redirect, Response};
use callboard_auth::cookies::CookieKind;
use callboard_auth::session_cookie::RefusedName;
use callboard_http::extract::{BrowserForm, Fields, is_browser_form, own_page};
use callboard_http::{ApiError, AppState};
use http::{HeaderMap, HeaderValue};
use url::form_urlencoded;

use crate::body::Credentials;
use crate::cookie;

/// The page with the form.
pub(crate) const SIGN_IN: &str = "/login";
/// The page to go on to when the form names none.
const HOME: &str = "/";

/// What a sign-in is asked for with.
pub(crate) enum SignIn {
    /// JSON.
    Program(Credentials),
    /// The form of a page.
    Form(SignInForm),
}

impl<S: Sync> FromRequest<S> for SignIn {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        if is_browser_form(request.headers()) {
            return Ok(Self::Form(SignInForm(BrowserForm::from_request(request, state).await?)));
        }
        Ok(Self::Program(Credentials::read(&Fields::from_request(request, state).await?)?))
    }
}

/// The form that signs in.
pub(crate) struct SignInForm(BrowserForm);

impl SignInForm {
    /// Name and password. Empty ones are nobody's and refused as wrong ones are.
    pub(crate) fn credentials(&self) -> Credentials {
        Credentials {
            username: self.0.text("username").to_owned(),
            password: self.0.text("password").to_owned(),
        }
    }

    /// The page that follows.
    pub(crate) fn answered(
        &self,
        state: &AppState,
        headers: &HeaderMap,
        cookies: Result<Vec<HeaderValue>, ApiError>,
    ) -> Response {
        let next = own_page(self.0.text("next")).unwrap_or(HOME);
        match cookies {
            Ok(mut cookies) => {
                cookies.extend(forgotten(state, headers));
                cookie::with_cookies(Redirect::to(next), cookies)
            }
            Err(refused) => {
                let query = form_urlencoded::Serializer::new(String::new())
                    .append_pair("error", refused.code())
                    .append_pair("next", next)
                    .finish();
                cookie::with_cookies(
                    Redirect::to(&format!("{SIGN_IN}?{query}")),
                    self.refused_name(state, headers),
                )
            }
        }
    }

    /// The cookie that keeps the name for the form. Without it people type it
    /// again.
    fn refused_name(&self, state: &AppState, headers: &HeaderMap) -> Option<HeaderValue> {
        match RefusedName::typed(self.0.text("username"), state.now()) {
            Some(name) => state.cookies().set(&name, state.cookie_form(headers)).ok(),
            None => forgotten(state, headers),
        }
    }
}

/// Lets go of the name of an earlier refusal, where one is kept.
fn forgotten(state: &AppState, headers: &HeaderMap) -> Option<HeaderValue> {
    let form = state.cookie_form(headers);
    CookieKind::RefusedName.read(form, headers).map(|_| CookieKind::RefusedName.clear(form))
}
