//! What the client told about a run, flattened into rows people can read.
//! Clients send what they like, so depth and number of rows are bounded; the
//! whole of it is on the page as well.

use callboard_domain::evidence::url_text::is_web_url;
use serde_json::Value;

use crate::text::duration;

/// Rows shown per group.
const MAX_ROWS: usize = 60;
/// Levels that become dotted names; deeper values are shown as JSON.
const MAX_DEPTH: usize = 4;
/// Values of an item that are read on one line.
const MAX_ON_ONE_LINE: usize = 12;
/// Longest address that becomes a link.
const MAX_LINK_CHARS: usize = 2_048;
/// The least a timeout in milliseconds has.
const SHORTEST_TIMEOUT_MS: i64 = 1_000;
/// Shown elsewhere on the page; runs of before have their errors here.
const ELSEWHERE: [&str; 1] = ["globalErrors"];

/// Facts that belong together: one top-level entry of the metadata.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Its name.
    pub name: String,
    /// Its facts.
    pub rows: Vec<Fact>,
}

/// One fact.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    /// Name inside the group; empty when the group is one value.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether the value is an address of the web that names nobody: what stands
    /// before an `@` is easily taken for the host.
    pub is_link: bool,
}

/// A CI job in words, with its address.
pub(crate) type Job = (String, Option<String>);

/// The CI job that a client told of.
pub(crate) fn job(ci: &Value) -> Option<Job> {
    let text = |key: &str| ci.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let job = text("jobName").or_else(|| text("provider"))?;
    let named =
        text("runAttempt").map_or_else(|| job.to_owned(), |attempt| format!("{job}, attempt {attempt}"));
    let address = text("jobUrl").or_else(|| text("buildUrl")).filter(|url| is_web_url(url, MAX_LINK_CHARS));
    Some((named, address.map(str::to_owned)))
}

/// The groups of a run's metadata. Plain values come first, together.
pub(crate) fn groups(metadata: &Value) -> Vec<Group> {
    let Value::Object(entries) = metadata else { return Vec::new() };
    let mut plain = Group { name: "General".to_owned(), rows: Vec::new() };
    let mut groups = Vec::new();
    for (name, value) in entries.iter().filter(|(name, _)| !ELSEWHERE.contains(&name.as_str())) {
        if let Value::Object(_) = value {
            let mut group = Group { name: heading(name), rows: Vec::new() };
            flatten(value, String::new(), 0, &mut group.rows);
            groups.push(group);
        } else {
            flatten(value, name.clone(), 0, &mut plain.rows);
        }
    }
    groups.insert(0, plain);
    groups.retain(|group| !group.rows.is_empty());
    groups
}

fn flatten(value: &Value, name: String, depth: usize, rows: &mut Vec<Fact>) {
    if rows.len() >= MAX_ROWS {
        return;
    }
    let dotted = |inner: &str| if name.is_empty() { inner.to_owned() } else { format!("{name}.{inner}") };
    let text = match value {
        Value::Null => return,
        Value::Object(entries) if depth < MAX_DEPTH => {
            for (inner, value) in entries {
                flatten(value, dotted(inner), depth + 1, rows);
            }
            return;
        }
        Value::Array(items) if items.is_empty() => return,
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            items.iter().map(|item| plain(&name, item)).collect::<Vec<_>>().join(", ")
        }
        Value::Array(items) if depth < MAX_DEPTH => {
            for (index, item) in items.iter().enumerate() {
                let number = (index + 1).to_string();
                match on_one_line(item) {
                    Some((title, text)) if rows.len() < MAX_ROWS => {
                        let name = format!("{} › {}", words(&name), title.unwrap_or(&number));
                        rows.push(Fact { name, value: text, is_link: false });
                    }
                    Some(_) => return,
                    None => flatten(item, dotted(&number), depth + 1, rows),
                }
            }
            return;
        }
        other => plain(&name, other),
    };
    let name = label(&name, value);
    let is_link = is_web_url(&text, MAX_LINK_CHARS);
    rows.push(Fact { name, value: text, is_link });
}

/// An item of a list that has a few plain values, with what it is called.
fn on_one_line(item: &Value) -> Option<(Option<&str>, String)> {
    let entries = item.as_object()?;
    let is_long = |value: &Value| {
        value.is_object() || value.is_array() || value.as_str().is_some_and(|text| text.starts_with("http"))
    };
    if entries.len() > MAX_ON_ONE_LINE || entries.values().any(is_long) {
        return None;
    }
    let called = ["title", "name"].into_iter().find(|key| entries.get(*key).is_some_and(Value::is_string));
    let others = entries.iter().filter(|(key, value)| Some(key.as_str()) != called && !value.is_null());
    let read: Vec<String> = others
        .map(|(key, value)| format!("{} {}", label(key, value).to_lowercase(), plain(key, value)))
        .collect();
    if read.is_empty() {
        return None;
    }
    Some((called.and_then(|key| entries[key].as_str()), read.join(", ")))
}

