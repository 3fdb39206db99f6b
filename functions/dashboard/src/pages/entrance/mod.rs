//! The pages in front of the door: signing in, the first administrator, and
//! what mails lead to. They show nothing of what is stored.

mod login;
mod setup;
mod token;

use std::borrow::Cow;

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};
use callboard_http::{ApiError, AppState};
use callboard_query::accounts::setup::{self as first_administrator, SetupState};
use http::StatusCode;

pub(crate) use login::{login, name_of};
pub(crate) use setup::setup;
pub(crate) use token::{reset, unsubscribe, verify};

use crate::filters;
use crate::visit::answer;

/// Inputs of `pages/entrance/notice.html`: one sentence and the way on.
#[derive(Template)]
#[template(path = "pages/entrance/notice.html")]
pub(crate) struct NoticePage {
    /// Whether this is a read-only demo.
    pub is_demo: bool,
    /// What it is about.
    pub title: &'static str,
    /// What there is to say.
    pub sentence: Cow<'static, str>,
    /// Where the way on leads.
    pub href: &'static str,
    /// The way on in words.
    pub leads_to: &'static str,
}

/// What stands in the place of a page while nobody is signed in: the form
/// that signs in or, while there is no account, the one that creates the
/// first. The address stays, so the page is there afterwards.
pub(crate) async fn in_place(state: &AppState, address: &str) -> Result<Response, ApiError> {
    let mut page = match first_administrator::state(state.store()).await? {
        SetupState::Needed => setup::form(state, "reload", None),
        SetupState::Done => login::form(state, &login::Place::Of(address), None).await,
        SetupState::NoAccountLeft => setup::no_account_left(state),
    }?;
    *page.status_mut() = StatusCode::UNAUTHORIZED;
    Ok(page)
}

/// The page of somebody who has nothing to do here.
fn home() -> Response {
    Redirect::to("/").into_response()
}

/// What a new password must be like, for its hint.
pub(crate) fn password_hint(state: &AppState) -> String {
    let shortest = state.config().password_rules.min_chars;
    format!("At least {shortest} characters. Tip: use several unrelated words.")
}

/// A page of one sentence.
pub(crate) fn notice(page: &NoticePage) -> Result<Response, ApiError> {
    answer(page)
}
