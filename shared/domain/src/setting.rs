//! Values that people set, as a body names them: absent keys stay as they are,
//! null takes back what was set.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

/// A value that cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} must be {expected}, or null.")]
pub struct UnusableSetting {
    /// The key.
    pub key: &'static str,
    /// What it may be.
    pub expected: String,
}

/// Values that are set together; of each only what somebody set.
pub trait SettingsGroup {
    /// The name in the store, in addresses and in the audit log.
    const NAME: &'static str;

    /// Takes the keys a body names: absent ones stay, null takes back what was
    /// set. Keys it does not know are left alone.
    ///
    /// # Errors
    /// The first value that cannot be set; nothing is changed then.
    fn apply(&mut self, body: &Map<String, Value>) -> Result<(), UnusableSetting>;
}

/// Takes a whole number.
pub(crate) fn whole(
    body: &Map<String, Value>,
    key: &'static str,
    range: RangeInclusive<i64>,
    place: &mut Option<i64>,
) -> Result<(), UnusableSetting> {
    let usable = |value: &Value| value.as_i64().filter(|number| range.contains(number));
    let expected = || format!("a whole number from {} to {}", range.start(), range.end());
    take(body, key, usable, expected, place)
}

/// Takes a number that need not be whole; `what` is its kind.
pub(crate) fn number(
    body: &Map<String, Value>,
    (key, what): (&'static str, &str),
    range: RangeInclusive<f64>,
    place: &mut Option<f64>,
) -> Result<(), UnusableSetting> {
    let usable = |value: &Value| value.as_f64().filter(|number| range.contains(number));
    let expected = || format!("{what} from {} to {}", range.start(), range.end());
    take(body, key, usable, expected, place)
}

/// Takes true or false.
pub(crate) fn flag(
    body: &Map<String, Value>,
    key: &'static str,
    place: &mut Option<bool>,
) -> Result<(), UnusableSetting> {
    take(body, key, Value::as_bool, || "true or false".to_owned(), place)
}

/// Takes one line of text without blanks at its ends.
pub(crate) fn line(
    body: &Map<String, Value>,
    key: &'static str,
    max_chars: usize,
    place: &mut Option<String>,
) -> Result<(), UnusableSetting> {
    let is_line = |text: &&str| {
        !text.is_empty()
            && text.trim() == *text
            && text.chars().count() <= max_chars
            && !text.chars().any(char::is_control)
    };
    let usable = |value: &Value| value.as_str().filter(is_line).map(str::to_owned);
    let expected = || format!("one line of 1 to {max_chars} characters without blanks at its ends");
    take(body, key, usable, expected, place)
}

fn take<T>(
    body: &Map<String, Value>,
    key: &'static str,
    usable: impl Fn(&Value) -> Option<T>,
    expected: impl Fn() -> String,
    place: &mut Option<T>,
) -> Result<(), UnusableSetting> {
    let Some(value) = body.get(key) else { return Ok(()) };
    let taken = usable(value);
    if taken.is_none() && !value.is_null() {
        return Err(UnusableSetting { key, expected: expected() });
    }
    *place = taken;
    Ok(())
}
