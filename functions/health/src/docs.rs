//! The API reference: the document and an interactive page over it. The page
//! is ours; the viewer it loads is Swagger UI, compiled in, so it works
//! offline and under the policy of all pages.

use std::sync::{Arc, LazyLock};

use axum::extract::State;
use axum::response::{Html, Response};
use bytes::Bytes;
use callboard_http::conditional::tagged;
use callboard_http::extract::Tail;
use callboard_http::{ApiError, AppState, lone};
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, HeaderMap, HeaderValue};
use utoipa_swagger_ui::Config;

/// Generated with `callboard openapi`; a test compares it with the handlers.
const DOCUMENT: &str = include_str!("../../../infra/openapi.json");
const SCRIPT_TYPE: &str = "text/javascript; charset=utf-8";
const STYLE_TYPE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = include_str!("../assets/docs.js");
static PAGE: LazyLock<String> = LazyLock::new(|| with_bar(false));
static DEMO_PAGE: LazyLock<String> = LazyLock::new(|| with_bar(true));
static STYLE: LazyLock<String> =
    LazyLock::new(|| format!("{}{}", lone::STYLE, include_str!("../assets/docs.css")));

/// The OpenAPI document of this version.
#[utoipa::path(get, path = "/api/openapi.json", tag = "service",
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object)))]
pub(crate) async fn document(headers: HeaderMap) -> Response {
    tagged(&headers, "application/json", Bytes::from_static(DOCUMENT.as_bytes()))
}

/// The interactive reference.
pub(crate) async fn page(State(state): State<AppState>) -> Html<&'static str> {
    Html(if state.config().demo { &DEMO_PAGE } else { &PAGE })
}

fn with_bar(is_demo: bool) -> String {
    include_str!("../assets/docs.html").replace("<!-- bar -->", &lone::bar("/docs", is_demo))
}

/// Its scripts and styles.
pub(crate) async fn asset(Tail(name): Tail, headers: HeaderMap) -> Result<Response, ApiError> {
    let mut response = match name.as_str() {
        "docs.js" => tagged(&headers, SCRIPT_TYPE, Bytes::from_static(SCRIPT.as_bytes())),
        "lone.js" => tagged(&headers, SCRIPT_TYPE, Bytes::from_static(lone::SCRIPT.as_bytes())),
        "docs.css" => tagged(&headers, STYLE_TYPE, Bytes::from_static(STYLE.as_bytes())),
        "swagger-ui.css" => viewer_file(&headers, &name, STYLE_TYPE)?,
        "swagger-ui-bundle.js" => viewer_file(&headers, &name, SCRIPT_TYPE)?,
        _ => return Err(ApiError::route_not_found()),
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn viewer_file(headers: &HeaderMap, name: &str, content_type: &'static str) -> Result<Response, ApiError> {
    let file = utoipa_swagger_ui::serve(name, Arc::new(Config::from("/api/openapi.json")))
        .map_err(|error| ApiError::internal(error.to_string()))?
        .ok_or_else(|| ApiError::internal("the viewer is not compiled in"))?;
    let mut response = tagged(headers, content_type, Bytes::from(file.bytes.into_owned()));
    if file.gzpipped {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}
