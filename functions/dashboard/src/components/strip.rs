//! The last runs of something as a row of bars, oldest first. A bar differs
//! by height as well as by colour: the worse, the taller. It is a drawing of
//! many results side by side, so bars are narrow; each is as high as a line to
//! be hit, the tab key stops at the newest only and arrows go on from there. The
//! one that the page is about stands on a line.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::ids::ExecutionId;
use callboard_domain::time::Timestamp;
use callboard_query::shapes::{ExecutionWithRun, RunBrief};

use crate::components::charts::{Hundredths, place};
use crate::outcome::{Tone, Toned};
use crate::text::{grouped, relative};

/// Height of the tallest bar, pixels.
const HEIGHT: i64 = 24;
/// From the start of one bar to the start of the next where there is room,
/// pixels.
const STEP: usize = 9;
/// How much of a step is bar, percent.
const FILLED: i64 = 78;

/// One bar.
pub(crate) struct Bar {
    /// Left edge, percent.
    x: Hundredths,
    /// Pixels.
    height: i64,
    tone: Tone,
    href: String,
    title: String,
    /// Whether it stands for what the page shows.
    is_here: bool,
}

/// What a bar tells.
struct Told {
    tone: Tone,
    href: String,
    title: String,
    is_here: bool,
}

/// Pixels of a bar.
pub(crate) const fn height_of(tone: Tone) -> i64 {
    match tone {
        Tone::Failed | Tone::TimedOut => 20,
        Tone::Flaky | Tone::Interrupted | Tone::Cancelled => 16,
        Tone::Skipped | Tone::DidNotRun | Tone::Unknown => 5,
        Tone::Passed | Tone::Running => 12,
    }
}

/// Inputs of `components/strip.html`.
#[derive(Template)]
#[template(path = "components/strip.html")]
pub(crate) struct Strip {
    bars: Vec<Bar>,
    /// Pixels of the whole; it shrinks where there is less room.
    width: usize,
    /// What can be hit of a bar, percent.
    step: Hundredths,
    /// What is drawn of it, percent.
    filled: Hundredths,
    label: &'static str,
}

impl HtmlSafe for Strip {}

impl Strip {
    fn from_outcomes(told: impl ExactSizeIterator<Item = Told>, label: &'static str) -> Self {
        let count = told.len();
        let bar = |(index, Told { tone, href, title, is_here })| Bar {
            x: place(index, count),
            height: height_of(tone),
            tone,
            href,
            title,
            is_here,
        };
        Self {
            width: count * STEP,
            step: place(1, count),
            filled: place(1, count).share(FILLED),
            bars: told.enumerate().map(bar).collect(),
            label,
        }
    }

    /// Runs, oldest first. A passed run with flaky tests is shown as flaky.
    pub(crate) fn of_runs(runs: &[RunBrief], now: Timestamp) -> Self {
        let told = runs.iter().map(|run| {
            let tone = match run.status.tone() {
                Tone::Passed if run.totals.flaky_tests > 0 => Tone::Flaky,
                tone => tone,
            };
            let what = match tone {
                Tone::Failed => format!("{} failed", grouped(run.totals.failed_tests)),
                Tone::Flaky => format!("{} flaky", grouped(run.totals.flaky_tests)),
                other => other.word().to_lowercase(),
            };
            let branch = run.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
            Told {
                tone,
                href: format!("/test-runs/{}", run.id),
                title: format!("Run {}{branch}: {what}, {}", run.id, relative(run.start_time, now)),
                is_here: false,
            }
        });
        Self::from_outcomes(told, "Last runs, oldest first")
    }

    /// Executions of one test, oldest first, on the page of the one `here`.
    pub(crate) fn of_executions(executions: &[ExecutionWithRun], here: ExecutionId, now: Timestamp) -> Self {
        let told = executions.iter().map(|each| {
            let tone = each.execution.tone();
            let is_here = each.execution.id == here.get();
            Told {
                tone,
                href: format!("/test-run-cases/{}", each.execution.id),
                title: format!(
                    "{} in run {}, {}{}",
                    tone.word(),
                    each.run.id,
                    relative(each.run.start_time, now),
                    if is_here { ", shown here" } else { "" }
                ),
                is_here,
            }
        });
        Self::from_outcomes(told, "Last executions, oldest first")
    }
}
