//! A page as far as it is known: the elements a test may want to find, and
//! beside them what a locator would find as well: hidden elements, containers
//! and plain text. That is only counted, never proposed; a locator is unique
//! when nothing of it is found either.

use std::ops::Range;

use super::aria::place;
use super::element::Element;

/// Nodes that are counted.
const MAX_NODES: usize = 20_000;
/// Bytes of text that are counted.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// A page, read by [`super::inventory`] or [`super::aria`].
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    elements: Vec<Element>,
    beside: Vec<Element>,
    /// All of both in the order of the page, what lies inside behind it.
    nodes: Vec<Node>,
    /// Text of the whole page, blanks folded: that of a node is a part of it.
    text: String,
    /// The same in lower case, byte for byte.
    lower: String,
    has_attributes: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Node {
    what: What,
    /// Where what lies inside ends.
    end: usize,
    text: Range<usize>,
    /// Whether the text is known, and not only what the node may say.
    is_text_certain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Listed(usize),
    Beside(usize),
}

impl Page {
    /// What a test may want to find, in the order of the page.
    #[must_use]
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// Whether tags, ids and other attributes are known: an accessibility tree
    /// has none.
    #[must_use]
    pub const fn has_attributes(&self) -> bool {
        self.has_attributes
    }

    /// All nodes.
    pub(super) const fn all(&self) -> Range<usize> {
        0..self.nodes.len()
    }

    /// The nodes inside of one.
    pub(super) fn inside(&self, node: usize) -> Range<usize> {
        node + 1..self.nodes[node].end
    }

    /// Place of a node among the elements, when it is one of them.
    pub(super) fn place_of(&self, node: usize) -> Option<usize> {
        match self.nodes[node].what {
            What::Listed(place) => Some(place),
            What::Beside(_) => None,
        }
    }

    /// What is known of a node.
    pub(super) fn node(&self, node: usize) -> &Element {
        match self.nodes[node].what {
            What::Listed(place) => &self.elements[place],
            What::Beside(place) => &self.beside[place],
        }
    }

    /// The innermost nodes that say `wanted`, and whether all of them surely do.
    pub(super) fn saying(&self, wanted: &str, is_exact: bool, within: Range<usize>) -> (Vec<usize>, bool) {
        let wanted: Vec<&str> = wanted.split_whitespace().collect();
        let wanted = wanted.join(" ");
        let lower: String = wanted.chars().map(lower).collect();
        let mut found: Vec<usize> = Vec::new();
        let mut at = within.start;
        while at < within.end {
            let node = &self.nodes[at];
            if !self.lower[node.text.clone()].contains(&lower) {
                at = node.end;
                continue;
            }
            if !is_exact || self.text[node.text.clone()].trim() == wanted {
                // What lies around says it only because this does.
                found.pop_if(|around| self.nodes[*around].end > at);
                found.push(at);
            }
            at += 1;
        }
        let is_certain = found.iter().all(|&node| self.nodes[node].is_text_certain);
        (found, is_certain)
    }
}

/// Puts a page together in the order in which it is read.
pub(super) struct Builder {
    page: Page,
    /// Where the last text ends that somebody may say or not.
    uncertain_until: usize,
}

impl Builder {
    pub(super) const fn new(has_attributes: bool) -> Self {
        let page = Page {
            elements: Vec::new(),
            beside: Vec::new(),
            nodes: Vec::new(),
            text: String::new(),
            lower: String::new(),
            has_attributes,
        };
        Self { page, uncertain_until: 0 }
    }

    pub(super) const fn is_full(&self) -> bool {
        self.page.nodes.len() >= MAX_NODES
    }

    pub(super) const fn listed(&self) -> usize {
        self.page.elements.len()
    }

    pub(super) fn last_listed(&mut self) -> Option<&mut Element> {
        self.page.elements.last_mut()
    }

    /// Begins a node; what follows lies inside of it until it is closed.
    pub(super) fn open(&mut self, element: Element, is_listed: bool) -> usize {
        let (all, what): (_, fn(usize) -> What) = match is_listed {
            true => (&mut self.page.elements, What::Listed),
            false => (&mut self.page.beside, What::Beside),
        };
        let what = what(all.len());
        all.push(element);
        let at = self.page.text.len();
        let node = self.page.nodes.len();
        self.page.nodes.push(Node { what, end: node + 1, text: at..at, is_text_certain: true });
        node
    }

    /// Adds text to what is open.
    pub(super) fn write(&mut self, text: &str) {
        if self.page.text.len() + text.len() > MAX_TEXT_BYTES {
            return;
        }
        for char in text.chars() {
            if !char.is_whitespace() {
                self.page.text.push(char);
            } else if !self.page.text.ends_with(' ') {
                self.page.text.push(' ');
            }
        }
    }

    /// Adds text that what is open may say, or may not.
    pub(super) fn write_perhaps(&mut self, text: &str) {
        self.write(text);
        self.uncertain_until = self.page.text.len();
    }

    /// Whether nothing was written inside of an open node.
    pub(super) fn is_wordless(&self, node: usize) -> bool {
        self.page.text[self.page.nodes[node].text.start..].trim().is_empty()
    }

    pub(super) fn close(&mut self, node: usize) {
        let (end, text_end) = (self.page.nodes.len(), self.page.text.len());
        let node = &mut self.page.nodes[node];
        node.end = end;
        node.text.end = text_end;
        node.is_text_certain = self.uncertain_until <= node.text.start;
    }

    pub(super) fn finish(mut self) -> Page {
        self.page.lower = self.page.text.chars().map(lower).collect();
        place(&mut self.page.elements);
        self.page
    }
}

/// Lower case where that takes as many bytes, so that places in a text stay.
fn lower(char: char) -> char {
    let mut lower = char.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(only), None) if only.len_utf8() == char.len_utf8() => only,
        _ => char,
    }
}

#[cfg(test)]
impl From<Vec<Element>> for Page {
    /// Elements side by side, which say their text.
    fn from(elements: Vec<Element>) -> Self {
        let mut builder = Builder::new(true);
        for element in elements {
            let text = element.text.clone();
            let node = builder.open(element, true);
            builder.write(&text);
            builder.close(node);
        }
        builder.finish()
    }
}
