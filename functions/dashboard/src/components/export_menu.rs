//! A file of what a page lists. A job makes it, because a project can hold more
//! than one answer carries; `export.js` fetches it when it is there.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::export::ExportKind;

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
}

impl HtmlSafe for ExportMenu {}

impl ExportMenu {
    /// The runs and executions of a project, or the executions of a cluster.
    pub(crate) fn of(kind: ExportKind, id: i64) -> Self {
        let has_runs = kind == ExportKind::Project;
        Self { kind: kind.as_str(), id, has_runs, branch: None, environment: None }
    }

    /// Only what ran there; the page shows no more either.
    #[must_use]
    pub(crate) fn only(self, branch: Option<String>, environment: Option<String>) -> Self {
        Self { branch, environment, ..self }
    }
}
