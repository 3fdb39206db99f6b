//! Bytes that do not get through what stands in front: a function's platform carries
//! a few megabytes and encodes them on the way. Where the object store gives out addresses of
//! single objects, the client is sent there. Access was decided here; the
//! address opens this one object for a short time, as the type and under the
//! name that are signed with it. What could run script is never opened there: a page
//! is put together by the browser out of ranges.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use callboard_http::{ApiError, AppState};
use callboard_query::files::{AnsweredAs, Served};
use callboard_store::blobs::assembled;
use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderValue, LOCATION};

use crate::presentation::Presentation;
use crate::request::FileRequest;

/// How long an address of the object store opens it: time to begin reading.
const LIFETIME: Duration = Duration::from_secs(5 * 60);

/// Fetches the page it stands for in ranges, and takes its place.
const PAGE_IN_PARTS: &str = include_str!("page_in_parts.html");

/// The page that loads a page which is too large for one answer.
pub(crate) fn page_in_parts(state: &AppState) -> String {
    let most = state.config().max_answer_bytes().unwrap_or(u64::MAX);
    PAGE_IN_PARTS.replace("{{most}}", &most.to_string())
}

/// Whether an answer of so many bytes does not get through.
pub(crate) fn is_too_much(state: &AppState, length: u64) -> bool {
    state.config().max_answer_bytes().is_some_and(|most| length > most)
}

/// Sends the client to the object store.
///
/// # Errors
/// 413 `answer_too_large` when there is no such way; ranges are answered then.
pub(crate) async fn answer(
    state: &AppState,
    served: &Served,
    presentation: Presentation,
    request: &FileRequest,
) -> Result<Response, ApiError> {
    let store = state.store();
    if request.may_redirect && presentation.is_inert() && store.objects().signed_origin().is_some() {
        let project = served.project.get();
        let key = assembled::key(store, project, &served.content, &served.etag, state.now()).await?;
        let disposition = presentation.disposition.header(&served.file_name);
        let disposition = disposition.to_str().map_err(ApiError::internal)?;
        let answered_as = AnsweredAs { content_type: presentation.content_type, disposition };
        if let Some(address) = store.objects().signed_get(&key, answered_as, LIFETIME).await? {
            let place = HeaderValue::from_str(address.as_str()).map_err(ApiError::internal)?;
            let headers = [(LOCATION, place), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
            return Ok((StatusCode::FOUND, headers).into_response());
        }
    }
    let most = state.config().max_answer_bytes().unwrap_or(u64::MAX);
    let message = format!("One answer carries at most {most} bytes here; ask for ranges of the file.");
    Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "answer_too_large", message))
}
