//! Documents of pages: each snapshot names unchanged parts by an earlier
//! snapshot of the same frame and the place of the node in it. They are put
//! together within a budget, and written as HTML that can do nothing.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::events;
use super::{Action, ParseError, Trace, TraceError};
use callboard_domain::secrets::{MASK, masked};
use callboard_domain::text::cut;

/// Snapshots kept of a trace.
const MAX_SNAPSHOTS: usize = 5_000;
/// Bytes kept of them.
const MAX_SNAPSHOT_BYTES: usize = 64 << 20;
/// Nodes of one document.
const MAX_NODES: usize = 200_000;
/// Nodes of all snapshots that are unpacked for one document.
const MAX_UNPACKED_NODES: usize = 1_000_000;
/// How deep a document may be nested.
const MAX_DEPTH: usize = 120;
/// Characters of HTML.
const MAX_HTML_CHARS: usize = 1_500_000;
/// Bytes of texts and attributes of one document: more than is ever written of
/// it. What is referred to again takes its bytes again.
const MAX_CONTENT_BYTES: usize = 16 * MAX_HTML_CHARS;
const MAX_TEXT_CHARS: usize = 20_000;
const MAX_ATTRIBUTES: usize = 60;
const VALUE_ATTRIBUTE: &str = "__playwright_value_";

/// A document, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// Text.
    Text(String),
    /// An element.
    Element {
        /// Tag, lower case.
        tag: String,
        /// Attributes, sorted.
        attributes: Vec<(String, String)>,
        /// What lies inside.
        children: Vec<Node>,
    },
}

impl Node {
    /// Value of an attribute.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let Self::Element { attributes, .. } = self else { return None };
        attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Tag of an element.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        match self {
            Self::Element { tag, .. } => Some(tag),
            Self::Text(_) => None,
        }
    }
}

/// Snapshots of a trace as they are written, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshots {
    all: Vec<Snapshot>,
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Snapshot {
    call: String,
    /// Name in formats up to 9, `before` and the like later.
    name: String,
    frame: String,
    url: String,
    is_main: bool,
    /// `None` of a snapshot that is too large: those after it count it too.
    html: Option<Box<str>>,
}

#[derive(Deserialize)]
struct Line {
    snapshot: Fields,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    #[serde(default)]
    call_id: String,
    #[serde(default)]
    snapshot_name: Option<String>,
    #[serde(default)]
    phase: Option<String>,
    #[serde(default)]
    frame_id: String,
    #[serde(default)]
    frame_url: String,
    #[serde(default)]
    is_main_frame: bool,
    html: Box<RawValue>,
}

impl Snapshots {
    pub(super) fn add(&mut self, line: &str) -> Result<(), ParseError> {
        let Some(line) = events::read::<Line>(line) else { return Ok(()) };
        let fields = line.snapshot;
        self.push(Snapshot {
            call: fields.call_id,
            name: fields.snapshot_name.or(fields.phase).unwrap_or_default(),
            frame: fields.frame_id,
            url: fields.frame_url,
            is_main: fields.is_main_frame,
            html: Some(fields.html.into()),
        })
    }

    /// Keeps the place of a snapshot of which only the beginning was read.
    pub(super) fn add_too_large(&mut self, beginning: &str) -> Result<(), ParseError> {
        let field = |name: &str| {
            let (_, value) = beginning.split_once(&format!("\"{name}\":\""))?;
            Some(value.split_once('"')?.0.to_owned())
        };
        if field("type").is_none_or(|kind| kind != "frame-snapshot") {
            return Ok(());
        }
        self.push(Snapshot {
            call: field("callId").unwrap_or_default(),
            name: field("snapshotName").or_else(|| field("phase")).unwrap_or_default(),
            frame: field("frameId").unwrap_or_default(),
            url: field("frameUrl").unwrap_or_default(),
            // Whether it shows the main frame stands behind its content. If it might be the page that
            // is asked for, that page is too large: another one would mislead.
            is_main: true,
            html: None,
        })
    }

    fn push(&mut self, snapshot: Snapshot) -> Result<(), ParseError> {
        self.bytes = self.bytes.saturating_add(snapshot.html.as_ref().map_or(0, |html| html.len()));
        if self.all.len() >= MAX_SNAPSHOTS || self.bytes > MAX_SNAPSHOT_BYTES {
            return Err(TraceError::TooLarge("its pages are too large"));
        }
        self.all.push(snapshot);
        Ok(())
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The place of the snapshot of a main frame that shows the page an action
    /// failed on: as it was before, else after, else the last one there is.
    fn of_action(&self, action: Option<&Action>) -> Option<usize> {
        let named = |wanted: Option<&String>, phase: &str| {
            let call = action?.call.as_ref()?;
            let is_wanted = |snapshot: &Snapshot| {
                snapshot.is_main
                    && (wanted.is_some_and(|name| *name == snapshot.name)
                        || (snapshot.call == *call
                            && (snapshot.name == phase || snapshot.name.starts_with(&format!("{phase}@")))))
            };
            self.all.iter().rposition(is_wanted)
        };
        named(action.and_then(|action| action.before_snapshot.as_ref()), "before")
            .or_else(|| named(action.and_then(|action| action.after_snapshot.as_ref()), "after"))
            .or_else(|| self.all.iter().rposition(|snapshot| snapshot.is_main))
    }
}

/// A page as it was, put together.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its address.
    pub url: String,
    /// The outermost element.
    pub root: Node,
}

