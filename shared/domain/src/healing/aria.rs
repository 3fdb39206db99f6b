//! Reads the elements of an accessibility snapshot, as Playwright prints it:
//!
//! ```text
//! - navigation "Main":
//!   - link "Home":
//!     - /url: /
//! - button "Sign in" [disabled]
//! ```

use super::element::{Element, LANDMARKS, path_of};
use super::ratio::as_f64;
use crate::text::{clean, cut_str};

/// Lines that are read.
const MAX_LINES: usize = 5_000;
/// Characters kept of a name.
const MAX_NAME_CHARS: usize = 200;
/// Elements before and after that say where an element is.
const NEAR: usize = 4;
/// Roles that say nothing about an element.
const SILENT: [&str; 6] = ["text", "generic", "none", "presentation", "document", "iframe"];

/// Elements in the order of the page.
#[must_use]
pub fn elements(snapshot: &str) -> Vec<Element> {
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut found: Vec<Element> = Vec::new();
    for line in snapshot.lines().take(MAX_LINES) {
        let depth = line.len() - line.trim_start_matches(' ').len();
        let Some(entry) = line.trim_start().strip_prefix("- ") else { continue };
        while open.last().is_some_and(|(above, _)| *above >= depth) {
            open.pop();
        }
        if let Some(url) = entry.strip_prefix("/url:") {
            if let Some(last) = found.last_mut() {
                last.href = path_of(url.trim().trim_matches('"'));
            }
            continue;
        }
        let Some((role, name, text)) = node(entry) else { continue };
        if LANDMARKS.contains(&role.as_str()) {
            let landmark = if name.is_empty() { role.clone() } else { format!("{role}:{name}") };
            open.push((depth, landmark));
        }
        if SILENT.contains(&role.as_str()) {
            continue;
        }
        let landmarks: Vec<String> = open.iter().rev().map(|(_, landmark)| landmark.clone()).collect();
        let is_field = matches!(
            role.as_str(),
            "textbox" | "searchbox" | "combobox" | "checkbox" | "radio" | "switch" | "spinbutton" | "slider"
        );
        // Of a field, the text is what somebody typed.
        let text = if is_field {
            String::new()
        } else if text.is_empty() {
            name.clone()
        } else {
            text
        };
        found.push(Element {
            label: if is_field { name.clone() } else { String::new() },
            role,
            name,
            text,
            landmarks,
            ..Element::default()
        });
    }
    place(&mut found);
    found
}

/// Fills in neighbours and order.
pub(super) fn place(elements: &mut [Element]) {
    let names: Vec<String> = elements.iter().map(|element| element.name.clone()).collect();
    let count = as_f64(elements.len().max(1));
    for (index, element) in elements.iter_mut().enumerate() {
        let before = &names[index.saturating_sub(NEAR)..index];
        let after = names.get(index + 1..(index + 1 + NEAR).min(names.len())).unwrap_or_default();
        element.near = before.iter().chain(after).filter(|name| !name.is_empty()).cloned().collect();
        element.order = Some(as_f64(index) / count);
    }
}

/// Role, name and text of an entry such as `button "Sign in" [ref=e1]: text`.
fn node(entry: &str) -> Option<(String, String, String)> {
    // YAML quotes the whole key when it holds a colon.
    let unquoted;
    let entry = match entry.strip_prefix('\'') {
        Some(rest) => {
            unquoted = rest.replace("''", "\u{1}");
            let (key, tail) = unquoted.split_once('\'')?;
            &format!("{key}{tail}").replace('\u{1}', "'")
        }
        None => entry,
    };
    let role_end =
        entry.find(|char: char| !char.is_ascii_alphanumeric() && char != '-').unwrap_or(entry.len());
    let (role, rest) = entry.split_at(role_end);
    if role.is_empty() || rest.starts_with('/') {
        return None;
    }
    let rest = rest.trim_start();
    let (name, rest) = match rest.strip_prefix('"') {
        Some(quoted) => {
            let end = closing_quote(quoted)?;
            let name = serde_json::from_str::<String>(&format!("\"{}\"", &quoted[..end]));
            (name.unwrap_or_else(|_| quoted[..end].to_owned()), &quoted[end + 1..])
        }
        None => (String::new(), rest),
    };
    let text = rest.split_once(": ").map_or("", |(_, text)| text.trim().trim_matches('"'));
    let tidy = |text: &str| cut_str(clean(text).trim(), MAX_NAME_CHARS).to_owned();
    Some((role.to_owned(), tidy(&name), tidy(text)))
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// The snapshot inside of Playwright's `error-context` attachment: the first
/// `yaml` block after the heading of the page.
#[must_use]
pub fn of_error_context(markdown: &str) -> Option<&str> {
    let (_, after) = markdown.split_once("# Page snapshot")?;
    let (_, block) = after.split_once("```yaml\n")?;
    Some(block.split_once("\n```").map_or(block, |(yaml, _)| yaml))
}
