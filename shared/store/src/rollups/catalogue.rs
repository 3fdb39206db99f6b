//! The catalogue: test cases with their state in one lane. Bounded by the
//! tests of a project, whatever their history.

mod order;

use std::collections::HashMap;

use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::test_state::TestState;
use callboard_domain::time::Day;

use order::ordered;
pub use order::{CatalogueOrder, CatalogueSort, mean_key, pass_rate_key};

use super::states::{read_state, state_columns};
use crate::Result;
use crate::db::{Backend, Filter, Session, args, statements};
use crate::quarantine;
use crate::test_cases::{self, HAS_TEXT, TestCaseRow, asked_texts};

statements! {
    /// States of some tests in one lane.
    STATES_OF = concat!(
        "SELECT ", state_columns!(), " FROM test_state s \
         WHERE s.project_id = $1 AND s.lane_id = $2 AND s.test_case_id in_ints($3)"
    );
    /// Flaky scores of some tests in one lane, where they have any. PK
    SCORES_OF = "SELECT test_case_id, flaky_score FROM test_state \
        WHERE project_id = $1 AND lane_id = $2 AND test_case_id in_ints($3) AND flaky_score > 0";
}

/// A test case with its state in the lane asked for.
#[derive(Debug, Clone)]
pub struct CatalogueRow {
    /// The test case.
    pub case: TestCaseRow,
    /// Its state; `None` when it never ran in this lane.
    pub state: Option<TestState>,
    /// One hundred times the probability that it is flaky, in the lane that
    /// speaks for the one asked for; 0 when nothing failed there lately.
    pub flaky_score: i64,
    /// Whether it is in quarantine.
    pub is_quarantined: bool,
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
    /// Only tests in quarantine, or only the others.
    pub quarantined: Option<bool>,
}

/// The lanes a catalogue is about.
#[derive(Debug, Clone, Copy)]
pub struct CatalogueLanes {
    /// The tests that ran here, with their numbers.
    pub shown: i64,
    /// The lane their flakiness is judged by.
    pub judged: i64,
}

/// A page of the tests that ran in a lane. Bounded by the tests of the
/// project, whatever their history.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn catalogue(
    session: &mut Session,
    project: ProjectId,
    lanes: CatalogueLanes,
    wanted: &CatalogueFilter,
    sort: &CatalogueSort,
    limit: i64,
) -> Result<Vec<CatalogueRow>> {
    if let CatalogueOrder::Slowest(after) = sort.order {
        return by_speed(session, project, lanes, wanted, (after, sort.is_reversed), limit).await;
    }
    let mut ids = Vec::new();
    for order in parts_of(sort) {
        let missing = limit - i64::try_from(ids.len()).unwrap_or(limit);
        if missing > 0 {
            let part = CatalogueSort { order, is_reversed: sort.is_reversed };
            ids.extend(self::ids(session, project, lanes, wanted, &part, missing).await?);
        }
    }
    with_states(session, project, lanes, ids).await
}

/// The index of flakiness knows only tests that failed at all: the calm ones,
/// with the key 0, are a list of their own, by id.
fn parts_of(sort: &CatalogueSort) -> Vec<CatalogueOrder> {
    let calm = |after| CatalogueOrder::Flaky(Some((0, after)));
    match (&sort.order, sort.is_reversed) {
        (CatalogueOrder::Flaky(Some((0, id))), false) => vec![calm(*id)],
        (CatalogueOrder::Flaky(after), false) => vec![CatalogueOrder::Flaky(*after), calm(0)],
        (CatalogueOrder::Flaky(None), true) => vec![calm(0), CatalogueOrder::Flaky(None)],
        (CatalogueOrder::Flaky(Some((0, id))), true) => vec![calm(*id), CatalogueOrder::Flaky(None)],
        (order, _) => vec![order.clone()],
    }
}

async fn ids(
    session: &mut Session,
    project: ProjectId,
    lanes: CatalogueLanes,
    wanted: &CatalogueFilter,
    sort: &CatalogueSort,
    limit: i64,
) -> Result<Vec<i64>> {
    let filter = in_lane(session.backend(), project, lanes, wanted, sort, limit);
    session.list(filter).await?.iter().map(|row| row.reader().int()).collect()
}

