//! A form as a browser sends it that runs no script. Only signing in takes one:
//! everything else is asked for in JSON, which no page of another origin can
//! send without being allowed to.

use std::collections::HashMap;

use axum::extract::{FromRequest, Request};
use futures::StreamExt as _;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use url::form_urlencoded;

use super::body::{BodyRules, CountedBody};
use super::payload::Collector;
use crate::error::ApiError;

/// Longest address one is sent back to.
const MAX_PATH_BYTES: usize = 2_048;

/// The fields of a form; of several with one name the last one counts.
#[derive(Debug, Clone)]
pub struct BrowserForm(HashMap<String, String>);

impl<S: Sync> FromRequest<S> for BrowserForm {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let (limit, mut held) = BodyRules::reserved(request.extensions())?;
        let mut body = CountedBody::new(request.into_body(), limit);
        let mut collector = Collector::in_memory(&held, limit);
        while let Some(piece) = body.next().await {
            collector.add(&mut held, &piece.map_err(|error| error.into_api("invalid_body"))?).await?;
        }
        let bytes = collector.finish(&mut held).await?.into_bytes().map_err(ApiError::internal)?;
        Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }
}

impl BrowserForm {
    /// What a field holds; empty when it is not there.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

/// Whether the body is the form of a browser.
#[must_use]
pub fn is_browser_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// `address` when it is one of this service's own pages: whoever makes a link
/// to the sign-in must not choose another site to go on to. A second slash or
/// a backslash would make the beginning a host, and browsers drop tabs and
/// line ends before they look.
#[must_use]
pub fn own_page(address: &str) -> Option<&str> {
    let mut chars = address.chars();
    let is_path = chars.next() == Some('/') && !matches!(chars.next(), Some('/' | '\\'));
    let is_plain = address.len() <= MAX_PATH_BYTES && address.bytes().all(|byte| byte.is_ascii_graphic());
    (is_path && is_plain).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_service_are_gone_on_to() {
        for own in ["/", "/projects/3?tab=runs&branch=a%2Fb", "/test-runs/1"] {
            assert_eq!(own_page(own), Some(own));
        }
        for foreign in [
            "",
            "//evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "https://evil.example",
            "javascript:1",
            "/a b",
        ] {
            assert_eq!(own_page(foreign), None, "{foreign}");
        }
        assert_eq!(own_page(&format!("/{}", "a".repeat(MAX_PATH_BYTES))), None);
    }
}
