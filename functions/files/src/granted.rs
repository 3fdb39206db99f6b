//! `GET /f/<grant>/…`: what one grant covers, opened apart from the dashboard.
//! No cookie and no key is read here: the grant is the credential.

use axum::extract::State;
use axum::response::Response;
use callboard_auth::Origin;
use callboard_http::extract::{Granted, Tail};
use callboard_http::{ApiError, AppState, Door, Site};
use callboard_query::files;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderName, ORIGIN, VARY};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};

use crate::answer::answer;
use crate::presentation::{TRACE_TYPE, below_grant};
use crate::request::FileRequest;
use crate::viewer;

/// Browsers send it, and only they can, when a page registers a worker.
const SERVICE_WORKER: HeaderName = HeaderName::from_static("service-worker");

/// The bytes of one file, or of an entry of one report, below a grant.
///
/// `GET /api/files/…` makes such addresses; they open for at most an hour.
/// HTML opens here, with its relative links, cut off from the dashboard.
#[utoipa::path(get, path = "/f/{grant}/{path}", tag = "files",
    params(
        ("grant" = String, Path, description = "The grant"),
        ("path" = String, Path, description = "Name of the file, or path inside the report", example = "index.html"),
        ("download" = Option<u8>, Query, description = "1: as a file to save, whatever its type"),
        ("redirect" = Option<String>, Query, description = "`never`: the bytes come with the answer, whatever their size"),
        ("Range" = Option<String>, Header, description = "One byte range", example = "bytes=0-1023"),
        ("If-Range" = Option<String>, Header, description = "ETag the range is wanted of"),
        ("If-None-Match" = Option<String>, Header, description = "ETags the client has"),
    ),
    responses(
        (status = 200, description = "The bytes", content_type = "application/octet-stream", body = Vec<u8>),
        (status = 206, description = "A range of the bytes", content_type = "application/octet-stream", body = Vec<u8>),
        (status = 302, description = "The trace viewer, instead of the copy inside of a report; or an address of the object store, as `GET /api/files` answers it"),
        (status = 304, description = "The client has the bytes"),
        (status = 403, description = "`service_worker_refused`"),
        (status = 404, description = "`file_not_found`: also for a grant that is altered or expired"),
        (status = 413, description = "`answer_too_large`: a function answers so much in ranges only"),
        (status = 416, description = "`range_not_satisfiable`"),
    ))]
pub(crate) async fn file(
    State(state): State<AppState>,
    door: Door,
    site: Site,
    Granted(grant): Granted,
    Tail(path): Tail,
    uri: Uri,
    request: FileRequest,
) -> Result<Response, ApiError> {
    refuse_service_worker(&request.headers)?;
    if let Some(elsewhere) =
        viewer::instead_of_the_reports(&state, door, &path, uri.query().unwrap_or_default())
    {
        return Ok(elsewhere);
    }
    let served =
        files::by_grant(&state.context(&site), state.auth_enabled(), &grant, &path, state.now()).await?;
    let presentation = below_grant(&served.content_type, door, request.download);
    let mut response = answer(&state, &served, presentation, &request).await?;
    if served.content_type == TRACE_TYPE {
        let viewers = &state.config().trace_viewer_origins;
        if !viewers.is_empty() {
            response.headers_mut().append(VARY, HeaderValue::from_static("origin"));
        }
        if let Some(origin) = request.headers.get(ORIGIN).filter(|origin| is_among(viewers, origin)) {
            response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        }
    }
    Ok(response)
}

/// Whether a page of this origin may fetch trace archives.
fn is_among(viewers: &[Origin], origin: &HeaderValue) -> bool {
    let origin = origin.to_str().ok().and_then(Origin::parse);
    origin.is_some_and(|origin| viewers.contains(&origin))
}

/// A service worker would outlive its grant and see what other reports of the
/// same origin load.
fn refuse_service_worker(headers: &HeaderMap) -> Result<(), ApiError> {
    if headers.contains_key(SERVICE_WORKER) {
        let sentence = "Stored files cannot be service workers.";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "service_worker_refused", sentence));
    }
    Ok(())
}
