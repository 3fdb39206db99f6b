//! Function `settings`: what administrators configure and look after.
//!
//! Lives here: the audit log. Must not live here: accounts, which the function
//! `users` serves; SQL.

mod audit;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state).on(RouteId::ListAudit, audit::list).into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(audit::list),
        tags((name = "settings", description = "What administrators configure and look after"))
    )]
    struct Document;
    Document::openapi()
}
