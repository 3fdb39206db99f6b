//! Locator chains as Playwright writes them, in a log or in a test's source:
//! `page.getByRole('row', { name: 'Order 7' }).getByRole('button').click()`.
//!
//! [`fn@parse`] reads the chain a text begins with, [`first_chain`] and
//! [`chains`] look for chains inside other text. Every part knows the bytes it
//! was read from, so an edit replaces one call or one argument and leaves the
//! rest of a line as it was:
//!
//! ```
//! use callboard_domain::locator;
//!
//! let line = "await page.getByText('Save').first().click();";
//! let chain = locator::first_chain(line).unwrap();
//! let old = &chain.calls[0];
//! assert_eq!(&line[old.range.clone()], "getByText('Save')");
//! let edited = [&line[..old.range.start], "getByRole('button')", &line[old.range.end..]].concat();
//! assert_eq!(edited, "await page.getByRole('button').first().click();");
//! ```
//!
//! Written by hand: balanced brackets, strings, template texts and regular
//! expressions are understood, at most [`MAX_CHAIN_BYTES`] bytes and
//! [`MAX_DEPTH`] brackets inside each other; what goes beyond is no chain.
//! Nothing is ever read twice, so the time is linear in the text.

mod parse;
mod plain;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use parse::{chains, first_chain, parse};

/// Bytes of the longest chain that is read.
pub const MAX_CHAIN_BYTES: usize = 2_000;
/// Brackets inside each other.
pub const MAX_DEPTH: usize = 16;

/// Calls that find elements, as opposed to those that narrow or act.
const FINDERS: [&str; 9] = [
    "getByRole",
    "getByTestId",
    "getByText",
    "getByLabel",
    "getByPlaceholder",
    "getByAltText",
    "getByTitle",
    "locator",
    "frameLocator",
];

/// Calls that narrow what was found; with [`FINDERS`] all that a locator is
/// made of.
const NARROWERS: [&str; 9] =
    ["filter", "first", "last", "nth", "and", "or", "contentFrame", "owner", "describe"];

/// A chain of calls. All ranges are bytes of the text that was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// From the first call or the object it is made on to the last bracket.
    pub range: Range<usize>,
    /// The object before the first call, such as `page` or `this.form`; empty
    /// when the chain begins with a call.
    pub root: Range<usize>,
    /// The calls in order, never empty.
    pub calls: Vec<Call>,
}

/// Whether a text is a locator, on `page` or another object or on none, and
/// nothing else: nothing in it could do anything but find elements.
#[must_use]
pub fn is_only_locator(text: &str) -> bool {
    let Some(chain) = parse(text) else { return false };
    let Some(range) = chain.locator_range() else { return false };
    let is_root = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$' | '.');
    let is_whole =
        chain.range == (0..text.len()) && range.end == text.len() && text[..range.start].chars().all(is_root);
    is_whole && plain::is_plain(&text[range], |name| FINDERS.contains(&name) || NARROWERS.contains(&name))
}

impl Chain {
    /// The leading calls that make up the locator: finders and what narrows
    /// them, without the action at the end.
    #[must_use]
    pub fn locator_calls(&self) -> &[Call] {
        let length = self.calls.iter().take_while(|call| call.is_locator()).count();
        &self.calls[..length]
    }

    /// Whether the locator steps into a frame, or out of one: what it finds may
    /// lie in another document than the page's.
    #[must_use]
    pub fn crosses_frames(&self) -> bool {
        let crosses = |call: &Call| matches!(call.name.as_str(), "frameLocator" | "contentFrame" | "owner");
        self.locator_calls().iter().any(crosses)
    }

    /// The bytes of [`Self::locator_calls`]; `None` without any.
    #[must_use]
    pub fn locator_range(&self) -> Option<Range<usize>> {
        let calls = self.locator_calls();
        Some(calls.first()?.range.start..calls.last()?.range.end)
    }
}

/// One call of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Method, such as `getByRole`.
    pub name: String,
    /// From the name to the closing bracket, without the dot before it.
    pub range: Range<usize>,
    /// Its arguments.
    pub arguments: Vec<Argument>,
}

impl Call {
    /// Whether the call finds elements (`getByRole`, `locator`, …).
    #[must_use]
    pub fn is_finder(&self) -> bool {
        FINDERS.contains(&self.name.as_str())
    }

    /// Whether the call is part of a locator: it finds or narrows.
    #[must_use]
    pub fn is_locator(&self) -> bool {
        self.is_finder() || NARROWERS.contains(&self.name.as_str())
    }

    /// The text of the first argument when it is a string.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.arguments.first()?.value.as_text()
    }

    /// An option of the object that is passed last, such as `name` of
    /// `getByRole('button', { name: 'Save' })`.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&Argument> {
        self.options().iter().find(|property| property.name == name).map(|property| &property.value)
    }

    /// All options, in the order written.
    #[must_use]
    pub fn options(&self) -> &[Property] {
        match self.arguments.last().map(|argument| &argument.value) {
            Some(Value::Object(properties)) => properties,
            _ => &[],
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its bytes, quotes and brackets included.
    pub range: Range<usize>,
    /// What it is.
    pub value: Value,
}

/// A property of an object literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// Its key without quotes.
    pub name: String,
    /// Its value; the key itself for the short form `{ name }`.
    pub value: Argument,
}

/// What an argument can be.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string or a template text without placeholders; escapes resolved.
    Text(String),
    /// A regular expression.
    Pattern {
        /// Between the slashes, as written.
        source: String,
        /// After them.
        flags: String,
    },
    /// A number.
    Number(f64),
    /// An object literal.
    Object(Vec<Property>),
    /// A list.
    List(Vec<Argument>),
    /// Another chain, such as the argument of `or`.
    Chain(Chain),
    /// Any other expression: a variable, a template text with placeholders,
    /// a function.
    Expression,
}

impl Value {
    /// The text of a string.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}
