//! placeholder

/// The routes of this function.
pub fn router(state: callboard_http::AppState) -> axum::Router {
    callboard_http::Routes::new(state).into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    utoipa::openapi::OpenApi::default()
}
