//! Where a list goes on. Lists are read forwards from a key; the first page is
//! one click away, and a script remembers the page one came from.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::address::Address;
use crate::filters;

/// Inputs of `components/pager.html`.
#[derive(Template)]
#[template(path = "components/pager.html")]
pub(crate) struct Pager {
    first: Option<String>,
    next: Option<String>,
}

impl HtmlSafe for Pager {}

impl Pager {
    /// The pager of a list at an address; `next` is the cursor of its next
    /// page.
    pub(crate) fn new(address: &Address, next: Option<&String>) -> Self {
        Self {
            first: address.is_continued().then(|| address.without("cursor")),
            next: next.map(|cursor| address.with("cursor", cursor)),
        }
    }
}
