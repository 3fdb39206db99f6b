//! Reading the arguments of a tool call: names, aliases, coercion, bounds.
//!
//! Models send numbers as text, lists as text and names in other spellings;
//! what can only mean one thing is accepted. What is wrong is told so that
//! the next attempt can be right. The result has advertised names only, and
//! exactly the JSON types the tool's input type is read from.

use serde_json::{Map, Number, Value};

use crate::budget::RESULT_CHARS;
use crate::clean::quoted;
use crate::parameter::{BRANCH_CHARS, Kind, Need, Parameter};

/// Unknown names that a message repeats.
const UNKNOWN_NAMES: usize = 5;
/// Longest cursor; ours have a tenth of it.
const CURSOR_CHARS: usize = 4_096;

/// Further names of parameters wherever they occur.
const SYNONYMS: [(&str, &[&str]); 5] = [
    ("query", &["q"]),
    ("pageSize", &["limit"]),
    ("limit", &["pageSize"]),
    ("note", &["triageNote", "feedbackNote"]),
    ("executionId", &["testRunsCaseId", "testRunCaseId", "caseId"]),
];

/// What is wrong with the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArgumentError {
    /// `arguments` is not an object.
    #[error("`arguments` must be a JSON object, got {got}.")]
    NotAnObject {
        /// What came.
        got: String,
    },
    /// A required one is missing.
    #[error("`{name}` is required ({kind}).{source_hint}{got}")]
    Missing {
        /// Parameter.
        name: &'static str,
        /// Its type.
        kind: &'static str,
        /// Where its values come from, as a sentence.
        source_hint: String,
        /// Names that came and mean nothing here.
        got: String,
    },
    /// A value it cannot have.
    #[error("`{name}` must be {expected}, got {got}.{source_hint}")]
    Wrong {
        /// Parameter.
        name: &'static str,
        /// What it must be.
        expected: String,
        /// What came.
        got: String,
        /// Where its values come from, as a sentence.
        source_hint: String,
    },
    /// A cursor that is none of ours.
    #[error("Invalid cursor. Omit `cursor` to start from the first page.")]
    Cursor,
    /// More than one thing in one answer, so that the next attempt can be right.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))]
    Several(Vec<Self>),
}

/// Arguments under their advertised names, coerced and complete with defaults.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Reads `params.arguments`.
    ///
    /// # Errors
    /// [`ArgumentError`] for every parameter that is missing or wrong.
    pub(crate) fn read(given: Option<Value>, parameters: &[Parameter]) -> Result<Self, ArgumentError> {
        let given = match given {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(given)) => given,
            Some(other) => return Err(ArgumentError::NotAnObject { got: shown(&other) }),
        };
        let mut read = Map::new();
        let mut faults = Vec::new();
        for parameter in parameters {
            let value = names(parameter).find_map(|name| given.get(&name).filter(|value| !value.is_null()));
            let value = match value.map(|value| coerce(parameter, value)) {
                Some(Ok(value)) => value,
                Some(Err(fault)) => {
                    faults.push((parameter.name, fault));
                    None
                }
                None => null_word(parameter, &given),
            };
            let is_optional = parameter.need == Need::Optional;
            if let Some(value) = value.or_else(|| default(parameter.kind).filter(|_| is_optional)) {
                read.insert(parameter.name.to_owned(), value);
            }
        }
        for parameter in parameters {
            // What is there and wrong is told already.
            let is_given =
                |name: &str| read.contains_key(name) || faults.iter().any(|(wrong, _)| *wrong == name);
            let is_missing = match parameter.need {
                Need::Optional => false,
                Need::Required => !is_given(parameter.name),
                Need::RequiredWithout(other) => !is_given(parameter.name) && !is_given(other),
            };
            if is_missing {
                faults.push((parameter.name, missing(parameter, &given, parameters)));
            }
        }
        let mut faults: Vec<ArgumentError> = faults.into_iter().map(|(_, fault)| fault).collect();
        match (faults.pop(), faults.is_empty()) {
            (None, _) => Ok(Self(read)),
            (Some(only), true) => Err(only),
            (Some(last), false) => {
                faults.push(last);
                Err(ArgumentError::Several(faults))
            }
        }
    }

    /// The values by name.
    pub(crate) const fn values(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The rows a page was asked for, when this is a list.
    pub(crate) fn page_size(&self) -> Option<i64> {
        self.0.get("pageSize").and_then(Value::as_i64)
    }

    /// The bound on the result, where one can ask for more than all results
    /// have.
    pub(crate) fn max_chars(&self) -> Option<usize> {
        let asked = self.0.get("maxChars").and_then(Value::as_u64)?;
        Some(usize::try_from(asked).unwrap_or(RESULT_CHARS).max(RESULT_CHARS))
    }

    /// The same question with another page size.
    pub(crate) fn with_page_size(&self, rows: i64) -> Self {
        let mut same = self.clone();
        same.0.insert("pageSize".to_owned(), rows.into());
        same
    }
}

