//! Bodies that are read field by field, so that a wrong type is told with the
//! name of its field, and "absent" with "null" apart. Unknown keys are
//! ignored. Half of a surrogate pair, which no text can hold, becomes U+FFFD;
//! so does U+0000 in prose, while names and passwords are taken as they came.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use axum::extract::{FromRequest, Request};
use callboard_domain::text::{clean, repair_json_text};
use callboard_domain::time::Timestamp;
use callboard_query::Change;
use serde_json::{Map, Value};

use super::{EntityId, JsonBytes};
use crate::error::ApiError;

/// The largest whole number that survives a trip through JavaScript.
const MAX_EXACT: u64 = (1 << 53) - 1;
/// How much of a word that is not in its list is said again.
const MAX_ECHOED_CHARS: usize = 40;
/// Longest web address.
const MAX_ADDRESS_BYTES: usize = 2_048;

/// A JSON object.
#[derive(Debug, Clone)]
pub struct Fields(Map<String, Value>);

impl<S: Sync> FromRequest<S> for Fields {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let JsonBytes { bytes, reservation: _reservation } = JsonBytes::from_request(request, state).await?;
        let read = serde_json::from_slice(&bytes).or_else(|error| {
            let repaired = repair_json_text(bytes).map_err(|_| error)?;
            serde_json::from_str(&repaired)
        });
        match read {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(ApiError::invalid_body("", "The body must be a JSON object.")),
            Err(error) => Err(ApiError::invalid_json(format!("The body cannot be read: {error}."))),
        }
    }
}

