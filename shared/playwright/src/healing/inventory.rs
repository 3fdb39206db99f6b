//! The elements of a document, with the roles and names a browser would
//! compute for the common cases: what a trace's snapshot of the page says.

use std::collections::HashMap;

use super::element::{Element, LANDMARKS, implied_role, path_of, words};
use super::page::{Builder, Page};
use crate::trace::dom::Node;
use callboard_domain::text::cut_str;

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

/// Marks the part of a trace's document that is a shadow tree, which locators
/// look into.
const SHADOW_ROOT: &str = "__playwright_shadow_root_";

/// Reads a document: lists the elements that a test may want to find, and
/// counts the others.
#[must_use]
pub fn page(root: &Node, test_id_attribute: &str) -> Page {
    let mut listing =
        Listing { named: Named::in_document(root), test_id_attribute, page: Builder::new(true) };
    listing.visit(root, &mut Vec::new(), &mut Vec::new(), None, false);
    listing.page.finish()
}

struct Listing<'a> {
    named: Named<'a>,
    test_id_attribute: &'a str,
    page: Builder,
}

impl<'a> Listing<'a> {
    fn visit(
        &mut self,
        node: &'a Node,
        path: &mut Vec<String>,
        landmarks: &mut Vec<String>,
        label: Option<&'a Node>,
        is_inside_hidden: bool,
    ) {
        let (tag, children) = match node {
            Node::Text(text) => return self.page.write(text),
            Node::Element { tag, children, .. } => (tag, children),
        };
        if self.page.is_full() || is_no_content(node, tag) {
            return;
        }
        if tag == "template" {
            return children
                .iter()
                .for_each(|child| self.visit(child, path, landmarks, label, is_inside_hidden));
        }
        let is_hidden = is_inside_hidden || is_hidden(node, tag);
        let id = node.attribute("id").unwrap_or_default();
        path.push(if id.is_empty() { tag.clone() } else { format!("#{id}") });
        let described = self.describe(node, tag, path, landmarks, label);
        let is_landmark = !is_hidden && LANDMARKS.contains(&described.role.as_str());
        if is_landmark {
            let name = &described.name;
            landmarks.push(if name.is_empty() {
                described.role.clone()
            } else {
                format!("{}:{name}", described.role)
            });
        }
        let is_listed =
            !is_hidden && self.page.listed() < MAX_ELEMENTS && is_worth_listing(&described, children);
        let described = if is_listed { described } else { counted(described, is_hidden) };
        let opened = self.page.open(described, is_listed);
        if is_button_input(node, tag) {
            self.page.write(node.attribute("value").unwrap_or_default());
        }
        let label = if tag == "label" { Some(node) } else { label };
        // What lies in a frame is another document.
        if !matches!(tag.as_str(), "iframe" | "frame") {
            for child in children {
                self.visit(child, path, landmarks, label, is_hidden);
            }
        }
        self.page.close(opened);
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
            let texts: Vec<String> = ids
                .split_whitespace()
                .take(4)
                .filter_map(|id| self.named.ids.get(id))
                .map(|node| text_of(node))
                .collect();
            return texts.join(" ");
        }
        if let Some(label) = around {
            return text_of(label);
        }
        let id = node.attribute("id").unwrap_or_default();
        self.named.labels.get(id).map(|label| text_of(label)).unwrap_or_default()
    }
}

/// The nodes that others refer to.
#[derive(Default)]
struct Named<'a> {
    ids: HashMap<&'a str, &'a Node>,
    /// Labels by the id of what they label.
    labels: HashMap<&'a str, &'a Node>,
}

impl<'a> Named<'a> {
    fn in_document(root: &'a Node) -> Self {
        let mut named = Self::default();
        let mut pending = vec![root];
        while let Some(node) = pending.pop() {
            let Node::Element { tag, children, .. } = node else { continue };
            let of = |name: &str| node.attribute(name).filter(|value| !value.is_empty());
            if let Some(id) = of("id") {
                named.ids.entry(id).or_insert(node);
            }
            if let Some(id) = of("for").filter(|_| tag == "label") {
                named.labels.entry(id).or_insert(node);
            }
            // The first one counts, so the next to be looked at is on top.
            pending.extend(children.iter().rev());
        }
        named
    }
}

/// What is told of an element that is only counted: what a locator compares,
/// and no role when it is hidden, as locators by role do not see it.
fn counted(described: Element, is_hidden: bool) -> Element {
    let (role, name) = match is_hidden {
        true => Default::default(),
        false => (described.role, described.name),
    };
    Element { role, name, text: String::new(), landmarks: Vec::new(), path: String::new(), ..described }
}

/// What is neither shown nor found by what stands in it.
fn is_no_content(node: &Node, tag: &str) -> bool {
    matches!(tag, "script" | "style" | "head" | "noscript")
        || (tag == "template" && node.attribute(SHADOW_ROOT).is_none())
}

fn is_button_input(node: &Node, tag: &str) -> bool {
    tag == "input" && matches!(node.attribute("type"), Some("submit" | "button" | "reset"))
}

/// What says of itself that it is not shown.
fn is_hidden(node: &Node, tag: &str) -> bool {
    let style = node.attribute("style").unwrap_or_default();
    is_no_content(node, tag)
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
    if is_button_input(node, tag) {
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
