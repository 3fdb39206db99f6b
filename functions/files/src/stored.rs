//! `GET /api/files/…`: stored files on the dashboard's own origin. What could
//! run script is not opened here but sent on to a grant of its own.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_auth::GrantTarget;
use callboard_auth::grant::MAX_LIFETIME_MS;
use callboard_domain::ids::FileId;
use callboard_http::extract::{Caller, Tail};
use callboard_http::opened::file_address;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::files::{self, Served};
use http::StatusCode;
use http::header::{CONTENT_SECURITY_POLICY, HeaderValue, LOCATION};

use crate::answer::answer;
use crate::presentation::{TRACE_TYPE, on_dashboard};
use crate::request::FileRequest;

/// Nothing runs; a picture or a video opened on its own page shows, with the
/// style the browser gives such a page.
const FILE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'",
);

/// How long a grant for one file opens it, milliseconds.
const FILE_GRANT_MS: i64 = 15 * 60 * 1000;

/// The bytes of a stored file, by its id or its stored name.
///
/// Images, videos, text, JSON and ZIP are answered with their own type,
/// anything else as a download. HTML and SVG are sent on to another origin,
/// where they can be opened safely; `download=1` gives their bytes instead.
/// One byte range per request is answered; several get the whole file.
#[utoipa::path(get, path = "/api/files/{path}", tag = "files",
    params(
        ("path" = String, Path, description = "File id, or stored name of a file or of an entry of a report", example = "7"),
        ("download" = Option<u8>, Query, description = "1: as a file to save, whatever its type"),
        ("viewer" = Option<u8>, Query, description = "1: a trace, in the trace viewer"),
        ("redirect" = Option<String>, Query, description = "`never`: the bytes come with the answer, whatever their size"),
        ("Range" = Option<String>, Header, description = "One byte range", example = "bytes=0-1023"),
        ("If-Range" = Option<String>, Header, description = "ETag the range is wanted of"),
        ("If-None-Match" = Option<String>, Header, description = "ETags the client has"),
    ),
    responses(
        (status = 200, description = "The bytes", content_type = "application/octet-stream", body = Vec<u8>),
        (status = 206, description = "A range of the bytes", content_type = "application/octet-stream", body = Vec<u8>),
        (status = 302, description = "The address where HTML or SVG, or a trace in the viewer, opens; where the service runs as a function, an address of the object store for what a function cannot answer"),
        (status = 400, description = "`invalid_query`: not a trace"),
        (status = 304, description = "The client has the bytes"),
        (status = 404, description = "`file_not_found`, `viewer_not_available`"),
        (status = 413, description = "`answer_too_large`: a function answers so much in ranges only"),
        (status = 416, description = "`range_not_satisfiable`"),
        (status = 503, description = "`report_in_progress`: its files are still being written; `Retry-After` says when to ask again"),
    ))]
pub(crate) async fn file(
    State(state): State<AppState>,
    caller: Caller,
    site: Site,
    Tail(name): Tail,
    request: FileRequest,
) -> Result<Response, ApiError> {
    let context = state.context(&site);
    let served = match FileId::parse(&name) {
        Some(id) => files::by_id(&context, caller.scope(), id).await?,
        None => files::by_path(&context, caller.scope(), &name, state.now()).await?,
    };
    if request.viewer {
        return to_viewer(&state, &caller, &site, &served).await;
    }
    match on_dashboard(&served.content_type, request.download) {
        Some(presentation) => {
            let mut response = answer(&state, &served, presentation, &request).await?;
            response.headers_mut().insert(CONTENT_SECURITY_POLICY, FILE_POLICY);
            Ok(response)
        }
        None => to_sandbox(&state, &caller, &site, &served).await,
    }
}

/// Sends the browser to where untrusted content opens.
async fn to_sandbox(
    state: &AppState,
    caller: &Caller,
    site: &Site,
    served: &Served,
) -> Result<Response, ApiError> {
    let lifetime_ms = match served.grant_target {
        GrantTarget::File(_) => FILE_GRANT_MS,
        GrantTarget::Prefix(_) => MAX_LIFETIME_MS,
    };
    let address = file_address(state, caller, site, served, lifetime_ms).await?;
    Ok((StatusCode::FOUND, [(LOCATION, address)]).into_response())
}

/// Sends the browser to the viewer with a stored trace. People look at a trace
/// for long, and the viewer may fetch it again.
async fn to_viewer(
    state: &AppState,
    caller: &Caller,
    site: &Site,
    served: &Served,
) -> Result<Response, ApiError> {
    if served.content_type != TRACE_TYPE {
        return Err(ApiError::invalid_query("viewer", "Only a trace opens in the viewer."));
    }
    let not_available = || {
        let advice = state.viewer().advice().unwrap_or_default();
        ApiError::new(StatusCode::NOT_FOUND, "viewer_not_available", advice)
    };
    if !state.viewer().opens_traces() {
        return Err(not_available());
    }
    let trace = file_address(state, caller, site, served, MAX_LIFETIME_MS).await?;
    let address = state.viewer_url(site, &trace).ok_or_else(not_available)?;
    Ok((StatusCode::FOUND, [(LOCATION, address)]).into_response())
}
