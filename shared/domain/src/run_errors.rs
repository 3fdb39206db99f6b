//! Errors of a run that belong to no test: a global set-up that throws, a file
//! that does not load, a worker fixture whose teardown throws.
//!
//! Clients send them as `metadata.globalErrors`, each a text or an object
//! `{message, location?, phase?}`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::text::{cut, cut_str, first_line_summary, truncate_error};

/// The key of a run's metadata under which clients send them.
const METADATA_KEY: &str = "globalErrors";
/// Most errors kept of one client.
const MAX_ERRORS: usize = 20;
/// Most characters kept of one message.
const MAX_MESSAGE_CHARS: usize = 4_000;
const MAX_LOCATION_CHARS: usize = 1_000;
/// Most characters of a headline.
const MAX_HEADLINE_CHARS: usize = 300;

/// When an error outside of the tests happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorPhase {
    /// Global set-up.
    GlobalSetup,
    /// Global teardown.
    GlobalTeardown,
    /// Loading the configuration or the test files.
    Load,
    /// The check for `test.only`.
    ForbidOnly,
    /// In a worker, outside of its tests.
    Worker,
    /// The run reached its global timeout.
    GlobalTimeout,
    /// The run reached its maximum of failures.
    MaxFailures,
}

impl ErrorPhase {
    /// Every phase.
    pub const ALL: [Self; 7] = [
        Self::GlobalSetup,
        Self::GlobalTeardown,
        Self::Load,
        Self::ForbidOnly,
        Self::Worker,
        Self::GlobalTimeout,
        Self::MaxFailures,
    ];

    /// The spelling on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GlobalSetup => "global-setup",
            Self::GlobalTeardown => "global-teardown",
            Self::Load => "load",
            Self::ForbidOnly => "forbid-only",
            Self::Worker => "worker",
            Self::GlobalTimeout => "global-timeout",
            Self::MaxFailures => "max-failures",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == text)
    }

    /// The phase that Playwright's own sentences name, for clients that send
    /// only the text.
    fn of_message(message: &str) -> Option<Self> {
        [
            ("item focused with '.only' is not allowed", Self::ForbidOnly),
            // Of the test suite, the global set-up, or their teardown.
            ("Timed out waiting ", Self::GlobalTimeout),
            ("Testing stopped early after", Self::MaxFailures),
        ]
        .into_iter()
        .find(|(sentence, _)| message.contains(sentence) && !message.contains("config.webServer"))
        .map(|(_, phase)| phase)
    }

    const fn title(self) -> &'static str {
        match self {
            Self::GlobalSetup => "Global set-up failed",
            Self::GlobalTeardown => "Global teardown failed",
            Self::Load => "Loading the tests failed",
            Self::ForbidOnly => "test.only is forbidden",
            Self::Worker => "A worker failed outside of its tests",
            Self::GlobalTimeout => "Global timeout reached",
            Self::MaxFailures => "Stopped at the maximum of failures",
        }
    }
}

/// An error of a run that belongs to no test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunError {
    /// What the client reported, at most 4,000 characters.
    pub message: String,
    /// `file:line:column`, where it is known.
    #[serde(default)]
    pub location: Option<String>,
    /// When it happened, where it is known.
    #[serde(default)]
    pub phase: Option<ErrorPhase>,
}

impl RunError {
    /// Takes the errors out of a run's metadata; repeated ones count once.
    #[must_use]
    pub fn take_from(metadata: &mut Map<String, Value>) -> Vec<Self> {
        match metadata.remove(METADATA_KEY) {
            Some(Value::Array(sent)) => Self::bounded(sent.into_iter().filter_map(Self::read)),
            Some(one @ (Value::String(_) | Value::Object(_))) => Self::bounded(Self::read(one)),
            _ => Vec::new(),
        }
    }

    fn bounded(sent: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut errors = Vec::new();
        for error in sent {
            if errors.len() < MAX_ERRORS && !errors.contains(&error) {
                errors.push(error);
            }
        }
        errors
    }

    fn read(sent: Value) -> Option<Self> {
        let (message, location, phase) = match sent {
            Value::String(message) => (message, None, None),
            Value::Object(mut fields) => {
                let mut text = |key: &str| match fields.remove(key) {
                    Some(Value::String(text)) if !text.trim().is_empty() => Some(text),
                    _ => None,
                };
                let (message, stack, value) = (text("message"), text("stack"), text("value"));
                let phase = text("phase").as_deref().and_then(ErrorPhase::parse);
                (message.or(stack).or(value)?, fields.remove("location").and_then(location), phase)
            }
            _ => return None,
        };
        let message = message.trim_end();
        if message.trim_start().is_empty() {
            return None;
        }
        Some(Self {
            phase: phase.or_else(|| ErrorPhase::of_message(message)),
            message: truncate_error(message.to_owned(), MAX_MESSAGE_CHARS),
            location,
        })
    }

