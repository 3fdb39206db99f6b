//! From bytes to fields and test cases in one pass. Every test case is
//! normalised as soon as it is read, so that a large body never exists as a
//! tree; everything beside the list stays a JSON object for the run's fields.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::attempt_limit::drop_excess;
use super::bounded::{Bounded, RawFields, RawList, Room, bounded_value, check, read_fields};
use super::caps::Caps;
use super::identity::tell_apart_by_line;
use super::test_case::TestCaseEntry;
use super::test_case_input::{Sent, TestCaseInput};
use super::warnings::{Warning, Warnings};
use crate::text::{InvalidUtf8, is_nested_deeper, quote_unreadable_numbers, repair_json_text};

pub use super::caps::MAX_TEST_CASES;
pub(super) const LIST: &str = "testCases";
pub(super) const MAX_DEPTH: usize = 128;
/// How deep the parser goes. An object that uses the last level there may be
/// is read field by field, which spares that level.
const PARSER_DEPTH: usize = 127;

/// Why a body cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Not UTF-8.
    #[error(transparent)]
    InvalidUtf8(#[from] InvalidUtf8),
    /// Not JSON, or nested deeper than 128 levels.
    #[error("The body is not valid JSON: {detail}.")]
    InvalidJson {
        /// What the parser met, and where.
        detail: String,
    },
    /// JSON, but not an object.
    #[error("The body must be a JSON object.")]
    NotAnObject,
    /// The file that holds it cannot be read.
    #[error("The body could not be read back: {0}.")]
    Unreadable(String),
    /// `testCases` is something else than a list.
    #[error("testCases must be a list of test cases.")]
    NotAList,
    /// More test cases than a request may carry.
    #[error("A request may carry at most {limit} test cases; send the rest in further requests.")]
    TooMany {
        /// [`MAX_TEST_CASES`].
        limit: usize,
    },
}

impl BodyError {
    /// The code of the error's answer.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidUtf8(_) | Self::InvalidJson { .. } => "invalid_json",
            Self::NotAnObject => "invalid_body",
            Self::NotAList => "invalid_field",
            Self::TooMany { .. } => "too_many_items",
            Self::Unreadable(_) => "internal_error",
        }
    }
}

/// The test cases of one request.
#[derive(Debug, Default)]
pub struct TestCases {
    /// Entries in the order they came; skipped ones leave gaps in `index`.
    pub entries: Vec<TestCaseEntry>,
    /// What was skipped or left out.
    pub warnings: Warnings,
}

impl TestCases {
    /// Normalises values that are in memory already.
    #[must_use]
    pub fn from_values(values: Vec<Value>, caps: &Caps) -> Self {
        let mut cases = Self::default();
        for (index, value) in values.into_iter().enumerate() {
            cases.add(TestCaseInput::from_value(value), index, caps);
        }
        cases.finished()
    }

    pub(super) fn add(&mut self, input: Option<TestCaseInput<'_>>, index: usize, caps: &Caps) {
        let parsed = match input {
            Some(input) => TestCaseEntry::parse(input, index, caps, &mut self.warnings),
            None => Err(Warning {
                code: "invalid_entry",
                message: "A test case that is not an object was skipped.".to_owned(),
                index: Some(index),
            }),
        };
        match parsed {
            Ok(entry) => self.entries.push(entry),
            Err(warning) => self.warnings.push(warning),
        }
    }

    pub(super) fn finished(mut self) -> Self {
        tell_apart_by_line(&mut self.entries);
        drop_excess(&mut self.entries, &mut self.warnings);
        self
    }
}

/// The body of a submission: run fields and test cases.
#[derive(Debug)]
pub struct SubmitBody {
    /// Everything but the test cases.
    pub fields: Map<String, Value>,
    /// The test cases; `None` when the body has no such list.
    pub test_cases: Option<TestCases>,
}

