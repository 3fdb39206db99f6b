//! Steps as rows: how deep they are nested, and when they ran. The evidence
//! holds them depth first without depth; it follows from the times, because a
//! step runs inside of the step it belongs to.

use callboard_domain::evidence::{Step, StepCategory};
use callboard_domain::text::first_line_summary;

/// Levels that are indented; deeper ones stay there.
const MAX_DEPTH: usize = 6;
/// Longest first line of a step's error.
const ERROR_CHARS: usize = 300;
/// Rounding of the clock that a step may end after the one around it.
const SLACK_MS: i64 = 2;

/// Width of the whole attempt in the units of the drawing, and the least a
/// step gets of it.
const WIDTH: i64 = 1_000;
const LEAST: i64 = 4;

/// A step with its place.
#[derive(Debug)]
pub(crate) struct StepRow {
    /// What it did.
    pub title: String,
    /// What it did it to, such as a locator.
    pub subtitle: Option<String>,
    /// The word of its kind.
    pub category: &'static str,
    /// Milliseconds.
    pub duration: i64,
    /// Whether it failed.
    pub failed: bool,
    /// Whether it was skipped.
    pub skipped: bool,
    /// Why.
    pub skip_reason: Option<String>,
    /// Its parameters, as JSON.
    pub params: Option<String>,
    /// First line of its own error.
    pub error: Option<String>,
    /// Where it is in the source.
    pub location: Option<String>,
    /// Nesting, 0 for the outermost.
    pub depth: usize,
    /// Start and width in the time of the attempt, in thousandths; `None`
    /// without a start.
    pub span: Option<(i64, i64)>,
}

/// The rows of an attempt's steps.
pub(crate) fn rows(steps: &[Step]) -> Vec<StepRow> {
    let starts =
        || steps.iter().filter_map(|step| Some((step.start_time?, step.start_time? + step.duration)));
    let first = starts().map(|(start, _)| start).min().unwrap_or(0);
    let last = starts().map(|(_, end)| end).max().unwrap_or(0);
    let whole = (last - first).max(1);
    // Ends of the steps that are open, outermost first.
    let mut open: Vec<i64> = Vec::new();
    steps
        .iter()
        .map(|step| {
            let depth = step.start_time.map_or(0, |start| {
                let end = start + step.duration;
                while open
                    .last()
                    .is_some_and(|outer| end > outer + SLACK_MS || start >= *outer && step.duration > 0)
                {
                    open.pop();
                }
                open.push(end);
                open.len() - 1
            });
            StepRow {
                title: step.title.clone(),
                subtitle: step.subtitle.clone(),
                category: word(step.category),
                duration: step.duration,
                failed: step.failed,
                skipped: step.skipped,
                skip_reason: step.skip_reason.clone(),
                params: step.params.clone(),
                error: step
                    .error
                    .as_ref()
                    .map(|error| first_line_summary(&error.message, ERROR_CHARS))
                    .filter(|line| !line.is_empty()),
                location: step.location.clone(),
                depth: depth.min(MAX_DEPTH),
                span: step.start_time.map(|start| {
                    let x = ((start - first) * WIDTH / whole).clamp(0, WIDTH - LEAST);
                    (x, (step.duration * WIDTH / whole).clamp(LEAST, WIDTH - x))
                }),
            }
        })
        .collect()
}

const fn word(category: StepCategory) -> &'static str {
    match category {
        StepCategory::Hook => "hook",
        StepCategory::Fixture => "fixture",
        StepCategory::Assertion => "assertion",
        StepCategory::Wait => "wait",
        StepCategory::Navigation => "navigation",
        StepCategory::Action => "action",
        StepCategory::Input => "input",
        StepCategory::Api => "api",
        StepCategory::Other => "step",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(start: i64, duration: i64) -> Step {
        Step { start_time: Some(start), duration, ..Step::default() }
    }

    #[test]
    fn a_step_inside_of_another_is_one_deeper() {
        let hooks = step(0, 100);
        let steps =
            [hooks, step(0, 40), step(10, 20), step(40, 60), step(100, 50), step(110, 0), step(120, 31)];
        let depths: Vec<usize> = rows(&steps).iter().map(|row| row.depth).collect();
        assert_eq!(depths, [0, 1, 2, 1, 0, 1, 1]);
    }

    #[test]
    fn spans_stay_inside_of_the_attempt() {
        let steps = [step(1_000, 10), step(1_000 + 86_400_000, 0), Step::default()];
        let rows = rows(&steps);
        assert_eq!(rows[0].span, Some((0, 4)));
        assert_eq!(rows[1].span.map(|(x, _)| x), Some(WIDTH - LEAST));
        assert_eq!(rows[2].span, None);
    }
}
