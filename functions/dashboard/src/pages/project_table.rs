//! Projects as rows: how they stand, and how they stood lately.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::Timestamp;
use callboard_query::shapes::{Project, ProjectOverview, ProjectRef, RunBrief};

use crate::components::{OutcomeBar, Strip};
use crate::filters;
use crate::outcome::{Tone, Toned};

/// A project with what its row draws.
pub(crate) struct Row {
    reference: ProjectRef,
    description: Option<String>,
    tone: Tone,
    latest: Option<Latest>,
    strip: Strip,
    /// Runs and tests ever seen.
    totals: Option<(i64, i64)>,
}

struct Latest {
    run: RunBrief,
    bar: OutcomeBar,
}

impl Row {
    /// A row of the home page.
    pub(crate) fn of_overview(overview: ProjectOverview, now: Timestamp) -> Self {
        let strip = Strip::of_runs(&overview.recent_runs, now);
        let newest = overview.recent_runs.into_iter().next_back();
        let latest = overview.latest_full_run.or(newest);
        Self {
            tone: standing(overview.tendency.tone(), latest.as_ref()),
            reference: overview.reference,
            description: None,
            latest: latest.map(Latest::of),
            strip,
            totals: None,
        }
    }

    /// A row of the list of projects, with its recent runs, newest first.
    pub(crate) fn of_project(project: Project, recent: Vec<RunBrief>, now: Timestamp) -> Self {
        let oldest_first: Vec<RunBrief> = recent.into_iter().rev().collect();
        Self {
            tone: standing(project.tendency.tone(), project.latest_run.as_ref()),
            reference: project.reference,
            description: project.description,
            latest: project.latest_run.map(Latest::of),
            strip: Strip::of_runs(&oldest_first, now),
            totals: Some((project.total_runs, project.total_test_cases)),
        }
    }

    /// Whether somebody should look at this project.
    pub(crate) fn is_failing(&self) -> bool {
        !matches!(self.tone, Tone::Passed | Tone::Flaky | Tone::Unknown | Tone::Running)
    }
}

impl Latest {
    fn of(run: RunBrief) -> Self {
        Self { bar: OutcomeBar::of(&run.totals), run }
    }
}

/// The tendency; where there are too few runs for one, the latest run.
fn standing(tendency: Tone, latest: Option<&RunBrief>) -> Tone {
    match (tendency, latest) {
        (Tone::Unknown, Some(run)) => run.status.tone(),
        (tendency, _) => tendency,
    }
}

/// Inputs of `components/project_table.html`.
#[derive(Template)]
#[template(path = "components/project_table.html")]
pub(crate) struct ProjectTable {
    rows: Vec<Row>,
    with_totals: bool,
    now: Timestamp,
}

impl HtmlSafe for ProjectTable {}

impl ProjectTable {
    /// A table of these rows.
    pub(crate) fn new(rows: Vec<Row>, now: Timestamp) -> Self {
        Self { with_totals: rows.iter().any(|row| row.totals.is_some()), rows, now }
    }

    /// Whether there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
