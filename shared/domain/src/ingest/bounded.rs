//! JSON of clients as far as it has to be held in memory. A value takes many
//! times the length of its text (a list of ones sixteen times), so of what a
//! body brings beside its test cases only so much is kept, whatever it brings.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Error, Map, Value};

use super::caps::MAX_TEST_CASES;

/// Most values that lists and objects of one text keep: more than 256 KiB of
/// metadata can hold, so what is cut here is too large there as well.
const MAX_VALUES: usize = 300_000;
/// Most keys of one body that are kept; calls know some fifty.
const MAX_FIELDS: usize = 10_000;

/// How many more values may be kept.
pub(super) struct Room(Cell<usize>);

impl Room {
    pub(super) const fn new() -> Self {
        Self::with_values(MAX_VALUES)
    }

    /// Room for so many values.
    pub(super) const fn with_values(values: usize) -> Self {
        Self(Cell::new(values))
    }

    /// Whether there was room for one more.
    fn take(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }
}

/// Reads a JSON text; lists and objects end where there is no room for more.
pub(super) fn bounded_value(text: &str) -> Result<Value, Error> {
    bounded_value_in(text, &Room::new())
}

/// [`bounded_value`] in room that others share.
pub(super) fn bounded_value_in(text: &str, room: &Room) -> Result<Value, Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Bounded { room }.deserialize(&mut deserializer)?;
    deserializer.end().map(|()| value)
}

/// Whether a text is JSON at all, whatever it says.
pub(super) fn check(text: &str) -> Result<(), Error> {
    serde_json::from_str::<IgnoredAny>(text).map(drop)
}

/// A value as far as there is room for it.
#[derive(Clone, Copy)]
pub(super) struct Bounded<'r> {
    pub(super) room: &'r Room,
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while self.room.take() {
            match seq.next_element_seed(self)? {
                Some(value) => values.push(value),
                None => return Ok(Value::Array(values)),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(values))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while self.room.take() {
            match map.next_key()? {
                Some(key) => drop(fields.insert(key, map.next_value_seed(self)?)),
                None => return Ok(Value::Object(fields)),
            }
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Object(fields))
    }
}

/// The fields of an object, the last one of each name; they fit beside a list
/// that takes all the room.
pub(super) fn read_fields<'de, A: MapAccess<'de>>(
    map: &mut A,
    mut read: impl FnMut(&mut A, &str) -> Result<Option<Value>, A::Error>,
) -> Result<Map<String, Value>, A::Error> {
    let mut fields = Map::new();
    while let Some(key) = map.next_key::<String>()? {
        let Some(value) = read(map, &key)? else { continue };
        if fields.len() < MAX_FIELDS || fields.contains_key(&key) {
            fields.insert(key, value);
        }
    }
    Ok(fields)
}

/// The fields of an object as they are written, the last one of each name.
pub(super) struct RawFields<'a>(pub(super) HashMap<String, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for RawFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawFields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = HashMap::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    if fields.len() < MAX_FIELDS || fields.contains_key(&key) {
                        fields.insert(key, value);
                    }
                }
                Ok(RawFields(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// The elements of a list as they are written; `None` when there are more than
/// a request may carry.
pub(super) struct RawList<'a>(pub(super) Option<Vec<&'a RawValue>>);

impl<'de: 'a, 'a> Deserialize<'de> for RawList<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements;
        impl<'de> Visitor<'de> for Elements {
            type Value = RawList<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while elements.len() < MAX_TEST_CASES {
                    match seq.next_element()? {
                        Some(element) => elements.push(element),
                        None => return Ok(RawList(Some(elements))),
                    }
                }
                let mut is_more = false;
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    is_more = true;
                }
                Ok(RawList((!is_more).then_some(elements)))
            }
        }
        deserializer.deserialize_seq(Elements)
    }
}
