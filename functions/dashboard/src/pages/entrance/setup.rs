//! `/setup`: the first administrator.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::Principal;
use callboard_http::extract::Caller;
use callboard_http::{ApiError, AppState};
use callboard_query::accounts::setup::{self as first_administrator, SetupState};

use super::login::Refusal;
use super::{NoticePage, home, notice, password_hint};
use crate::filters;
use crate::visit::answer;

/// Inputs of `pages/entrance/setup.html`.
#[derive(Template)]
#[template(path = "pages/entrance/setup.html")]
struct SetupPage {
    title: &'static str,
    is_demo: bool,
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
        is_demo: state.config().demo,
        afterwards,
        refusal: refusal.map(Refusal::sentence),
        password_hint: password_hint(state),
    })
}

/// Nobody can sign in, and only whoever has the machine can change that.
pub(super) fn no_account_left(state: &AppState) -> Result<Response, ApiError> {
    notice(&NoticePage {
        is_demo: state.config().demo,
        title: "No account left",
        sentence:
            "This service has no accounts left. The operator can create an administrator on the machine: \
             callboard grant-administrator <username>"
                .into(),
        href: "/login",
        leads_to: "Try again",
    })
}

/// The first administrator at its own address.
pub(crate) async fn setup(State(state): State<AppState>, caller: Caller) -> Result<Response, ApiError> {
    if *caller.principal() == Principal::AuthOff {
        return notice(&NoticePage {
            is_demo: state.config().demo,
            title: "Nothing to set up",
            sentence: "Sign-in is off: everyone who can reach this service is an administrator. Set \
                       SERVICE_AUTH_ENABLED=true to turn it on and create the first administrator here."
                .into(),
            href: "/",
            leads_to: "Continue to Callboard",
        });
    }
    if caller.user_id().is_some() {
        return Ok(home());
    }
    match first_administrator::state(state.store()).await? {
        SetupState::Needed => return form(&state, "/", None),
        SetupState::NoAccountLeft => return no_account_left(&state),
        SetupState::Done => {}
    }
    notice(&NoticePage {
        is_demo: state.config().demo,
        title: "Already set up",
        sentence: "An administrator already exists. Ask for an account, or sign in.".into(),
        href: "/login",
        leads_to: "Sign in",
    })
}
