//! The orders of the catalogue, each in both directions, and how a page
//! continues behind the last row seen. Every order ends in the id, so equal
//! keys never lose or repeat a row.

use callboard_domain::sketch::bucket_of;
use callboard_domain::test_state::TestState;
use callboard_domain::time::Timestamp;

use super::CatalogueLanes;
use crate::db::{Args, Filter, args};

/// What the catalogue is sorted by, with the key of the last row of the page
/// before.
#[derive(Debug, Clone)]
pub enum CatalogueOrder {
    /// Newest last run first; key: start of the last run and id.
    LastRun(Option<(i64, i64)>),
    /// By title; key: the id alone, titles are long.
    Title(Option<i64>),
    /// By file; key: the id alone, paths are long.
    File(Option<i64>),
    /// Most executions first; key: number and id.
    TotalRuns(Option<(i64, i64)>),
    /// Newest test first; key: the id.
    Newest(Option<i64>),
    /// Most probably flaky first; key: score and id.
    Flaky(Option<(i64, i64)>),
    /// Least steady first, undecided ones last; key: see [`pass_rate_key`] and
    /// id.
    PassRate(Option<(i64, i64)>),
    /// Slowest first, those without a duration last; key: see [`mean_key`] and
    /// id.
    Slowest(Option<(i64, i64)>),
}

/// An order, as it is or the other way round.
#[derive(Debug, Clone)]
pub struct CatalogueSort {
    /// The order.
    pub order: CatalogueOrder,
    /// Whether what would come first comes last.
    pub is_reversed: bool,
}

/// Where a test stands among pass rates: parts of ten thousand; beyond all of
/// them, on either side, when nothing was decided.
#[must_use]
pub fn pass_rate_key(state: &TestState, is_reversed: bool) -> i64 {
    let counts = state.counts();
    let decided = counts.passed_tests + counts.failed_tests;
    match decided {
        0 if is_reversed => -1,
        0 => 10_001,
        decided => counts.passed_tests * 10_000 / decided,
    }
}

/// Where a test stands among durations: the mean, and below all of them when
/// it has none.
#[must_use]
pub fn mean_key(state: &TestState) -> i64 {
    state.avg_duration_ms().unwrap_or(-1)
}

/// [`pass_rate_key`] in SQL, with what stands for an undecided test.
macro_rules! pass_rate {
    ($undecided:literal) => {
        concat!(
            "CASE WHEN s.passed + s.failed = 0 THEN ",
            $undecided,
            " ELSE s.passed * 10000 / (s.passed + s.failed) END"
        )
    };
}

/// A comparison with the last row seen, and the order it belongs to.
type Place = (&'static str, &'static str);

