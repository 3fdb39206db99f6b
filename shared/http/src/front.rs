//! The front door: what every request passes before it is routed, and every
//! answer before it leaves. Mounted once over all routers of a process.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use callboard_auth::Origin;
use callboard_auth::client_address::Peer;
use futures::FutureExt;
use http::header::{
    ACCEPT, ACCEPT_RANGES, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, COOKIE, HeaderMap,
    HeaderName, HeaderValue,
};
use http::{Extensions, Method, StatusCode, Version};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};

use crate::error::ApiError;
use crate::headers;
use crate::register::refuse;
use crate::request_id;
use crate::sandbox::{Door, Site};
use crate::serve::Unreadable;
use crate::state::AppState;

/// What is answered whatever the state of the process.
const HEALTH: &str = "/api/health";
const MAX_URL_BYTES: usize = 8 * 1024;
const MAX_HEADER_BYTES: usize = 32 * 1024;
/// Answers up to this size are sent as they are.
const COMPRESS_ABOVE_BYTES: u64 = 1024;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Puts the front door before a router.
pub fn front(router: Router, state: AppState, door: Door) -> Router {
    router.layer(from_fn_with_state(Front { state, door }, pass)).layer(
        CompressionLayer::new().gzip(true).compress_when(SizeAbove::new(COMPRESS_ABOVE_BYTES).and(is_text)),
    )
}

#[derive(Clone)]
struct Front {
    state: AppState,
    door: Door,
}

/// Text is compressed. Files offer ranges, and a range is of the bytes as they
/// are stored.
fn is_text(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let compressible =
        ["application/json", "text/html", "text/css", "text/javascript", "image/svg+xml", "text/plain"];
    compressible.contains(&kind)
        && !headers.contains_key(ACCEPT_RANGES)
        && !headers.contains_key(CONTENT_RANGE)
}

async fn pass(State(front): State<Front>, request: Request, next: Next) -> Response {
    let id = request_id::fresh();
    request_id::scope(id.clone(), answer(front, request, next, id)).await
}

async fn answer(front: Front, mut request: Request, next: Next, id: String) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let proxies = &front.state.config().trust_proxy;
    let peer = request.extensions().get::<Peer>().copied();
    let client = proxies.client(peer, request.headers());
    proxies.strip(peer, request.headers_mut());
    request.extensions_mut().insert(client);
    let named = front.state.gate().effective_origin(request.headers());
    let is_sandbox = front.door == Door::Sandbox || front.state.gate().is_sandbox(named.as_ref());
    let door = if is_sandbox { Door::Sandbox } else { Door::Main };
    let asks_for_page = asks_for_page(&request);

    let refusal = check(&request, door).err();
    let closed = match refusal.is_none() && path != HEALTH {
        true => front.state.check_auth_mode().await.err(),
        false => None,
    };
    let mut response = match (refusal, closed) {
        (Some(refusal), _) => refusal.into_response(),
        (None, Some(closed)) => answer_closed(request, closed, asks_for_page),
        (None, None) => {
            if door == Door::Sandbox {
                // Untrusted content shares this origin: nothing a browser attaches on its own counts here.
                request.headers_mut().remove(COOKIE);
                request.headers_mut().remove(AUTHORIZATION);
            }
            request.extensions_mut().insert(door);
            request.extensions_mut().insert(site(&front.state, named.as_ref()));
            AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|panic| panicked(&panic))
        }
    };
    if let Some(body) = standard_body(&response, &path, asks_for_page) {
        response = replace_body(response, body);
    }
    headers::complete(&mut response, &front.state, door, &path, named.as_ref());
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let status = response.status().as_u16();
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::debug!(request = id, %method, path = logged(&path), status, duration_ms, "answered");
    response
}

/// The answer of a process that is closed because another one requires sign-in.
fn answer_closed(request: Request, closed: ApiError, asks_for_page: bool) -> Response {
    let is_about_mode = closed.code() == "auth_mode_differs";
    let mut response = refuse(request, closed);
    if is_about_mode && asks_for_page {
        let page = (response.status(), Html(AUTH_MODE_DIFFERS_PAGE)).into_response();
        response = replace_body(response, page);
    }
    response
}

/// A path as the log may hold it: what follows in some is a credential.
fn logged(path: &str) -> &str {
    match path {
        _ if path.starts_with("/f/") => "/f/…",
        _ if path.starts_with("/badge/") => "/badge/…",
        "/api/uploads/plan" | "/api/uploads/commit" => path,
        _ if path.starts_with("/api/uploads/") => "/api/uploads/…",
        _ => path,
    }
}

