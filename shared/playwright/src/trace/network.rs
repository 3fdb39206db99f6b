//! Requests and console lines, and which of them belong to a failure.

use serde::Deserialize;
use serde_json::Value;

use super::Trace;
use super::events::{self, Console, Event};
use callboard_domain::secrets::{MASK, is_secret_name, masked, masked_url};
use callboard_domain::text::{cut, strip_ansi};
use callboard_domain::time::Timestamp;

/// Most requests that are told of.
const MAX_EXCHANGES: usize = 500;
/// Most console lines.
const MAX_LINES: usize = 200;
const MAX_HEADERS: usize = 60;
const MAX_HEADER_CHARS: usize = 500;
const MAX_URL_CHARS: usize = 2_000;
const MAX_TEXT_CHARS: usize = 2_000;
/// How long before an action things may have happened that made it fail, ms.
const LEAD_MS: f64 = 1_000.0;

/// A header, its value masked when it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}

/// The content of a request or response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// Type it claims.
    pub content_type: String,
    /// Bytes, when known.
    pub size: Option<i64>,
    /// Entry that holds it.
    pub entry: Option<String>,
}

/// A request and its response.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Method.
    pub method: String,
    /// Address, secrets masked.
    pub url: String,
    /// Status; 0 without a response.
    pub status: i64,
    /// Reason phrase.
    pub status_text: String,
    /// Why there was no response.
    pub failure: Option<String>,
    /// Kind of resource, when the trace has it.
    pub resource_type: Option<String>,
    /// Start, epoch milliseconds.
    pub at: f64,
    /// Duration, ms.
    pub duration: f64,
    /// Headers sent.
    pub request_headers: Vec<Header>,
    /// Headers received.
    pub response_headers: Vec<Header>,
    /// What was sent.
    pub request_body: Option<Body>,
    /// What was received.
    pub response_body: Option<Body>,
}

/// Something a page wrote to its console, or an error nothing caught.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsoleLine {
    /// `error`, `warning`, `log`, … or `pageerror`.
    pub kind: String,
    /// Text, secrets masked.
    pub text: String,
    /// Where: `url:line`.
    pub location: Option<String>,
    /// When, epoch milliseconds.
    pub at: f64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    snapshot: Entry,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Entry {
    started_date_time: String,
    time: f64,
    request: Half,
    response: Half,
    #[serde(rename = "_resourceType")]
    resource_type: Option<String>,
    #[serde(rename = "_failureText")]
    failure: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Half {
    method: String,
    url: String,
    status: i64,
    status_text: String,
    headers: Vec<HeaderFields>,
    content: Option<Content>,
    post_data: Option<Content>,
    #[serde(rename = "_failureText")]
    failure: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HeaderFields {
    name: String,
    value: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Content {
    size: Option<i64>,
    mime_type: String,
    #[serde(rename = "_sha1")]
    sha1: Option<String>,
    #[serde(rename = "_file")]
    file: Option<String>,
}

impl Content {
    fn body(self) -> Body {
        let by_hash = self.sha1.map(|sha1| format!("resources/{sha1}"));
        Body {
            content_type: cut(self.mime_type, 200),
            size: self.size.filter(|size| *size >= 0),
            entry: self.file.or(by_hash),
        }
    }
}

fn headers(fields: Vec<HeaderFields>) -> Vec<Header> {
    let header = |field: HeaderFields| {
        let value = match is_secret_name(&field.name) {
            true => MASK.to_owned(),
            false => cut(masked(&field.value).into_owned(), MAX_HEADER_CHARS),
        };
        Header { name: cut(field.name, 200), value }
    };
    fields.into_iter().take(MAX_HEADERS).map(header).collect()
}

impl Exchange {
    /// A line of a file of requests; `None` for other lines.
    pub(super) fn read(line: &str) -> Option<Self> {
        if !line.contains("\"resource-snapshot\"") {
            return None;
        }
        let entry = events::read::<Line>(line)?.snapshot;
        if entry.request.url.is_empty() {
            return None;
        }
        let at = Timestamp::parse_iso(&entry.started_date_time).map_or(0.0, |time| as_f64(time.millis()));
        Some(Self {
            method: cut(entry.request.method, 20),
            url: cut(masked_url(&entry.request.url), MAX_URL_CHARS),
            status: entry.response.status.max(0),
            status_text: cut(entry.response.status_text, 200),
            failure: entry.failure.or(entry.response.failure).map(|text| cut(text, 500)),
            resource_type: entry.resource_type.map(|kind| cut(kind, 50)),
            at,
            duration: entry.time.max(0.0),
            request_headers: headers(entry.request.headers),
            response_headers: headers(entry.response.headers),
            request_body: entry.request.post_data.map(Content::body),
            response_body: entry.response.content.map(Content::body),
        })
    }

    /// Whether there was no answer, or one that says that it failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failure.is_some() || self.status <= 0 || self.status >= 400
    }

    /// Whether it explains a failure wherever it happened: no answer, or a
    /// server that broke.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.failure.is_some() || self.status <= 0 || self.status >= 500
    }
}

impl ConsoleLine {
    pub(super) fn from_console(console: Console, offset: f64) -> Self {
        let location = &console.location;
        Self {
            kind: cut(console.message_type, 20),
            text: cut(masked(&strip_ansi(&console.text)).into_owned(), MAX_TEXT_CHARS),
            location: (!location.url.is_empty()).then(|| {
                format!("{}:{}", cut(masked_url(&location.url), 500), location.line_number.saturating_add(1))
            }),
            at: console.time + offset,
        }
    }

    /// An uncaught error of a page, from the event that tells of it.
    pub(super) fn of_page_error(event: &Event, offset: f64) -> Option<Self> {
        if event.method != "pageError" {
            return None;
        }
        let error = event.params.get("error").unwrap_or(&event.params);
        let error = error.get("error").unwrap_or(error);
        let message = error.get("message").and_then(Value::as_str)?;
        Some(Self {
            kind: "pageerror".to_owned(),
            text: cut(masked(message).into_owned(), MAX_TEXT_CHARS),
            location: None,
            at: event.time + offset,
        })
    }
}

impl Trace {
    /// Requests around the failing action, from a second before it, and those
    /// that broke at any time; all of them when nothing failed.
    #[must_use]
    pub fn relevant_exchanges(&self, failing: Option<(f64, Option<f64>)>) -> Vec<&Exchange> {
        let is_relevant = |exchange: &&Exchange| {
            failing.is_none_or(|window| exchange.is_broken() || lies_in(exchange.at, window))
        };
        self.exchanges.iter().filter(is_relevant).take(MAX_EXCHANGES).collect()
    }

    /// Console lines around the failing action, and uncaught errors at any time.
    #[must_use]
    pub fn relevant_console(&self, failing: Option<(f64, Option<f64>)>) -> Vec<&ConsoleLine> {
        let is_relevant = |line: &&ConsoleLine| {
            failing.is_none_or(|window| line.kind == "pageerror" || lies_in(line.at, window))
        };
        self.console.iter().filter(is_relevant).take(MAX_LINES).collect()
    }
}

fn lies_in(at: f64, (start, end): (f64, Option<f64>)) -> bool {
    at >= start - LEAD_MS && end.is_none_or(|end| at <= end)
}

#[expect(clippy::cast_precision_loss, reason = "epoch milliseconds stay below 2^53")]
const fn as_f64(millis: i64) -> f64 {
    millis as f64
}
