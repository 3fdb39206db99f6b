//! Runs as a table by their start; on a narrow page each row is a card.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::Timestamp;
use callboard_query::shapes::RunItem;

use crate::components::outcome_bar::counts;
use crate::components::{OutcomeBar, Progress, Sorting};
use crate::filters;
use crate::outcome::{Tone, Toned};

/// A run with what its row draws.
pub(crate) struct Row {
    run: RunItem,
    bar: OutcomeBar,
    /// Tests the run wanted to run, where not all of them have a result.
    planned: Option<i64>,
    /// How long a run that goes on has taken, ms.
    elapsed: Option<i64>,
    troubles: Vec<(Tone, i64)>,
}

/// Inputs of `components/run_table.html`.
#[derive(Template)]
#[template(path = "components/run_table.html")]
pub(crate) struct RunTable {
    rows: Vec<Row>,
    with_project: bool,
    /// Whether two runs can be ticked to be compared; the form has the id `compare`.
    with_ticks: bool,
    /// The order, where it can be chosen.
    sorting: Option<Sorting>,
    now: Timestamp,
}

impl HtmlSafe for RunTable {}

impl RunTable {
    /// A table of runs; `with_project` names the project of each.
    pub(crate) fn new(runs: Vec<RunItem>, with_project: bool, now: Timestamp) -> Self {
        let rows = runs.into_iter().map(|run| {
            let planned = Progress::planned_of(&run);
            let is_open = !run.brief.status.is_final();
            Row {
                bar: OutcomeBar::of_run(&run, planned),
                elapsed: is_open.then(|| (now.millis() - run.brief.start_time.millis()).max(0)),
                planned,
                troubles: counts(&run.brief.totals)
                    .into_iter()
                    .filter(|(tone, _)| !matches!(tone, Tone::Passed | Tone::Skipped))
                    .collect(),
                run,
            }
        });
        Self { rows: rows.collect(), with_project, with_ticks: false, sorting: None, now }
    }

    /// The same with a tick in front of every run.
    #[must_use]
    pub(crate) fn with_ticks(self) -> Self {
        Self { with_ticks: true, ..self }
    }

    /// The same with a head that turns the order round.
    #[must_use]
    pub(crate) fn sorted_by(self, sorting: Sorting) -> Self {
        Self { sorting: Some(sorting), ..self }
    }

    /// Whether there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// What a run is called: its label, else what was committed, else its number.
pub(crate) fn name_of(run: &RunItem) -> String {
    let first_line = |text: &String| text.lines().next().unwrap_or_default().trim().to_owned();
    run.brief
        .label
        .as_ref()
        .or(run.commit_message.as_ref())
        .map(first_line)
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("Run {}", run.brief.id))
}
