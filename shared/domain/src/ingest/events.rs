//! The body of an events call: what a running client tells about its tests,
//! each event by itself, so that a broken one costs nothing but itself.

use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::from_str;
use serde_json::value::RawValue;

use super::body::{BodyError, LIST, MAX_TEST_CASES, TestCases, invalid, read_leniently, straight};
use super::bounded::{RawFields, RawList, bounded_value, check};
use super::caps::Caps;
use super::lenient::{Given, Scalar, as_duration, rounded};
use super::location::Location;
use super::test_case::TestCaseEntry;
use super::test_case_input::{Sent, TestCaseInput};
use super::warnings::Warnings;
use crate::evidence::Browser;
use crate::text::cut;

/// The key of the token.
pub(super) const TOKEN: &str = "streamToken";
/// The key of a single event.
pub(super) const SINGLE: &str = "testCase";
const MAX_TITLE_CHARS: usize = 2_000;
const MAX_PATH_CHARS: usize = 1_000;
const MAX_WORD_CHARS: usize = 60;
const MAX_SUITES: usize = 20;
const MAX_SUITE_CHARS: usize = 500;
/// Most passing events of one request that are handed on.
const MAX_PASSING: usize = 2_000;

/// A test that began.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BegunTest {
    /// Its own title.
    pub title: String,
    /// Normalised path; `hooks` for what runs outside of tests.
    pub file_path: String,
    /// Titles of the enclosing suites.
    pub suite_path: Vec<String>,
    /// `file:line:column`.
    pub location: Option<String>,
    /// Worker process.
    pub worker_index: Option<i64>,
    /// Shard, from 1.
    pub shard_index: Option<i64>,
    /// Epoch milliseconds.
    pub started_at: Option<i64>,
    /// Browser configuration.
    pub browser: Option<Browser>,
}

/// A step that began or ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepNote {
    /// Whether it ended.
    #[serde(skip)]
    pub is_end: bool,
    /// Its title.
    pub title: String,
    /// Title of its test; `None` for steps outside of tests.
    pub parent_title: Option<String>,
    /// Kind of step.
    pub step_category: Option<String>,
    /// `file:line:column`, absolute.
    pub location: Option<String>,
    /// Worker process.
    pub worker_index: Option<i64>,
    /// Epoch milliseconds.
    pub started_at: Option<i64>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Milliseconds, when it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<i64>,
}

/// The body of an events call.
#[derive(Debug, Default)]
pub struct EventsBody {
    /// Length of the body, bytes.
    pub size: usize,
    /// The token it came with.
    pub stream_token: Option<String>,
    /// Tests that began.
    pub begun: Vec<BegunTest>,
    /// Steps that began, then those that ended.
    pub steps: Vec<StepNote>,
    /// Attempts that are over.
    pub completes: TestCases,
    /// Number of events that count.
    pub processed: usize,
    /// Number of events that were left out.
    pub ignored: usize,
}

impl EventsBody {
    /// Reads a whole body.
    ///
    /// # Errors
    /// [`BodyError`] when it is not a JSON object, or its list of events is
    /// something else or too long.
    pub fn parse(bytes: Vec<u8>, caps: &Caps) -> Result<Self, BodyError> {
        let size = bytes.len();
        Ok(Self { size, ..read_leniently(bytes, |text| Self::read(text, caps))? })
    }

    /// A body without events.
    pub(super) fn with_token(stream_token: Option<String>) -> Self {
        Self { stream_token, ..Self::default() }
    }

    /// Takes over what some of its events were read as; answers the results
    /// among them, which it does not hold.
    pub(super) fn absorb(&mut self, mut read: Self) -> Vec<TestCaseEntry> {
        let left = |taken: usize| MAX_PASSING.saturating_sub(taken);
        self.begun.extend(read.begun.drain(..).take(left(self.begun.len())));
        self.steps.extend(read.steps.drain(..).take(left(self.steps.len())));
        self.processed += read.processed;
        self.ignored += read.ignored;
        self.completes.warnings.extend(read.completes.warnings);
        read.completes.entries
    }

