//! All functions in one process: the way to run the service on one machine,
//! and the way its tests run it.
//!
//! Lives here: mounting and starting. Must not live here: anything a function
//! on its own would lack.

pub mod run;

use axum::Router;
use callboard_http::{AppState, Door, front};

/// The whole service: API, pages, MCP.
pub fn app(state: AppState) -> Router {
    let functions = [
        callboard_fn_health::router,
        callboard_fn_auth::router,
        callboard_fn_submit::router,
        callboard_fn_live::router,
        callboard_fn_projects::router,
        callboard_fn_runs::router,
        callboard_fn_cases::router,
        callboard_fn_analytics::router,
        callboard_fn_files::router,
        callboard_fn_mcp::router,
        callboard_fn_dashboard::router,
        callboard_fn_users::router,
        callboard_fn_clusters::router,
        callboard_fn_settings::router,
        callboard_fn_scm::router,
        callboard_fn_jobs::router,
    ];
    let router = functions.into_iter().fold(Router::new(), |router, function: fn(AppState) -> Router| {
        router.merge(function(state.clone()))
    });
    front(router, state, Door::Main)
}

/// What the sandbox listener answers: untrusted files, and a sign of life.
pub fn sandbox_app(state: AppState) -> Router {
    let router = callboard_fn_files::router(state.clone()).merge(callboard_fn_health::router(state.clone()));
    front(router, state, Door::Sandbox)
}

/// The OpenAPI document of everything mounted.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    callboard_http::openapi::document(openapi_parts())
}

/// What each function says of itself, before it is put together.
#[must_use]
pub fn openapi_parts() -> Vec<utoipa::openapi::OpenApi> {
    vec![
        callboard_fn_health::openapi(),
        callboard_fn_auth::openapi(),
        callboard_fn_submit::openapi(),
        callboard_fn_live::openapi(),
        callboard_fn_projects::openapi(),
        callboard_fn_runs::openapi(),
        callboard_fn_cases::openapi(),
        callboard_fn_analytics::openapi(),
        callboard_fn_files::openapi(),
        callboard_fn_mcp::openapi(),
        callboard_fn_dashboard::openapi(),
        callboard_fn_users::openapi(),
        callboard_fn_clusters::openapi(),
        callboard_fn_settings::openapi(),
        callboard_fn_scm::openapi(),
        callboard_fn_jobs::openapi(),
    ]
}
