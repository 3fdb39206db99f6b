//! The parts of an attempt's evidence, as readers ask for them and as answers
//! show them: every key of an asked part is there, also when it is empty.

use callboard_domain::evidence::Evidence;
use serde_json::{Map, Value, json};

/// Which parts of the evidence an answer carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parts {
    /// None; the object store is not read.
    None,
    /// Everything.
    All,
    /// These.
    Only(Vec<Part>),
}

/// A part of the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Steps and step events.
    Steps,
    /// Console output.
    Console,
    /// Network requests.
    Network,
    /// Web vitals.
    WebVitals,
    /// Accessibility tree at the failure.
    Aria,
    /// Source around the failure.
    Source,
    /// Address, storage keys and cookies of the page.
    PageState,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 7] = [
        Self::Steps,
        Self::Console,
        Self::Network,
        Self::WebVitals,
        Self::Aria,
        Self::Source,
        Self::PageState,
    ];

    /// The spelling used in filters and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Console => "console",
            Self::Network => "network",
            Self::WebVitals => "webVitals",
            Self::Aria => "aria",
            Self::Source => "source",
            Self::PageState => "pageState",
        }
    }

    /// Reads a filter value.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.as_str() == text)
    }
}

/// What stands for a key the attempt told nothing about.
#[derive(Clone, Copy)]
enum Empty {
    List,
    Object,
    Null,
}

impl Empty {
    fn value(self) -> Value {
        match self {
            Self::List => Value::Array(Vec::new()),
            Self::Object => Value::Object(Map::new()),
            Self::Null => Value::Null,
        }
    }
}

/// The keys of an answer; those without a part come with everything only.
const KEYS: [(&str, Option<Part>, Empty); 13] = [
    ("steps", Some(Part::Steps), Empty::List),
    ("stepEvents", Some(Part::Steps), Empty::List),
    ("networkRequests", Some(Part::Network), Empty::List),
    ("webVitals", Some(Part::WebVitals), Empty::Null),
    ("pageState", Some(Part::PageState), Empty::Null),
    ("consoleLogs", Some(Part::Console), Empty::List),
    ("stdout", Some(Part::Console), Empty::Null),
    ("stderr", Some(Part::Console), Empty::Null),
    ("ariaSnapshot", Some(Part::Aria), Empty::Null),
    ("testSource", Some(Part::Source), Empty::Null),
    ("testSourceFrames", Some(Part::Source), Empty::List),
    ("browser", None, Empty::Object),
    ("aiUsage", None, Empty::Null),
];

/// The asked parts, and how many bytes of JSON every part has that is not
/// empty. `attempt` is its retry and repetition.
pub(crate) fn shown(evidence: &Evidence, attempt: (u32, u32), parts: &Parts) -> (Value, Value) {
    // Plain structs of texts and numbers always have a JSON form.
    let told = serde_json::to_value(evidence).unwrap_or_default();
    let (retry, repetition) = attempt;
    let mut shown = Map::new();
    shown.insert("attempt".to_owned(), json!({ "retry": retry, "repetition": repetition }));
    let mut sizes: Map<String, Value> = Map::new();
    for (key, part, empty) in KEYS {
        let value = told.get(key).filter(|value| !value.is_null());
        if let (Some(part), Some(value)) = (part, value) {
            let before = sizes.get(part.as_str()).and_then(Value::as_u64).unwrap_or_default();
            sizes.insert(part.as_str().to_owned(), (before + value.to_string().len() as u64).into());
        }
        let is_asked = match parts {
            Parts::None => false,
            Parts::All => true,
            Parts::Only(asked) => part.is_some_and(|part| asked.contains(&part)),
        };
        if is_asked {
            shown.insert(key.to_owned(), value.cloned().unwrap_or_else(|| empty.value()));
        }
    }
    (Value::Object(shown), Value::Object(sizes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asked_part_has_all_its_keys_and_the_others_tell_their_size() {
        let evidence = Evidence {
            stdout: Some("hello".to_owned()),
            aria_snapshot: Some("- button".to_owned()),
            ..Evidence::default()
        };
        let (shown, sizes) = super::shown(&evidence, (1, 0), &Parts::Only(vec![Part::Console]));
        assert_eq!(
            shown,
            json!({
                "attempt": { "retry": 1, "repetition": 0 },
                "consoleLogs": [], "stdout": "hello", "stderr": null,
            })
        );
        assert_eq!(sizes, json!({ "console": 7, "aria": 10 }));
    }

    #[test]
    fn everything_shows_every_key_of_the_evidence() {
        let told = Evidence { error: Some("Error".to_owned()), ..Evidence::default() };
        let (shown, sizes) = super::shown(&told, (0, 0), &Parts::All);
        assert_eq!(shown.as_object().map(Map::len), Some(KEYS.len() + 1));
        assert_eq!(sizes, json!({}));
    }
}
