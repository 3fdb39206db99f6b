//! Locators a test used and the elements they found: what locator healing
//! compares with later. Bounded, and without the values of form fields.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lenient::{self, element_is_object};
use super::location::Location;
use super::test_case::{MAX_PATH_BYTES, MAX_PATH_CHARS};
use crate::evidence::url_text::strip_url;
use crate::text::{cut, cut_key, cut_str};

const MAX_SNAPSHOTS: usize = 500;
const MAX_ALTERNATIVES: usize = 10;
const MAX_LOCATOR_CHARS: usize = 1_000;
const MAX_WORD_CHARS: usize = 100;
const MAX_TEXT_CHARS: usize = 200;
const MAX_CONTENT_CHARS: usize = 80;
const MAX_ITEMS: usize = 50;
const MAX_DEPTH: usize = 6;
const KEPT_ATTRIBUTES: [&str; 10] =
    ["id", "class", "name", "placeholder", "alt", "title", "role", "type", "href", "multiple"];

/// One call site, the locator used there and the element it found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LocatorSnapshot {
    /// Normalised `file:line:column` of the call.
    #[serde(deserialize_with = "lenient::text")]
    pub location: String,
    /// The locator as written.
    #[serde(deserialize_with = "used")]
    pub used: UsedLocator,
    /// The element; nothing when the probe found none.
    #[serde(deserialize_with = "lenient::optional_object")]
    pub element: Option<Map<String, Value>>,
    /// Other locators of the element, ≤ 10.
    #[serde(deserialize_with = "lenient::list_or_empty")]
    pub alternatives: Vec<AlternativeLocator>,
}

/// A locator as a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsedLocator {
    /// Method, such as `getByRole`.
    #[serde(deserialize_with = "lenient::text")]
    pub method: String,
    /// Arguments.
    pub args: Value,
    /// The call as text.
    #[serde(deserialize_with = "lenient::text")]
    pub raw: String,
}

/// Another locator that found the same element.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AlternativeLocator {
    /// The locator as text.
    #[serde(deserialize_with = "lenient::text")]
    pub locator: String,
    /// Method.
    #[serde(deserialize_with = "lenient::text")]
    pub method: String,
    /// Arguments.
    pub args: Value,
    /// How durable it is, 0 to 100.
    #[serde(deserialize_with = "score")]
    pub score: i64,
    /// Chosen by a person.
    #[serde(deserialize_with = "lenient::flag")]
    pub picked_by_user: bool,
}

element_is_object!(LocatorSnapshot, AlternativeLocator);

fn used<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<UsedLocator, D::Error> {
    lenient::optional_object(deserializer).map(Option::unwrap_or_default)
}

fn score<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    lenient::count(deserializer).map(|score| score.min(100))
}

/// Keeps one snapshot per call site, the last of each, within bounds. Calls
/// without a location or a method cannot be found again and are left out.
pub(super) fn bounded_snapshots(snapshots: Vec<LocatorSnapshot>) -> Vec<LocatorSnapshot> {
    let mut kept: Vec<LocatorSnapshot> = Vec::new();
    for snapshot in snapshots {
        if snapshot.location.trim().is_empty() || snapshot.used.method.is_empty() {
            continue;
        }
        let snapshot = snapshot.bounded();
        match kept.iter().position(|known| known.location == snapshot.location) {
            Some(place) => kept[place] = snapshot,
            None if kept.len() < MAX_SNAPSHOTS => kept.push(snapshot),
            None => {}
        }
    }
    kept
}

impl LocatorSnapshot {
    /// The snapshot within bounds and without the values of form fields.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let location = Location::parse(&self.location).to_string();
        self.location = cut_key(&location, MAX_PATH_CHARS, MAX_PATH_BYTES).to_owned();
        self.used.method = cut(self.used.method, MAX_WORD_CHARS);
        self.used.raw = cut(self.used.raw, MAX_LOCATOR_CHARS);
        self.used.args = bounded_json(self.used.args, "", MAX_DEPTH);
        self.element = self.element.map(|mut element| {
            if let Some(Value::Object(attributes)) = element.get_mut("attributes") {
                attributes.retain(|name, _| is_kept_attribute(name));
            }
            bounded_object(element, MAX_DEPTH)
        });
        self.alternatives.retain(|alternative| !alternative.locator.is_empty());
        self.alternatives.truncate(MAX_ALTERNATIVES);
        for alternative in &mut self.alternatives {
            alternative.locator = cut(std::mem::take(&mut alternative.locator), MAX_LOCATOR_CHARS);
            alternative.method = cut(std::mem::take(&mut alternative.method), MAX_WORD_CHARS);
            alternative.args = bounded_json(alternative.args.take(), "", MAX_DEPTH);
        }
        self
    }
}

/// Attributes that name an element; what a person typed into it does not.
fn is_kept_attribute(name: &str) -> bool {
    KEPT_ATTRIBUTES.contains(&name) || name.starts_with("data-") || name.starts_with("aria-")
}

fn bounded_json(value: Value, key: &str, depth: usize) -> Value {
    match value {
        Value::String(text) if key == "href" => Value::String(cut(strip_url(text), MAX_TEXT_CHARS)),
        Value::String(text) if key == "textContent" => Value::String(cut(text, MAX_CONTENT_CHARS)),
        Value::String(text) => Value::String(cut(text, MAX_TEXT_CHARS)),
        Value::Array(_) | Value::Object(_) if depth == 0 => Value::Null,
        Value::Array(items) => Value::Array(
            items.into_iter().take(MAX_ITEMS).map(|item| bounded_json(item, key, depth - 1)).collect(),
        ),
        Value::Object(fields) => Value::Object(bounded_object(fields, depth - 1)),
        scalar => scalar,
    }
}

fn bounded_object(fields: Map<String, Value>, depth: usize) -> Map<String, Value> {
    fields
        .into_iter()
        .take(MAX_ITEMS)
        .map(|(key, value)| {
            let value = bounded_json(value, &key, depth);
            (cut_str(&key, MAX_WORD_CHARS).to_owned(), value)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn snapshots_are_one_per_call_site_and_without_values() {
        let sent = json!([
            {"location": "./a.ts:1:2", "used": {"method": "getByRole", "args": ["button"], "raw": "getByRole('button')"}, "element": null},
            {"location": "a.ts:1:2", "used": {"method": "getByRole", "args": ["button"], "raw": "x"},
             "element": {"tagName": "a", "textContent": "y".repeat(81),
                "attributes": {"href": "/x?token=s3cret", "value": "s3cret", "data-testid": "buy", "onclick": "s3cret"}},
             "alternatives": [{"locator": "getByTestId('buy')", "method": "getByTestId", "args": ["buy"], "score": 400}, 7, {}]},
            {"location": null, "used": {"method": "locator"}},
            "nothing",
        ]);
        let snapshots: Vec<LocatorSnapshot> = lenient::list_or_empty(sent).expect("is accepted");
        let kept = bounded_snapshots(snapshots);
        assert_eq!(kept.len(), 1);
        let json = serde_json::to_value(&kept[0]).expect("is accepted");
        assert!(!json.to_string().contains("s3cret"));
        assert_eq!(json["location"], "a.ts:1:2");
        assert_eq!(json["element"]["attributes"], json!({"href": "/x", "data-testid": "buy"}));
        assert_eq!(json["element"]["textContent"], "y".repeat(80));
        assert_eq!(json["alternatives"].as_array().map(Vec::len), Some(1));
        assert_eq!(json["alternatives"][0]["score"], 100);
    }
}
