//! How the tests of a run ended, as one stacked bar: trouble first, so that
//! the troubles of several bars in a column start at the same edge.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_query::shapes::Totals;

use crate::outcome::Tone;

/// Width of the whole bar in the units of the drawing.
const WIDTH: i64 = 1_000;
/// The least an outcome gets: one failure among thousands must be visible.
const LEAST: i64 = 16;

/// A piece of the bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its outcome.
    pub tone: Tone,
    /// How many tests.
    pub count: i64,
    /// Where it starts, in thousandths.
    pub x: i64,
    /// How wide it is, in thousandths.
    pub width: i64,
}

/// Inputs of `components/outcome_bar.html`.
#[derive(Template)]
#[template(path = "components/outcome_bar.html")]
pub(crate) struct OutcomeBar {
    pieces: Vec<Piece>,
    spoken: String,
}

impl HtmlSafe for OutcomeBar {}

impl OutcomeBar {
    /// The bar of a run's totals.
    pub(crate) fn of(totals: &Totals) -> Self {
        Self::of_planned(totals, 0)
    }

    /// The bar of a run that goes on or broke off: what is planned and has no
    /// result stays empty.
    pub(crate) fn of_planned(totals: &Totals, planned: i64) -> Self {
        let counts = counts(totals);
        let spoken: Vec<String> =
            counts.iter().map(|(tone, count)| format!("{count} {}", tone.word().to_lowercase())).collect();
        Self { pieces: pieces(&counts, planned), spoken: spoken.join(", ") }
    }
}

/// One outcome of a run with its number of tests.
pub(crate) struct OutcomeCount {
    /// Its look.
    pub tone: Tone,
    /// How many tests.
    pub count: i64,
    /// The word that filters a run's executions by it.
    pub filter: &'static str,
}

/// Outcomes that occurred, each with the filter that shows its tests.
pub(crate) fn outcome_counts(totals: &Totals) -> Vec<OutcomeCount> {
    let counted = counts(totals).into_iter().map(|(tone, count)| OutcomeCount {
        tone,
        count,
        filter: if tone == Tone::Failed { "failing" } else { tone.class() },
    });
    counted.collect()
}

/// Outcomes that occurred with their counts, trouble first. Flaky tests are
/// told apart from passed ones, timed out ones are among the failed.
pub(crate) fn counts(totals: &Totals) -> Vec<(Tone, i64)> {
    let all = [
        (Tone::Failed, totals.failed_tests),
        (Tone::Flaky, totals.flaky_tests),
        (Tone::Interrupted, totals.interrupted_tests),
        (Tone::DidNotRun, totals.did_not_run_tests),
        (Tone::Skipped, totals.skipped_tests),
        (Tone::Passed, totals.passed_tests - totals.flaky_tests),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Divides the bar in proportion, with what is planned beyond the counts; what
/// the small ones get more than their share, the largest gives.
fn pieces(counts: &[(Tone, i64)], planned: i64) -> Vec<Piece> {
    let all: i64 = counts.iter().map(|(_, count)| count).sum();
    let total = all.max(planned).max(1);
    let share = |count: i64| {
        i64::try_from(i128::from(WIDTH) * i128::from(count) / i128::from(total)).unwrap_or(WIDTH)
    };
    let mut widths: Vec<i64> = counts.iter().map(|(_, count)| share(*count).max(LEAST)).collect();
    let rest = share(all) - widths.iter().sum::<i64>();
    if let Some(largest) = widths.iter_mut().max() {
        *largest = (*largest + rest).max(LEAST);
    }
    let starts = widths.iter().scan(0, |x, width| {
        let start = *x;
        *x += width;
        Some(start)
    });
    let places = starts.zip(&widths);
    counts.iter().zip(places).map(|(&(tone, count), (x, &width))| Piece { tone, count, x, width }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_outcome_is_visible_and_the_bar_is_full(numbers in prop::collection::vec(1_i64..1_000_000_000, 1..6)) {
            let tones = [Tone::Failed, Tone::Flaky, Tone::Interrupted, Tone::Skipped, Tone::Passed];
            let counts: Vec<_> = tones.into_iter().zip(numbers).collect();
            let pieces = pieces(&counts, 0);
            prop_assert!(pieces.iter().all(|piece| piece.width >= LEAST));
            prop_assert_eq!(pieces[0].x, 0);
            for pair in pieces.windows(2) {
                prop_assert_eq!(pair[0].x + pair[0].width, pair[1].x);
            }
            prop_assert_eq!(pieces.iter().map(|piece| piece.width).sum::<i64>(), WIDTH);
        }
    }

    #[test]
    fn a_run_without_tests_is_an_empty_bar() {
        assert_eq!(pieces(&[], 0), []);
    }

    #[test]
    fn what_is_planned_and_has_no_result_is_left_empty() {
        let drawn = pieces(&[(Tone::Failed, 1), (Tone::Passed, 24)], 100);
        assert_eq!(drawn.iter().map(|piece| piece.width).collect::<Vec<_>>(), [16, 234]);
    }
}