/// The word that a null of this parameter stands for.
fn null_word(parameter: &Parameter, given: &Map<String, Value>) -> Option<Value> {
    let word = parameter.null_is?;
    names(parameter).any(|name| given.get(&name).is_some_and(Value::is_null)).then(|| word.into())
}

/// The names a parameter is accepted under, the advertised one first.
pub(crate) fn names(parameter: &Parameter) -> impl Iterator<Item = String> {
    let synonyms =
        SYNONYMS.iter().find(|(name, _)| *name == parameter.name).map_or(&[][..], |(_, also)| *also);
    let plain: Vec<&'static str> = std::iter::once(parameter.name)
        .chain(parameter.also.iter().copied())
        .chain(synonyms.iter().copied())
        .collect();
    let snake: Vec<String> = plain.iter().map(|name| snake_case(name)).collect();
    plain.into_iter().map(str::to_owned).chain(snake)
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 2);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

fn default(kind: Kind) -> Option<Value> {
    match kind {
        Kind::Count { default, .. } => default.map(Value::from),
        Kind::Choice { default, .. } => default.map(Value::from),
        Kind::Choices(_) | Kind::Texts(_) | Kind::Objects { .. } => Some(Value::Array(Vec::new())),
        Kind::Flag => Some(Value::Bool(false)),
        Kind::Id { .. } | Kind::Text(_) | Kind::Branch | Kind::Commit | Kind::Cursor | Kind::Place(_) => None,
    }
}

fn missing(parameter: &Parameter, given: &Map<String, Value>, parameters: &[Parameter]) -> ArgumentError {
    let kind = match parameter.kind {
        Kind::Id { .. } | Kind::Count { .. } | Kind::Place(_) => "integer",
        Kind::Choice { .. } | Kind::Text(_) | Kind::Branch | Kind::Commit | Kind::Cursor => "string",
        Kind::Flag => "boolean",
        Kind::Choices(_) | Kind::Texts(_) | Kind::Objects { .. } => "array",
    };
    let source_hint = match parameter.kind {
        Kind::Choice { words, .. } => format!(" One of {}.", words.join(", ")),
        kind => source_of(kind),
    };
    let is_known =
        |name: &String| parameters.iter().any(|parameter| names(parameter).any(|known| known == *name));
    let unknown: Vec<String> = given
        .keys()
        .filter(|name| !is_known(name))
        .take(UNKNOWN_NAMES)
        .map(|name| format!("`{}`", quoted(name)))
        .collect();
    let got = if unknown.is_empty() {
        String::new()
    } else {
        format!(" (got {}; expected `{}`)", unknown.join(", "), parameter.name)
    };
    ArgumentError::Missing { name: parameter.name, kind, source_hint, got }
}