    fn read(text: &str, caps: &Caps) -> Result<Self, BodyError> {
        // What cannot be read straight is read piece by piece, which says why.
        let mut body = match straight(text, EventsSeed { caps }) {
            Ok(Some(body)) => body,
            Ok(None) | Err(_) => Self::read_in_pieces(text, caps)?,
        };
        body.steps.sort_by_key(|step| step.is_end);
        body.completes = std::mem::take(&mut body.completes).finished();
        Ok(body)
    }

    fn read_in_pieces(text: &str, caps: &Caps) -> Result<Self, BodyError> {
        if !text.trim_start().starts_with('{') {
            check(text).map_err(|error| invalid(&error))?;
            return Err(BodyError::NotAnObject);
        }
        let RawFields(fields) = from_str(text).map_err(|error| invalid(&error))?;
        let given = |name| fields.get(name).map(|raw| raw.get()).filter(|raw| *raw != "null");
        let mut body =
            Self { stream_token: given(TOKEN).and_then(|raw| from_str(raw).ok()), ..Self::default() };
        let RawList(list) = match given(LIST) {
            Some(raw) if raw.starts_with('[') => from_str(raw).map_err(|error| invalid(&error))?,
            Some(_) => return Err(BodyError::NotAList),
            None => RawList(Some(Vec::new())),
        };
        let list = list.ok_or(BodyError::TooMany { limit: MAX_TEST_CASES })?;
        let events = list.into_iter().map(RawValue::get).chain(given(SINGLE));
        for (index, event) in events.enumerate() {
            // A repeated key is settled by a tree, where the last one counts.
            let event = match from_str::<Sent<'_>>(event) {
                Ok(event) => event.0,
                Err(_) => TestCaseInput::from_value(bounded_value(event).map_err(|error| invalid(&error))?),
            };
            body.add(event, index, caps);
        }
        Ok(body)
    }

    pub(super) fn add(&mut self, event: Option<TestCaseInput<'_>>, index: usize, caps: &Caps) {
        let Some(event) = event else {
            self.ignore("invalid_entry", index, "An event that is not an object was ignored.");
            return;
        };
        match event.kind.as_text() {
            Some("complete") => {
                let before = self.completes.entries.len();
                self.completes.add(Some(event), index, caps);
                self.count(self.completes.entries.len() > before);
            }
            Some("begin") => match BegunTest::from_input(event) {
                Some(begun) => {
                    if self.begun.len() < MAX_PASSING {
                        self.begun.push(begun);
                    }
                    self.count(true);
                }
                None => self.ignore("missing_title", index, "An event without a title was ignored."),
            },
            Some(kind @ ("step-begin" | "step-end")) => match StepNote::new(kind == "step-end", event) {
                Some(step) => {
                    if self.steps.len() < MAX_PASSING {
                        self.steps.push(step);
                    }
                    self.count(true);
                }
                None => self.ignore("missing_title", index, "An event without a title was ignored."),
            },
            _ => self.ignore(
                "unknown_event",
                index,
                "An event was ignored: its type must be begin, complete, step-begin or step-end.",
            ),
        }
    }

    fn count(&mut self, is_accepted: bool) {
        if is_accepted {
            self.processed += 1;
        } else {
            self.ignored += 1;
        }
    }

    fn ignore(&mut self, code: &'static str, index: usize, message: &str) {
        self.ignored += 1;
        self.warnings_mut().add(code, Some(index), || message.to_owned());
    }

    pub(super) fn warnings_mut(&mut self) -> &mut Warnings {
        &mut self.completes.warnings
    }
}

/// Reads a body as it comes; an error where anything of it is not the usual.
#[derive(Clone, Copy)]
struct EventsSeed<'c> {
    caps: &'c Caps,
}