    /// The error in one line, which says when it happened.
    #[must_use]
    pub fn headline(&self) -> String {
        let title = self.phase.map_or("Error outside tests", ErrorPhase::title);
        let said = first_line_summary(&self.message, MAX_HEADLINE_CHARS);
        // Other texts go on behind it.
        let said = said.strip_prefix("Error: ").unwrap_or(&said).trim().trim_end_matches('.');
        let separator = if said.is_empty() { "" } else { ": " };
        cut(format!("{title}{separator}{said}"), MAX_HEADLINE_CHARS)
    }
}

/// A location as text or as Playwright's object.
fn location(sent: Value) -> Option<String> {
    let text = match sent {
        Value::String(text) => text,
        Value::Object(fields) => {
            let number = |key: &str| fields.get(key).and_then(Value::as_i64);
            let mut text = fields.get("file")?.as_str()?.to_owned();
            for part in [number("line"), number("column")].into_iter().map_while(|part| part) {
                text.push(':');
                text.push_str(&part.to_string());
            }
            text
        }
        _ => return None,
    };
    let line = text.lines().next().unwrap_or_default().trim().replace('\\', "/");
    (!line.is_empty()).then(|| cut_str(&line, MAX_LOCATION_CHARS).to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(errors: Value) -> Vec<RunError> {
        let Value::Object(mut metadata) = json!({ "globalErrors": errors, "ci": {} }) else { panic!() };
        let read = RunError::take_from(&mut metadata);
        assert_eq!(metadata.keys().collect::<Vec<_>>(), ["ci"]);
        read
    }

    #[test]
    fn texts_and_objects_are_read_and_what_says_nothing_is_left_out() {
        let read = read(json!([
            "Error: db is down\n",
            { "message": "Error: db is down" },
            { "message": "boom", "location": { "file": "a\\gs.ts", "line": 3, "column": 9 }, "phase": "global-setup" },
            { "stack": "TypeError: x\n    at b.ts:1:1", "location": "b.ts:1:1", "phase": "unheard of" },
            { "value": "thrown" }, "", "  \n", 7, null, {}, [],
        ]));
        let error = |message: &str, location: Option<&str>, phase| RunError {
            message: message.to_owned(),
            location: location.map(str::to_owned),
            phase,
        };
        assert_eq!(
            read,
            [
                error("Error: db is down", None, None),
                error("boom", Some("a/gs.ts:3:9"), Some(ErrorPhase::GlobalSetup)),
                error("TypeError: x\n    at b.ts:1:1", Some("b.ts:1:1"), None),
                error("thrown", None, None),
            ]
        );
    }

    #[test]
    fn a_client_cannot_send_more_than_is_kept() {
        let many: Vec<Value> = (0..100).map(|n| json!(format!("{n} {}", "x".repeat(50_000)))).collect();
        let read = read(Value::Array(many));
        assert_eq!(read.len(), MAX_ERRORS);
        assert!(read.iter().all(|error| error.message.chars().count() < MAX_MESSAGE_CHARS + 40));
        assert!(read.iter().all(|error| error.headline().chars().count() <= MAX_HEADLINE_CHARS));
    }

    #[test]
    fn the_headline_says_when_it_happened() {
        for (sent, expected) in [
            (
                json!({ "message": "Error: db is down\n at x", "phase": "global-setup" }),
                "Global set-up failed: db is down",
            ),
            (
                json!(
                    "Error: item focused with '.only' is not allowed due to the 'forbidOnly' option in 'c.ts'"
                ),
                "test.only is forbidden: item focused with '.only' is not allowed due to the 'forbidOnly' option in 'c.ts'",
            ),
            (
                json!("\u{1b}[31mTimed out waiting 4s for the test suite to run\u{1b}[39m"),
                "Global timeout reached: Timed out waiting 4s for the test suite to run",
            ),
            (
                json!("Testing stopped early after 1 maximum allowed failures."),
                "Stopped at the maximum of failures: Testing stopped early after 1 maximum allowed failures",
            ),
            (json!("boom"), "Error outside tests: boom"),
        ] {
            assert_eq!(read(json!([sent]))[0].headline(), expected);
        }
    }
}