// Whole days lead, so the index serves the order and only a day is sorted.
const LAST_RUN: [Place; 2] = [
    (
        "s.last_day <= ? AND (s.last_order_at, s.test_case_id) < (?, ?)",
        "ORDER BY s.last_day DESC, s.last_order_at DESC, s.test_case_id DESC LIMIT ?",
    ),
    (
        "s.last_day >= ? AND (s.last_order_at, s.test_case_id) > (?, ?)",
        "ORDER BY s.last_day, s.last_order_at, s.test_case_id LIMIT ?",
    ),
];
const TITLE: [Place; 2] = [
    (
        "(c.title, c.id) > (SELECT k.title, k.id FROM test_cases k WHERE k.project_id = $1 AND k.id = ?)",
        "ORDER BY c.title, c.id LIMIT ?",
    ),
    (
        "(c.title, c.id) < (SELECT k.title, k.id FROM test_cases k WHERE k.project_id = $1 AND k.id = ?)",
        "ORDER BY c.title DESC, c.id DESC LIMIT ?",
    ),
];
const FILE: [Place; 2] = [
    (
        "(c.file_path, c.id) > (SELECT k.file_path, k.id FROM test_cases k WHERE k.project_id = $1 AND k.id = ?)",
        "ORDER BY c.file_path, c.id LIMIT ?",
    ),
    (
        "(c.file_path, c.id) < (SELECT k.file_path, k.id FROM test_cases k WHERE k.project_id = $1 AND k.id = ?)",
        "ORDER BY c.file_path DESC, c.id DESC LIMIT ?",
    ),
];
const TOTAL_RUNS: [Place; 2] = [
    ("(s.total, s.test_case_id) < (?, ?)", "ORDER BY s.total DESC, s.test_case_id DESC LIMIT ?"),
    ("(s.total, s.test_case_id) > (?, ?)", "ORDER BY s.total, s.test_case_id LIMIT ?"),
];
const NEWEST: [Place; 2] = [
    ("s.test_case_id < ?", "ORDER BY s.test_case_id DESC LIMIT ?"),
    ("s.test_case_id > ?", "ORDER BY s.test_case_id LIMIT ?"),
];
const FLAKY: [Place; 2] = [
    (
        "j.flaky_score <= ? AND (j.flaky_score < ? OR j.test_case_id > ?)",
        "ORDER BY j.flaky_score DESC, j.test_case_id LIMIT ?",
    ),
    (
        "j.flaky_score >= ? AND (j.flaky_score > ? OR j.test_case_id > ?)",
        "ORDER BY j.flaky_score, j.test_case_id LIMIT ?",
    ),
];
const PASS_RATE: [Place; 2] = [
    (
        concat!("(", pass_rate!("10001"), ", s.test_case_id) > (?, ?)"),
        concat!("ORDER BY ", pass_rate!("10001"), ", s.test_case_id LIMIT ?"),
    ),
    (
        concat!("(", pass_rate!("-1"), ", s.test_case_id) < (?, ?)"),
        concat!("ORDER BY ", pass_rate!("-1"), " DESC, s.test_case_id DESC LIMIT ?"),
    ),
];
/// Tests that are calm in the lane that is judged by.
const CALM: Place = (
    "s.test_case_id > ? AND NOT EXISTS (SELECT 1 FROM test_state j WHERE j.project_id = $1 AND j.lane_id = ? \
     AND j.test_case_id = s.test_case_id AND j.flaky_score > 0)",
    "ORDER BY s.test_case_id LIMIT ?",
);
// Whole classes of the page: the caller stops when it has enough. A test
// without a duration is in class 0.
const SPEED: [Place; 2] = [
    ("s.speed_class <= ?", "ORDER BY s.speed_class DESC, s.test_case_id LIMIT ?"),
    (
        "(s.speed_class = 0 OR s.speed_class >= ?)",
        "ORDER BY s.speed_class = 0, s.speed_class, s.test_case_id LIMIT ?",
    ),
];
const NO_SPEED: &str = "s.speed_class = 0";

/// Ends the statement of a page with its place and its order.
pub(super) fn ordered(filter: Filter, lanes: CatalogueLanes, sort: &CatalogueSort, limit: i64) -> Filter {
    let pair = |after: &Option<(i64, i64)>| after.map(|(key, id)| args![key, id]);
    let one = |after: &Option<i64>| after.map(|id| args![id]);
    let (places, after): (&[Place; 2], Option<Args>) = match &sort.order {
        CatalogueOrder::LastRun(after) => {
            (&LAST_RUN, after.map(|(at, id)| args![Timestamp(at).day(), at, id]))
        }
        CatalogueOrder::Title(after) => (&TITLE, one(after)),
        CatalogueOrder::File(after) => (&FILE, one(after)),
        CatalogueOrder::TotalRuns(after) => (&TOTAL_RUNS, pair(after)),
        CatalogueOrder::Newest(after) => (&NEWEST, one(after)),
        CatalogueOrder::PassRate(after) => (&PASS_RATE, pair(after)),
        CatalogueOrder::Flaky(Some((0, id))) => {
            let (behind, order) = CALM;
            return filter.and(behind, args![*id, lanes.judged]).end(order, args![limit]);
        }
        CatalogueOrder::Flaky(after) => (&FLAKY, after.map(|(score, id)| args![score, score, id])),
        CatalogueOrder::Slowest(Some((..0, _))) => {
            let [_, (_, order)] = SPEED;
            return filter.and(NO_SPEED, args![]).end(order, args![limit]);
        }
        CatalogueOrder::Slowest(after) => {
            (&SPEED, after.map(|(mean, _)| args![i64::from(bucket_of(mean)) + 1]))
        }
    };
    let (behind, order) = places[usize::from(sort.is_reversed)];
    let filter = match after {
        Some(after) => filter.and(behind, after),
        None => filter,
    };
    // Only tests with a score are in the index of flakiness.
    let filter = match sort.order {
        CatalogueOrder::Flaky(_) => filter.and("j.flaky_score > 0", args![]),
        _ => filter,
    };
    filter.end(order, args![limit])
}
