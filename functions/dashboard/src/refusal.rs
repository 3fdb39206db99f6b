//! Errors as pages: what happened, what to do, and the id under which the log
//! knows it. Handlers answer errors as everywhere else; here they get the
//! frame of a page.

use askama::Template;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use callboard_http::{ApiError, AppState, request_id};
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde::Deserialize;

use crate::filters;
use crate::shell::{Section, Shell};
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
    /// The same page without its parameters, when they are what is wrong.
    without_parameters: Option<String>,
    status: u16,
    request_id: String,
}

/// Shows the errors of a page's handler as pages.
pub(crate) async fn as_page(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let visit = Visit::from_request_parts(&mut parts, &state).await;
    let response = next.run(Request::from_parts(parts, body)).await;
    match visit {
        Ok(visit) if is_error(&response) => page_of(visit, response).await,
        _ => response,
    }
}

fn is_error(response: &Response) -> bool {
    let is_json = |kind: &http::HeaderValue| kind.as_bytes().starts_with(b"application/json");
    (response.status().is_client_error() || response.status().is_server_error())
        && response.headers().get(CONTENT_TYPE).is_some_and(is_json)
}

async fn page_of(visit: Visit, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_ERROR_BYTES).await else {
        return Response::from_parts(parts, Body::empty());
    };
    let page = match serde_json::from_slice(&bytes) {
        Ok(said) => render(&visit, parts.status, said).await,
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

async fn render(visit: &Visit, status: StatusCode, said: Said) -> Result<Response, ApiError> {
    let (heading, advice) = words(status);
    // Where the database is what is missing, the frame does without it.
    let shell = match Shell::new(visit, Section::Elsewhere, heading).await {
        Ok(shell) => shell,
        Err(_) => Shell::without_projects(visit, Section::Elsewhere, heading),
    };
    let path = visit.address.path().to_owned();
    answer(&RefusalPage {
        shell: shell.under("Home", "/").here(heading),
        heading,
        without_parameters: (status == StatusCode::BAD_REQUEST && said.code == "invalid_query"
            || said.code == "invalid_cursor")
            .then_some(path),
        said,
        advice,
        status: status.as_u16(),
        request_id: request_id::current(),
    })
}

fn words(status: StatusCode) -> (&'static str, &'static str) {
    match status {
        StatusCode::NOT_FOUND => (
            "Not found",
            "It may have been deleted, or the address may have been cut short on its way to you.",
        ),
        StatusCode::BAD_REQUEST => (
            "This address cannot be shown",
            "Part of the address is not what this page expects; without it the page can be shown.",
        ),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            ("No access", "Nothing was changed. Ask an administrator for access if you should see this.")
        }
        StatusCode::SERVICE_UNAVAILABLE => (
            "Temporarily unavailable",
            "Nothing was lost: everything that was confirmed is stored. Reload the page in a few seconds.",
        ),
        _ => (
            "Something went wrong",
            "Nothing was changed by looking at this page. Reload it; if that does not help, tell an administrator \
             the request id below.",
        ),
    }
}
