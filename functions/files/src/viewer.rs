//! `GET /viewer/…`: Playwright's trace viewer, on the origin of untrusted
//! content and nowhere else. What it opens is a trace below a file grant, so
//! it needs no session and sees none.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use base64ct::{Base64, Encoding};
use callboard_http::conditional::tagged;
use callboard_http::extract::Tail;
use callboard_http::viewer::{IN_PLACE, opens_only_granted};
use callboard_http::{ApiError, AppState, Door, Viewer};
use callboard_viewer::ViewerFile;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, HeaderValue, LOCATION, REFERRER_POLICY,
};
use http::{StatusCode, Uri};
use sha2::{Digest, Sha256};

const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("public, no-cache");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");

/// The page of the copy of the viewer that Playwright's reports bring along.
const IN_REPORT: &str = "trace/index.html";

/// The page that stands before the viewer where it is shown inside of a page of
/// the dashboard, because some browsers let it keep nothing there.
const IN_PLACE_PAGE: &str = include_str!("viewer_in_place.html");

fn file_of(name: &str) -> Option<ViewerFile> {
    if name != IN_PLACE {
        return callboard_viewer::file(name);
    }
    let page = ViewerFile {
        bytes: IN_PLACE_PAGE.as_bytes(),
        content_type: "text/html; charset=utf-8",
        is_fingerprinted: false,
    };
    callboard_viewer::is_included().then_some(page)
}

/// A file of the viewer. Its pages open traces below a grant of their own
/// origin; asked for any other, they are not answered at all.
pub(crate) async fn file(
    State(state): State<AppState>,
    door: Door,
    Tail(name): Tail,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let file = file_of(&name).filter(|_| door == Door::Sandbox);
    let file = file.ok_or_else(ApiError::route_not_found)?;
    if file.content_type.starts_with("text/html") {
        let own = state.gate().effective_origin(&headers);
        if !own.is_some_and(|own| opens_only_granted(&own, uri.query().unwrap_or_default())) {
            let sentence = "The viewer opens traces of this service, from the page of their execution.";
            return Err(ApiError::invalid_query("trace", sentence));
        }
    }
    let mut response = tagged(&headers, file.content_type, Bytes::from_static(file.bytes));
    let set = response.headers_mut();
    set.insert(CACHE_CONTROL, if file.is_fingerprinted { FOR_EVER } else { ASK_AGAIN });
    let policy = state.sandbox().viewer_policy(
        state.config().site_url.as_ref(),
        &INLINE_SCRIPTS,
        state.large_answers_origin(),
    );
    // The worker's own policy: whatever a page tells it to load, it loads from here.
    set.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_str(&policy).map_err(ApiError::internal)?);
    set.insert(REFERRER_POLICY, NO_REFERRER);
    Ok(response)
}

/// Sends a report that opens a trace in its own copy of the viewer, which
/// would need a service worker among stored files, on to ours.
pub(crate) fn instead_of_the_reports(
    state: &AppState,
    door: Door,
    path: &str,
    query: &str,
) -> Option<Response> {
    if path != IN_REPORT || door != Door::Sandbox || state.viewer() != Viewer::Ready {
        return None;
    }
    let address = HeaderValue::from_str(&format!("/viewer/{}?{query}", callboard_viewer::PAGE)).ok()?;
    Some((StatusCode::FOUND, [(LOCATION, address)]).into_response())
}

/// The few inline scripts of the viewer and of the page before it, as a policy
/// names them.
static INLINE_SCRIPTS: LazyLock<String> = LazyLock::new(|| {
    let page = callboard_viewer::file(callboard_viewer::PAGE).map_or(&[][..], |file| file.bytes);
    format!("{} {}", inline_scripts(&String::from_utf8_lossy(page)), inline_scripts(IN_PLACE_PAGE))
});

fn inline_scripts(page: &str) -> String {
    let scripts = page.split("<script>").skip(1).filter_map(|rest| rest.split_once("</script>"));
    let hashes = scripts.map(|(text, _)| {
        let digest = Sha256::digest(text);
        format!("'sha256-{}'", Base64::encode_string(&digest))
    });
    hashes.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_scripts_are_named_by_their_hash() {
        let page = "<script src=\"a.js\"></script><script>alert(1)</script><script></script>";
        assert_eq!(
            inline_scripts(page),
            "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
        );
    }
}
