//! Bytes that a function cannot answer: its platform carries a few megabytes
//! and encodes them on the way. Where the object store gives out addresses of
//! single objects, the client is sent there. Access was decided here; the
//! address opens this one object for a short time, as the type and under the
//! name that are signed with it. What could run script is never opened there.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use callboard_http::{ApiError, AppState};
use callboard_platform::config::Platform;
use callboard_query::files::{AnsweredAs, Served};
use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderValue, LOCATION};

use crate::presentation::Presentation;
use crate::request::FileRequest;

/// Most bytes a function answers: 6 MB as base64, without the headers.
const MOST_BYTES: u64 = 4_400_000;
/// How long an address of the object store opens it: time to begin reading.
const LIFETIME: Duration = Duration::from_secs(5 * 60);

/// Whether an answer of so many bytes does not get through.
pub(crate) fn is_too_much(state: &AppState, length: u64) -> bool {
    state.config().platform == Platform::Lambda && length > MOST_BYTES
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
    let object = served.content.object().filter(|_| request.may_redirect && presentation.is_inert());
    if let Some(key) = object {
        let disposition = presentation.disposition.header(&served.file_name);
        let disposition = disposition.to_str().map_err(ApiError::internal)?;
        let answered_as = AnsweredAs { content_type: presentation.content_type, disposition };
        if let Some(address) = state.store().objects().signed_get(key, answered_as, LIFETIME).await? {
            let place = HeaderValue::from_str(address.as_str()).map_err(ApiError::internal)?;
            let headers = [(LOCATION, place), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
            return Ok((StatusCode::FOUND, headers).into_response());
        }
    }
    let message = format!("One answer carries at most {MOST_BYTES} bytes here; ask for ranges of the file.");
    Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "answer_too_large", message))
}
