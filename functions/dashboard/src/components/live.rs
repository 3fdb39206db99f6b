//! A run that goes on: how far it is and what its workers do. The script
//! `live.js` keeps the panel and the page around it up to date; without it
//! the page asks for itself again every few seconds.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::status::RunStatus;
use callboard_query::shapes::RunItem;

use crate::filters;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Tests with a result; Playwright plans each repetition of a test.
    pub done: i64,
    /// Tests there will be, as far as that is known.
    pub planned: Option<i64>,
}

impl Progress {
    /// The progress of a run; none of one that is over.
    pub(crate) fn from_run(run: &RunItem) -> Option<Self> {
        let done = run.repetitions;
        let planned = run.planned_tests.filter(|planned| *planned > 0).map(|planned| planned.max(done));
        (!run.brief.status.is_final()).then_some(Self { done, planned })
    }

    /// How many tests a run wanted to run that has fewer results: one that goes
    /// on, or that broke off.
    pub(crate) fn planned_of(run: &RunItem) -> Option<i64> {
        let is_whole = matches!(run.brief.status, RunStatus::Passed | RunStatus::Failed);
        run.planned_tests.filter(|planned| !is_whole && *planned > run.repetitions)
    }
}

/// Inputs of `components/live_run.html`.
#[derive(Template)]
#[template(path = "components/live_run.html")]
pub(crate) struct LiveRun {
    run: i64,
    progress: Progress,
    shards: Option<(i64, i64)>,
    /// Whether the reader may end it.
    may_cancel: bool,
    /// The event after which the stream tells what is going on.
    after: i64,
}

impl HtmlSafe for LiveRun {}

impl LiveRun {
    /// The panel of a run that goes on; `after` is a place in its feed a
    /// little before now.
    pub(crate) fn new(run: &RunItem, after: i64, may_cancel: bool) -> Option<Self> {
        let shards = run.shard_total.map(|total| (run.shards_finished, total));
        Some(Self { run: run.brief.id, progress: Progress::from_run(run)?, shards, may_cancel, after })
    }
}
