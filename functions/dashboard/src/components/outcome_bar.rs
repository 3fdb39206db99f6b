//! How the tests of a run ended, as one stacked bar: trouble first, so that
//! the troubles of several bars in a column start at the same edge.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_query::shapes::{RunItem, Totals};

use crate::filters;
use crate::outcome::Tone;
use crate::text::grouped;

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
    pub(crate) fn from_totals(totals: &Totals) -> Self {
        Self::of_planned(totals, 0)
    }

    /// The bar of a run. Of one that goes on or broke off, what is planned and
    /// has no result stays empty; plans count every repetition of a test.
    pub(crate) fn of_run(run: &RunItem, planned: Option<i64>) -> Self {
        let totals = &run.brief.totals;
        let repeated = run.repetitions - totals.total_tests;
        Self::of_planned(totals, planned.map_or(0, |planned| planned - repeated))
    }

    fn of_planned(totals: &Totals, planned: i64) -> Self {
        let counts = counts(totals);
        let spoken: Vec<String> = counts
            .iter()
            .map(|(tone, count)| format!("{} {}", grouped(*count), tone.word().to_lowercase()))
            .collect();
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
/// those below the least get more than their share, the others give in
/// proportion.
fn pieces(counts: &[(Tone, i64)], planned: i64) -> Vec<Piece> {
    let all: i64 = counts.iter().map(|(_, count)| count).sum();
    let total = all.max(planned).max(1);
    let part = |width: i64, count: i64, of: i64| {
        i64::try_from(i128::from(width) * i128::from(count) / i128::from(of.max(1))).unwrap_or(width)
    };
    let mut is_small = vec![false; counts.len()];
    let (room, rest) = loop {
        let small = is_small.iter().filter(|is_small| **is_small).count();
        let room = (part(WIDTH, all, total) - LEAST * i64::try_from(small).unwrap_or_default()).max(0);
        let others = counts.iter().zip(&is_small).filter(|(_, is_small)| !**is_small);
        let rest: i64 = others.map(|((_, count), _)| count).sum();
        let before = is_small.clone();
        for ((_, count), is_small) in counts.iter().zip(&mut is_small) {
            *is_small = *is_small || part(room, *count, rest) < LEAST;
        }
        if is_small == before {
            break (room, rest);
        }
    };
    let (mut x, mut seen) = (0, 0);
    let piece = |(&(tone, count), is_small): (&(Tone, i64), bool)| {
        let width = if is_small {
            LEAST
        } else {
            seen += count;
            part(room, seen, rest) - part(room, seen - count, rest)
        };
        x += width;
        Piece { tone, count, x: x - width, width }
    };
    counts.iter().zip(is_small).map(piece).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_outcome_is_visible_and_the_bar_is_full(numbers in prop::collection::vec(prop_oneof![1_i64..9, 1_i64..1_000, 1_i64..1_000_000_000], 1..7)) {
            let tones = [Tone::Failed, Tone::Flaky, Tone::Interrupted, Tone::DidNotRun, Tone::Skipped, Tone::Passed];
            let counts: Vec<_> = tones.into_iter().zip(numbers).collect();
            let pieces = pieces(&counts, 0);
            prop_assert!(pieces.iter().all(|piece| piece.width >= LEAST));
            prop_assert_eq!(pieces[0].x, 0);
            for pair in pieces.windows(2) {
                prop_assert_eq!(pair[0].x + pair[0].width, pair[1].x);
            }
            prop_assert_eq!(pieces.iter().map(|piece| piece.width).sum::<i64>(), WIDTH);
            for more in &pieces {
                // Edges fall on whole thousandths.
                prop_assert!(pieces.iter().all(|less| less.count > more.count || less.width <= more.width + 1));
            }
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
