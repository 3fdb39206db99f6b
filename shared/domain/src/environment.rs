//! How the surroundings of two executions differ.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::secrets::{MASK, is_secret_name, masked};
use crate::text::cut;

/// Properties compared.
const MAX_KEYS: usize = 400;
const MAX_VALUE_CHARS: usize = 300;
/// Differences told.
const MAX_DIFFERENCES: usize = 100;
/// Properties that differ from run to run, by their first word.
const INFORMATIONAL: [&str; 15] = [
    "worker",
    "parallel",
    "shard",
    "commit",
    "commitMessage",
    "author",
    "pullRequest",
    "label",
    "buildUrl",
    "scm",
    "ci",
    "ciInfo",
    "htmlReport",
    "performance",
    "relatedIssue",
];

/// Names and values of what surrounded an execution.
pub type Surroundings = BTreeMap<String, String>;

/// A property that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Dotted name.
    pub key: String,
    /// Value when it failed.
    pub failing: Option<String>,
    /// Value when it passed.
    pub baseline: Option<String>,
    /// Whether it is expected to differ from run to run.
    pub informational: bool,
}

/// Adds the leaves of a JSON value below `name`; secrets are masked.
pub fn add(surroundings: &mut Surroundings, name: &str, value: &Value) {
    if surroundings.len() >= MAX_KEYS || name.starts_with('_') {
        return;
    }
    let text = match value {
        Value::Null => return,
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                add(surroundings, &key, value);
            }
            return;
        }
        Value::String(text) if text.is_empty() => return,
        Value::String(text) => masked(text).into_owned(),
        other => masked(&other.to_string()).into_owned(),
    };
    let last = name.rsplit('.').next().unwrap_or(name);
    let text = if is_secret_name(last) { MASK.to_owned() } else { cut(text, MAX_VALUE_CHARS) };
    surroundings.insert(cut(name.to_owned(), 200), text);
}

/// What programs shorten in the names of properties, as people write it.
#[must_use]
pub fn written_out(word: &str) -> Option<&'static str> {
    Some(match word {
        "arch" => "Architecture",
        "buildUrl" => "Build",
        "cpus" => "Processors",
        "node" => "Node.js",
        "os" => "Operating system",
        _ => return None,
    })
}

/// What differs, what may explain a failure first.
#[must_use]
pub fn differences(failing: &Surroundings, baseline: &Surroundings) -> Vec<Difference> {
    let keys = failing.keys().chain(baseline.keys().filter(|key| !failing.contains_key(*key)));
    let mut found: Vec<Difference> = keys
        .filter(|key| failing.get(*key) != baseline.get(*key))
        .map(|key| Difference {
            failing: failing.get(key).cloned(),
            baseline: baseline.get(key).cloned(),
            informational: INFORMATIONAL.contains(&key.split('.').next().unwrap_or_default()),
            key: key.clone(),
        })
        .collect();
    found.sort_by(|one, other| (one.informational, &one.key).cmp(&(other.informational, &other.key)));
    found.truncate(MAX_DIFFERENCES);
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unequal_properties_are_told_and_those_that_always_differ_come_last() {
        let of = |value: Value| {
            let mut surroundings = Surroundings::new();
            add(&mut surroundings, "", &value);
            surroundings
        };
        let failing = of(
            json!({"browser": {"viewport": {"width": 800}}, "worker": 3, "apiToken": "a", "ci": {"job": "7"}, "host": "x", "_dropped": 1}),
        );
        let baseline = of(
            json!({"browser": {"viewport": {"width": 1024}}, "worker": 1, "apiToken": "b", "ci": {"job": "6"}, "host": "x", "os": "linux"}),
        );
        let found: Vec<(String, bool)> = differences(&failing, &baseline)
            .into_iter()
            .map(|found| (found.key, found.informational))
            .collect();
        let expected = [("browser.viewport.width", false), ("os", false), ("ci.job", true), ("worker", true)];
        assert_eq!(found, expected.map(|(key, informational)| (key.to_owned(), informational)));
        assert_eq!(failing.get("apiToken").map(String::as_str), Some(MASK));
    }
}
