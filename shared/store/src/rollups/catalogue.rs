//! The catalogue: test cases with their state in one lane. Bounded by the
//! tests of a project, whatever their history.

use std::cmp::Reverse;
use std::collections::HashMap;

use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::sketch::bucket_of;
use callboard_domain::test_state::TestState;
use callboard_domain::time::{Day, Timestamp};

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
    /// Most probably flaky first; key: score and id.
    Flaky(Option<(i64, i64)>),
    /// Least steady first, undecided ones last; key: see [`pass_rate_key`] and
    /// id.
    PassRate(Option<(i64, i64)>),
    /// Slowest first; key: mean duration (0 when there is none) and id.
    Slowest(Option<(i64, i64)>),
}

/// Where a test stands among pass rates: parts of ten thousand, and behind all
/// of them when nothing was decided.
#[must_use]
pub fn pass_rate_key(state: &TestState) -> i64 {
    let counts = state.counts();
    let decided = counts.passed_tests + counts.failed_tests;
    if decided == 0 { 10_001 } else { counts.passed_tests * 10_000 / decided }
}

/// [`pass_rate_key`] in SQL.
macro_rules! pass_rate {
    () => {
        "CASE WHEN s.passed + s.failed = 0 THEN 10001 ELSE s.passed * 10000 / (s.passed + s.failed) END"
    };
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
/// [`StoreError::Database`] when the database refuses.
pub async fn catalogue(
    session: &mut Session,
    project: ProjectId,
    lanes: CatalogueLanes,
    wanted: &CatalogueFilter,
    order: &CatalogueOrder,
    limit: i64,
) -> Result<Vec<CatalogueRow>> {
    if let CatalogueOrder::Slowest(after) = order {
        return slowest(session, project, lanes, wanted, *after, limit).await;
    }
    let mut ids = ids(session, project, lanes, wanted, order, limit).await?;
    let missing = limit - i64::try_from(ids.len()).unwrap_or(limit);
    if matches!(order, CatalogueOrder::Flaky(_)) && missing > 0 {
        // What is not in the index follows by id.
        let calm = match order {
            CatalogueOrder::Flaky(Some((0, id))) => Some(*id),
            _ => None,
        };
        let order = CatalogueOrder::Flaky(Some((0, calm.unwrap_or(0))));
        if calm.is_none() {
            ids.extend(self::ids(session, project, lanes, wanted, &order, missing).await?);
        }
    }
    with_states(session, project, lanes, ids).await
}

async fn ids(
    session: &mut Session,
    project: ProjectId,
    lanes: CatalogueLanes,
    wanted: &CatalogueFilter,
    order: &CatalogueOrder,
    limit: i64,
) -> Result<Vec<i64>> {
    let filter = in_lane(session.backend(), project, lanes, wanted, order, limit);
    session.list(filter).await?.iter().map(|row| row.reader().int()).collect()
}

/// The slowest tests: whole classes of speed, slowest first, in exact order
/// inside.
async fn slowest(
    session: &mut Session,
    project: ProjectId,
    lanes: CatalogueLanes,
    wanted: &CatalogueFilter,
    after: Option<(i64, i64)>,
    limit: i64,
) -> Result<Vec<CatalogueRow>> {
    let order = CatalogueOrder::Slowest(after);
    let filter = in_lane(session.backend(), project, lanes, wanted, &order, i64::MAX);
    let mut classes: Vec<(i64, Vec<i64>)> = Vec::new();
    for row in session.list(filter).await? {
        let mut r = row.reader();
        let (id, class) = (r.int()?, r.int()?);
        match classes.last_mut() {
            Some((last, ids)) if *last == class => ids.push(id),
            _ => classes.push((class, vec![id])),
        }
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let key = |row: &CatalogueRow| {
        let mean = row.state.as_ref().and_then(TestState::avg_duration_ms).unwrap_or(0);
        (Reverse(mean), row.case.id.get())
    };
    let mut found = Vec::new();
    for (_, ids) in classes {
        let mut rows = with_states(session, project, lanes, ids).await?;
        if let Some((mean, id)) = after {
            rows.retain(|row| key(row) > (Reverse(mean), id));
        }
        rows.sort_by_key(key);
        found.extend(rows);
        if found.len() >= limit {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

fn in_lane(
    backend: Backend,
    project: ProjectId,
    lanes: CatalogueLanes,
    wanted: &CatalogueFilter,
    order: &CatalogueOrder,
    limit: i64,
) -> Filter {
    let base = "SELECT c.id, s.speed_class FROM test_state s JOIN test_cases c ON c.project_id = s.project_id AND c.id = s.test_case_id \
                WHERE s.project_id = $1 AND s.lane_id = $2 AND s.total > 0";
    // The index of the lane that is judged by leads: `j` is the state of the test there.
    let flaky = "SELECT c.id, s.speed_class FROM test_state j JOIN test_state s ON s.project_id = j.project_id AND s.lane_id = $2 \
                 AND s.test_case_id = j.test_case_id JOIN test_cases c ON c.project_id = s.project_id AND c.id = s.test_case_id \
                 WHERE j.project_id = $1 AND j.lane_id = $3 AND s.total > 0";
    let filter = match order {
        CatalogueOrder::Flaky(after) if !matches!(after, Some((0, _))) => {
            Filter::new(backend, flaky, args![project, lanes.shown, lanes.judged])
        }
        _ => Filter::new(backend, base, args![project, lanes.shown]),
    };
    let mut filter = filter
        .and_each(HAS_TEXT, asked_texts(wanted.text.as_deref()))
        .and_if("s.category in_ints(?)", wanted.categories.clone())
        .and_if("c.owner = ?", wanted.owner.clone())
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
    ordered(filter, lanes, order, limit)
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
    for wanted in [CatalogueFilter::default(), all, outside] {
        for order in orders(None).into_iter().chain(orders(Some(1))) {
            shapes.push(in_lane(
                backend,
                ProjectId(1),
                CatalogueLanes { shown: 0, judged: 1 },
                &wanted,
                &order,
                1,
            ));
        }
    }
    shapes
}

fn ordered(filter: Filter, lanes: CatalogueLanes, order: &CatalogueOrder, limit: i64) -> Filter {
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
        CatalogueOrder::Flaky(Some((0, id))) => filter
            .and(
                "s.test_case_id > ? AND NOT EXISTS (SELECT 1 FROM test_state j WHERE j.project_id = $1 AND j.lane_id = ? \
                 AND j.test_case_id = s.test_case_id AND j.flaky_score > 0)",
                args![*id, lanes.judged],
            )
            .end("ORDER BY s.test_case_id LIMIT ?", args![limit]),
        CatalogueOrder::Flaky(after) => match after {
            Some((score, id)) => filter.and(
                "j.flaky_score > 0 AND j.flaky_score <= ? AND (j.flaky_score < ? OR j.test_case_id > ?)",
                args![*score, *score, *id],
            ),
            None => filter.and("j.flaky_score > 0", args![]),
        }
        .end("ORDER BY j.flaky_score DESC, j.test_case_id LIMIT ?", args![limit]),
        CatalogueOrder::PassRate(after) => match after {
            Some((key, id)) => {
                filter.and(concat!("(", pass_rate!(), ", s.test_case_id) > (?, ?)"), args![*key, *id])
            }
            None => filter,
        }
        .end(concat!("ORDER BY ", pass_rate!(), ", s.test_case_id LIMIT ?"), args![limit]),
        CatalogueOrder::Slowest(after) => {
            // A test without a duration is in class 0.
            let class = after.map(|(mean, _)| if mean > 0 { i64::from(bucket_of(mean)) + 1 } else { 0 });
            // Whole classes of the page: the caller stops when it has enough.
            filter.and_if("s.speed_class <= ?", class).end("ORDER BY s.speed_class DESC, s.test_case_id LIMIT ?", args![limit])
        }
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
