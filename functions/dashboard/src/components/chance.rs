//! Between which shares of its attempts a test fails by chance, on a scale from
//! never to always.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_query::flakiness::FlakyTest;

use crate::filters;

/// Width of the scale.
const SCALE: f64 = 1_000.0;
/// The least width of the range, so that it can be seen.
const LEAST: i64 = 8;

/// Inputs of `components/chance_range.html`.
#[derive(Template)]
#[template(path = "components/chance_range.html")]
pub(crate) struct ChanceRange {
    from: f64,
    to: f64,
    low: i64,
    width: i64,
    rate: i64,
}

impl HtmlSafe for ChanceRange {}

impl ChanceRange {
    /// The range of a flaky test.
    pub(crate) fn from_test(test: &FlakyTest) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a share of a thousand")]
        let place = |share: f64| (share.clamp(0.0, 1.0) * SCALE) as i64;
        let (low, high) = (place(test.confidence.low), place(test.confidence.high));
        Self {
            from: test.confidence.low,
            to: test.confidence.high,
            low,
            width: (high - low).max(LEAST),
            rate: place(test.rate),
        }
    }
}

/// A cause of flakiness as people read it.
pub(crate) fn cause_word(cause: &str) -> &'static str {
    match cause {
        "timing" => "Timing",
        "network" => "Network",
        "assertion" => "Assertion",
        "environment" => "Environment",
        _ => "Other",
    }
}
