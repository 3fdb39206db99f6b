//! Function `health`: signs of life, versions, and the API reference.
//!
//! Lives here: `/api/health`, `/api/version`, `/api/setup-status`, `/api/openapi.json`, `/docs`.
//! Must not live here: anything about results.

mod docs;
mod health;
mod setup;
mod version;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::Health, health::health)
        .on(RouteId::Version, version::version)
        .on(RouteId::FeatureStatus, setup::status)
        .on(RouteId::OpenApi, docs::document)
        .on(RouteId::DocsPage, docs::page)
        .on(RouteId::DocsAsset, docs::asset)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(health::health, version::version, setup::status, docs::document),
        tags((name = "service", description = "The service itself"))
    )]
    struct Document;
    Document::openapi()
}
