//! Errors as pages: what happened, what to do, and the id under which the log
//! knows it. Routes and handlers answer errors as everywhere else; around the
//! pages they get the frame of a page. Where somebody has to sign in, the form
//! to do so takes the place of the page, at the same address.

use askama::Template;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use callboard_http::extract::Caller;
use callboard_http::{ApiError, AppState, ForPrograms, Site, request_id};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use serde::Deserialize;

use crate::address::Address;
use crate::filters;
use crate::pages;
use crate::shell::{Section, Shell, Viewer};
use crate::visit::{Visit, answer};

/// Largest error body; ours are a few hundred bytes.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// What an error says, as [`ApiError`] writes it.
#[derive(Debug, Deserialize)]
struct Said {
    code: String,
    message: String,
}

/// Inputs of `pages/refusal.html`.
#[derive(Template)]
#[template(path = "pages/refusal.html")]
struct RefusalPage {
    shell: Shell,
    heading: &'static str,
    said: Said,
    advice: &'static str,
    /// The same page without the parameters that are wrong, and what that is
    /// called.
    mended: Option<(String, &'static str)>,
    /// Whether another account may help.
    is_about_access: bool,
    status: u16,
    request_id: String,
}

/// Where an error happened, and to whom as far as that is known.
struct Scene {
    state: AppState,
    site: Option<Site>,
    address: Address,
    caller: Option<Caller>,
}

/// Shows the errors of pages as pages. Where people sign in, pages are kept
/// nowhere: after signing out the way back shows nothing.
pub(crate) async fn as_page(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let is_secured = state.auth_enabled();
    let mut response = shown(state, request, next).await;
    if is_secured {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

async fn shown(state: AppState, request: Request, next: Next) -> Response {
    let site = request.extensions().get::<Site>().cloned();
    let address = Address::from_uri(request.uri());
    let mut response = next.run(request).await;
    let caller = response.extensions_mut().remove::<Caller>();
    if !is_error(&response) || response.extensions().get::<ForPrograms>().is_some() {
        return response;
    }
    page_of(Scene { state, site, address, caller }, response).await
}

fn is_error(response: &Response) -> bool {
    let is_json = |kind: &http::HeaderValue| kind.as_bytes().starts_with(b"application/json");
    (response.status().is_client_error() || response.status().is_server_error())
        && response.headers().get(CONTENT_TYPE).is_some_and(is_json)
}

async fn page_of(scene: Scene, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_ERROR_BYTES).await else {
        return Response::from_parts(parts, Body::empty());
    };
    let page = match serde_json::from_slice(&bytes) {
        Ok(_) if parts.status == StatusCode::UNAUTHORIZED => {
            pages::in_place(&scene.state, &scene.address.whole()).await
        }
        Ok(said) => render(scene, parts.status, said).await,
        Err(error) => Err(ApiError::internal(error)),
    };
    let Ok(page) = page else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    let (shown, html) = page.into_parts();
    // Retry-After and the like stay.
    let mut headers = parts.headers;
    headers.remove(CONTENT_LENGTH);
    headers.extend(shown.headers);
    let mut response = Response::new(html);
    *response.status_mut() = parts.status;
    *response.headers_mut() = headers;
    response
}

async fn render(scene: Scene, status: StatusCode, said: Said) -> Result<Response, ApiError> {
    let (heading, advice) = words(status, &said.code);
    let mended = match said.code.as_str() {
        // The filters are as good as they were.
        "invalid_cursor" => Some((scene.address.without("cursor"), "Show the first page")),
        "invalid_query" if status == StatusCode::BAD_REQUEST => {
            Some((scene.address.path().to_owned(), "Show this page without its filters"))
        }
        _ => None,
    };
    let shell = frame(scene, heading).await;
    answer(&RefusalPage {
        is_about_access: status == StatusCode::FORBIDDEN && shell.viewer.is_some(),
        shell: shell.under("Home", "/").here(heading),
        heading,
        mended,
        said,
        advice,
        status: status.as_u16(),
        request_id: request_id::current(),
    })
}

/// The frame with what can be read of it: where the database is what is
/// missing, or the caller is not known or not meant to read, it does without
/// projects.
async fn frame(scene: Scene, heading: &'static str) -> Shell {
    let now = scene.state.now();
    let viewer = scene.caller.as_ref().and_then(|caller| Viewer::from_identity(caller));
    let is_demo = scene.state.config().demo;
    if let (Some(site), Some(caller)) = (scene.site, scene.caller.filter(|caller| caller.reads())) {
        let visit = Visit::new(&scene.state, caller, site, scene.address);
        if let Ok(shell) = Shell::new(&visit, Section::Elsewhere, heading).await {
            return shell;
        }
    }
    Shell::bare(viewer, is_demo, now, Section::Elsewhere, heading)
}

fn words(status: StatusCode, code: &str) -> (&'static str, &'static str) {
    match (status, code) {
        (StatusCode::NOT_FOUND, _) => ("Not found", "The link may be incomplete or the item was deleted."),
        (StatusCode::BAD_REQUEST, _) => {
            ("Invalid link", "Part of the link is not valid for this page. Remove it to see the page.")
        }
        (StatusCode::FORBIDDEN, "project_access_denied") => (
            "No access",
            "You have no access to this project. Ask an administrator: it can be assigned under Members or under \
             Settings › Users.",
        ),
        (StatusCode::FORBIDDEN, "insufficient_role") => {
            ("No access", "Your role has no access to this page. Ask an administrator to change it.")
        }
        (StatusCode::FORBIDDEN, _) => ("No access", "Ask an administrator for access."),
        (StatusCode::SERVICE_UNAVAILABLE, _) => {
            ("Temporarily unavailable", "No data was lost. Reload the page in a few seconds.")
        }
        _ => (
            "Something went wrong",
            "Reload the page. If the problem persists, give an administrator the request id below.",
        ),
    }
}
