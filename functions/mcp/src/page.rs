//! The page people see at `/mcp`: the address, and what to paste where.

use askama::Template;

use crate::tool::Tool;
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
        &TOOLS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_address_and_no_script() {
        let page = |key_required| {
            SetupPage { endpoint: "https://t.example/mcp".to_owned(), key_required }.html().unwrap()
        };
        let open = page(false);
        assert!(open.contains("claude mcp add --transport http callboard https://t.example/mcp"));
        assert!(open.contains("No key is needed"));
        assert!(TOOLS.iter().all(|tool| open.contains(tool.name)));
        for forbidden in ["<script", "style=", "onclick", "pd_"] {
            assert!(!open.contains(forbidden), "{forbidden}");
        }
        assert!(page(true).contains("Authorization: Bearer pd_"));
    }
}
