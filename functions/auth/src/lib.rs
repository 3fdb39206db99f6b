//! Function `auth`: signing in and out.
//!
//! This version runs with authentication off. Clients that are configured
//! with a name and a password keep working: they are answered as the virtual
//! administrator and given a cookie that opens nothing.

mod cookie;
mod session;
mod user;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::Login, session::login)
        .on(RouteId::Logout, session::logout)
        .on(RouteId::Me, session::me)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(session::login, session::logout, session::me),
        tags((name = "auth", description = "Signing in and out"))
    )]
    struct Document;
    Document::openapi()
}
