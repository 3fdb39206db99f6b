//! The catalogue: test cases with their state in one lane. Bounded by the
//! tests of a project, whatever their history.

use std::collections::HashMap;

use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::test_state::TestState;
use callboard_domain::time::{Day, Timestamp};

use super::states::{read_state, state_columns};
use crate::Result;
use crate::db::{Backend, Filter, Session, args, statements};
use crate::projects::like_contains;
use crate::test_cases::{self, TestCaseRow};

statements! {
    /// States of some tests in one lane.
    STATES_OF = concat!(
        "SELECT ", state_columns!(), " FROM test_state s \
         WHERE s.project_id = $1 AND s.lane_id = $2 AND s.test_case_id in_ints($3)"
    );
}

/// A test case with its state in the lane asked for.
#[derive(Debug, Clone)]
pub struct CatalogueRow {
    /// The test case.
    pub case: TestCaseRow,
    /// Its state; `None` when it never ran in this lane.
    pub state: Option<TestState>,
}

/// How the catalogue is sorted, with the key of the last row of the page
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
}

/// The conditions of the catalogue.
#[derive(Debug, Clone, Default)]
pub struct CatalogueFilter {
    /// Only tests whose title, path or describe titles contain this.
    pub text: Option<String>,
    /// Only these category codes.
    pub categories: Option<Vec<i64>>,
    /// Only tests with all of these tags.
    pub tags: Vec<String>,
    /// Only this owner.
    pub owner: Option<String>,
    /// Only this priority.
    pub priority: Option<String>,
    /// Only this feature.
    pub feature: Option<String>,
    /// Only files beginning with this.
    pub file_prefix: Option<String>,
    /// Only tests that ran on this day or later.
    pub since: Option<Day>,
}

/// A page of the tests that ran in a lane. Bounded by the tests of the
/// project, whatever their history.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn catalogue(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    wanted: &CatalogueFilter,
    order: &CatalogueOrder,
    limit: i64,
) -> Result<Vec<CatalogueRow>> {
    let filter = in_lane(session.backend(), project, lane, wanted, order, limit);
    let rows = session.list(filter).await?;
    let ids = rows.iter().map(|row| row.reader().int()).collect::<Result<Vec<_>>>()?;
    with_states(session, project, lane, ids).await
}

fn in_lane(
    backend: Backend,
    project: ProjectId,
    lane: i64,
    wanted: &CatalogueFilter,
    order: &CatalogueOrder,
    limit: i64,
) -> Filter {
    let base = "SELECT c.id FROM test_state s JOIN test_cases c ON c.project_id = s.project_id AND c.id = s.test_case_id \
                WHERE s.project_id = $1 AND s.lane_id = $2 AND s.total > 0";
    let mut filter = Filter::new(backend, base, args![project, lane])
        .and_if("c.search_text LIKE ? ESCAPE '\\'", wanted.text.as_deref().map(like_contains))
        .and_if("s.category in_ints(?)", wanted.categories.clone())
        .and_if("c.owner = ?", wanted.owner.clone())
        .and_if("c.priority = ?", wanted.priority.clone())
        .and_if("c.feature = ?", wanted.feature.clone())
        .and_if("s.last_day >= ?", wanted.since.map(|day| day.0));
    if let Some(prefix) = &wanted.file_prefix {
        // Paths are case-sensitive; LIKE is so on one engine only.
        filter = filter.and("SUBSTR(c.file_path, 1, LENGTH(?)) = ?", args![prefix, prefix]);
    }
    for tag in &wanted.tags {
        filter = filter.and(
            "EXISTS (SELECT 1 FROM test_case_tags t WHERE t.project_id = c.project_id AND t.tag = ? AND t.test_case_id = c.id)",
            args![tag],
        );
    }
    ordered(filter, order, limit)
}

/// What the catalogue's statement can look like, for the test that prepares
/// every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let text = || Some(String::new());
    let all = CatalogueFilter {
        text: text(),
        categories: Some(vec![]),
        tags: vec![String::new(), String::new()],
        owner: text(),
        priority: text(),
        feature: text(),
        file_prefix: text(),
        since: Some(Day(0)),
    };
    let orders = |key: Option<i64>| {
        let pair = key.map(|key| (key, key));
        [
            CatalogueOrder::LastRun(pair),
            CatalogueOrder::Title(key),
            CatalogueOrder::File(key),
            CatalogueOrder::TotalRuns(pair),
            CatalogueOrder::Newest(key),
        ]
    };
    let mut shapes = Vec::new();
    for wanted in [CatalogueFilter::default(), all] {
        for order in orders(None).into_iter().chain(orders(Some(1))) {
            shapes.push(in_lane(backend, ProjectId(1), 0, &wanted, &order, 1));
        }
    }
    shapes
}

fn ordered(filter: Filter, order: &CatalogueOrder, limit: i64) -> Filter {
    match order {
        // Whole days lead, so the index serves the order and only a day is sorted.
        CatalogueOrder::LastRun(after) => match after {
            Some((at, id)) => filter.and(
                "s.last_day <= ? AND (s.last_order_at, s.test_case_id) < (?, ?)",
                args![Timestamp(*at).day(), *at, *id],
            ),
            None => filter,
        }
        .end("ORDER BY s.last_day DESC, s.last_order_at DESC, s.test_case_id DESC LIMIT ?", args![limit]),
        CatalogueOrder::Title(after) => match after {
            Some(id) => filter.and(
                "(c.title, c.id) > (SELECT k.title, k.id FROM test_cases k WHERE k.project_id = $1 AND k.id = ?)",
                args![*id],
            ),
            None => filter,
        }
        .end("ORDER BY c.title, c.id LIMIT ?", args![limit]),
        CatalogueOrder::File(after) => match after {
            Some(id) => filter.and(
                "(c.file_path, c.id) > (SELECT k.file_path, k.id FROM test_cases k WHERE k.project_id = $1 AND k.id = ?)",
                args![*id],
            ),
            None => filter,
        }
        .end("ORDER BY c.file_path, c.id LIMIT ?", args![limit]),
        CatalogueOrder::TotalRuns(after) => match after {
            Some((total, id)) => filter.and("(s.total, s.test_case_id) < (?, ?)", args![*total, *id]),
            None => filter,
        }
        .end("ORDER BY s.total DESC, s.test_case_id DESC LIMIT ?", args![limit]),
        CatalogueOrder::Newest(after) => filter
            .and_if("s.test_case_id < ?", *after)
            .end("ORDER BY s.test_case_id DESC LIMIT ?", args![limit]),
    }
}

/// Test cases with their states, in the order of `ids`; missing ones are left
/// out.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn with_states(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    ids: Vec<i64>,
) -> Result<Vec<CatalogueRow>> {
    let mut cases = test_cases::get_many(session, project, ids.clone()).await?;
    let mut states = HashMap::new();
    for row in session.all(&STATES_OF, args![project, lane, ids.clone()]).await? {
        let (_, case, state) = read_state(&row)?;
        states.insert(case, state);
    }
    let rows = ids.into_iter().filter_map(|id| {
        let id = TestCaseId(id);
        let case = cases.remove(&id)?;
        Some(CatalogueRow { case, state: states.remove(&id).flatten() })
    });
    Ok(rows.collect())
}
