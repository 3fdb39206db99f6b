//! `/setup`: the first administrator.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::Principal;
use callboard_http::extract::Caller;
use callboard_http::{ApiError, AppState};
use callboard_query::accounts::setup as first_administrator;

use super::login::Refusal;
use super::{NoticePage, home, notice, password_hint};
use crate::filters;
use crate::visit::answer;

/// Inputs of `pages/entrance/setup.html`.
#[derive(Template)]
#[template(path = "pages/entrance/setup.html")]
struct SetupPage {
    title: &'static str,
    /// `reload`, or the address to go to.
    afterwards: &'static str,
    refusal: Option<String>,
    password_hint: String,
}

/// The form that creates the first administrator.
pub(super) fn form(
    state: &AppState,
    afterwards: &'static str,
    refusal: Option<Refusal>,
) -> Result<Response, ApiError> {
    answer(&SetupPage {
        title: "First administrator",
        afterwards,
        refusal: refusal.map(Refusal::sentence),
        password_hint: password_hint(state),
    })
}

/// The first administrator at its own address.
pub(crate) async fn setup(State(state): State<AppState>, caller: Caller) -> Result<Response, ApiError> {
    if *caller.principal() == Principal::AuthOff {
        return notice(&NoticePage {
            title: "Nothing to set up",
            sentence: "Signing in is switched off here: everyone who reaches this address is an administrator. \
                       SERVICE_AUTH_ENABLED=true switches it on; the first administrator is created here then."
                .into(),
            href: "/",
            leads_to: "Go on to Callboard",
        });
    }
    if caller.user_id().is_some() {
        return Ok(home());
    }
    if first_administrator::is_needed(state.store()).await? {
        return form(&state, "/", None);
    }
    notice(&NoticePage {
        title: "Already set up",
        sentence: "There is an administrator already. Ask them for an account, or sign in if you have one."
            .into(),
        href: "/login",
        leads_to: "Sign in",
    })
}
