//! The answer with a file's bytes: whole, a range, or nothing when the client
//! has them. Bytes are streamed, so a large file takes no more memory than a
//! small one. Access has been decided before any condition is looked at.

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use callboard_http::conditional::client_has;
use callboard_http::{ApiError, AppState};
use callboard_query::files::Served;
use callboard_store::StoreError;
use futures::{Stream, TryStreamExt};
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    HeaderMap, HeaderValue, VARY,
};
use http::{Method, StatusCode};

use crate::presentation::Presentation;
use crate::range::Wanted;
use crate::request::FileRequest;
use crate::{elsewhere, opaque};

const BYTES: HeaderValue = HeaderValue::from_static("bytes");
/// These bytes cannot change, so nobody has to ask again.
const FOR_EVER: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");
/// Kept, and asked for each time.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("private, no-cache");

/// Answers a request for bytes.
///
/// # Errors
/// 416 for a range outside of them, 503 when the object store is away.
pub(crate) async fn answer(
    state: &AppState,
    served: &Served,
    presentation: Presentation,
    request: &FileRequest,
) -> Result<Response, ApiError> {
    let may_lack_storage =
        presentation.is_opaque_page || (presentation.is_page && opaque::is_framed(request));
    let is_page = may_lack_storage && opaque::opens_page(request);
    // With an origin of its own a page may fetch itself.
    let opens_apart = presentation.is_page && !presentation.is_opaque_page;
    let tag = if is_page { format!("\"{}-page\"", served.etag) } else { format!("\"{}\"", served.etag) };
    let mut headers = HeaderMap::new();
    headers.insert(ETAG, text(&tag)?);
    headers.insert(CACHE_CONTROL, if served.is_immutable { FOR_EVER } else { ASK_AGAIN });
    headers.insert(ACCEPT_RANGES, BYTES);
    if presentation.is_page {
        headers.insert(VARY, HeaderValue::from_static("accept, range, sec-fetch-dest"));
    }
    if client_has(&request.headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(presentation.content_type));
    headers.insert(CONTENT_DISPOSITION, presentation.disposition.header(&served.file_name));

    // Ranges are defined for GET alone (RFC 9110, section 14.2).
    let wanted = if request.method == Method::GET {
        Wanted::new(&request.headers, &tag, served.size)
    } else {
        Wanted::Whole
    };
    let (status, length) = match wanted {
        Wanted::Whole if is_page => (StatusCode::OK, served.size + opaque::STORAGE_BYTES),
        Wanted::Whole => (StatusCode::OK, served.size),
        Wanted::Part { from, to } => {
            headers.insert(CONTENT_RANGE, text(&format!("bytes {from}-{}/{}", to - 1, served.size))?);
            (StatusCode::PARTIAL_CONTENT, to - from)
        }
        Wanted::Unsatisfiable => return Err(outside(served.size)?),
    };
    if request.method == Method::GET && elsewhere::is_too_much(state, length) {
        if opens_apart && opaque::opens_page(request) {
            headers.insert(CACHE_CONTROL, ASK_AGAIN);
            headers.remove(ETAG);
            return Ok((headers, elsewhere::page_in_parts(state)).into_response());
        }
        return elsewhere::answer(state, served, presentation, request).await;
    }
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    let body = match wanted {
        _ if request.method == Method::HEAD || length == 0 => Body::empty(),
        Wanted::Part { from, to } => stored(state, served, Some((from, to))).await?,
        _ if is_page => opaque::page(state, served).await?,
        _ => stored(state, served, None).await?,
    };
    Ok((status, headers, body).into_response())
}

async fn stored(state: &AppState, served: &Served, part: Option<(u64, u64)>) -> Result<Body, ApiError> {
    let part = part.map(|(from, to)| from..to);
    let bytes = served.content.stream(state.store(), part).await.map_err(unread)?;
    Ok(Body::from_stream(log_break(bytes)))
}

/// Why the bytes of a file that has a row are not read.
pub(crate) fn unread(error: StoreError) -> ApiError {
    match error.is_missing_object() {
        true => ApiError::not_found("file").caused_by(error),
        false => error.into(),
    }
}

/// Logs when bytes break off. The headers are out by then: all that is left is
/// to break off too.
pub(crate) fn log_break<E: std::fmt::Display>(
    bytes: impl Stream<Item = Result<Bytes, E>>,
) -> impl Stream<Item = Result<Bytes, E>> {
    bytes.inspect_err(|error| tracing::warn!(%error, "a file broke off while it was sent"))
}

fn outside(size: u64) -> Result<ApiError, ApiError> {
    let sentence = format!("The range lies outside of the {size} bytes of this file.");
    Ok(ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", sentence)
        .with_header(CONTENT_RANGE, text(&format!("bytes */{size}"))?)
        .with_header(ACCEPT_RANGES, BYTES))
}

fn text(value: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(value).map_err(ApiError::internal)
}
