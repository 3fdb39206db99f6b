//! Function `dashboard`: the pages people look at, rendered on the server over
//! the same questions that REST and MCP ask.
//!
//! Lives here: templates, styles, scripts, and how values are shown to people.
//! Must not live here: anything that decides what a number is; a page that
//! needs a script to show its content.
//!
//! A page is a handler and a template of the same name in `pages/`, built out
//! of `components/`; `text/` turns values into words, `shell` is the frame
//! around every page, `refusal` the page of every error and `help` the
//! documentation that the pages link to.

mod address;
mod assets;
mod components;
mod filters;
mod help;
mod outcome;
mod pages;
mod refusal;
mod shell;
mod text;
mod visit;

use axum::Router;
use axum::middleware::from_fn_with_state;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};

/// The routes of this function. Errors of pages are pages; whatever refuses
/// one, its route or its handler.
pub fn router(state: AppState) -> Router {
    let pages = Routes::new(state.clone())
        .on(RouteId::HomePage, pages::home)
        .on(RouteId::ProjectsPage, pages::projects)
        .on(RouteId::ProjectPage, pages::project)
        .on(RouteId::AnalyticsPage, pages::analytics)
        .on(RouteId::RunPage, pages::run)
        .on(RouteId::ExecutionPage, pages::execution)
        .on(RouteId::ClusterPage, pages::cluster)
        .on(RouteId::TestCasePage, pages::test_case)
        .on(RouteId::SettingsPage, pages::settings::instance)
        .on(RouteId::AccountPage, pages::account)
        .on(RouteId::UsersPage, pages::users)
        .on(RouteId::UserPage, pages::user)
        .on(RouteId::UserKeysPage, pages::user_keys)
        .on(RouteId::AuditPage, pages::audit)
        .on(RouteId::TagsPage, pages::settings::tags)
        .on(RouteId::MailPage, pages::settings::mail)
        .on(RouteId::InboxPage, pages::inbox)
        .on(RouteId::NotificationsPage, pages::settings::notifications)
        .on(RouteId::DeliveriesPage, pages::settings::deliveries)
        .on(RouteId::StoragePage, pages::settings::storage)
        .on(RouteId::RetentionPage, pages::settings::retention)
        .on(RouteId::ProjectsSettingsPage, pages::settings::projects)
        .on(RouteId::SourceControlPage, pages::settings::source_control)
        .on(RouteId::FeedbackPage, pages::settings::feedback)
        .on(RouteId::FlakinessPage, pages::settings::flakiness)
        .on(RouteId::TimeoutsPage, pages::settings::timeouts)
        .on(RouteId::DiagnosisSettingsPage, pages::settings::diagnosis)
        .on(RouteId::LoginPage, pages::login)
        .on(RouteId::SetupPage, pages::setup)
        .on(RouteId::ResetPage, pages::reset)
        .on(RouteId::VerifyPage, pages::verify)
        .on(RouteId::UnsubscribePage, pages::unsubscribe)
        .on(RouteId::HelpIndex, help::index)
        .on(RouteId::HelpPage, help::page)
        .elsewhere(RouteId::HomePage, pages::unknown)
        .into_router()
        .layer(from_fn_with_state(state.clone(), refusal::as_page));
    pages.merge(Routes::new(state).on(RouteId::StaticAsset, assets::serve).into_router())
}

/// Its part of the OpenAPI document: pages are for people, so there is none.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    utoipa::openapi::OpenApi::default()
}