impl Trace {
    /// The page an action failed on. `None` when the trace has no document.
    ///
    /// # Errors
    /// [`TraceError::TooLarge`] for documents beyond the budget.
    pub fn document(&self, action: Option<&Action>) -> Result<Option<Document>, ParseError> {
        let Some(place) = self.snapshots.of_action(action) else { return Ok(None) };
        let chosen = &self.snapshots.all[place];
        let of_frame: Vec<&Snapshot> =
            self.snapshots.all[..=place].iter().filter(|snapshot| snapshot.frame == chosen.frame).collect();
        let mut joining = Joining {
            snapshots: of_frame,
            unpacked: HashMap::new(),
            nodes_left: MAX_NODES,
            bytes_left: MAX_CONTENT_BYTES,
            unpacked_left: MAX_UNPACKED_NODES,
        };
        let root = joining.whole(joining.snapshots.len() - 1)?;
        Ok(root.map(|root| Document { url: callboard_domain::secrets::masked_url(&chosen.url), root }))
    }
}

/// A node of a snapshot before its references are followed.
#[derive(Debug, Clone)]
enum Packed {
    Text(String),
    Element { tag: String, attributes: Vec<(String, String)>, children: Vec<Child> },
}

impl Packed {
    /// Bytes that a copy of it takes, without what lies inside.
    fn content_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Element { tag, attributes, .. } => {
                let attribute = |(name, value): &(String, String)| {
                    size_of::<(String, String)>() + name.len() + value.len()
                };
                tag.len() + attributes.iter().map(attribute).sum::<usize>()
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Child {
    /// A node of the same snapshot.
    Own(usize),
    /// A node of the snapshot so many before.
    Earlier(usize, usize),
}

struct Unpacked {
    /// In the order in which references count them: children before parents.
    nodes: Vec<Packed>,
    root: Child,
}

struct Joining<'a> {
    snapshots: Vec<&'a Snapshot>,
    unpacked: HashMap<usize, std::rc::Rc<Unpacked>>,
    nodes_left: usize,
    bytes_left: usize,
    unpacked_left: usize,
}

impl Joining<'_> {
    fn whole(&mut self, snapshot: usize) -> Result<Option<Node>, ParseError> {
        let Some(unpacked) = self.unpack(snapshot)? else { return Ok(None) };
        self.resolve(snapshot, unpacked.root, 0)
    }

    fn unpack(&mut self, snapshot: usize) -> Result<Option<std::rc::Rc<Unpacked>>, ParseError> {
        if let Some(known) = self.unpacked.get(&snapshot) {
            return Ok(Some(known.clone()));
        }
        let Some(source) = self.snapshots.get(snapshot) else { return Ok(None) };
        let html = source.html.as_ref().ok_or(TraceError::TooLarge("a page is too large"))?;
        // Nested deeper than the parser goes: nothing a browser shows is.
        let Some(html) = events::read::<Value>(html) else { return Ok(None) };
        let mut nodes = Vec::new();
        let Some(root) = unpack(&html, &mut nodes, &mut self.unpacked_left)? else { return Ok(None) };
        let unpacked = std::rc::Rc::new(Unpacked { nodes, root });
        self.unpacked.insert(snapshot, unpacked.clone());
        Ok(Some(unpacked))
    }

    fn resolve(&mut self, snapshot: usize, child: Child, depth: usize) -> Result<Option<Node>, ParseError> {
        if depth > MAX_DEPTH {
            return Ok(None);
        }
        self.nodes_left =
            self.nodes_left.checked_sub(1).ok_or(TraceError::TooLarge("a page is too large"))?;
        let (snapshot, place) = match child {
            Child::Own(place) => (snapshot, place),
            Child::Earlier(ago, place) => match snapshot.checked_sub(ago) {
                // A snapshot that refers to itself says nothing.
                Some(earlier) if ago > 0 => (earlier, place),
                _ => return Ok(None),
            },
        };
        let Some(unpacked) = self.unpack(snapshot)? else { return Ok(None) };
        let node = unpacked.nodes.get(place);
        self.bytes_left = self
            .bytes_left
            .checked_sub(node.map_or(0, Packed::content_bytes))
            .ok_or(TraceError::TooLarge("a page is too large"))?;
        match node {
            None => Ok(None),
            Some(Packed::Text(text)) => Ok(Some(Node::Text(text.clone()))),
            Some(Packed::Element { tag, attributes, children }) => {
                let mut inside = Vec::with_capacity(children.len());
                for child in children {
                    inside.extend(self.resolve(snapshot, *child, depth + 1)?);
                }
                Ok(Some(Node::Element { tag: tag.clone(), attributes: attributes.clone(), children: inside }))
            }
        }
    }
}