/// Headings of the groups our own reporter sends; others read as they are.
fn heading(name: &str) -> String {
    match name {
        "ci" => "CI".to_owned(),
        "scm" => "Source control".to_owned(),
        "host" => "Machine".to_owned(),
        "playwrightConfig" => "Playwright configuration".to_owned(),
        "performance" => "Durations of tests".to_owned(),
        other => words(other),
    }
}

/// `buildNumber` as `Build number`; dots become gaps. What programs shorten is
/// written out.
fn words(name: &str) -> String {
    if let Some(name) = callboard_domain::environment::written_out(name) {
        return name.to_owned();
    }
    let mut words = String::with_capacity(name.len() + 4);
    let mut before = ' ';
    let mut chars = name.chars().peekable();
    while let Some(char) = chars.next() {
        let begins_word = char.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit());
        let is_acronym = chars.peek().is_none_or(|next| next.is_uppercase());
        match char {
            '.' => words.push_str(" › "),
            _ if words.is_empty() => words.extend(char.to_uppercase()),
            _ if begins_word => {
                words.push(' ');
                if is_acronym {
                    words.push(char);
                } else {
                    words.extend(char.to_lowercase());
                }
            }
            _ => words.push(char),
        }
        before = char;
    }
    words
}

/// What a value is called; one that is told with its unit needs none in its name.
fn label(name: &str, value: &Value) -> String {
    let words = words(name);
    match words.strip_suffix(" ms") {
        Some(bare) if value.is_i64() => bare.to_owned(),
        _ => words,
    }
}

/// A value as people read it; numbers whose name says so are milliseconds.
fn plain(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => match number.as_i64() {
            Some(0) if name.to_lowercase().ends_with("timeout") => "none".to_owned(),
            Some(ms) if is_time(name, ms) => duration(ms),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// Whether a number is milliseconds: small timeouts are minutes or seconds of
/// other tools.
fn is_time(name: &str, number: i64) -> bool {
    let is_ms = name.ends_with("Ms") || name.ends_with("_ms");
    let lower = name.to_lowercase();
    is_ms || lower.ends_with("duration") || (lower.ends_with("timeout") && number >= SHORTEST_TIMEOUT_MS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_values_become_dotted_names_and_plain_ones_come_first() {
        let found = groups(&json!({
            "scm": { "branch": "main", "author": { "name": "Ada" }, "dirty": null },
            "tags": ["nightly", "smoke"],
            "globalErrors": ["shown elsewhere"],
        }));
        let named =
            |name: &str, value: &str| Fact { name: name.to_owned(), value: value.to_owned(), is_link: false };
        assert_eq!(
            found,
            [
                Group { name: "General".to_owned(), rows: vec![named("Tags", "nightly, smoke")] },
                Group {
                    name: "Source control".to_owned(),
                    rows: vec![named("Author › name", "Ada"), named("Branch", "main")]
                },
            ]
        );
    }

    #[test]
    fn names_of_programs_become_words() {
        assert_eq!(words("projects.1.testDir"), "Projects › 1 › test dir");
        assert_eq!(words("buildURL"), "Build URL");
        assert_eq!(words("p50TestDuration"), "P50 test duration");
    }

    #[test]
    fn an_address_is_a_link_unless_it_hides_where_it_leads() {
        let is_link = |address: &str| groups(&json!({ "build": address }))[0].rows[0].is_link;
        assert!(is_link("https://ci.test/builds/7?attempt=2"));
        let long = format!("https://ci.test/{}", "x".repeat(MAX_LINK_CHARS));
        for address in
            ["https://ci.test@evil.test/7", "http://u:p@ci.test/7", "https://", "javascript:x()", &long]
        {
            assert!(!is_link(address), "{address}");
        }
    }

    #[test]
    fn times_read_as_times_and_short_items_take_one_line() {
        let found = groups(&json!({ "run": {
            "globalTimeout": 0, "fullyParallel": true, "totalWastedMs": 286, "workers": 2,
            "projects": [{ "name": "desktop", "timeout": 30_000, "retries": 1 }, { "retries": 2 }],
        } }));
        let read: Vec<String> = found[0]
            .rows
            .iter()
            .map(|row| format!("{}: {}", row.name, row.value.replace('\u{a0}', " ")))
            .collect();
        assert_eq!(
            read,
            [
                "Fully parallel: yes",
                "Global timeout: none",
                "Projects › desktop: retries 1, timeout 30 s",
                "Projects › 2: retries 2",
                "Total wasted: 286 ms",
                "Workers: 2",
            ]
        );
    }

    #[test]
    fn a_client_that_sends_everything_does_not_fill_the_page() {
        let many: Vec<Value> = (0..10_000).map(|index| json!({ "index": index, "in": [index] })).collect();
        let short: Vec<Value> = (0..10_000).map(|index| json!({ "index": index })).collect();
        assert_eq!(groups(&json!({ "many": { "list": short } }))[0].rows.len(), MAX_ROWS);
        assert_eq!(groups(&json!({ "many": { "list": many } }))[0].rows.len(), MAX_ROWS);
    }
}
