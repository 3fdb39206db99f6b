//! `GET /api/version`: what is running.

use axum::Json;
use axum::extract::State;
use callboard_http::AppState;
use callboard_platform::config::Platform;
use callboard_store::Backend;
use serde::Serialize;
use utoipa::ToSchema;

/// The version of the API: it changes when an existing client would break.
const API_VERSION: &str = "1";

/// What is running.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VersionAnswer {
    /// Version of the service.
    #[schema(example = "0.1.0")]
    app_version: &'static str,
    /// Commit it was built from.
    build_sha: Option<&'static str>,
    /// When it was built, ISO-8601.
    build_time: Option<&'static str>,
    /// `server` for a process with a port, `lambda` for a function instance.
    #[schema(example = "server")]
    runtime: &'static str,
    /// `sqlite` or `postgresql`.
    #[schema(example = "sqlite")]
    db_backend: &'static str,
    /// Version of the API.
    #[schema(example = "1")]
    api_version: &'static str,
    /// Whether this is a read-only demo, which refuses writes with `demo_mode`.
    demo: bool,
}

/// Versions of the service and of its API.
#[utoipa::path(get, path = "/api/version", tag = "service", responses((status = 200, body = VersionAnswer)))]
pub(crate) async fn version(State(state): State<AppState>) -> Json<VersionAnswer> {
    Json(VersionAnswer {
        app_version: env!("CARGO_PKG_VERSION"),
        build_sha: option_env!("CALLBOARD_BUILD_SHA"),
        build_time: option_env!("CALLBOARD_BUILD_TIME"),
        runtime: match state.config().platform {
            Platform::Server => "server",
            Platform::Lambda => "lambda",
        },
        db_backend: match state.store().backend() {
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgresql",
        },
        api_version: API_VERSION,
        demo: state.config().demo,
    })
}
