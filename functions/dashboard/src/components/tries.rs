//! The attempts of a test as chips: how each ended, the first one first.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_query::shapes::{ExecutionItem, Try};

use crate::filters;

/// Attempts that are drawn; the page of the execution has all of them.
const SHOWN: usize = 8;

/// Inputs of the chips.
#[derive(Template)]
#[template(
    ext = "html",
    source = "<span class=\"tries\" role=\"group\" aria-label=\"{{ tries.len() + more }} attempts\">\
              {% for each in tries %}<a href=\"/test-run-cases/{{ execution }}?retry={{ each.retry }}&amp;repetition={{ each.repetition }}\">\
              {{ each.status|mark }}<span class=\"visually-hidden\">attempt {{ loop.index }}</span></a>{% endfor %}\
              {% if more > 0 %}<span class=\"faint\">+{{ more }}</span>{% endif %}</span>"
)]
pub(crate) struct Tries<'i> {
    execution: i64,
    tries: &'i [Try],
    /// How many are left out.
    more: usize,
}

impl HtmlSafe for Tries<'_> {}

impl<'i> Tries<'i> {
    /// The attempts of an execution.
    pub(crate) fn from_item(item: &'i ExecutionItem) -> Self {
        let shown = item.tries.len().min(SHOWN);
        Self { execution: item.id, tries: &item.tries[..shown], more: item.tries.len() - shown }
    }
}