/// Reads `"text"`, `["TAG", {attributes}, …children]` or `[[ago, place]]`.
fn unpack(value: &Value, nodes: &mut Vec<Packed>, left: &mut usize) -> Result<Option<Child>, ParseError> {
    *left = left.checked_sub(1).ok_or(TraceError::TooLarge("its pages are too large"))?;
    let number =
        |value: Option<&Value>| value.and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
    let node = match value {
        Value::String(text) => Packed::Text(cut(text.clone(), MAX_TEXT_CHARS)),
        Value::Array(parts) => match parts.first() {
            Some(Value::Array(reference)) => {
                let child = number(reference.first()).zip(number(reference.get(1)));
                return Ok(child.map(|(ago, place)| Child::Earlier(ago, place)));
            }
            Some(Value::String(tag)) => {
                let attributes = parts.get(1).and_then(Value::as_object);
                let attributes = attributes.into_iter().flatten().take(MAX_ATTRIBUTES);
                let attributes = attributes.filter_map(|(name, value)| {
                    Some((name.clone(), cut(value.as_str()?.to_owned(), MAX_TEXT_CHARS)))
                });
                let mut attributes: Vec<(String, String)> = attributes.collect();
                attributes.sort_unstable();
                let mut children = Vec::new();
                for child in parts.iter().skip(2) {
                    children.extend(unpack(child, nodes, left)?);
                }
                Packed::Element { tag: cut(tag.to_ascii_lowercase(), 100), attributes, children }
            }
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    nodes.push(node);
    Ok(Some(Child::Own(nodes.len() - 1)))
}

/// Elements that run, load or send something.
const DROPPED: [&str; 11] =
    ["script", "iframe", "frame", "object", "embed", "applet", "base", "meta", "link", "noscript", "portal"];
const VOID: [&str; 13] =
    ["area", "br", "col", "hr", "img", "input", "source", "track", "wbr", "param", "embed", "link", "meta"];

impl Document {
    /// The page as HTML without scripts, handlers, addresses that run, and
    /// secrets; at most 1,500,000 characters.
    #[must_use]
    pub fn html(&self) -> String {
        let mut html = String::from("<!doctype html>");
        write_node(&self.root, &mut html);
        cut(html, MAX_HTML_CHARS)
    }
}

fn write_node(node: &Node, html: &mut String) {
    if html.len() > MAX_HTML_CHARS {
        return;
    }
    match node {
        Node::Text(text) => escape(&masked(text), html),
        Node::Element { tag, attributes, children } => {
            let is_name = |name: &str| {
                name.starts_with(|char: char| char.is_ascii_alphabetic())
                    && name
                        .chars()
                        .all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | ':' | '_' | '.'))
            };
            if DROPPED.contains(&tag.as_str()) || !is_name(tag) {
                return;
            }
            html.push('<');
            html.push_str(tag);
            let is_password =
                node.attribute("type").is_some_and(|kind| kind.eq_ignore_ascii_case("password"));
            for (name, value) in attributes {
                let name = name.to_ascii_lowercase();
                let (name, value) = match name.as_str() {
                    VALUE_ATTRIBUTE if tag == "input" && !value.is_empty() => {
                        ("value".to_owned(), if is_password { MASK.into() } else { masked(value) })
                    }
                    "value" if is_password => continue,
                    _ if !is_name(&name) || name.starts_with("on") || name.starts_with("__playwright") => {
                        continue;
                    }
                    "srcdoc" | "srcset" | "formaction" | "action" | "ping" | "background" => continue,
                    "href" | "src" | "xlink:href" | "poster" | "data" if !is_harmless(value) => continue,
                    "style" if value.contains("url(") || value.contains("expression") => continue,
                    _ => (name, masked(value)),
                };
                let _ = write!(html, " {name}=\"");
                escape(&value, html);
                html.push('"');
            }
            html.push('>');
            if VOID.contains(&tag.as_str()) {
                return;
            }
            for child in children {
                match child {
                    // The text of styles is no HTML; it must neither end the element nor load anything.
                    Node::Text(text) if tag == "style" => {
                        if !text.contains(['<', '\\', '@']) && !text.contains("url(") {
                            html.push_str(text);
                        }
                    }
                    child => write_node(child, html),
                }
            }
            let _ = write!(html, "</{tag}>");
        }
    }
}

/// Whether an address neither runs something nor carries content.
fn is_harmless(address: &str) -> bool {
    let address: String =
        address.chars().filter(|char| !char.is_whitespace() && !char.is_control()).take(200).collect();
    let address = address.to_ascii_lowercase();
    match address.split_once(':') {
        Some((scheme, _)) if !scheme.contains(['/', '?', '#']) => {
            matches!(scheme, "http" | "https" | "mailto")
        }
        _ => true,
    }
}

fn escape(text: &str, html: &mut String) {
    for char in text.chars() {
        match char {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\0' => {}
            char => html.push(char),
        }
    }
}
