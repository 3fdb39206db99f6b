//! `If-Match` in front of a change: 412 unless the caller has the state that
//! is stored. The state is that of the `GET` of the same entity, without
//! parameters, whose `ETag` the caller sent; it is asked as any client would
//! ask it, so it also decides whether the caller may know it.
//!
//! [`Routes`](crate::Routes) puts this behind the checks of every route that
//! changes something. Between the check and the change another change can
//! still come: this protects people from overwriting what they did not see,
//! not programs from each other.

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::Request;
use axum::{Extension, Router};
use callboard_auth::client_address::ClientAddress;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, EXPECT, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use http::{Method, StatusCode, Uri};
use tower::ServiceExt as _;

use crate::error::ApiError;
use crate::sandbox::{Door, Site};

/// The reading routes of a function, once all are mounted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readers(Arc<OnceLock<Router>>);

impl Readers {
    /// Takes the reading routes of the function.
    pub(crate) fn set(&self, router: Router) {
        // Routes become a router once.
        let _ = self.0.set(router.fallback(async || (StatusCode::NOT_FOUND, Extension(NoPlace))));
    }

    /// Fails when a request names states and what is stored is in none of
    /// them.
    ///
    /// # Errors
    /// 412 `precondition_failed`.
    pub(crate) async fn check(&self, condition: Condition) -> Result<(), ApiError> {
        let Some(router) = self.0.get() else { return Ok(()) };
        let mut is_refused = false;
        for read in condition.reads {
            let Ok(answer) = router.clone().oneshot(read).await;
            if answer.status().is_success() {
                if let Some(tag) = answer.headers().get(ETAG).and_then(|tag| tag.to_str().ok()) {
                    return if names(&condition.named, Some(tag)) { Ok(()) } else { Err(stale()) };
                }
            } else {
                is_refused |= answer.extensions().get::<NoPlace>().is_none();
            }
        }
        // What the caller cannot read has no state to compare; the change says why. What has no tag anywhere is in none
        // of the states named, and to change it nevertheless would break what the header promises.
        if is_refused || names(&condition.named, None) { Ok(()) } else { Err(untagged()) }
    }
}

/// Marks the answer for a path at which nothing is read.
#[derive(Debug, Clone, Copy)]
struct NoPlace;

/// What a change is bound to.
pub(crate) struct Condition {
    /// The header, as it was sent.
    named: Vec<HeaderValue>,
    /// How the state is asked for, in this order until there is an answer.
    reads: Vec<Request>,
}

impl Condition {
    /// What a request is bound to, when it is.
    pub(crate) fn from_request(request: &Request) -> Option<Self> {
        let named: Vec<HeaderValue> = request.headers().get_all(IF_MATCH).iter().cloned().collect();
        let reads =
            || places(request.uri().path()).iter().filter_map(|path| reading(request, path)).collect();
        (!named.is_empty()).then(|| Self { named, reads: reads() })
    }
}

/// Where the state of what a path changes is read: there, or at the entity
/// whose part it is (`/api/failure-clusters/7/status`).
fn places(path: &str) -> Vec<String> {
    let entity: Vec<&str> = path.split('/').take(4).collect();
    let mut places = vec![path.to_owned(), entity.join("/")];
    places.dedup();
    places
}

fn reading(request: &Request, path: &str) -> Option<Request> {
    let mut read = Request::new(Body::empty());
    *read.method_mut() = Method::GET;
    *read.uri_mut() = path.parse::<Uri>().ok()?;
    *read.headers_mut() = request.headers().clone();
    for header in [CONTENT_LENGTH, CONTENT_TYPE, EXPECT, IF_MATCH, IF_NONE_MATCH] {
        read.headers_mut().remove(header);
    }
    let known = request.extensions();
    if let Some(address) = known.get::<ClientAddress>() {
        read.extensions_mut().insert(*address);
    }
    if let Some(site) = known.get::<Site>() {
        read.extensions_mut().insert(site.clone());
    }
    if let Some(door) = known.get::<Door>() {
        read.extensions_mut().insert(*door);
    }
    Some(read)
}

/// Whether the header names a tag. Our tags are weak; they name whole states,
/// which is what a change is compared with.
fn names(named: &[HeaderValue], tag: Option<&str>) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let mut named = named.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    named.any(|named| named.trim() == "*" || tag.is_some_and(|tag| opaque(named) == opaque(tag)))
}

fn stale() -> ApiError {
    let message = "This was changed since you read it; read it again, and send If-Match with its new ETag.";
    ApiError::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", message)
}

fn untagged() -> ApiError {
    let message = "This has no ETag, so If-Match cannot name its state; leave the header out.";
    ApiError::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_part_is_that_of_its_entity() {
        assert_eq!(places("/api/projects/7"), ["/api/projects/7"]);
        assert_eq!(
            places("/api/failure-clusters/7/status"),
            ["/api/failure-clusters/7/status", "/api/failure-clusters/7"]
        );
    }
}
