//! Files and reports as answers show them.

use callboard_domain::time::Timestamp;
use callboard_store::files::FileRow;
use callboard_store::reports::ReportRow;
use serde::Serialize;
use utoipa::ToSchema;

use super::words::FileKindWord;
use crate::Links;

/// A stored file.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileItem {
    /// File id.
    pub id: i64,
    /// trace, screenshot, video or attachment.
    #[schema(value_type = FileKindWord)]
    pub kind: &'static str,
    /// Name the test gave it.
    pub name: String,
    /// Type as recognised by the server.
    pub content_type: String,
    /// Name of the client's file.
    pub original_name: Option<String>,
    /// Size in bytes.
    pub size: i64,
    /// Width of a picture in pixels, where its head told it.
    pub width: Option<i32>,
    /// Height of a picture in pixels, where its head told it.
    pub height: Option<i32>,
    /// SHA-256 of the content.
    pub sha256: String,
    /// The attempt it belongs to.
    pub attempt: FileAttempt,
    /// Stored name.
    pub path: String,
    /// Where its bytes are.
    pub url: String,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it goes; null where it is kept.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
}

/// The attempt a file belongs to.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileAttempt {
    /// Index of the attempt.
    pub retry: i64,
    /// Repetition (`--repeat-each`).
    pub repetition: i64,
}

impl FileItem {
    /// Shows a stored file.
    #[must_use]
    pub fn from_row(row: &FileRow, links: &Links) -> Self {
        Self {
            id: row.id.get(),
            kind: row.kind.as_str(),
            name: row.name.clone(),
            content_type: row.content_type.clone(),
            original_name: row.original_name.clone(),
            size: row.size,
            width: row.dimensions.map(|dimensions| dimensions.width),
            height: row.dimensions.map(|dimensions| dimensions.height),
            sha256: hex::encode(row.sha256),
            attempt: FileAttempt { retry: row.retry, repetition: row.repetition },
            path: row.path.clone(),
            url: links.file(&row.id.to_string()),
            created_at: row.created_at,
            expires_at: row.expires_at,
        }
    }
}

/// A stored trace, with how to open it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceItem {
    /// The file.
    #[serde(flatten)]
    pub file: FileItem,
    /// Command that opens it on the reader's machine.
    #[schema(example = "npx playwright show-trace http://localhost:3000/api/files/7")]
    pub command: String,
    /// Where a browser opens it in the trace viewer; null where there is none.
    #[schema(example = "http://localhost:3000/api/files/7?viewer=1")]
    pub viewer_url: Option<String>,
}

impl TraceItem {
    /// Shows a stored trace.
    #[must_use]
    pub fn from_row(row: &FileRow, links: &Links) -> Self {
        let file = FileItem::from_row(row, links);
        let command = format!("npx playwright show-trace {}", file.url);
        Self { viewer_url: links.trace_in_viewer(file.id), file, command }
    }
}

/// A stored report.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Report id.
    pub id: i64,
    /// Type word.
    #[serde(rename = "type")]
    #[schema(example = "html")]
    pub kind: String,
    /// Display label.
    pub label: String,
    /// Stored name of the entry page.
    pub path: String,
    /// Sizes of its entries together, bytes.
    pub size: i64,
    /// Number of entries.
    pub entries: i64,
    /// Where it opens.
    pub url: String,
}

impl Report {
    /// Shows a stored report.
    #[must_use]
    pub fn from_row(row: &ReportRow, links: &Links) -> Self {
        let path = row.path();
        Self {
            id: row.id.get(),
            kind: row.kind.clone(),
            label: row.label.clone(),
            url: links.file(&path),
            path,
            size: row.size,
            entries: row.entries,
        }
    }
}

/// How Playwright ends the names of the pictures of a comparison, in the order
/// people read them.
const COMPARED: [&str; 4] = ["expected", "previous", "actual", "diff"];

/// The comparison a picture belongs to by its name, and which of its parts it
/// is: what was expected, what was there before, what is there now, the
/// difference. `cart-expected.png` is the first part of `cart`.
#[must_use]
pub fn part_of_comparison(name: &str) -> Option<(&str, usize)> {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let (name, end) = stem.rsplit_once('-')?;
    let place = COMPARED.iter().position(|part| *part == end)?;
    (!name.is_empty()).then_some((name, place))
}

#[cfg(test)]
mod tests {
    use super::part_of_comparison;

    #[test]
    fn parts_of_a_comparison_are_known_by_the_end_of_their_name() {
        assert_eq!(part_of_comparison("cart-1-expected.png"), Some(("cart-1", 0)));
        assert_eq!(part_of_comparison("cart-diff"), Some(("cart", 3)));
        assert_eq!(part_of_comparison("-diff.png"), None);
        assert_eq!(part_of_comparison("my-screenshot.png"), None);
    }
}
