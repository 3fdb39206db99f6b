//! The lines of a trace as they are written, of all formats together: fields of
//! other formats are missing, fields of a surprising type too.

use std::io::{BufRead, BufReader, Read};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::archive::read_error;
use super::{Limits, ParseError, TraceError};
use callboard_domain::text::read_repaired;

/// Bytes that are kept of a line that is too long: enough for what stands in
/// front of the content of a page.
const BEGINNING_BYTES: usize = 2_000;

/// A place in the sources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Frame {
    /// File as the test runner named it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Function; empty at the top level.
    pub function: String,
}

/// Only the type: most lines are not read any further.
#[derive(Deserialize)]
#[serde(default)]
pub(super) struct Kind<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: std::borrow::Cow<'a, str>,
}

impl Default for Kind<'_> {
    fn default() -> Self {
        Self { kind: std::borrow::Cow::Borrowed("") }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ContextOptions {
    pub version: u32,
    pub origin: String,
    pub browser_name: String,
    pub wall_time: f64,
    pub monotonic_time: Option<f64>,
    pub test_id_attribute_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Before {
    pub call_id: String,
    pub step_id: Option<String>,
    pub parent_id: Option<String>,
    pub api_name: Option<String>,
    pub title: Option<String>,
    pub subtitle: Option<String>,
    pub class: Option<String>,
    pub method: Option<String>,
    pub params: Value,
    pub start_time: f64,
    pub wall_time: Option<f64>,
    pub stack: Vec<Frame>,
    pub page_id: Option<String>,
    pub before_snapshot: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct After {
    pub call_id: String,
    pub end_time: f64,
    pub error: Option<ErrorFields>,
    pub attachments: Vec<AttachmentFields>,
    pub after_snapshot: Option<String>,
}

/// `action` lines of formats up to 4: both halves in one, inside of metadata
/// for the oldest.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WholeAction {
    pub metadata: Option<OldMetadata>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct OldMetadata {
    pub id: String,
    pub api_name: Option<String>,
    pub r#type: Option<String>,
    pub method: Option<String>,
    pub params: Value,
    pub start_time: f64,
    pub end_time: f64,
    pub wall_time: Option<f64>,
    pub stack: Vec<Frame>,
    pub log: Vec<String>,
    pub error: Option<OldError>,
    pub page_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OldError {
    pub error: ErrorFields,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorFields {
    pub name: String,
    pub message: String,
    pub stack: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AttachmentFields {
    pub name: String,
    pub content_type: String,
    pub sha1: Option<String>,
    pub file: Option<String>,
    pub base64: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Log {
    pub call_id: String,
    pub message: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Console {
    pub message_type: String,
    pub text: String,
    pub time: f64,
    pub location: ConsoleLocation,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ConsoleLocation {
    pub url: String,
    pub line_number: i64,
}

/// `event` lines; the one that is read is an uncaught error of a page.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub method: String,
    pub params: Value,
    pub time: f64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorLine {
    pub message: String,
    pub stack: Vec<Frame>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Screencast {
    pub sha1: Option<String>,
    pub file: Option<String>,
    pub timestamp: f64,
}

/// An accessibility snapshot taken by the runner.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AriaSnapshot {
    pub snapshot: Option<String>,
    pub text: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Stacks {
    pub files: Vec<String>,
    pub stacks: Vec<(Value, Vec<PackedFrame>)>,
}

/// A frame: place of its file in the list, line, column and function.
pub(super) type PackedFrame = (usize, u32, u32, String);

/// A line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// As it is written.
    Whole(&'a str),
    /// How a line begins that is longer than any that is read.
    Beginning(&'a str),
}

/// Calls `take` with each line. Bytes that are no text are left out; lines
/// that are no JSON, or only a beginning, are judged by `take`: one of them
/// says nothing about the others.
pub(super) fn for_each_line(
    content: impl Read,
    limits: Limits,
    budget: &mut u64,
    mut take: impl FnMut(Line<'_>) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    let mut lines = BufReader::new(content);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut read = (&mut lines)
            .take(limits.line_bytes as u64 + 1)
            .read_until(b'\n', &mut line)
            .map_err(|error| read_error(&error))?;
        if read == 0 {
            return Ok(());
        }
        let is_whole = read <= limits.line_bytes || line.ends_with(b"\n");
        if !is_whole {
            read += lines.skip_until(b'\n').map_err(|error| read_error(&error))?;
        }
        *budget = budget.checked_sub(read as u64).ok_or(TraceError::TooLarge("it inflates to too much"))?;
        if !is_whole {
            let beginning = line[..line.len().min(BEGINNING_BYTES)].utf8_chunks().next();
            take(Line::Beginning(beginning.map_or("", |text| text.valid())))?;
        } else if let Ok(text) = std::str::from_utf8(line.trim_ascii())
            && !text.is_empty()
        {
            take(Line::Whole(text))?;
        }
    }
}

/// A line as its type; `None` when it is something else, or nested deeper than
/// the parser goes. Programs cut texts inside of a character: half of one is
/// no reason to lose the line.
pub(super) fn read<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok().or_else(|| read_repaired(line))
}
