//! Reading JSON of clients we do not control: a value of another type than
//! expected never fails the request, it is noticed and left out. Numbers may
//! come as text. These are the building blocks the shapes of evidence and of
//! test cases name in `#[serde(deserialize_with)]`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeSeed as _, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::allowance;
use super::bounded::{Bounded, Room};
use crate::time::Timestamp;

/// Longest duration taken, in milliseconds.
pub(crate) const MAX_DURATION_MS: f64 = 1e10;
/// Largest count taken.
pub(crate) const MAX_COUNT: f64 = 1e6;
/// Most elements read of any list, whatever its cap: bounds the memory one
/// list of empty objects can claim.
const MAX_ELEMENTS: usize = 20_000;

/// A value that is expected to be text, a number or a flag. Lists and objects
/// in its place are skipped over and remembered as what they were.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Scalar<'a> {
    /// Not sent, or null.
    #[default]
    Absent,
    Flag(bool),
    Number(f64),
    Text(Cow<'a, str>),
    List,
    Object,
}

impl Scalar<'_> {
    pub(crate) const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// What came, for messages.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Absent => "null",
            Self::Flag(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }

    /// A finite number, also when written as text.
    pub(crate) fn number(&self) -> Option<f64> {
        let number = match self {
            Self::Number(number) => *number,
            Self::Text(text) => text.trim().parse().ok()?,
            _ => return None,
        };
        number.is_finite().then_some(number)
    }

    /// A moment: epoch milliseconds, or ISO-8601 text.
    pub(crate) fn moment(&self) -> Option<Timestamp> {
        match self.number() {
            Some(number) => Timestamp::within_bounds(rounded(number, -1.0, 1e15)),
            None => self.as_text().and_then(Timestamp::parse_iso),
        }
    }
}

/// Rounds half up and clamps.
#[expect(clippy::cast_possible_truncation, reason = "clamped to bounds below 2^53 first")]
pub(crate) fn rounded(number: f64, min: f64, max: f64) -> i64 {
    (number + 0.5).floor().clamp(min, max) as i64
}

/// A duration in whole milliseconds, 0 to 10^10.
pub(crate) fn as_duration(number: f64) -> i64 {
    rounded(number, 0.0, MAX_DURATION_MS)
}

/// A count, 0 to 10^6.
pub(crate) fn as_count(number: f64) -> i64 {
    rounded(number, 0.0, MAX_COUNT)
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

#[expect(clippy::cast_precision_loss, reason = "numbers of clients are doubles to begin with")]
impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Scalar::Flag(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Scalar::Number(value as f64))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Scalar::Number(value as f64))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Scalar::Number(value))
    }
    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Borrowed(value)))
    }
    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(value.to_owned())))
    }
    fn visit_string<E>(self, value: String) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(value)))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Scalar::Absent)
    }
    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Scalar::Absent)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::List)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Object)
    }
}

/// A list or an object that may be missing or something else.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Given<T> {
    /// Not sent, or null.
    #[default]
    Absent,
    Value(T),
    /// Another type than expected; says which.
    Other(Box<Scalar<'static>>),
}

impl<T> Given<T> {
    pub(crate) fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }
}

impl<T: Default> Given<T> {
    fn or_default(self) -> T {
        self.value().unwrap_or_default()
    }
}

/// Visitor methods that answer [`Given::Other`] for every scalar.
macro_rules! scalars_are_other {
    () => {
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("any JSON value")
        }
        fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
            Ok(other(Scalar::Flag(value)))
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(other(Scalar::Number(0.0)))
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(other(Scalar::Number(0.0)))
        }
        fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
            Ok(other(Scalar::Number(value)))
        }
        fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
            Ok(other(Scalar::Text(Cow::Owned(value.to_owned()))))
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Given::Absent)
        }
        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(Given::Absent)
        }
    };
}

fn other<T>(scalar: Scalar<'static>) -> Given<T> {
    Given::Other(Box::new(scalar))
}

/// What an element of a list is read as before it is accepted or left out.
pub(crate) trait Element<'de>: Sized {
    type Read: Deserialize<'de>;
    fn accept(read: Self::Read) -> Option<Self>;
}

impl<'de> Element<'de> for String {
    type Read = Scalar<'de>;
    fn accept(read: Scalar<'de>) -> Option<Self> {
        read.into_text()
    }
}

/// Marks an object shape as an element of lists: anything else is left out.
macro_rules! element_is_object {
    ($($shape:ty),+ $(,)?) => {$(
        impl<'de> $crate::ingest::lenient::Element<'de> for $shape {
            type Read = $crate::ingest::lenient::Maybe<$shape>;
            fn accept(read: Self::Read) -> Option<Self> {
                read.0
            }
        }
    )+};
}
pub(crate) use element_is_object;