impl<'de> DeserializeSeed<'de> for EventsSeed<'_> {
    type Value = EventsBody;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<EventsBody, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EventsSeed<'_> {
    type Value = EventsBody;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EventsBody, A::Error> {
        let mut body = EventsBody::default();
        let (mut listed, mut single) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                TOKEN => body.stream_token = map.next_value::<Scalar<'de>>()?.into_text(),
                LIST if listed.is_none() => {
                    listed = Some(map.next_value_seed(EventListSeed { body: &mut body, caps: self.caps })?);
                }
                LIST => return Err(A::Error::custom("the list of events comes twice")),
                SINGLE => single = Some(map.next_value::<&'de RawValue>()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        // It comes after those of the list, wherever it stands.
        if let Some(event) = single.map(RawValue::get).filter(|event| *event != "null") {
            let event = from_str::<Sent<'_>>(event).map_err(A::Error::custom)?;
            body.add(event.0, listed.unwrap_or_default(), self.caps);
        }
        Ok(body)
    }
}

/// Adds a list of events to a body; answers how many there are.
struct EventListSeed<'b, 'c> {
    body: &'b mut EventsBody,
    caps: &'c Caps,
}

impl<'de> DeserializeSeed<'de> for EventListSeed<'_, '_> {
    type Value = usize;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EventListSeed<'_, '_> {
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of events")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<usize, A::Error> {
        let mut count = 0;
        while let Some(event) = seq.next_element::<Sent<'de>>()? {
            if count == MAX_TEST_CASES {
                return Err(A::Error::custom("there are too many events"));
            }
            self.body.add(event.0, count, self.caps);
            count += 1;
        }
        Ok(count)
    }
}

fn short(scalar: Scalar<'_>, chars: usize) -> Option<String> {
    scalar.into_text().filter(|text| !text.trim().is_empty()).map(|text| cut(text, chars))
}

fn number(scalar: &Scalar<'_>) -> Option<i64> {
    scalar.number().map(|number| rounded(number, -1.0, 1e6))
}

impl BegunTest {
    fn from_input(input: TestCaseInput<'_>) -> Option<Self> {
        let title = short(input.title, MAX_TITLE_CHARS)?;
        let location = input.location.as_text().map(Location::parse);
        let browser = match input.browser {
            Given::Value(browser) => Some(browser),
            Given::Other(scalar) => short(*scalar, MAX_WORD_CHARS).map(Browser::named),
            Given::Absent => None,
        };
        Some(Self {
            title,
            file_path: cut(
                location.as_ref().map_or_else(|| Location::parse("").path, |location| location.path.clone()),
                MAX_PATH_CHARS,
            ),
            suite_path: input
                .suite_path
                .value()
                .unwrap_or_default()
                .into_iter()
                .filter_map(|level| level.0)
                .take(MAX_SUITES)
                .map(|level| cut(level, MAX_SUITE_CHARS))
                .collect(),
            location: location.map(|location| cut(location.to_string(), MAX_PATH_CHARS)),
            worker_index: number(&input.worker_index),
            shard_index: number(&input.shard_index),
            started_at: input.started_at.moment().map(crate::time::Timestamp::millis),
            browser,
        })
    }
}

