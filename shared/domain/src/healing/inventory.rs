//! The elements of a document, with the roles and names a browser would
//! compute for the common cases: what a trace's snapshot of the page says.

use super::aria::place;
use super::element::{Element, LANDMARKS, implied_role, path_of, words};
use crate::text::cut_str;
use crate::trace::dom::Node;

/// Elements that are listed.
const MAX_ELEMENTS: usize = 1_000;
/// Characters of a text.
const MAX_TEXT_CHARS: usize = 120;
/// Roles whose name is their content.
const NAMED_BY_CONTENT: [&str; 13] = [
    "button",
    "link",
    "heading",
    "option",
    "cell",
    "columnheader",
    "row",
    "tab",
    "menuitem",
    "checkbox",
    "radio",
    "switch",
    "treeitem",
];

/// Lists the elements of a document that a test may want to find.
#[must_use]
pub fn elements(root: &Node, test_id_attribute: &str) -> Vec<Element> {
    let mut listing = Listing { root, test_id_attribute, found: Vec::new() };
    listing.visit(root, &mut Vec::new(), &mut Vec::new(), None);
    let mut found = listing.found;
    place(&mut found);
    found
}

struct Listing<'a> {
    root: &'a Node,
    test_id_attribute: &'a str,
    found: Vec<Element>,
}

impl<'a> Listing<'a> {
    fn visit(
        &mut self,
        node: &'a Node,
        path: &mut Vec<String>,
        landmarks: &mut Vec<String>,
        label: Option<&'a Node>,
    ) {
        let Node::Element { tag, children, .. } = node else { return };
        if self.found.len() >= MAX_ELEMENTS || is_hidden(node, tag) {
            return;
        }
        let id = node.attribute("id").unwrap_or_default();
        path.push(if id.is_empty() { tag.clone() } else { format!("#{id}") });
        let described = self.describe(node, tag, path, landmarks, label);
        let is_landmark = LANDMARKS.contains(&described.role.as_str());
        if is_landmark {
            let name = &described.name;
            landmarks.push(if name.is_empty() {
                described.role.clone()
            } else {
                format!("{}:{name}", described.role)
            });
        }
        if is_worth_listing(&described, children) {
            self.found.push(described);
        }
        let label = if tag == "label" { Some(node) } else { label };
        for child in children {
            self.visit(child, path, landmarks, label);
        }
        if is_landmark {
            landmarks.pop();
        }
        path.pop();
    }

    fn describe(
        &self,
        node: &Node,
        tag: &str,
        path: &[String],
        landmarks: &[String],
        label: Option<&Node>,
    ) -> Element {
        let attribute = |name: &str| node.attribute(name).unwrap_or_default().trim().to_owned();
        let explicit = attribute("role");
        let role = match explicit.split_whitespace().next() {
            Some(role) => role.to_owned(),
            None => implied_role(tag, &|name| node.attribute(name)).to_owned(),
        };
        let is_field = matches!(tag, "input" | "select" | "textarea");
        let label = self.label_of(node, is_field.then_some(label).flatten());
        let text = if is_field { String::new() } else { text_of(node) };
        let name = name_of(node, tag, &role, &label, &text);
        // Far up, paths are the same for all.
        let from = path.iter().rposition(|step| step.starts_with('#')).unwrap_or(0);
        Element {
            role,
            name,
            text,
            id: attribute("id"),
            name_attr: attribute("name"),
            r#type: attribute("type"),
            test_id: attribute(self.test_id_attribute),
            href: if tag == "a" { path_of(&attribute("href")) } else { String::new() },
            alt: attribute("alt"),
            title: attribute("title"),
            placeholder: attribute("placeholder"),
            label,
            classes: words(&attribute("class")),
            landmarks: landmarks.iter().rev().cloned().collect(),
            near: Vec::new(),
            path: cut_str(&path[from..].join("/"), MAX_TEXT_CHARS).to_owned(),
            order: None,
            tag: tag.to_owned(),
        }
    }

    fn label_of(&self, node: &Node, around: Option<&Node>) -> String {
        if let Some(label) = node.attribute("aria-label").map(str::trim).filter(|label| !label.is_empty()) {
            return label.to_owned();
        }
        if let Some(ids) = node.attribute("aria-labelledby") {
            let texts: Vec<String> =
                ids.split_whitespace().take(4).filter_map(|id| self.by_id(id)).map(text_of).collect();
            return texts.join(" ");
        }
        if let Some(label) = around {
            return text_of(label);
        }
        let id = node.attribute("id").unwrap_or_default();
        if id.is_empty() { String::new() } else { self.label_for(id).map(text_of).unwrap_or_default() }
    }

    fn by_id(&self, id: &str) -> Option<&'a Node> {
        find(self.root, &|node| node.attribute("id") == Some(id))
    }

    fn label_for(&self, id: &str) -> Option<&'a Node> {
        find(self.root, &|node| node.tag() == Some("label") && node.attribute("for") == Some(id))
    }
}

fn find<'a>(node: &'a Node, matches: &dyn Fn(&Node) -> bool) -> Option<&'a Node> {
    if matches(node) {
        return Some(node);
    }
    let Node::Element { children, .. } = node else { return None };
    children.iter().find_map(|child| find(child, matches))
}

/// Scripts, and what says of itself that it is not shown.
fn is_hidden(node: &Node, tag: &str) -> bool {
    let style = node.attribute("style").unwrap_or_default();
    matches!(tag, "script" | "style" | "head" | "template" | "noscript")
        || node.attribute("hidden").is_some()
        || node.attribute("aria-hidden") == Some("true")
        || (tag == "input" && node.attribute("type") == Some("hidden"))
        || style.split(';').any(|rule| {
            let rule: String = rule.split_whitespace().collect();
            rule == "display:none" || rule == "visibility:hidden"
        })
}

fn name_of(node: &Node, tag: &str, role: &str, label: &str, text: &str) -> String {
    let attribute = |name: &str| node.attribute(name).unwrap_or_default().trim().to_owned();
    if !label.is_empty() {
        return label.to_owned();
    }
    if tag == "input" && matches!(node.attribute("type"), Some("submit" | "button" | "reset")) {
        let value = attribute("value");
        return if value.is_empty() { attribute("type") } else { value };
    }
    let content = if NAMED_BY_CONTENT.contains(&role) { text.to_owned() } else { String::new() };
    [attribute("alt"), content, attribute("title"), attribute("placeholder")]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_default()
}

/// What can be interacted with, has a name or a test id, or is a text of its own.
fn is_worth_listing(element: &Element, children: &[Node]) -> bool {
    let is_leaf = children.iter().all(|child| matches!(child, Node::Text(_)));
    let has_identity = !element.test_id.is_empty() || (!element.role.is_empty() && element.role != "list");
    has_identity || (is_leaf && !element.text.is_empty() && element.tag != "title")
}

/// The visible text below a node, blanks folded.
fn text_of(node: &Node) -> String {
    let mut text = String::new();
    collect_text(node, &mut text);
    let folded: Vec<&str> = text.split_whitespace().collect();
    cut_str(&folded.join(" "), MAX_TEXT_CHARS).to_owned()
}

fn collect_text(node: &Node, text: &mut String) {
    if text.len() > 4 * MAX_TEXT_CHARS {
        return;
    }
    match node {
        Node::Text(part) => text.push_str(part),
        Node::Element { tag, children, .. } if !is_hidden(node, tag) => {
            for child in children {
                collect_text(child, text);
            }
        }
        Node::Element { .. } => {}
    }
}
