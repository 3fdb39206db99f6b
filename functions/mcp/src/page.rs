//! The page people see at `/mcp`: the address, what to paste where, and a
//! button that tries it. Its style and script are two small files of its own:
//! the function must not need another one to show it.

use askama::Template;
use axum::response::{IntoResponse, Response};
use callboard_http::ApiError;
use callboard_http::extract::Tail;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::tool::{Group, Tool};
use crate::tools::TOOLS;

/// Inputs of the page. It shows nothing of what is stored.
#[derive(Debug, Template)]
#[template(path = "setup.html")]
pub(crate) struct SetupPage {
    /// Address of the endpoint.
    pub endpoint: String,
    /// Whether callers need a key.
    pub key_required: bool,
}

impl SetupPage {
    /// The page.
    ///
    /// # Errors
    /// When the template cannot be written.
    pub(crate) fn html(&self) -> Result<String, askama::Error> {
        self.render()
    }

    fn tools(&self) -> &'static [&'static Tool] {
        TOOLS
    }

    fn groups(&self) -> [Group; Group::ALL.len()] {
        Group::ALL
    }
}

/// The style and the script of the page.
pub(crate) async fn asset(Tail(name): Tail) -> Result<Response, ApiError> {
    let (kind, text) = match name.as_str() {
        "page.css" => ("text/css; charset=utf-8", include_str!("../assets/page.css")),
        "page.js" => ("text/javascript; charset=utf-8", include_str!("../assets/page.js")),
        _ => return Err(ApiError::route_not_found()),
    };
    // They have no fingerprint in their address, so they are asked for again.
    Ok(([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_address_and_nothing_inline() {
        let page = |key_required| {
            SetupPage { endpoint: "https://t.example/mcp".to_owned(), key_required }.html().unwrap()
        };
        let open = page(false);
        assert!(open.contains("claude mcp add --transport http callboard https://t.example/mcp"));
        assert!(open.contains("No key is needed"));
        assert!(TOOLS.iter().all(|tool| open.contains(tool.name)));
        for forbidden in ["<script>", "<style", "style=", "onclick", "pd_"] {
            assert!(!open.contains(forbidden), "{forbidden}");
        }
        assert!(page(true).contains("Authorization: Bearer pd_"));
    }
}
