//! A path that gives way in the middle where there is no room.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::text::split_for_truncation;

/// The folder may shrink, the file stays.
#[derive(Template)]
#[template(
    ext = "html",
    source = "<span class=\"path\" title=\"{{ folder }}{{ file }}\"><span class=\"path-folder\"><bdi>{{ folder }}</bdi></span>\
              <span class=\"path-file\">{{ file }}</span></span>"
)]
pub(crate) struct PathText<'p> {
    folder: &'p str,
    file: &'p str,
}

impl HtmlSafe for PathText<'_> {}

impl<'p> PathText<'p> {
    /// A path, with or without line and column.
    pub(crate) fn new(path: &'p str) -> Self {
        let (folder, file) = split_for_truncation(path);
        Self { folder, file }
    }
}
