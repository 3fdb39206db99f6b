//! The last runs of something as a row of cells, oldest first. A cell differs
//! by height as well as by colour: the worse, the taller.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::Timestamp;
use callboard_query::shapes::{ExecutionWithRun, RunBrief};

use crate::outcome::{Tone, Toned};
use crate::text::relative;

/// One cell.
pub(crate) struct Cell {
    tone: Tone,
    href: String,
    title: String,
}

/// Inputs of `components/strip.html`.
#[derive(Template)]
#[template(path = "components/strip.html")]
pub(crate) struct Strip {
    cells: Vec<Cell>,
    label: String,
}

impl HtmlSafe for Strip {}

impl Strip {
    /// Runs, oldest first. A passed run with flaky tests is shown as flaky.
    pub(crate) fn of_runs(runs: &[RunBrief], now: Timestamp) -> Self {
        let cells = runs.iter().map(|run| {
            let tone = match run.status.tone() {
                Tone::Passed if run.totals.flaky_tests > 0 => Tone::Flaky,
                tone => tone,
            };
            let what = match tone {
                Tone::Failed => format!("{} failed", run.totals.failed_tests),
                Tone::Flaky => format!("{} flaky", run.totals.flaky_tests),
                other => other.word().to_lowercase(),
            };
            let branch = run.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
            Cell {
                tone,
                href: format!("/test-runs/{}", run.id),
                title: format!("Run {}{branch}: {what}, {}", run.id, relative(run.start_time, now)),
            }
        });
        Self { cells: cells.collect(), label: "Last runs, oldest first".to_owned() }
    }

    /// Executions of one test, oldest first.
    pub(crate) fn of_executions(executions: &[ExecutionWithRun], now: Timestamp) -> Self {
        let cells = executions.iter().map(|each| {
            let tone = each.execution.tone();
            Cell {
                tone,
                href: format!("/test-run-cases/{}", each.execution.id),
                title: format!(
                    "{} in run {}, {}",
                    tone.word(),
                    each.run.id,
                    relative(each.run.start_time, now)
                ),
            }
        });
        Self { cells: cells.collect(), label: "Last executions, oldest first".to_owned() }
    }
}
