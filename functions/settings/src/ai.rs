//! What a step written in words needs: a language model while the test runs. None is asked for that, so this says so:
//! clients that ask while a test is written tell their user, instead of taking the service for an older one.

use callboard_http::ApiError;
use callboard_http::extract::JsonBody;
use http::StatusCode;
use serde_json::{Map, Value};

/// Turns a step that is written in words into code.
///
/// Some reporters ask for it while a test is written, never while tests run.
/// It takes a language model, and this service has none.
#[utoipa::path(
    post,
    path = "/api/ai/step-resolution",
    tag = "settings",
    request_body(content = Object, description = "The step, as the client describes it; it is not looked at"),
    responses((status = 503, description = "`ai_not_configured`: no language model is configured"))
)]
pub(crate) async fn resolve_step(_: JsonBody<Map<String, Value>>) -> ApiError {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "ai_not_configured",
        "No language model is configured, so steps written in words cannot be turned into code.",
    )
}