/// The tools that yield an id, as the end of a sentence; of anything else nothing.
fn source_of(kind: Kind) -> String {
    match kind {
        Kind::Id { from } => format!(" Get it from {from}."),
        _ => String::new(),
    }
}

/// The value as the tool reads it; `None` when it counts as not given.
fn coerce(parameter: &Parameter, value: &Value) -> Result<Option<Value>, ArgumentError> {
    let is_required = parameter.need == Need::Required || parameter.keeps_blank;
    let wrong = |expected: String| ArgumentError::Wrong {
        name: parameter.name,
        expected,
        got: shown(value),
        source_hint: source_of(parameter.kind),
    };
    let blank = value.as_str().is_some_and(|text| text.trim().is_empty());
    match parameter.kind {
        Kind::Id { .. } => match whole(value) {
            Some(Whole::Exact(id)) if id >= 1 => Ok(Some(id.into())),
            _ => Err(wrong("a positive integer".to_owned())),
        },
        Kind::Count { min, max, .. } => match whole(value) {
            Some(number) => Ok(Some(number.clamped(min, max).into())),
            None => Err(wrong(format!("an integer from {min} to {max}"))),
        },
        Kind::Text(max) => match value.as_str() {
            Some(_) if blank && !is_required => Ok(None),
            Some(text) if text.chars().count() <= max => Ok(Some(text.into())),
            _ => Err(wrong(format!("a string of at most {max} characters"))),
        },
        Kind::Branch => match value.as_str() {
            Some(_) if blank && !is_required => Ok(None),
            Some(text) if text.chars().count() <= BRANCH_CHARS && !text.starts_with('-') => {
                Ok(Some(text.into()))
            }
            _ => Err(wrong(format!(
                "a branch name of at most {BRANCH_CHARS} characters that does not begin with -"
            ))),
        },
        Kind::Commit => match value.as_str().map(str::trim) {
            Some("") if parameter.keeps_blank => Ok(Some("".into())),
            Some("") if parameter.need != Need::Required => Ok(None),
            Some(text) if (7..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit()) => {
                Ok(Some(text.to_ascii_lowercase().into()))
            }
            _ => Err(wrong("7 to 64 hexadecimal digits of a commit".to_owned())),
        },
        Kind::Cursor => match value.as_str() {
            Some(_) if blank => Ok(None),
            Some(text) if text.len() <= CURSOR_CHARS => Ok(Some(text.into())),
            _ => Err(ArgumentError::Cursor),
        },
        Kind::Choice { .. } if blank && !is_required => Ok(None),
        Kind::Choice { words, spellings, .. } => {
            match value.as_str().and_then(|text| word(text, words, spellings)) {
                Some(word) => Ok(Some(word.into())),
                None => Err(wrong(format!("one of {}", words.join(", ")))),
            }
        }
        Kind::Choices(words) => {
            let chosen = texts(value).and_then(|texts| {
                texts.iter().map(|text| word(text, words, &[])).collect::<Option<Vec<_>>>()
            });
            let mut chosen = chosen.ok_or_else(|| wrong(format!("a list of {}", words.join(", "))))?;
            let mut seen = Vec::new();
            chosen.retain(|word| {
                !seen.contains(word) && {
                    seen.push(*word);
                    true
                }
            });
            Ok(Some(chosen.into()))
        }
        Kind::Texts(max) => match texts(value) {
            Some(texts) if texts.len() <= max => Ok(Some(texts.into())),
            Some(_) => Err(wrong(format!("a list of at most {max} strings"))),
            None => Err(wrong("a list of strings".to_owned())),
        },
        Kind::Flag if blank => Ok(None),
        Kind::Flag => match flag(value) {
            Some(flag) => Ok(Some(flag.into())),
            None => Err(wrong("true or false".to_owned())),
        },
        Kind::Place(last) => match whole(value) {
            Some(Whole::Exact(place)) if place >= 0 => Ok(Some(place.into())),
            _ => Err(wrong(format!("an integer from 0 to {last}"))),
        },
        Kind::Objects { fields, max } => match objects(value) {
            Some(list) if list.len() <= max => {
                let list = list.into_iter().map(|given| advertised(given, fields));
                Ok(Some(list.map(Value::Object).collect()))
            }
            _ => Err(wrong(format!("a list of at most {max} objects"))),
        },
    }
}

