//! Reads the elements of an accessibility snapshot, as Playwright prints it:
//!
//! ```text
//! - navigation "Main":
//!   - link "Home":
//!     - /url: /
//! - button "Sign in" [disabled]
//! ```

use super::element::{Element, LANDMARKS, path_of};
use super::page::{Builder, Page};
use super::ratio::as_f64;
use callboard_domain::text::{clean, cut_str};

/// Lines that are read.
const MAX_LINES: usize = 5_000;
/// Characters kept of a name.
const MAX_NAME_CHARS: usize = 200;
/// Elements before and after that say where an element is.
const NEAR: usize = 4;
/// Roles that say nothing about an element.
const SILENT: [&str; 6] = ["text", "generic", "none", "presentation", "document", "iframe"];
/// Roles of what a person fills in: neither what stands in it nor its name is
/// a text of the page.
const FIELDS: [&str; 8] =
    ["textbox", "searchbox", "combobox", "checkbox", "radio", "switch", "spinbutton", "slider"];

/// Reads a snapshot. Of an element it tells role and name for sure; whether
/// the name is also its text or its label it does not tell.
#[must_use]
pub fn page(snapshot: &str) -> Page {
    let mut page = Builder::new(false);
    let mut open: Vec<Open> = Vec::new();
    // What lies in a frame is no element of this page.
    let mut frame: Option<usize> = None;
    for line in snapshot.lines().take(MAX_LINES) {
        let depth = line.len() - line.trim_start_matches(' ').len();
        let Some(entry) = line.trim_start().strip_prefix("- ") else { continue };
        if frame.is_some_and(|frame| depth > frame) {
            continue;
        }
        frame = None;
        while let Some(done) = open.pop_if(|above| above.depth >= depth) {
            done.close(&mut page);
        }
        if let Some(url) = entry.strip_prefix("/url:") {
            if let Some(last) = page.last_listed() {
                last.href = path_of(url.trim().trim_matches('"'));
            }
            continue;
        }
        let Some((role, name, text)) = node(entry) else { continue };
        if role == "iframe" {
            frame = Some(depth);
        }
        let text = if is_field(&role) { String::new() } else { text };
        let landmarks = open.iter().rev().filter_map(|above| above.landmark.clone()).collect();
        let landmark = LANDMARKS.contains(&role.as_str()).then(|| match name.as_str() {
            "" => role.clone(),
            name => format!("{role}:{name}"),
        });
        let is_listed = !SILENT.contains(&role.as_str());
        let may_say = if is_named_from_outside(&role) { String::new() } else { name.clone() };
        let element = Element { role, name, text: text.clone(), landmarks, ..Element::default() };
        // What is not listed has no role a locator could ask for.
        let node = page.open(if is_listed { element } else { Element::default() }, is_listed);
        page.write(&text);
        page.write(" ");
        open.push(Open { depth, node, landmark, may_say });
    }
    while let Some(done) = open.pop() {
        done.close(&mut page);
    }
    page.finish()
}

/// An entry whose children are being read.
struct Open {
    depth: usize,
    node: usize,
    landmark: Option<String>,
    /// Its name, when that may be its text too: a text that equals the name is
    /// left out of the snapshot.
    may_say: String,
}

impl Open {
    fn close(self, page: &mut Builder) {
        if page.is_wordless(self.node) && !self.may_say.is_empty() {
            page.write_perhaps(&self.may_say);
            page.write(" ");
        }
        page.close(self.node);
    }
}

pub(super) fn is_field(role: &str) -> bool {
    FIELDS.contains(&role)
}

/// Whether an element of a role never has its name from what it says.
fn is_named_from_outside(role: &str) -> bool {
    is_field(role) || LANDMARKS.contains(&role) || matches!(role, "img" | "iframe" | "progressbar")
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
