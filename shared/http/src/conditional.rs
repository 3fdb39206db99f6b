//! Conditional answers: a weak `ETag` over the bytes of an answer, and 304
//! when the client already has them.

use axum::response::{IntoResponse, Response};
use base64ct::{Base64UrlUnpadded, Encoding};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::ApiError;

const TAG_BYTES: usize = 12;

/// Answers JSON with its `ETag`, or 304.
///
/// # Errors
/// 500 for a value that cannot be written as JSON.
pub fn tagged_json(request: &HeaderMap, value: &impl Serialize) -> Result<Response, ApiError> {
    let bytes = serde_json::to_vec(value).map_err(ApiError::internal)?;
    Ok(tagged(request, "application/json", bytes.into()))
}

/// Answers bytes with their `ETag`, or 304.
#[must_use]
pub fn tagged(request: &HeaderMap, content_type: &'static str, bytes: Bytes) -> Response {
    let tag = weak_tag(&bytes);
    let Ok(value) = HeaderValue::from_str(&tag) else {
        return ApiError::internal("unusable tag").into_response();
    };
    let mut response = if client_has(request, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let mut response = Response::new(bytes.into());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        response
    };
    response.headers_mut().insert(ETAG, value);
    response
}

fn weak_tag(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    format!("W/\"{}\"", Base64UrlUnpadded::encode_string(&digest[..TAG_BYTES]))
}

/// Whether the client has the bytes with this tag (as `ETag` writes it) and
/// wants 304; weak comparison, as for any GET.
#[must_use]
pub fn client_has(request: &HeaderMap, tag: &str) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    request
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|named| named.trim() == "*" || opaque(named) == opaque(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_has_the_bytes_gets_none() {
        let first = tagged(&HeaderMap::new(), "text/plain", Bytes::from_static(b"x"));
        assert_eq!(first.status(), StatusCode::OK);
        let mut request = HeaderMap::new();
        request.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        assert_eq!(
            tagged(&request, "text/plain", Bytes::from_static(b"x")).status(),
            StatusCode::NOT_MODIFIED
        );
        assert_eq!(tagged(&request, "text/plain", Bytes::from_static(b"y")).status(), StatusCode::OK);
    }
}