/// A list of objects, as such or as its JSON text.
fn objects(value: &Value) -> Option<Vec<Map<String, Value>>> {
    match value {
        Value::Array(list) => list.iter().map(|each| each.as_object().cloned()).collect(),
        Value::String(text) if text.trim_start().starts_with('[') => {
            objects(&serde_json::from_str(text).ok()?)
        }
        _ => None,
    }
}

/// The fields of an object under their advertised names, coerced where that
/// can only mean one thing; all others as they came.
fn advertised(mut given: Map<String, Value>, fields: &[Parameter]) -> Map<String, Value> {
    for field in fields {
        let Some(name) = names(field).find(|name| given.contains_key(name)) else { continue };
        let Some(value) = given.remove(&name) else { continue };
        let read = coerce(field, &value).ok().flatten();
        given.insert(field.name.to_owned(), read.unwrap_or(value));
    }
    given
}

/// A whole number; beyond 64 bits only its direction matters.
#[derive(Debug, Clone, Copy)]
enum Whole {
    Exact(i64),
    BelowAll,
    AboveAll,
}

impl Whole {
    fn clamped(self, min: i64, max: i64) -> i64 {
        match self {
            Self::Exact(number) => number.clamp(min, max),
            Self::BelowAll => min,
            Self::AboveAll => max,
        }
    }
}

fn whole(value: &Value) -> Option<Whole> {
    match value {
        Value::Number(number) => whole_number(number),
        Value::String(text) => {
            let number: Number = text.trim().parse().ok()?;
            // Read anew: the JSON parser may miss the last bit of a large float.
            number.as_i64().map(Whole::Exact).or_else(|| whole_float(text.trim().parse().ok()?))
        }
        _ => None,
    }
}

fn whole_number(number: &Number) -> Option<Whole> {
    number.as_i64().map(Whole::Exact).or_else(|| whole_float(number.as_f64()?))
}

fn whole_float(float: f64) -> Option<Whole> {
    if float.fract() != 0.0 {
        return None;
    }
    // Up to here every whole float is exactly one integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "within 53 bits and without a fraction")]
    Some(match float {
        _ if float.abs() <= EXACT => Whole::Exact(float as i64),
        _ if float < 0.0 => Whole::BelowAll,
        _ => Whole::AboveAll,
    })
}

fn word(text: &str, words: &[&'static str], spellings: &[(&str, &'static str)]) -> Option<&'static str> {
    let text = text.trim();
    words.iter().copied().find(|word| word.eq_ignore_ascii_case(text)).or_else(|| {
        let spelling = spellings.iter().find(|(spelling, _)| spelling.eq_ignore_ascii_case(text));
        spelling.map(|(_, word)| *word)
    })
}

/// A list of texts: as such, as the JSON text of one, or with commas.
fn texts(value: &Value) -> Option<Vec<String>> {
    let list = match value {
        Value::Array(list) => list.clone(),
        Value::String(text) if text.trim_start().starts_with('[') => serde_json::from_str(text).ok()?,
        Value::String(text) => text.split(',').map(Value::from).collect(),
        _ => return None,
    };
    let texts = list.iter().map(|text| text.as_str().map(|text| text.trim().to_owned()));
    texts.filter(|text| text.as_deref() != Some("")).collect()
}

fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// What came, cut to what a message can repeat.
fn shown(value: &Value) -> String {
    quoted(&value.to_string())
}

#[cfg(test)]
mod tests;
