//! What clients learn of results that were read leniently.

use callboard_domain::ingest::{Warning, Warnings};
use serde::Serialize;
use utoipa::ToSchema;

/// Something that was read leniently.
#[derive(Debug, Serialize, ToSchema)]
pub struct WarningView {
    /// Stable word for programs.
    #[schema(example = "unknown_status")]
    code: String,
    /// Sentence for people.
    message: String,
    /// Index of the test case it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    index: Option<usize>,
}

/// The warnings of a body; `None` when there are none.
#[must_use]
pub fn warnings(found: &Warnings) -> Option<Vec<WarningView>> {
    let shown: Vec<WarningView> = found
        .as_slice()
        .iter()
        .map(|Warning { code, message, index }| WarningView {
            code: (*code).to_owned(),
            message: message.clone(),
            index: *index,
        })
        .collect();
    (!shown.is_empty()).then_some(shown)
}