impl StepNote {
    fn new(is_end: bool, input: TestCaseInput<'_>) -> Option<Self> {
        Some(Self {
            is_end,
            title: short(input.title, MAX_TITLE_CHARS)?,
            parent_title: short(input.parent_title, MAX_TITLE_CHARS),
            step_category: short(input.step_category, MAX_WORD_CHARS),
            location: short(input.location, MAX_PATH_CHARS),
            worker_index: number(&input.worker_index),
            started_at: input.started_at.moment().map(crate::time::Timestamp::millis),
            status: short(input.status, MAX_WORD_CHARS).filter(|_| is_end),
            duration: input.duration.number().map(as_duration).filter(|_| is_end),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> EventsBody {
        EventsBody::parse(text.as_bytes().to_vec(), &Caps::default()).unwrap()
    }

    #[test]
    fn events_are_sorted_by_kind_and_each_stands_for_itself() {
        let body = read(
            r#"{"streamToken": "abc", "more": [1, {"a": 2}], "testCases": [
                {"type": "step-end", "title": "click", "parentTitle": "pays", "status": "passed", "duration": "12"},
                {"type": "step-begin", "title": "click", "parentTitle": "pays", "startedAt": 1767261600000},
                {"type": "begin", "title": "pays", "location": "./tests/pay.spec.ts:9:5", "suitePath": ["Shop", ""],
                    "browser": {"projectName": "desktop"}, "workerIndex": 0, "title": "pays twice"},
                {"type": "complete", "title": "pays", "status": "passed", "title": "pays at last"},
                {"type": "complete", "title": "says nothing"},
                {"type": "dance", "title": "x"}, 7, {"type": "begin"}
            ], "testCase": {"type": "complete", "title": "one more", "status": "failed"}}"#,
        );
        assert_eq!(body.stream_token.as_deref(), Some("abc"));
        assert_eq!((body.processed, body.ignored), (5, 4));
        assert_eq!(body.completes.warnings.as_slice().len(), 4);
        let titles: Vec<_> = body.completes.entries.iter().map(|entry| entry.title.as_str()).collect();
        assert_eq!(titles, ["pays at last", "one more"]);
        assert_eq!(body.steps.iter().map(|step| step.is_end).collect::<Vec<_>>(), [false, true]);
        assert_eq!(body.steps[1].duration, Some(12));
        let begun = &body.begun[0];
        assert_eq!((begun.title.as_str(), begun.file_path.as_str()), ("pays twice", "tests/pay.spec.ts"));
        assert_eq!(begun.suite_path, ["Shop"]);
    }

    #[test]
    fn a_body_is_read_alike_straight_and_in_pieces() {
        let list = r#"[{"type": "complete", "title": "pays", "status": "passed", "steps": [{"title": "clicks"}]},
            {"type": "begin", "title": "looks", "browser": "desktop", "startedAt": "2026-01-01T10:00:00Z"},
            {"type": "step-end", "title": "clicks", "parentTitle": "pays", "stepCategory": "pw:api", "duration": 7},
            {"type": 1, "title": []}, null, "pays", {"type": "complete", "status": {}}]"#;
        let single = r#"{"type": "complete", "title": "ships", "status": "failed", "error": "no ship"}"#;
        for text in [
            format!(r#"{{"streamToken": "abc", "testCases": {list}}}"#),
            format!(r#"{{"testCase": {single}, "testCases": {list}, "streamToken": "abc", "more": [{{}}]}}"#),
            format!(r#"{{"testCase": {single}, "testCase": null, "streamToken": ["abc"]}}"#),
            format!(r#"{{"streamToken": "abc", "streamToken": null, "testCase": {single}}}"#),
            r#"{"testCases": [], "testCase": 7}"#.to_owned(),
            "{}".to_owned(),
        ] {
            let caps = Caps::default();
            let read = straight(&text, EventsSeed { caps: &caps }).unwrap();
            let apart = EventsBody::read_in_pieces(&text, &caps).unwrap();
            assert_eq!(format!("{:?}", read.unwrap()), format!("{apart:?}"), "{text}");
        }
    }

    #[test]
    fn only_the_envelope_can_be_wrong() {
        let code =
            |text: &str| EventsBody::parse(text.as_bytes().to_vec(), &Caps::default()).unwrap_err().code();
        assert_eq!(code("{"), "invalid_json");
        assert_eq!(code("[]"), "invalid_body");
        assert_eq!(code(r#"{"testCases": {}}"#), "invalid_field");
        assert_eq!(read(r#"{"streamToken": 7, "testCases": null}"#).stream_token, None);
    }
}
