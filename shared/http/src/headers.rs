//! Security headers. Every answer gets them; a handler that set one itself
//! knows better and keeps it.

use axum::response::Response;
use callboard_auth::{Origin, Scheme};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

use crate::sandbox::Door;
use crate::state::AppState;

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");

const DATA_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
const NO_PERMISSIONS: &str = "accelerometer=(), autoplay=(), camera=(), display-capture=(), geolocation=(), \
    gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=(), xr-spatial-tracking=()";

/// Adds what is missing to an answer for `path`.
pub(crate) fn complete(
    response: &mut Response,
    state: &AppState,
    door: Door,
    path: &str,
    named: Option<&Origin>,
) {
    let is_page =
        response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let is_untrusted = path.starts_with("/f/");
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().entry(name).or_insert(value);
        }
    };
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    if is_untrusted {
        let site = state.config().site_url.as_ref();
        set(
            CONTENT_SECURITY_POLICY,
            &state.sandbox().content_policy(door, site, state.large_answers_origin()),
        );
    } else if is_page {
        let bucket = state.store().objects().signed_origin();
        set(CONTENT_SECURITY_POLICY, &page_policy(&state.sandbox().frame_sources(), bucket));
        set(OPENER_POLICY, "same-origin");
        set(PERMISSIONS_POLICY, NO_PERMISSIONS);
    } else {
        set(CONTENT_SECURITY_POLICY, DATA_POLICY);
    }
    // Reports are framed by our pages; the policy above says which.
    if door == Door::Main && !is_untrusted {
        set(X_FRAME_OPTIONS, "DENY");
    }
    // A page with an opaque origin is foreign to everything, its own pictures included.
    let is_for_others = door == Door::Sandbox || is_untrusted;
    set(RESOURCE_POLICY, if is_for_others { "cross-origin" } else { "same-origin" });
    set(REFERRER_POLICY, if is_page && !is_untrusted { "same-origin" } else { "no-referrer" });
    if named.is_some_and(|origin| origin.scheme() == Scheme::Https) {
        set(STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
    if path.starts_with("/api/") || path == "/mcp" || is_untrusted {
        set(CACHE_CONTROL, "no-store");
    }
}

fn page_policy(frames: &str, bucket: Option<&str>) -> String {
    // A function sends whoever asks for a large video to the bucket.
    let media = bucket.map(|bucket| format!("media-src 'self' {bucket}; ")).unwrap_or_default();
    format!(
        "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob: https:; \
         {media}connect-src 'self'; frame-src {frames}; object-src 'none'; base-uri 'none'; form-action 'self'; \
         frame-ancestors 'none'"
    )
}
