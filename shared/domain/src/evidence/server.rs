//! What the application under test said about a request: log entries and
//! spans its backend sent along. Keys come in camel case or Pascal case.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::url_text::strip_url;
use crate::ingest::lenient::{self, rounded};
use crate::text::{cut, cut_str};

const MAX_LOGS: usize = 50;
const MAX_SPANS: usize = 100;
const MAX_MESSAGE_CHARS: usize = 500;
const MAX_WORD_CHARS: usize = 200;
const MAX_STACK_FRAMES: usize = 5;
const MAX_ATTRIBUTES: usize = 20;

/// One log entry of the backend.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerLog {
    /// Epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// `Warning`, `Error` or `Critical`.
    pub level: String,
    /// Logger.
    pub category: String,
    /// Message, ≤ 500 characters.
    pub message: String,
    /// Innermost frames, ≤ 5.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}

/// One span of the backend's trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerSpan {
    /// Id within the request.
    pub id: String,
    /// Id of the enclosing span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Operation.
    pub name: String,
    /// Kind of operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Milliseconds since the request began, or epoch milliseconds.
    pub start_ms: f64,
    /// Milliseconds.
    pub dur_ms: f64,
    /// `ok` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// W3C trace id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Scalar attributes such as `http.route`; addresses in them are stripped.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub attrs: Map<String, Value>,
}

impl ServerLog {
    fn read(fields: &mut Fields) -> Option<Self> {
        let message = fields.text("message", MAX_MESSAGE_CHARS)?;
        let mut stack: Vec<String> = match fields.take("stack") {
            Some(Value::Array(frames)) => frames
                .into_iter()
                .filter_map(|frame| if let Value::String(frame) = frame { Some(frame) } else { None })
                .collect(),
            Some(Value::String(stack)) => stack.lines().map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        stack.truncate(MAX_STACK_FRAMES);
        Some(Self {
            timestamp: fields.number("timestamp").map(|number| rounded(number, 0.0, 1e15)),
            level: fields.text("level", 20).unwrap_or_default(),
            category: fields.text("category", MAX_WORD_CHARS).unwrap_or_default(),
            message,
            stack: stack.into_iter().map(|frame| cut(frame, MAX_MESSAGE_CHARS)).collect(),
        })
    }
}

impl ServerSpan {
    fn read(fields: &mut Fields) -> Option<Self> {
        let attrs = match fields.take("attrs") {
            Some(Value::Object(attrs)) => attrs,
            _ => Map::new(),
        };
        Some(Self {
            name: fields.text("name", MAX_WORD_CHARS)?,
            id: fields.text("id", MAX_WORD_CHARS).unwrap_or_default(),
            parent_id: fields.text("parentId", MAX_WORD_CHARS),
            kind: fields.text("kind", MAX_WORD_CHARS),
            start_ms: fields.number("startMs").unwrap_or_default(),
            dur_ms: fields.number("durMs").unwrap_or_default().max(0.0),
            status: fields.text("status", 20),
            trace_id: fields.text("traceId", MAX_WORD_CHARS),
            attrs: attrs.into_iter().filter_map(safe_attribute).take(MAX_ATTRIBUTES).collect(),
        })
    }
}

fn safe_attribute((key, value): (String, Value)) -> Option<(String, Value)> {
    let value = match value {
        Value::String(_) if key.ends_with("query") => return None,
        Value::String(text) if text.starts_with('/') || text.contains("://") => {
            Value::String(strip_url(text))
        }
        Value::String(text) => Value::String(cut(text, MAX_MESSAGE_CHARS)),
        Value::Array(_) | Value::Object(_) | Value::Null => return None,
        scalar => scalar,
    };
    Some((cut(key, MAX_WORD_CHARS), value))
}

/// The fields of one object under their camel case or Pascal case names.
struct Fields(Map<String, Value>);

impl Fields {
    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).or_else(|| {
            let mut pascal = name.to_owned();
            pascal[..1].make_ascii_uppercase();
            self.0.remove(&pascal)
        })
    }

    fn text(&mut self, name: &str, max_chars: usize) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(cut(text, max_chars)),
            Value::Number(number) => Some(cut_str(&number.to_string(), max_chars).to_owned()),
            _ => None,
        }
    }

    fn number(&mut self, name: &str) -> Option<f64> {
        let number = match self.take(name)? {
            Value::Number(number) => number.as_f64()?,
            Value::String(text) => text.trim().parse().ok()?,
            _ => return None,
        };
        number.is_finite().then_some(number)
    }
}

impl lenient::Element<'_> for Fields {
    type Read = Value;
    fn accept(read: Value) -> Option<Self> {
        match read {
            Value::Object(fields) => Some(Self(fields)),
            _ => None,
        }
    }
}

/// Reads the log entries of a request, the first 50.
pub(super) fn logs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ServerLog>, D::Error> {
    let entries: Vec<Fields> = lenient::list_or_empty(deserializer)?;
    Ok(entries.into_iter().filter_map(|mut fields| ServerLog::read(&mut fields)).take(MAX_LOGS).collect())
}

/// Reads the spans of a request, the first 100.
pub(super) fn spans<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ServerSpan>, D::Error> {
    let entries: Vec<Fields> = lenient::list_or_empty(deserializer)?;
    Ok(entries.into_iter().filter_map(|mut fields| ServerSpan::read(&mut fields)).take(MAX_SPANS).collect())
}