fn wrong(name: &str, expected: &str, got: &Value) -> ApiError {
    let got = match got {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(text) if text.trim().is_empty() => "a blank text",
        Value::String(text) if text.chars().any(char::is_control) => "a text with control characters",
        Value::String(text) => &format!("a text of {} characters", text.chars().count()),
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    ApiError::invalid_field(name, format!("{name} must be {expected}, got {got}."))
}

impl Fields {
    /// Fails unless all of these have a value.
    ///
    /// # Errors
    /// 400 `missing_field` with the names of those that have none.
    pub fn require(&self, names: &[&str]) -> Result<(), ApiError> {
        let is_missing = |name: &&str| self.0.get(*name).is_none_or(Value::is_null);
        let missing: Vec<&str> = names.iter().copied().filter(|name| is_missing(name)).collect();
        if missing.is_empty() { Ok(()) } else { Err(ApiError::missing_fields(&missing)) }
    }

    /// Fails unless at least one of these is there, `null` included.
    ///
    /// # Errors
    /// 400 `no_fields`.
    pub fn require_any(&self, names: &[&str]) -> Result<(), ApiError> {
        if names.iter().any(|name| self.0.contains_key(*name)) {
            return Ok(());
        }
        let message = format!("The body changes nothing; it may hold {}.", names.join(", "));
        Err(ApiError::bad_request("no_fields", message))
    }

    /// A field that a function reads; `expected` says in errors what it takes.
    ///
    /// # Errors
    /// 400 `invalid_field` for what the function does not take.
    pub fn change<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Change<T>, ApiError> {
        match self.0.get(name) {
            None => Ok(Change::Keep),
            Some(Value::Null) => Ok(Change::Clear),
            Some(value) => read(value).map(Change::Set).ok_or_else(|| wrong(name, expected, value)),
        }
    }

    /// A field that always has a value: absent is `None`.
    fn value<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        match self.change(name, expected, read)? {
            Change::Clear => Err(wrong(name, expected, &Value::Null)),
            change => Ok(change.into_value()),
        }
    }

    /// A text of any length.
    ///
    /// # Errors
    /// 400 `invalid_field` for anything but text.
    pub fn text(&self, name: &str) -> Result<Change<String>, ApiError> {
        self.change(name, "text", |value| value.as_str().map(str::to_owned))
    }

    /// A text on one line, 1 to `max_chars` characters long.
    ///
    /// # Errors
    /// 400 `invalid_field` for anything else.
    pub fn line(&self, name: &str, max_chars: usize) -> Result<Change<String>, ApiError> {
        let expected = format!("text of 1 to {max_chars} characters without control characters");
        self.change(name, &expected, |value| {
            let text = value.as_str()?;
            let is_line = !text.trim().is_empty()
                && text.chars().count() <= max_chars
                && !text.chars().any(char::is_control);
            is_line.then(|| text.to_owned())
        })
    }

    /// A text of 1 to `max_chars` characters, of several lines if it must be.
    ///
    /// # Errors
    /// 400 `invalid_field` for anything else.
    pub fn prose(&self, name: &str, max_chars: usize) -> Result<Change<String>, ApiError> {
        let expected = format!("text of 1 to {max_chars} characters");
        self.change(name, &expected, |value| {
            let text = clean(value.as_str()?);
            let is_control = |char: char| char.is_control() && !matches!(char, '\n' | '\r' | '\t');
            let is_prose =
                !text.trim().is_empty() && text.chars().count() <= max_chars && !text.chars().any(is_control);
            is_prose.then(|| text.into_owned())
        })
    }

    /// A list of texts on one line each, of 1 to `max_chars` characters, in
    /// their order and without repetition.
    ///
    /// # Errors
    /// 400 `invalid_field` for anything else; 413 `too_many_items` for more
    /// than `most`.
    pub fn lines(&self, name: &str, most: usize, max_chars: usize) -> Result<Change<Vec<String>>, ApiError> {
        let expected = format!("a list of texts of 1 to {max_chars} characters without control characters");
        let lines = self.change(name, &expected, |value| {
            let mut lines: Vec<String> = Vec::new();
            for line in value.as_array()? {
                let line = line.as_str()?;
                let is_line = !line.trim().is_empty()
                    && line.chars().count() <= max_chars
                    && !line.chars().any(char::is_control);
                if !is_line {
                    return None;
                }
                if !lines.iter().any(|known| known == line) {
                    lines.push(line.to_owned());
                }
            }
            Some(lines)
        })?;
        if lines.value().is_some_and(|lines| lines.len() > most) {
            return Err(ApiError::too_many_items(&format!("entries in {name}"), most as u64));
        }
        Ok(lines)
    }

    /// A web address: `http` or `https` (only the latter when `is_safe`), of
    /// at most 2,048 characters, without a user or password in it.
    ///
    /// # Errors
    /// 400 `invalid_field` for anything else.
    pub fn address(&self, name: &str, is_safe: bool) -> Result<Change<String>, ApiError> {
        let schemes = if is_safe { "https" } else { "http or https" };
        let expected = format!("an address with {schemes}, without user or password");
        self.change(name, &expected, |value| {
            let text = value.as_str()?;
            let address = url::Url::parse(text).ok()?;
            let is_address = text.len() <= MAX_ADDRESS_BYTES
                && !text.chars().any(|char| char.is_control() || char.is_whitespace())
                && (address.scheme() == "https" || (!is_safe && address.scheme() == "http"))
                && address.host_str().is_some_and(|host| !host.is_empty())
                && address.username().is_empty()
                && address.password().is_none();
            is_address.then(|| address.to_string())
        })
    }

    /// A whole number within bounds.
    ///
    /// # Errors
    /// 400 `invalid_field` for anything else.
    pub fn whole(&self, name: &str, bounds: RangeInclusive<i64>) -> Result<Change<i64>, ApiError> {
        let expected = format!("a whole number from {} to {}", bounds.start(), bounds.end());
        self.change(name, &expected, |value| value.as_i64().filter(|number| bounds.contains(number)))
    }

    /// An object that is part of the body; its fields are named by themselves
    /// in errors.
    ///
    /// # Errors
    /// 400 `invalid_field` for anything else.
    pub fn object(&self, name: &str) -> Result<Change<Self>, ApiError> {
        self.change(name, "an object", |value| value.as_object().cloned().map(Self))
    }

    /// All of them, for bodies that are read as a whole.
    #[must_use]
    pub const fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// A field as it was sent; `None` when it is absent or `null`.
    #[must_use]
    pub fn json(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// An id.
    ///
    /// # Errors
    /// 400 `invalid_field` for anything else.
    pub fn id<T: EntityId>(&self, name: &str) -> Result<Change<T>, ApiError> {
        self.change(name, "an id, which is a positive whole number", |value| {
            let id = value.as_u64().filter(|id| (1..=MAX_EXACT).contains(id))?;
            T::parse_id(&id.to_string())
        })
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// 400 `invalid_field` for anything else.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        self.value(name, "true or false", Value::as_bool)
    }

    /// A word out of a closed list.
    ///
    /// # Errors
    /// 400 `invalid_field` for an unknown one.
    pub fn word<T>(
        &self,
        name: &str,
        words: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let expected = format!("one of {}", words.join(", "));
        let read = self.value(name, &expected, |value| parse(value.as_str()?));
        read.map_err(|error| match self.0.get(name).and_then(Value::as_str) {
            Some(given) => {
                let given: String = given.chars().take(MAX_ECHOED_CHARS).collect();
                ApiError::invalid_field(name, format!("{name} must be {expected}, got {given:?}."))
            }
            None => error,
        })
    }

    /// A list of ids, in ascending order and without repetition.
    ///
    /// # Errors
    /// 400 `invalid_field` for anything else; 413 `too_many_items` for more
    /// than `most`.
    pub fn ids<T: EntityId + Ord>(&self, name: &str, most: usize) -> Result<Change<BTreeSet<T>>, ApiError> {
        let ids = self.change(name, "a list of ids, which are positive whole numbers", |value| {
            let ids = value.as_array()?.iter().map(Value::as_u64);
            let exact = ids.map(|id| id.filter(|id| (1..=MAX_EXACT).contains(id)));
            exact.map(|id| T::parse_id(&id?.to_string())).collect::<Option<BTreeSet<T>>>()
        })?;
        if ids.value().is_some_and(|ids| ids.len() > most) {
            return Err(ApiError::too_many_items(&format!("entries in {name}"), most as u64));
        }
        Ok(ids)
    }

    /// A moment, or a day, which is its first moment in UTC.
    ///
    /// # Errors
    /// 400 `invalid_field` for anything else.
    pub fn moment(&self, name: &str) -> Result<Change<Timestamp>, ApiError> {
        self.change(name, "an ISO 8601 time", |value| Timestamp::parse_iso(value.as_str()?))
    }
}

#[cfg(test)]
mod tests {
    use callboard_domain::ids::ProjectId;
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fields {
        match value {
            Value::Object(fields) => Fields(fields),
            _ => panic!("not an object"),
        }
    }

    fn code<T: std::fmt::Debug>(result: Result<T, ApiError>) -> (String, Value) {
        let error = result.unwrap_err();
        (error.code().to_owned(), error.body().data.unwrap_or_default())
    }

    #[test]
    fn absent_null_and_a_value_are_three_things() {
        let body = fields(json!({ "a": null, "b": "x", "unknown": 1 }));
        assert_eq!(body.text("c").unwrap(), Change::Keep);
        assert_eq!(body.text("a").unwrap(), Change::Clear);
        assert_eq!(body.text("b").unwrap(), Change::Set("x".to_owned()));
        assert_eq!(body.flag("c").unwrap(), None);
        assert!(body.require(&["b"]).is_ok() && body.require_any(&["a", "c"]).is_ok());
        assert_eq!(
            code(body.require(&["a", "b", "c"])),
            ("missing_field".into(), json!({ "field": "a", "fields": ["a", "c"] }))
        );
        assert_eq!(code(body.require_any(&["c", "d"])).0, "no_fields");
    }

    #[test]
    fn a_wrong_type_names_its_field() {
        let named = |field: &str| ("invalid_field".to_owned(), json!({ "field": field }));
        let body =
            fields(json!({ "a": 1, "b": "x", "c": null, "ids": [1, 0], "more": [1, "2"], "line": "a\nb" }));
        assert_eq!(code(body.text("a")), named("a"));
        assert_eq!(code(body.flag("b")), named("b"));
        assert_eq!(code(body.flag("c")), named("c"));
        assert_eq!(code(body.word("b", &["y"], |word| (word == "y").then_some(()))), named("b"));
        assert_eq!(code(body.moment("b")), named("b"));
        assert_eq!(code(body.line("line", 100)), named("line"));
        for name in ["ids", "more", "a", "b"] {
            assert_eq!(code(body.ids::<ProjectId>(name, 10)), named(name));
        }
    }

    #[test]
    fn an_error_says_what_came() {
        let body = fields(json!({ "role": "admin", "name": " ", "long": "x".repeat(9), "odd": "a\nb" }));
        let told = |error: ApiError| error.body().message.clone();
        let role = body.word("role", &["user"], |word| (word == "user").then_some(()));
        assert_eq!(told(role.unwrap_err()), "role must be one of user, got \"admin\".");
        for (name, got) in [
            ("name", "a blank text"),
            ("long", "a text of 9 characters"),
            ("odd", "a text with control characters"),
        ] {
            assert!(told(body.line(name, 8).unwrap_err()).ends_with(&format!("got {got}.")), "{name}");
        }
        let prose = fields(json!({ "note": "a\u{0}b" })).prose("note", 9).unwrap();
        assert_eq!(prose, Change::Set("a\u{fffd}b".to_owned()));
    }

    #[test]
    fn ids_are_a_set() {
        let body = fields(json!({ "ids": [7, 3, 7], "none": null }));
        assert_eq!(body.ids("ids", 2).unwrap(), Change::Set(BTreeSet::from([ProjectId(3), ProjectId(7)])));
        assert_eq!(body.ids::<ProjectId>("none", 2).unwrap(), Change::Clear);
        assert_eq!(body.ids::<ProjectId>("absent", 2).unwrap(), Change::Keep);
        assert_eq!(code(body.ids::<ProjectId>("ids", 1)).0, "too_many_items");
    }
}
