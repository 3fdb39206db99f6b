//! The API keys of an account: what there is, a new one, and revoking.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_auth::KeyPermission;
use callboard_domain::time::Timestamp;

use super::ChoiceRow;
use crate::filters;

/// A key as the panel shows it.
pub(crate) struct KeyRow {
    /// Id.
    pub id: i64,
    /// What it is for.
    pub name: String,
    /// The part of it that may be shown.
    pub prefix: String,
    /// What it may be used for.
    pub permission: &'static str,
    /// Which projects it reaches.
    pub reach: String,
    /// Who made it, when that was somebody else than the owner.
    pub created_by: Option<String>,
    /// When.
    pub created_at: Timestamp,
    /// Last noted use.
    pub last_used_at: Option<Timestamp>,
    /// When it stops.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Whether it opens nothing any more.
    pub is_over: bool,
}

/// Inputs of `components/key_panel.html`.
#[derive(Template)]
#[template(path = "components/key_panel.html")]
pub(crate) struct KeyPanel {
    /// The address of the account in the API.
    pub base: String,
    /// Newest first.
    pub keys: Vec<KeyRow>,
    /// Whether there are keys beyond these.
    pub has_more: bool,
    /// Whether the account is the reader's.
    pub is_own: bool,
    /// Projects a key can be narrowed to.
    pub projects: Vec<ChoiceRow>,
    /// The moment relative times count from.
    pub now: Timestamp,
    /// What keys can be made for.
    pub permissions: [KeyPermission; 4],
}

impl HtmlSafe for KeyPanel {}