fn check(request: &Request, door: Door) -> Result<(), ApiError> {
    if let Some(unreadable) = request.extensions().get::<Unreadable>() {
        return Err(unreadable.error());
    }
    if request.uri().path_and_query().map_or(0, |text| text.as_str().len()) > MAX_URL_BYTES {
        return Err(ApiError::new(
            StatusCode::URI_TOO_LONG,
            "url_too_long",
            "The address is longer than 8 KiB.",
        ));
    }
    let size: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if size > MAX_HEADER_BYTES {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(ApiError::new(status, "headers_too_large", "The headers are longer than 32 KiB."));
    }
    let path = request.uri().path();
    let is_served = match door {
        Door::Main => true,
        Door::Sandbox => path.starts_with("/f/") || path.starts_with("/viewer/") || path == "/api/health",
    };
    if is_served && is_canonical(path) { Ok(()) } else { Err(ApiError::route_not_found()) }
}

/// Whether a raw path is the one spelling of what it names: no empty, dot or
/// parameterised segments, nothing encoded that would split or end a segment.
fn is_canonical(path: &str) -> bool {
    if path == "/" {
        return true;
    }
    let lower = path.to_ascii_lowercase();
    let hidden = ["%2f", "%5c", "%00", ";", "\\"].iter().any(|trick| lower.contains(trick));
    let plain = lower.replace("%2e", ".");
    !hidden
        && plain.starts_with('/')
        && plain[1..].split('/').all(|segment| !matches!(segment, "" | "." | ".."))
}

/// The address links are made with: the configured one, else the client's.
fn site(state: &AppState, named: Option<&Origin>) -> Site {
    let config = state.config();
    let known = config.site_url.as_ref().or(named).cloned();
    Site(known.unwrap_or_else(|| Origin::localhost(config.port)))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Response {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    ApiError::internal(format!("panic: {text}")).into_response()
}

/// Whether a person asked, who is shown a page when there is nothing to see.
pub(crate) fn asks_for_page(request: &Request) -> bool {
    let path = request.uri().path();
    // Programs ask for these, whatever they accept.
    let is_api = path == "/api" || path.starts_with("/api/") || path.starts_with("/.well-known/");
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    is_read && !is_api && accept.is_some_and(|accept| accept.contains("text/html"))
}

/// Bodies for answers that the router gives on its own.
fn standard_body(response: &Response, path: &str, asks_for_page: bool) -> Option<Response> {
    let status = response.status();
    let is_empty = response.body().is_end_stream() && !response.headers().contains_key(CONTENT_TYPE);
    match status {
        StatusCode::METHOD_NOT_ALLOWED if is_empty && path != "/mcp" => {
            Some(ApiError::method_not_allowed().into_response())
        }
        StatusCode::NOT_FOUND if asks_for_page && !is_html(response) => {
            let page = if path.starts_with("/f/") { LINK_OVER_PAGE } else { NOT_FOUND_PAGE };
            Some((status, Html(page)).into_response())
        }
        StatusCode::NOT_FOUND if is_empty => Some(ApiError::route_not_found().into_response()),
        _ => None,
    }
}

fn is_html(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// Keeps the headers of the first answer (`Allow`) under the body of the second.
fn replace_body(original: Response, standard: Response) -> Response {
    let (mut parts, _) = original.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    let (described, body) = standard.into_parts();
    for (name, value) in &described.headers {
        parts.headers.insert(name, value.clone());
    }
    Response::from_parts(parts, Body::new(body))
}

/// Where nothing leads back: the origin of untrusted content has no other pages.
const LINK_OVER_PAGE: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width\">\n<title>Link expired · Callboard</title>\n\
    <main><h1>This link opens nothing</h1><p>It has expired, or there is no such file. Open the file again from its \
    page in the dashboard.</p></main>\n";

const AUTH_MODE_DIFFERS_PAGE: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width\">\n<title>Not available · Callboard</title>\n\
    <main><h1>Not available</h1><p>Another process of this service requires sign-in, and this one does not. Whoever runs \
    it has to set <code>SERVICE_AUTH_ENABLED=true</code> for all of them.</p></main>\n";

const NOT_FOUND_PAGE: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width\">\n<title>Not found · Callboard</title>\n\
    <main><h1>Not found</h1><p>There is nothing at this address. <a href=\"/\">Back to the start</a></p></main>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_spelling() {
        for good in [
            "/",
            "/api/health",
            "/api/files/project-3/reports/42/7/index.html",
            "/f/Ab_-/a%20b.html",
            "/a/...x",
        ] {
            assert!(is_canonical(good), "{good}");
        }
        for bad in [
            "//api/health",
            "/api//health",
            "/api/health/",
            "/api/./health",
            "/api/../health",
            "/api/%2e%2e/health",
            "/api/%2E./health",
            "/api%2fhealth",
            "/api/files/a%5Cb",
            "/api/files/a\\b",
            "/api/files/a%00",
            "/api/health;v=1",
            "*",
        ] {
            assert!(!is_canonical(bad), "{bad}");
        }
    }
}
