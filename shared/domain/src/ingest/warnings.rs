//! Things left out of a request without failing it, told to the client.

use serde::Serialize;
use serde_json::Value;

use crate::text::cut_str;

/// Warnings kept per request.
pub const MAX_WARNINGS: usize = 20;
const SHOWN_CHARS: usize = 60;

/// One thing that was left out or read differently than it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Stable word for programs.
    pub code: &'static str,
    /// Sentence for people.
    pub message: String,
    /// Place in the request's list of test cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
}

/// The first [`MAX_WARNINGS`] warnings of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Warnings(Vec<Warning>);

impl Warnings {
    /// Keeps the warning while there is room. The sentence is only made then.
    pub fn add(&mut self, code: &'static str, index: Option<usize>, message: impl FnOnce() -> String) {
        if self.0.len() < MAX_WARNINGS {
            self.0.push(Warning { code, message: message(), index });
        }
    }

    /// Warns of a file that came in a part of a form that is none for files; `known`
    /// names those that are.
    pub fn ignore_part(&mut self, name: &str, known: &str) {
        self.add("part_ignored", None, || {
            format!("The file in the part {} was left out; files come in {known}.", quoted(name))
        });
    }

    /// Keeps a finished warning while there is room.
    pub fn push(&mut self, warning: Warning) {
        if self.0.len() < MAX_WARNINGS {
            self.0.push(warning);
        }
    }

    /// Takes over the warnings of another part of the request.
    pub fn extend(&mut self, others: Self) {
        others.0.into_iter().for_each(|warning| self.push(warning));
    }

    /// Whether nothing was left out.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The warnings, first ones first.
    #[must_use]
    pub fn as_slice(&self) -> &[Warning] {
        &self.0
    }
}

/// How messages show a value.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        scalar => scalar.to_string(),
    }
}

/// A client's text as messages quote it: in quotes, short, on one line.
pub(crate) fn quoted(text: &str) -> String {
    let short = cut_str(text, SHOWN_CHARS);
    let ellipsis = if short.len() < text.len() { "…" } else { "" };
    let one_line: String =
        short.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    format!("\"{one_line}{ellipsis}\"")
}