/// The slowest tests, or the fastest: whole classes of speed, in exact order
/// inside. Tests without a duration come last either way.
async fn by_speed(
    session: &mut Session,
    project: ProjectId,
    lanes: CatalogueLanes,
    wanted: &CatalogueFilter,
    (after, is_reversed): (Option<(i64, i64)>, bool),
    limit: i64,
) -> Result<Vec<CatalogueRow>> {
    let sort = CatalogueSort { order: CatalogueOrder::Slowest(after), is_reversed };
    let filter = in_lane(session.backend(), project, lanes, wanted, &sort, i64::MAX);
    let mut ids = Vec::new();
    let mut class_of = HashMap::new();
    for row in session.list(filter).await? {
        let mut r = row.reader();
        let (id, class) = (r.int()?, r.int()?);
        ids.push(id);
        // Class 0 is that of tests without a duration.
        class_of.insert(id, (class == 0, if is_reversed { class } else { -class }));
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let place = |mean: i64, id: i64| (mean < 0, if is_reversed { mean } else { -mean }, id);
    let key = |row: &CatalogueRow| place(row.state.as_ref().map_or(-1, mean_key), row.case.id.get());
    let mut found = Vec::new();
    let mut rest = ids.as_slice();
    while found.len() < limit && !rest.is_empty() {
        // As many as are missing, and what else belongs to the class of the last of them.
        let enough = (limit - found.len()).min(rest.len());
        let last = class_of[&rest[enough - 1]];
        let further = rest[enough..].iter().take_while(|id| class_of[id] == last).count();
        let (taken, left) = rest.split_at(enough + further);
        rest = left;
        let mut rows = with_states(session, project, lanes, taken.to_vec()).await?;
        if let Some((mean, id)) = after {
            rows.retain(|row| key(row) > place(mean, id));
        }
        rows.sort_by_key(|row| (class_of[&row.case.id.get()], key(row)));
        found.extend(rows);
    }
    found.truncate(limit);
    Ok(found)
}

fn in_lane(
    backend: Backend,
    project: ProjectId,
    lanes: CatalogueLanes,
    wanted: &CatalogueFilter,
    sort: &CatalogueSort,
    limit: i64,
) -> Filter {
    let base = "SELECT c.id, s.speed_class FROM test_state s JOIN test_cases c ON c.project_id = s.project_id AND c.id = s.test_case_id \
                WHERE s.project_id = $1 AND s.lane_id = $2 AND s.total > 0";
    // The index of the lane that is judged by leads: `j` is the state of the test there.
    let flaky = "SELECT c.id, s.speed_class FROM test_state j JOIN test_state s ON s.project_id = j.project_id AND s.lane_id = $2 \
                 AND s.test_case_id = j.test_case_id JOIN test_cases c ON c.project_id = s.project_id AND c.id = s.test_case_id \
                 WHERE j.project_id = $1 AND j.lane_id = $3 AND s.total > 0";
    let filter = match &sort.order {
        CatalogueOrder::Flaky(after) if !matches!(after, Some((0, _))) => {
            Filter::new(backend, flaky, args![project, lanes.shown, lanes.judged])
        }
        _ => Filter::new(backend, base, args![project, lanes.shown]),
    };
    ordered(conditions(filter, wanted), lanes, sort, limit)
}

/// How many tests of a lane fit. Bounded by the tests of the project, as every
/// page of an order without an index is.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn count_in_catalogue(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    wanted: &CatalogueFilter,
) -> Result<i64> {
    let filter = counting(session.backend(), project, lane, wanted);
    session.count(filter).await
}

fn counting(backend: Backend, project: ProjectId, lane: i64, wanted: &CatalogueFilter) -> Filter {
    let base = "SELECT COUNT(*) FROM test_state s JOIN test_cases c ON c.project_id = s.project_id AND c.id = s.test_case_id \
                WHERE s.project_id = $1 AND s.lane_id = $2 AND s.total > 0";
    conditions(Filter::new(backend, base, args![project, lane]), wanted)
}

const NEVER_RAN: &str = "c.joined_to IS NULL AND NOT EXISTS (SELECT 1 FROM test_state s WHERE s.project_id = c.project_id AND s.lane_id = ? \
    AND s.test_case_id = c.id AND s.total > 0)";

/// A page of the tests of a project that never ran in a lane: the newest, or
/// the oldest first, behind one of them.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn never_ran(
    session: &mut Session,
    project: ProjectId,
    lanes: CatalogueLanes,
    wanted: &CatalogueFilter,
    (after, is_reversed): (Option<i64>, bool),
    limit: i64,
) -> Result<Vec<CatalogueRow>> {
    let filter = not_in_lane(session.backend(), project, lanes.shown, wanted, (after, is_reversed), limit);
    let ids: Result<Vec<i64>> = session.list(filter).await?.iter().map(|row| row.reader().int()).collect();
    with_states(session, project, lanes, ids?).await
}

/// How many these are.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn count_never_ran(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    wanted: &CatalogueFilter,
) -> Result<i64> {
    let filter = counting_others(session.backend(), project, lane, wanted);
    session.count(filter).await
}

fn not_in_lane(
    backend: Backend,
    project: ProjectId,
    lane: i64,
    wanted: &CatalogueFilter,
    (after, is_reversed): (Option<i64>, bool),
    limit: i64,
) -> Filter {
    let base = "SELECT c.id FROM test_cases c WHERE c.project_id = $1";
    let filter = conditions(Filter::new(backend, base, args![project]).and(NEVER_RAN, args![lane]), wanted);
    if is_reversed {
        filter.and_if("c.id > ?", after).end("ORDER BY c.id LIMIT ?", args![limit])
    } else {
        filter.and_if("c.id < ?", after).end("ORDER BY c.id DESC LIMIT ?", args![limit])
    }
}