impl SubmitBody {
    /// Reads a whole body.
    ///
    /// # Errors
    /// [`BodyError`] when it is not a JSON object, or its `testCases` is not a
    /// list or too long.
    pub fn parse(bytes: Vec<u8>, caps: &Caps) -> Result<Self, BodyError> {
        let read = |text: &str| match deep_fields(text)? {
            Some(fields) => fields_and_list(fields, caps),
            None => match straight(text, BodySeed { caps })? {
                Some(read) => Ok(read),
                None => fields_and_list(object_fields(text)?, caps),
            },
        };
        let (fields, list) = read_leniently(bytes, read)?;
        Ok(Self { fields, test_cases: list.into_cases()? })
    }
}

/// Reads a JSON text that is the list of test cases itself.
///
/// # Errors
/// [`BodyError`] when it is not a JSON list, or too long.
pub fn parse_test_cases(bytes: Vec<u8>, caps: &Caps) -> Result<TestCases, BodyError> {
    let list = read_leniently(bytes, |text| read_list(text, caps))?;
    list.into_cases().map(Option::unwrap_or_default)
}

/// Reads a JSON text that is an object.
///
/// # Errors
/// [`BodyError`] when it is not.
pub fn parse_object(bytes: Vec<u8>) -> Result<Map<String, Value>, BodyError> {
    let read = |text: &str| match deep_fields(text)? {
        Some(fields) => read_values(fields),
        None => match straight(text, FieldsSeed)? {
            Some(fields) => Ok(fields),
            None => read_values(object_fields(text)?),
        },
    };
    read_leniently(bytes, read)
}

/// The fields of an object that is deeper than the parser goes; `None` for
/// everything else.
fn deep_fields(text: &str) -> Result<Option<RawFields<'_>>, BodyError> {
    if !text.trim_start().starts_with('{') || !is_nested_deeper(text, PARSER_DEPTH) {
        return Ok(None);
    }
    object_fields(text).map(Some)
}

fn object_fields(text: &str) -> Result<RawFields<'_>, BodyError> {
    if !text.trim_start().starts_with('{') {
        check(text).map_err(|error| invalid(&error))?;
        return Err(BodyError::NotAnObject);
    }
    serde_json::from_str(text).map_err(|error| invalid(&error))
}

fn read_values(RawFields(raw): RawFields<'_>) -> Result<Map<String, Value>, BodyError> {
    let room = Room::new();
    let read = |text: &str| {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        Bounded { room: &room }.deserialize(&mut deserializer)
    };
    raw.into_iter().map(|(name, raw)| Ok((name, read(raw.get()).map_err(|error| invalid(&error))?))).collect()
}

fn fields_and_list(
    RawFields(mut raw): RawFields<'_>,
    caps: &Caps,
) -> Result<(Map<String, Value>, ListRead), BodyError> {
    let list = match raw.remove(LIST) {
        Some(list) => read_list(list.get(), caps)?,
        None => ListRead::Absent,
    };
    Ok((read_values(RawFields(raw))?, list))
}

fn read_list(text: &str, caps: &Caps) -> Result<ListRead, BodyError> {
    if let Some(list) = straight(text, ListSeed { caps })? {
        return Ok(list);
    }
    // Some entry repeats a key; each of those is settled by a tree of its own.
    let RawList(entries) = serde_json::from_str(text).map_err(|error| invalid(&error))?;
    let Some(entries) = entries else { return Ok(ListRead::TooMany) };
    let mut cases = TestCases::default();
    for (index, entry) in entries.into_iter().enumerate() {
        let input = match serde_json::from_str::<Sent<'_>>(entry.get()) {
            Ok(input) => input.0,
            Err(_) => TestCaseInput::from_value(bounded_value(entry.get()).map_err(|error| invalid(&error))?),
        };
        cases.add(input, index, caps);
    }
    Ok(ListRead::Cases(cases))
}

/// Reads a text; once more when what made it unreadable is a number out of
/// reach, which costs its field and not the request.
pub(super) fn read_leniently<T>(
    bytes: Vec<u8>,
    read: impl Fn(&str) -> Result<T, BodyError>,
) -> Result<T, BodyError> {
    let text = checked_text(bytes)?;
    match read(&text) {
        Err(BodyError::InvalidJson { detail }) => match quote_unreadable_numbers(&text) {
            Some(text) => read(&text),
            None => Err(BodyError::InvalidJson { detail }),
        },
        done => done,
    }
}

