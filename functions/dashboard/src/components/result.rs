//! A result as a glyph, with or without its word.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::assets::Asset;
use crate::outcome::Toned;

/// The glyph; the word is there for those who do not see it.
#[derive(Template)]
#[template(
    ext = "html",
    source = "<span class=\"mark {{ class }}\" title=\"{{ word }}\"><svg class=\"icon\" role=\"img\" \
              aria-label=\"{{ word }}\"><use href=\"{{ icons }}#{{ class }}\"/></svg></span>"
)]
pub(crate) struct Mark {
    class: &'static str,
    word: &'static str,
    icons: &'static str,
}

impl HtmlSafe for Mark {}

impl Mark {
    /// The mark of a result.
    pub(crate) fn from_result(result: &(impl Toned + ?Sized)) -> Self {
        Self { class: result.tone().class(), word: result.word(), icons: Asset::Icons.url() }
    }
}

/// The glyph and its word.
#[derive(Template)]
#[template(
    ext = "html",
    source = "<span class=\"badge {{ class }}\"><svg class=\"icon\" aria-hidden=\"true\">\
              <use href=\"{{ icons }}#{{ class }}\"/></svg>{{ word }}</span>"
)]
pub(crate) struct Badge {
    class: &'static str,
    word: &'static str,
    icons: &'static str,
}

impl HtmlSafe for Badge {}

impl Badge {
    /// The badge of a result.
    pub(crate) fn from_result(result: &(impl Toned + ?Sized)) -> Self {
        Self { class: result.tone().class(), word: result.word(), icons: Asset::Icons.url() }
    }
}
