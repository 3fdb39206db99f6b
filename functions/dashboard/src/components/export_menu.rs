//! A file of what a page lists. A job makes it, because a project can hold more
//! than one answer carries; `export.js` fetches it when it is there.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::export::ExportKind;
use callboard_domain::time::Timestamp;

use crate::filters;

/// Inputs of `components/export_menu.html`.
#[derive(Template)]
#[template(path = "components/export_menu.html")]
pub(crate) struct ExportMenu {
    kind: &'static str,
    id: i64,
    /// Whether runs can be exported as well as the tests of each.
    has_runs: bool,
    branch: Option<String>,
    environment: Option<String>,
    /// Only what began at this moment or later, and before that one.
    from: Option<Timestamp>,
    before: Option<Timestamp>,
    /// Whether the page is narrowed by more than a file can be.
    is_wider: bool,
}

impl HtmlSafe for ExportMenu {}

impl ExportMenu {
    /// The runs and executions of a project, or the executions of a cluster.
    pub(crate) fn new(kind: ExportKind, id: i64) -> Self {
        let has_runs = kind == ExportKind::Project;
        Self {
            kind: kind.as_str(),
            id,
            has_runs,
            branch: None,
            environment: None,
            from: None,
            before: None,
            is_wider: false,
        }
    }

    /// Only what ran there; the page shows no more either.
    #[must_use]
    pub(crate) fn only(self, branch: Option<String>, environment: Option<String>) -> Self {
        Self { branch, environment, ..self }
    }

    /// Only what began in this time; without an end of it when there is none.
    #[must_use]
    pub(crate) fn between(self, from: Option<Timestamp>, before: Option<Timestamp>) -> Self {
        Self { from, before, ..self }
    }

    /// Says that the file holds more than the page shows under its filters.
    #[must_use]
    pub(crate) fn wider(self, is_wider: bool) -> Self {
        Self { is_wider, ..self }
    }

    fn is_narrowed(&self) -> bool {
        self.branch.is_some() || self.environment.is_some() || self.from.is_some() || self.before.is_some()
    }
}