fn checked_text(bytes: Vec<u8>) -> Result<String, BodyError> {
    let text = repair_json_text(bytes)?;
    if is_nested_deeper(&text, MAX_DEPTH) {
        let detail = format!("it is nested more than {MAX_DEPTH} levels deep");
        return Err(BodyError::InvalidJson { detail });
    }
    Ok(text)
}

pub(super) fn invalid(error: &serde_json::Error) -> BodyError {
    BodyError::InvalidJson { detail: error.to_string() }
}

/// Reads straight from the text. A text that is JSON and still unreadable has
/// another type than expected, repeats a key in one object or holds too much:
/// `None`, for whoever reads it piece by piece.
pub(super) fn straight<'de, S: DeserializeSeed<'de>>(
    text: &'de str,
    seed: S,
) -> Result<Option<S::Value>, BodyError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    match seed.deserialize(&mut deserializer).and_then(|read| deserializer.end().map(|()| read)) {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_data() => Ok(None),
        Err(error) => Err(invalid(&error)),
    }
}

/// What stood under `testCases`.
enum ListRead {
    Absent,
    NotAList,
    TooMany,
    Cases(TestCases),
}

impl ListRead {
    fn into_cases(self) -> Result<Option<TestCases>, BodyError> {
        match self {
            Self::Absent => Ok(None),
            Self::NotAList => Err(BodyError::NotAList),
            Self::TooMany => Err(BodyError::TooMany { limit: MAX_TEST_CASES }),
            Self::Cases(cases) => Ok(Some(cases.finished())),
        }
    }
}

#[derive(Clone, Copy)]
struct ListSeed<'c> {
    caps: &'c Caps,
}

impl<'de> DeserializeSeed<'de> for ListSeed<'_> {
    type Value = ListRead;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ListRead, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ListSeed<'_> {
    type Value = ListRead;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of test cases")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ListRead, A::Error> {
        let mut cases = TestCases::default();
        for index in 0..MAX_TEST_CASES {
            match seq.next_element::<Sent<'de>>()? {
                Some(input) => cases.add(input.0, index, self.caps),
                None => return Ok(ListRead::Cases(cases)),
            }
        }
        let mut excess = false;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            excess = true;
        }
        Ok(if excess { ListRead::TooMany } else { ListRead::Cases(cases) })
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ListRead, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(ListRead::NotAList)
    }
    fn visit_unit<E>(self) -> Result<ListRead, E> {
        Ok(ListRead::Absent)
    }
    fn visit_bool<E>(self, _: bool) -> Result<ListRead, E> {
        Ok(ListRead::NotAList)
    }
    fn visit_i64<E>(self, _: i64) -> Result<ListRead, E> {
        Ok(ListRead::NotAList)
    }
    fn visit_u64<E>(self, _: u64) -> Result<ListRead, E> {
        Ok(ListRead::NotAList)
    }
    fn visit_f64<E>(self, _: f64) -> Result<ListRead, E> {
        Ok(ListRead::NotAList)
    }
    fn visit_str<E>(self, _: &str) -> Result<ListRead, E> {
        Ok(ListRead::NotAList)
    }
}

#[derive(Clone, Copy)]
struct BodySeed<'c> {
    caps: &'c Caps,
}

impl<'de> DeserializeSeed<'de> for BodySeed<'_> {
    type Value = (Map<String, Value>, ListRead);
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for BodySeed<'_> {
    type Value = (Map<String, Value>, ListRead);

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut list = ListRead::Absent;
        let room = Room::new();
        let fields = read_fields(&mut map, |map, key| {
            if key == LIST {
                list = map.next_value_seed(ListSeed { caps: self.caps })?;
                return Ok(None);
            }
            map.next_value_seed(Bounded { room: &room }).map(Some)
        })?;
        Ok((fields, list))
    }
}

/// An object without such a list.
struct FieldsSeed;

impl<'de> DeserializeSeed<'de> for FieldsSeed {
    type Value = Map<String, Value>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FieldsSeed {
    type Value = Map<String, Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let room = Room::new();
        read_fields(&mut map, |map, _| map.next_value_seed(Bounded { room: &room }).map(Some))
    }
}

#[cfg(test)]
mod tests;
