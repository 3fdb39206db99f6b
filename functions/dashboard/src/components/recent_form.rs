//! How the newest executions of a test ended, as a row of bars without links:
//! the shape of its flakiness beside its score.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::status::Outcome;

use crate::components::strip::height_of;
use crate::outcome::Tone;

/// Executions that are drawn.
const SHOWN: usize = 36;
/// From one bar to the next, and how much of that is bar, in units of the drawing.
const STEP: usize = 4;
const FILLED: usize = 3;
/// Height of the drawing.
const HEIGHT: i64 = 20;

/// A bar.
struct Bar {
    tone: Tone,
    x: usize,
    height: i64,
}

/// Inputs of `components/recent_form.html`.
#[derive(Template)]
#[template(path = "components/recent_form.html")]
pub(crate) struct RecentForm {
    bars: Vec<Bar>,
    spoken: String,
}

impl HtmlSafe for RecentForm {}

impl RecentForm {
    /// The newest outcomes; all of them are given oldest first.
    pub(crate) fn from_outcomes(outcomes: &[Outcome]) -> Self {
        let shown = &outcomes[outcomes.len().saturating_sub(SHOWN)..];
        let first = SHOWN - shown.len();
        let bar = |(at, outcome): (usize, &Outcome)| {
            let tone = Tone::of_outcome(*outcome);
            Bar { tone, x: (first + at) * STEP, height: height_of(tone) }
        };
        let count = |wanted: &[Outcome]| shown.iter().filter(|outcome| wanted.contains(outcome)).count();
        Self {
            bars: shown.iter().enumerate().map(bar).collect(),
            spoken: format!(
                "last {}: {} flaky, {} failed",
                shown.len(),
                count(&[Outcome::Flaky]),
                count(&[Outcome::Failed, Outcome::TimedOut])
            ),
        }
    }
}
