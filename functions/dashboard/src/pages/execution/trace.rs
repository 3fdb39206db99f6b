//! What a trace shows: what pages asked for, said and looked like around the
//! failure, and the whole of it in its viewer. A trace is read when it is
//! asked for, never for the page itself.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, FileId, ProjectId};
use callboard_http::{ApiError, AppState};
use callboard_query::failures::{self, Dom, TraceNetwork, TraceStatus};
use callboard_query::shapes::FileItem;

use super::evidence::{ConsoleRow, console_row};
use crate::address::Address;
use crate::components::InPlace;
use crate::visit::Visit;

/// What names the trace that is open inside of the page.
pub(super) const PARAMETER: &str = "trace";
/// Characters of the page's HTML that are shown; REST answers the whole.
const HTML_CHARS: usize = 60_000;

/// The traces of an execution.
pub(super) struct Traces {
    /// The files.
    pub files: Vec<FileItem>,
    /// What the trace of the shown attempt tells, where that is asked for.
    pub told: Option<Told>,
    /// This page with it.
    pub told_href: String,
    /// What would bring a viewer, where there is none.
    pub advice: Option<&'static str>,
    /// Whether they open inside of the page.
    pub opens_here: bool,
    /// The trace that is open inside of the page.
    pub open: Option<OpenTrace>,
    address: Address,
}

/// A trace inside of the page.
pub(super) struct OpenTrace {
    /// The attempt it is of, from 1.
    pub attempt: i64,
    /// The file.
    pub file: i64,
    /// Its viewer.
    pub frame: InPlace,
    /// This page without it.
    pub closed_href: String,
}

impl Traces {
    /// The traces of an execution; nothing of them is read yet.
    pub(super) fn new(state: &AppState, visit: &Visit, files: Vec<FileItem>) -> Self {
        Self {
            files,
            told: None,
            told_href: visit.address.with("evidence", "trace"),
            advice: state.viewer().advice(),
            opens_here: state.shows_traces_in_place(),
            open: None,
            address: visit.address.clone(),
        }
    }

    /// Opens one of the traces inside of the page, where that is possible.
    pub(super) async fn open(&mut self, state: &AppState, visit: &Visit, file: i64) -> Result<(), ApiError> {
        let trace = self.files.iter().find(|trace| trace.id == file);
        if let Some(trace) = trace.filter(|_| self.opens_here) {
            let attempt = trace.attempt.retry + 1;
            let name = format!("Trace of attempt {attempt}");
            let closed_href = self.address.without(PARAMETER);
            self.open = InPlace::trace(state, visit, FileId(file), name).await?.map(|frame| OpenTrace {
                attempt,
                file,
                frame,
                closed_href,
            });
        }
        Ok(())
    }

    /// Whether this trace is open.
    pub(super) fn shows(&self, file: &i64) -> bool {
        self.open.as_ref().is_some_and(|open| open.file == *file)
    }

    /// This page with a trace open.
    pub(super) fn open_href(&self, file: &i64) -> String {
        self.address.with(PARAMETER, &file.to_string())
    }
}

/// What the trace of an attempt tells.
pub(super) struct Told {
    /// Requests around the failure; all of them when nothing failed.
    pub network: TraceNetwork,
    /// Console lines of the same time.
    pub console: Vec<ConsoleRow>,
    /// Address of the page at the failure.
    pub url: Option<String>,
    /// Its HTML, the beginning of it.
    pub html: Option<String>,
    /// Whether there is more of it.
    pub is_cut: bool,
    /// Its accessibility tree, where the client sent none.
    pub aria: Option<String>,
}

impl Told {
    /// Reads the trace of an attempt.
    pub(super) async fn by(
        visit: &Visit,
        project: Authorized<ProjectId>,
        id: ExecutionId,
        retry: Option<u32>,
        has_aria: bool,
    ) -> Result<Self, ApiError> {
        let network = failures::trace_network(&visit.ctx, project, id, retry).await?;
        let dom = failures::dom_snapshot(&visit.ctx, project, id, retry, Dom::Dom).await?;
        let aria = if has_aria {
            None
        } else {
            failures::dom_snapshot(&visit.ctx, project, id, retry, Dom::Aria).await?.aria
        };
        let console = network.console.iter();
        let console = console.map(|line| console_row(&line.kind, &line.text, line.location.as_deref()));
        let mut html = dom.html;
        let end = html.as_ref().and_then(|html| html.char_indices().nth(HTML_CHARS).map(|(at, _)| at));
        if let (Some(html), Some(end)) = (&mut html, end) {
            html.truncate(end);
        }
        Ok(Self {
            console: console.collect(),
            url: dom.url,
            is_cut: end.is_some(),
            html: html.filter(|html| !html.is_empty()),
            aria,
            network,
        })
    }

    /// Why there is nothing to show; `None` when there is something.
    pub(super) fn nothing(&self) -> Option<&'static str> {
        let is_something = !self.network.requests.is_empty()
            || !self.console.is_empty()
            || self.html.is_some()
            || self.aria.is_some();
        if is_something {
            return None;
        }
        Some(match self.network.status {
            TraceStatus::NoTrace => "This attempt has no trace.",
            TraceStatus::TooLarge => "This trace is too large for the summary. Open it in the viewer.",
            TraceStatus::Unsupported => "The trace is damaged or has an unsupported format.",
            TraceStatus::Ok | TraceStatus::NoData => {
                "The trace has no requests, console messages or page snapshot."
            }
        })
    }
}