fn counting_others(backend: Backend, project: ProjectId, lane: i64, wanted: &CatalogueFilter) -> Filter {
    let base = "SELECT COUNT(*) FROM test_cases c WHERE c.project_id = $1";
    conditions(Filter::new(backend, base, args![project]).and(NEVER_RAN, args![lane]), wanted)
}

fn conditions(filter: Filter, wanted: &CatalogueFilter) -> Filter {
    let mut filter = filter
        .and_each(HAS_TEXT, asked_texts(wanted.text.as_deref()))
        .and_if("s.category in_ints(?)", wanted.categories.clone())
        .and_if("COALESCE(c.owner, c.code_owner) = ?", wanted.owner.clone())
        .and_if("c.priority = ?", wanted.priority.clone())
        .and_if("c.feature = ?", wanted.feature.clone())
        .and_if("s.last_day >= ?", wanted.since.map(|day| day.0));
    const IN_QUARANTINE: &str = "EXISTS (SELECT 1 FROM quarantine q WHERE q.project_id = c.project_id AND q.test_case_id = c.id \
        AND q.released_at IS NULL)";
    const NOT_IN_QUARANTINE: &str = "NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.project_id = c.project_id \
        AND q.test_case_id = c.id AND q.released_at IS NULL)";
    if let Some(is_in) = wanted.quarantined {
        filter = filter.and(if is_in { IN_QUARANTINE } else { NOT_IN_QUARANTINE }, args![]);
    }
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
    filter
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
        quarantined: Some(true),
    };
    let outside = CatalogueFilter { quarantined: Some(false), ..CatalogueFilter::default() };
    let orders = |key: Option<i64>| {
        let pair = key.map(|key| (key, key));
        [
            CatalogueOrder::LastRun(pair),
            CatalogueOrder::Title(key),
            CatalogueOrder::File(key),
            CatalogueOrder::TotalRuns(pair),
            CatalogueOrder::Newest(key),
            CatalogueOrder::Flaky(pair),
            CatalogueOrder::Flaky(pair.map(|_| (0, 0))),
            CatalogueOrder::PassRate(pair),
            CatalogueOrder::Slowest(pair),
        ]
    };
    let mut shapes = Vec::new();
    // Tests that never ran have no category and no last day.
    let unseen = CatalogueFilter { categories: None, since: None, ..all.clone() };
    for wanted in [CatalogueFilter::default(), unseen] {
        shapes.push(counting_others(backend, ProjectId(1), 0, &wanted));
        for page in [(None, false), (Some(1), false), (None, true), (Some(1), true)] {
            shapes.push(not_in_lane(backend, ProjectId(1), 0, &wanted, page, 1));
        }
    }
    for wanted in [CatalogueFilter::default(), all, outside] {
        shapes.push(counting(backend, ProjectId(1), 0, &wanted));
        for order in orders(None).into_iter().chain(orders(Some(1))) {
            for is_reversed in [false, true] {
                let sort = CatalogueSort { order: order.clone(), is_reversed };
                let lanes = CatalogueLanes { shown: 0, judged: 1 };
                shapes.push(in_lane(backend, ProjectId(1), lanes, &wanted, &sort, 1));
            }
        }
    }
    shapes
}

/// Test cases with their states, in the order of `ids`; missing ones are left
/// out.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn with_states(
    session: &mut Session,
    project: ProjectId,
    lanes: CatalogueLanes,
    ids: Vec<i64>,
) -> Result<Vec<CatalogueRow>> {
    let mut cases = test_cases::get_many(session, project, ids.clone()).await?;
    let mut states = HashMap::new();
    for row in session.all(&STATES_OF, args![project, lanes.shown, ids.clone()]).await? {
        let stored = read_state(&row)?;
        states.insert(stored.case, stored);
    }
    let mut scores = HashMap::new();
    if lanes.judged != lanes.shown {
        for row in session.all(&SCORES_OF, args![project, lanes.judged, ids.clone()]).await? {
            let mut r = row.reader();
            scores.insert(TestCaseId(r.int()?), r.int()?);
        }
    }
    let aside = quarantine::marked(session, project, ids.clone()).await?;
    let rows = ids.into_iter().filter_map(|id| {
        let id = TestCaseId(id);
        let case = cases.remove(&id)?;
        let stored = states.remove(&id);
        let own_score = stored.as_ref().map_or(0, |stored| stored.flaky_score);
        let judged_score = scores.get(&id).copied().unwrap_or_default();
        let flaky_score = if lanes.judged == lanes.shown { own_score } else { judged_score };
        Some(CatalogueRow {
            case,
            state: stored.and_then(|stored| stored.state),
            flaky_score,
            is_quarantined: aside.contains(&id),
        })
    });
    Ok(rows.collect())
}
