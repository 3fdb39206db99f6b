//! `/reset`, `/verify` and `/unsubscribe`: what the links of mails lead to. The token stands
//! behind the `#` of the address, so no log has it; a script takes it from
//! there.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_http::{ApiError, AppState};

use super::password_hint;
use crate::filters;
use crate::visit::answer;

/// Inputs of `pages/entrance/reset.html`.
#[derive(Template)]
#[template(path = "pages/entrance/reset.html")]
struct ResetPage {
    title: &'static str,
    is_demo: bool,
    password_hint: String,
}

/// Inputs of `pages/entrance/verify.html`.
#[derive(Template)]
#[template(path = "pages/entrance/verify.html")]
struct VerifyPage {
    title: &'static str,
    is_demo: bool,
}

/// Inputs of `pages/entrance/unsubscribe.html`.
#[derive(Template)]
#[template(path = "pages/entrance/unsubscribe.html")]
struct UnsubscribePage {
    title: &'static str,
    is_demo: bool,
}

/// Sets a password: a new one, or the first one of somebody invited.
pub(crate) async fn reset(State(state): State<AppState>) -> Result<Response, ApiError> {
    answer(&ResetPage {
        title: "Set a password",
        is_demo: state.config().demo,
        password_hint: password_hint(&state),
    })
}

/// Proves an e-mail address.
pub(crate) async fn verify(State(state): State<AppState>) -> Result<Response, ApiError> {
    answer(&VerifyPage { title: "Confirm your e-mail address", is_demo: state.config().demo })
}

/// Ends the mails of a channel.
pub(crate) async fn unsubscribe(State(state): State<AppState>) -> Result<Response, ApiError> {
    answer(&UnsubscribePage { title: "Unsubscribe", is_demo: state.config().demo })
}
