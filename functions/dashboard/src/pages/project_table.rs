//! Projects as rows: how they stand, and how they stood lately.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::Timestamp;
use callboard_query::page::Slice;
use callboard_query::projects::{FailingStreak, ProjectStanding};
use callboard_query::shapes::{Project, ProjectOverview, ProjectRef, RunBrief, RunCounts, Tag, Tendency};

use crate::components::{OutcomeBar, Sorting, Strip};
use crate::filters;
use crate::outcome::{Standing, Tone, Toned};

/// A project with what its row draws.
pub(crate) struct Row {
    reference: ProjectRef,
    description: Option<String>,
    tags: Vec<Tag>,
    tone: Tone,
    latest: Option<Latest>,
    /// Since when nothing passed any more.
    streak: FailingStreak,
    /// Failure clusters that wait for a repair.
    open_clusters: i64,
    /// Flaky tests, where they are counted.
    flaky_tests: i64,
    /// When its newest run of any branch began.
    last_run_at: Option<Timestamp>,
    strip: Strip,
    /// Runs and tests ever seen.
    totals: Option<(RunCounts, i64)>,
}

struct Latest {
    run: RunBrief,
    bar: OutcomeBar,
}

impl Row {
    /// A row of the home page.
    pub(crate) fn of_overview(overview: ProjectOverview, now: Timestamp) -> Self {
        let recent = overview.recent_runs;
        let newest = recent.last().cloned();
        let last_run_at = newest.as_ref().map(|run| run.start_time);
        let latest = overview.telling_run.or(newest);
        let strip = Strip::of_runs(&of_its_branch(&recent, latest.as_ref()), now);
        Self {
            tone: Standing(overview.tendency, latest.as_ref().map(|run| run.status)).tone(),
            reference: overview.reference,
            description: None,
            tags: overview.tags,
            latest: latest.map(Latest::from_run),
            streak: overview.streak,
            open_clusters: overview.open_clusters,
            flaky_tests: 0,
            last_run_at,
            strip,
            totals: None,
        }
    }

    /// A row of the list of projects, with its recent runs, newest first, and
    /// how many of its tests are flaky.
    pub(crate) fn of_project(
        project: Project,
        recent: Vec<RunBrief>,
        flaky_tests: i64,
        now: Timestamp,
    ) -> Self {
        let oldest_first: Vec<RunBrief> = recent.into_iter().rev().collect();
        let last_run_at = project.latest_run.as_ref().map(|run| run.start_time).or(project.last_run_at);
        let latest = project.telling_run.or(project.latest_run);
        Self {
            tone: Standing(project.tendency, latest.as_ref().map(|run| run.status)).tone(),
            reference: project.reference,
            description: project.description,
            tags: project.tags,
            streak: project.streak,
            open_clusters: project.open_clusters,
            flaky_tests,
            last_run_at,
            strip: Strip::of_runs(&of_its_branch(&oldest_first, latest.as_ref()), now),
            latest: latest.map(Latest::from_run),
            totals: Some((
                RunCounts { total_runs: project.total_runs, kept_runs: project.kept_runs },
                project.total_test_cases,
            )),
        }
    }

    /// Whether it is not as good as the run it is told by.
    pub(crate) fn is_unsteady(&self) -> bool {
        let passed =
            |latest: &Latest| latest.run.status.tone() == Tone::Passed && latest.run.totals.flaky_tests == 0;
        self.tone == Tone::Flaky && self.latest.as_ref().is_some_and(passed)
    }

    /// Whether there is a result to judge this project by.
    pub(crate) fn is_judged(&self) -> bool {
        !matches!(self.tone, Tone::Unknown | Tone::Running)
    }

    /// Whether somebody should look at this project.
    pub(crate) fn is_failing(&self) -> bool {
        self.is_judged() && !matches!(self.tone, Tone::Passed | Tone::Flaky)
    }
}

/// The runs of the branch of a run: what stands beside it and is about others
/// would contradict it.
fn of_its_branch(runs: &[RunBrief], told_by: Option<&RunBrief>) -> Vec<RunBrief> {
    let of_it = runs.iter().filter(|run| told_by.is_none_or(|told_by| run.branch == told_by.branch));
    let mut found: Vec<RunBrief> = of_it.cloned().collect();
    if found.is_empty() {
        found.extend(told_by.filter(|run| run.is_kept).cloned());
    }
    found
}

/// Projects below the table, of which only those that fail are named.
#[derive(Default)]
pub(crate) struct Further {
    /// Those that fail, with the start of the run that says so.
    pub failing: Vec<(ProjectRef, Option<Timestamp>)>,
    /// How many have a result to judge them by.
    pub judged: usize,
    /// Whether there are still more.
    pub goes_on: bool,
}

/// Projects that fail of which the page gives the names.
const NAMED: usize = 5;

impl Further {
    pub(crate) fn from_standings<K>(standings: Slice<ProjectStanding, K>) -> Self {
        let mut further = Self { goes_on: standings.next.is_some(), ..Self::default() };
        for each in standings.items {
            further.judged += usize::from(each.standing != Tendency::Unknown);
            if each.standing == Tendency::Failing {
                further.failing.push((each.reference, each.telling_run.map(|run| run.start_time)));
            }
        }
        further
    }

    /// Those that fail, as far as they are named.
    pub(crate) fn named(&self) -> &[(ProjectRef, Option<Timestamp>)] {
        self.failing.get(..NAMED).unwrap_or(&self.failing)
    }

    /// How many fail that are not named.
    pub(crate) fn unnamed(&self) -> usize {
        self.failing.len() - self.named().len()
    }
}

impl Latest {
    fn from_run(run: RunBrief) -> Self {
        Self { bar: OutcomeBar::from_totals(&run.totals), run }
    }
}

/// Inputs of `components/project_table.html`.
#[derive(Template)]
#[template(path = "components/project_table.html")]
pub(crate) struct ProjectTable {
    rows: Vec<Row>,
    with_totals: bool,
    /// The order of the list, where it can be chosen.
    sorting: Option<Sorting>,
    now: Timestamp,
}

impl HtmlSafe for ProjectTable {}

impl ProjectTable {
    /// A table of these rows.
    pub(crate) fn new(rows: Vec<Row>, now: Timestamp) -> Self {
        Self { with_totals: rows.iter().any(|row| row.totals.is_some()), rows, sorting: None, now }
    }

    /// Heads that lead to other orders.
    pub(crate) fn sorted_by(self, sorting: Sorting) -> Self {
        Self { sorting: Some(sorting), ..self }
    }

    /// Whether there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