/// An object of the shape, or nothing.
pub(crate) struct Maybe<T>(pub(crate) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object::<T, D>(deserializer).map(|given| Self(given.value()))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Element<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Given<Vec<T>>;
    scalars_are_other!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() < MAX_ELEMENTS {
            match seq.next_element::<T::Read>()? {
                Some(read) if allowance::take(size_of::<T>()) => items.extend(T::accept(read)),
                Some(_) => break,
                None => return Ok(Given::Value(items)),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Given::Value(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(other(Scalar::Object))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Given<T>;
    scalars_are_other!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(other(Scalar::List))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Given::Value)
    }
}

/// A list; elements of another type are left out.
pub(crate) fn list<'de, T: Element<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Given<Vec<T>>, D::Error> {
    deserializer.deserialize_any(ListVisitor(PhantomData))
}

/// An object.
pub(crate) fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Given<T>, D::Error> {
    deserializer.deserialize_any(ObjectVisitor(PhantomData))
}

/// A list, empty when missing or of another type.
pub(crate) fn list_or_empty<'de, T: Element<'de>, D: Deserializer<'de>>(d: D) -> Result<Vec<T>, D::Error> {
    list(d).map(Given::or_default)
}

/// An object, nothing when missing or of another type.
pub(crate) fn optional_object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    object(d).map(Given::value)
}

/// Text, empty when missing or of another type.
pub(crate) fn text<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    optional_text(d).map(Option::unwrap_or_default)
}

/// Text, nothing when missing or of another type.
pub(crate) fn optional_text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    Scalar::deserialize(d).map(Scalar::into_text)
}

/// True only for the literal `true`.
pub(crate) fn flag<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    optional_flag(d).map(|flag| flag == Some(true))
}

/// A boolean, nothing when missing or of another type.
pub(crate) fn optional_flag<'de, D: Deserializer<'de>>(d: D) -> Result<Option<bool>, D::Error> {
    Ok(match Scalar::deserialize(d)? {
        Scalar::Flag(flag) => Some(flag),
        _ => None,
    })
}

/// A finite number.
pub(crate) fn optional_number<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    Scalar::deserialize(d).map(|scalar| scalar.number())
}

/// Whole milliseconds, 0 when missing.
pub(crate) fn duration<'de, D: Deserializer<'de>>(d: D) -> Result<i64, D::Error> {
    optional_duration(d).map(Option::unwrap_or_default)
}

/// Whole milliseconds.
pub(crate) fn optional_duration<'de, D: Deserializer<'de>>(d: D) -> Result<Option<i64>, D::Error> {
    optional_number(d).map(|number| number.map(as_duration))
}

/// A count, 0 when missing.
pub(crate) fn count<'de, D: Deserializer<'de>>(d: D) -> Result<i64, D::Error> {
    optional_count(d).map(Option::unwrap_or_default)
}

/// A count.
pub(crate) fn optional_count<'de, D: Deserializer<'de>>(d: D) -> Result<Option<i64>, D::Error> {
    optional_number(d).map(|number| number.map(as_count))
}

/// A size in bytes or characters.
pub(crate) fn optional_size<'de, D: Deserializer<'de>>(d: D) -> Result<Option<i64>, D::Error> {
    optional_number(d).map(|number| number.map(|number| rounded(number, 0.0, 1e15)))
}

/// Epoch milliseconds.
pub(crate) fn optional_moment<'de, D: Deserializer<'de>>(d: D) -> Result<Option<i64>, D::Error> {
    Scalar::deserialize(d).map(|scalar| scalar.moment().map(Timestamp::millis))
}

/// A word out of a fixed vocabulary; the default of the type for any other.
pub(crate) fn word<'de, T: Default + for<'a> TryFrom<&'a str>, D: Deserializer<'de>>(
    d: D,
) -> Result<T, D::Error> {
    let scalar = Scalar::deserialize(d)?;
    Ok(scalar.as_text().and_then(|text| T::try_from(text).ok()).unwrap_or_default())
}

/// A word out of a fixed vocabulary: nothing when missing, the default of the
/// type when it is a word we do not know.
pub(crate) fn optional_word<'de, T: Default + for<'a> TryFrom<&'a str>, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    let scalar = Scalar::deserialize(d)?;
    Ok(scalar.as_text().map(|text| T::try_from(text).unwrap_or_default()))
}

/// Text as it is, any other JSON value written as JSON, as far as there is room for it.
pub(crate) fn optional_json_text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    let room = Room::with_values(MAX_ELEMENTS);
    Ok(match (Bounded { room: &room }).deserialize(d)? {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}
