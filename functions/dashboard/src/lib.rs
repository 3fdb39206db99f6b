//! Function `dashboard`: the pages people look at, rendered on the server over
//! the same questions that REST and MCP ask.
//!
//! Lives here: templates, styles, scripts, and how values are shown to people.
//! Must not live here: anything that decides what a number is; a page that
//! needs a script to show its content.
//!
//! A page is a handler and a template of the same name in `pages/`, built out
//! of `components/`; `text/` turns values into words, `shell` is the frame
//! around every page and `refusal` the page of every error.

mod address;
mod assets;
mod components;
mod filters;
mod outcome;
mod pages;
mod refusal;
mod shell;
mod text;
mod visit;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    let refusals = from_fn_with_state(state.clone(), refusal::as_page);
    Routes::new(state)
        .on(RouteId::HomePage, pages::home.layer(refusals.clone()))
        .on(RouteId::ProjectsPage, pages::projects.layer(refusals.clone()))
        .on(RouteId::ProjectPage, pages::project.layer(refusals.clone()))
        .on(RouteId::RunPage, pages::run.layer(refusals.clone()))
        .on(RouteId::ExecutionPage, pages::execution.layer(refusals.clone()))
        .on(RouteId::TestCasePage, pages::test_case.layer(refusals.clone()))
        .on(RouteId::SettingsPage, pages::settings.layer(refusals))
        .on(RouteId::StaticAsset, assets::serve)
        .into_router()
}

/// Its part of the OpenAPI document: pages are for people, so there is none.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    utoipa::openapi::OpenApi::default()
}
