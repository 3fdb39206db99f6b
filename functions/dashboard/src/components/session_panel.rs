//! The sessions of an account: where it is signed in, and ending that.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::Timestamp;

use crate::filters;

/// A session as the panel shows it.
pub(crate) struct SessionRow {
    /// Its display id.
    pub id: String,
    /// The browser in words.
    pub device: String,
    /// What the browser calls itself.
    pub agent: String,
    /// How the person signed in.
    pub method: &'static str,
    /// When.
    pub created_at: Timestamp,
    /// Last noted use.
    pub last_seen_at: Timestamp,
    /// Whether the reader acts with it.
    pub is_current: bool,
}

/// Inputs of `components/session_panel.html`.
#[derive(Template)]
#[template(path = "components/session_panel.html")]
pub(crate) struct SessionPanel {
    /// The address of the account in the API.
    pub base: String,
    /// Newest first.
    pub sessions: Vec<SessionRow>,
    /// Whether there are sessions beyond these.
    pub has_more: bool,
    /// Whether the account is the reader's.
    pub is_own: bool,
    /// The moment relative times count from.
    pub now: Timestamp,
}

impl HtmlSafe for SessionPanel {}
