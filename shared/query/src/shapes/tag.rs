//! Tags as answers show them.

use callboard_domain::time::Timestamp;
use callboard_store::tags::TagRow;
use serde::Serialize;
use utoipa::ToSchema;

/// A tag of projects.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tag {
    /// Tag id.
    #[schema(example = 4)]
    pub id: i64,
    /// The word.
    #[schema(example = "payments")]
    pub text: String,
    /// `neutral`, `red`, `orange`, `amber`, `green`, `teal`, `blue`, `violet` or `pink`.
    #[schema(example = "teal")]
    pub color: &'static str,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl Tag {
    /// Shows a stored tag.
    #[must_use]
    pub fn from_row(row: &TagRow) -> Self {
        Self {
            id: row.id.get(),
            text: row.text.clone(),
            color: row.color.as_str(),
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}
