//! The history of one test case, walked day by day.

use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::time::{Day, Timestamp};

use super::{ExecutionRow, read_from};
use crate::Result;
use crate::db::{Backend, Filter, Row, Session, args};

/// The conditions of a test's history.
#[derive(Debug, Clone, Default)]
pub struct HistoryFilter {
    /// Only runs of these lanes (most specific lane of the run).
    pub lanes: Option<Vec<i64>>,
    /// Only this browser project.
    pub browser: Option<i64>,
    /// Only these outcome codes.
    pub outcomes: Option<Vec<i64>>,
    /// Only runs that started at this moment or later.
    pub from: Option<Timestamp>,
    /// Only runs that started at this moment or earlier.
    pub to: Option<Timestamp>,
    /// Key of the last row of the page before: order key of its run and its id.
    pub after: Option<(i64, i64)>,
}

impl HistoryFilter {
    /// Whether no row that simply passed is asked for: there is an index of the
    /// others, of which there are few.
    fn is_trouble(&self) -> bool {
        let is_trouble = |code: &i64| {
            Outcome::from_code(*code).is_some_and(|outcome| outcome.rank() < Outcome::Passed.rank())
        };
        self.outcomes.as_ref().is_some_and(|codes| codes.iter().all(is_trouble))
    }
}

/// A part of a test's history.
#[derive(Debug, Default)]
pub struct History {
    /// The rows with the order key of their run, newest first.
    pub rows: Vec<(Timestamp, ExecutionRow)>,
    /// Where the walk stopped before it had enough rows: everything older than
    /// this moment has not been looked at. `None` when nothing is left.
    pub unread_before: Option<Timestamp>,
}

/// Executions of one test case, newest run first. Days are walked backwards in
/// growing steps until there are `limit` rows or `first_seen` is passed, so an
/// old test costs no more than a young one.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn history(
    session: &mut Session,
    project: ProjectId,
    test_case: TestCaseId,
    wanted: &HistoryFilter,
    newest: Day,
    first_seen: Day,
    limit: i64,
) -> Result<History> {
    let start = wanted.after.map(|(at, _)| Timestamp(at)).or(wanted.to);
    let mut found = Vec::new();
    let mut upper = start.map_or(newest, |start| start.day().min(newest)).0;
    let last = wanted.from.map_or(first_seen, |from| from.day().max(first_seen)).0;
    // The tests that are asked for most ran many times on their last day.
    for span in [1, 6, 28, 112, 448] {
        if upper < last {
            break;
        }
        let lower = (upper - span + 1).max(last);
        let missing = limit - i64::try_from(found.len()).unwrap_or(limit);
        let days: Vec<i64> = (lower..=upper).collect();
        let filter = on_days(session.backend(), project, test_case, wanted, days, missing);
        for row in session.list(filter).await? {
            found.push(read_with_order(&row)?);
        }
        upper = lower - 1;
        if i64::try_from(found.len()).unwrap_or(limit) >= limit {
            return Ok(History { rows: found, unread_before: None });
        }
    }
    let unread_before = (upper >= last).then(|| Day(upper + 1).start());
    Ok(History { rows: found, unread_before })
}

fn on_days(
    backend: Backend,
    project: ProjectId,
    test_case: TestCaseId,
    wanted: &HistoryFilter,
    days: Vec<i64>,
    limit: i64,
) -> Filter {
    let base = concat!(
        "SELECT r.order_at, ",
        columns!(),
        " FROM executions e JOIN test_runs r ON r.project_id = e.project_id AND r.id = e.run_id \
         WHERE e.project_id = $1 AND e.test_case_id = $2"
    );
    let filter = Filter::new(backend, base, args![project, test_case])
        .and("e.day in_ints(?)", args![days])
        .and_if("e.lane_id in_ints(?)", wanted.lanes.clone())
        .and_if("e.browser_id = ?", wanted.browser)
        .and_if("e.outcome in_ints(?)", wanted.outcomes.clone())
        .and_if("r.order_at >= ?", wanted.from.map(Timestamp::millis))
        .and_if("r.order_at <= ?", wanted.to.map(Timestamp::millis));
    // ix: executions_trouble_of_test
    let filter = if wanted.is_trouble() { filter.and("e.rank < 6", args![]) } else { filter };
    let filter = match wanted.after {
        Some((at, id)) => filter.and("(r.order_at, e.id) < (?, ?)", args![at, id]),
        None => filter,
    };
    filter.end("ORDER BY r.order_at DESC, e.id DESC LIMIT ?", args![limit])
}

/// What the walk's statement can look like, for the test that prepares every
/// statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let all = HistoryFilter {
        lanes: Some(vec![]),
        browser: Some(1),
        outcomes: Some(vec![Outcome::Passed.code()]),
        from: Some(Timestamp(0)),
        to: Some(Timestamp(0)),
        after: Some((0, 0)),
    };
    let troubled = HistoryFilter { outcomes: Some(vec![]), ..HistoryFilter::default() };
    [HistoryFilter::default(), troubled, all]
        .map(|wanted| on_days(backend, ProjectId(1), TestCaseId(1), &wanted, vec![], 1))
        .into()
}

fn read_with_order(row: &Row) -> Result<(Timestamp, ExecutionRow)> {
    let mut r = row.reader();
    let order_at = r.time()?;
    Ok((order_at, read_from(r)?))
}
