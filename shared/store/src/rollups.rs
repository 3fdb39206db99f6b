//! Rollups: what lists and charts show without reading executions. They are
//! written in the transaction of the rows they summarise, always in ascending
//! key order.

use std::collections::{BTreeMap, HashMap};

use callboard_domain::ids::{ExecutionId, ProjectId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::test_state::{MAX_RECENT, Observation, StateColumns, TestState};
use callboard_domain::time::{Day, Timestamp};
use callboard_domain::totals::Totals;

use crate::db::{Args, Backend, Bulk, Column, Filter, Row, Session, args, statements};
use crate::projects::like_contains;
use crate::test_cases::{self, TestCaseRow};
use crate::{Result, StoreError};

macro_rules! state_columns {
    () => {
        "s.lane_id, s.test_case_id, s.last_order_at, s.last_execution_id, s.last_outcome, s.by_browser, s.last_passed_at, \
         s.last_passed_execution_id, s.last_failed_at, s.first_seen_at, s.total, s.passed, s.failed, s.timedout, \
         s.interrupted, s.flaky, s.skipped, s.didnotrun, s.failing_streak, s.passing_streak, s.wasted_ms, s.category, \
         s.last_day, s.speed_class, s.recent, s.recent_ms"
    };
}

statements! {
    /// States of a batch, locked in key order.
    LOCK_STATES = concat!(
        "SELECT ", state_columns!(), " FROM test_state s WHERE s.project_id = $1 AND s.lane_id in_ints($2) \
         AND s.test_case_id in_ints($3) ORDER BY s.lane_id, s.test_case_id for_update()"
    );
    /// The state of one test in one lane.
    STATE = concat!(
        "SELECT ", state_columns!(), " FROM test_state s WHERE s.project_id = $1 AND s.lane_id = $2 AND s.test_case_id = $3"
    );
    /// The newest executions of a test in some lanes, for rebuilding its state. ix: executions_history
    NEWEST_OBSERVATIONS = "SELECT e.id, r.order_at, e.outcome, e.browser_id, e.duration, e.wasted_ms \
        FROM executions e JOIN test_runs r ON r.project_id = e.project_id AND r.id = e.run_id \
        WHERE e.project_id = $1 AND e.test_case_id = $2 AND e.day <= $3 AND e.day in_ints($4) AND e.lane_id in_ints($5) \
        ORDER BY r.order_at DESC, e.id DESC LIMIT $6";
    /// The most specific lanes whose executions a lane contains.
    MEMBER_LANES = "SELECT m.id FROM lanes l JOIN lanes m ON m.project_id = l.project_id WHERE l.project_id = $1 AND l.id = $2 \
        AND m.kind IN (1, 3) AND (l.kind IN (0, 2) OR m.branch = l.branch) AND (l.kind IN (0, 1) OR m.environment = l.environment)";
    /// Days of one test. PK
    TEST_DAYS = "SELECT day, runs, passed, failed, flaky, dur_sum, dur_n FROM test_daily \
        WHERE project_id = $1 AND lane_id = $2 AND test_case_id = $3 AND day in_ints($4) ORDER BY day";
    /// Days of a project. PK
    PROJECT_DAYS = "SELECT day, CAST(SUM(runs) AS BIGINT), CAST(SUM(runs_passed) AS BIGINT), CAST(SUM(total) AS BIGINT), \
        CAST(SUM(passed) AS BIGINT), CAST(SUM(failed) AS BIGINT), CAST(SUM(flaky) AS BIGINT), CAST(SUM(skipped) AS BIGINT), \
        CAST(SUM(didnotrun) AS BIGINT), CAST(SUM(interrupted) AS BIGINT) FROM project_daily WHERE project_id = $1 AND lane_id = $2 AND day >= $3 GROUP BY day ORDER BY day";
    /// What one run adds to a day of a project.
    ADD_PROJECT_DAY = "INSERT INTO project_daily AS d (project_id, lane_id, day, is_full, runs, runs_passed, total, passed, failed, \
        flaky, skipped, didnotrun, interrupted) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
        ON CONFLICT (project_id, lane_id, day, is_full) DO UPDATE SET runs = d.runs + excluded.runs, \
        runs_passed = d.runs_passed + excluded.runs_passed, total = d.total + excluded.total, passed = d.passed + excluded.passed, \
        failed = d.failed + excluded.failed, flaky = d.flaky + excluded.flaky, skipped = d.skipped + excluded.skipped, \
        didnotrun = d.didnotrun + excluded.didnotrun, interrupted = d.interrupted + excluded.interrupted";
}

static RESERVE_STATES: Bulk = Bulk::new(
    "rollups::RESERVE_STATES",
    1,
    "INSERT INTO test_state (project_id, lane_id, test_case_id, last_order_at, last_execution_id, last_outcome, by_browser, \
     first_seen_at, total, passed, failed, timedout, interrupted, flaky, skipped, didnotrun, failing_streak, passing_streak, \
     wasted_ms, category, last_day, speed_class, recent, recent_ms) \
     SELECT $1, r.lane_id, r.test_case_id, 0, 0, 0, r.empty, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, r.empty, r.empty FROM",
    &[Column::Int("lane_id"), Column::Int("test_case_id"), Column::Bytes("empty")],
    "WHERE true ON CONFLICT (project_id, lane_id, test_case_id) DO NOTHING",
);
static WRITE_STATES: Bulk = Bulk::new(
    "rollups::WRITE_STATES",
    1,
    "INSERT INTO test_state (project_id, lane_id, test_case_id, last_order_at, last_execution_id, last_outcome, by_browser, \
     last_passed_at, last_passed_execution_id, last_failed_at, first_seen_at, total, passed, failed, timedout, interrupted, \
     flaky, skipped, didnotrun, failing_streak, passing_streak, wasted_ms, category, last_day, speed_class, recent, recent_ms) \
     SELECT $1, r.lane_id, r.test_case_id, r.last_order_at, r.last_execution_id, r.last_outcome, r.by_browser, r.last_passed_at, \
     r.last_passed_execution_id, r.last_failed_at, r.first_seen_at, r.total, r.passed, r.failed, r.timedout, r.interrupted, \
     r.flaky, r.skipped, r.didnotrun, r.failing_streak, r.passing_streak, r.wasted_ms, r.category, r.last_day, r.speed_class, \
     r.recent, r.recent_ms FROM",
    &[
        Column::Int("lane_id"),
        Column::Int("test_case_id"),
        Column::Int("last_order_at"),
        Column::Int("last_execution_id"),
        Column::Int("last_outcome"),
        Column::Bytes("by_browser"),
        Column::Int("last_passed_at"),
        Column::Int("last_passed_execution_id"),
        Column::Int("last_failed_at"),
        Column::Int("first_seen_at"),
        Column::Int("total"),
        Column::Int("passed"),
        Column::Int("failed"),
        Column::Int("timedout"),
        Column::Int("interrupted"),
        Column::Int("flaky"),
        Column::Int("skipped"),
        Column::Int("didnotrun"),
        Column::Int("failing_streak"),
        Column::Int("passing_streak"),
        Column::Int("wasted_ms"),
        Column::Int("category"),
        Column::Int("last_day"),
        Column::Int("speed_class"),
        Column::Bytes("recent"),
        Column::Bytes("recent_ms"),
    ],
    "WHERE true ON CONFLICT (project_id, lane_id, test_case_id) DO UPDATE SET last_order_at = excluded.last_order_at, \
     last_execution_id = excluded.last_execution_id, last_outcome = excluded.last_outcome, by_browser = excluded.by_browser, \
     last_passed_at = excluded.last_passed_at, last_passed_execution_id = excluded.last_passed_execution_id, \
     last_failed_at = excluded.last_failed_at, first_seen_at = excluded.first_seen_at, total = excluded.total, \
     passed = excluded.passed, failed = excluded.failed, timedout = excluded.timedout, interrupted = excluded.interrupted, \
     flaky = excluded.flaky, skipped = excluded.skipped, didnotrun = excluded.didnotrun, \
     failing_streak = excluded.failing_streak, passing_streak = excluded.passing_streak, wasted_ms = excluded.wasted_ms, \
     category = excluded.category, last_day = excluded.last_day, speed_class = excluded.speed_class, \
     recent = excluded.recent, recent_ms = excluded.recent_ms",
);
static ADD_TEST_DAYS: Bulk = Bulk::new(
    "rollups::ADD_TEST_DAYS",
    1,
    "INSERT INTO test_daily AS d (project_id, lane_id, day, test_case_id, runs, passed, failed, flaky, dur_sum, dur_n) \
     SELECT $1, r.lane_id, r.day, r.test_case_id, r.runs, r.passed, r.failed, r.flaky, r.dur_sum, r.dur_n FROM",
    &[
        Column::Int("lane_id"),
        Column::Int("day"),
        Column::Int("test_case_id"),
        Column::Int("runs"),
        Column::Int("passed"),
        Column::Int("failed"),
        Column::Int("flaky"),
        Column::Int("dur_sum"),
        Column::Int("dur_n"),
    ],
    "WHERE true ON CONFLICT (project_id, lane_id, day, test_case_id) DO UPDATE SET runs = d.runs + excluded.runs, \
     passed = d.passed + excluded.passed, failed = d.failed + excluded.failed, flaky = d.flaky + excluded.flaky, \
     dur_sum = d.dur_sum + excluded.dur_sum, dur_n = d.dur_n + excluded.dur_n",
);

pub(crate) static BULKS: &[&Bulk] = &[&RESERVE_STATES, &WRITE_STATES, &ADD_TEST_DAYS];

/// States of a batch by lane and test.
pub type States = BTreeMap<(i64, TestCaseId), TestState>;

/// The stored states of a batch, locked until the transaction ends. Tests that
/// have none yet are reserved first, so that two transactions never both think
/// to be the first.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn lock_states(
    session: &mut Session,
    project: ProjectId,
    lanes: &[i64],
    test_cases: &[TestCaseId],
) -> Result<States> {
    let ids: Vec<i64> = test_cases.iter().map(|id| id.get()).collect();
    let mut rows = session.all(&LOCK_STATES, args![project, lanes.to_vec(), ids.clone()]).await?;
    if session.backend() == Backend::Postgres && rows.len() < lanes.len() * ids.len() {
        let mut missing = RESERVE_STATES.rows();
        let mut known = HashMap::new();
        for row in &rows {
            let mut r = row.reader();
            known.insert((r.int()?, r.int()?), ());
        }
        for lane in lanes {
            for id in &ids {
                if !known.contains_key(&(*lane, *id)) {
                    missing.push([(*lane).into(), (*id).into(), Vec::<u8>::new().into()]);
                }
            }
        }
        session.execute_bulk(&RESERVE_STATES, args![project], missing).await?;
        rows = session.all(&LOCK_STATES, args![project, lanes.to_vec(), ids]).await?;
    }
    let mut states = States::new();
    for row in &rows {
        if let (lane, case, Some(state)) = read_state(row)? {
            states.insert((lane, case), state);
        }
    }
    Ok(states)
}

fn read_state(row: &Row) -> Result<(i64, TestCaseId, Option<TestState>)> {
    let mut r = row.reader();
    let (lane, case) = (r.int()?, TestCaseId(r.int()?));
    let columns = StateColumns {
        last_order_at: r.int()?,
        last_execution_id: r.int()?,
        last_outcome: r.int()?,
        by_browser: r.bytes()?,
        last_passed_at: r.opt_int()?,
        last_passed_execution_id: r.opt_int()?,
        last_failed_at: r.opt_int()?,
        first_seen_at: r.int()?,
        total: r.int()?,
        passed: r.int()?,
        failed: r.int()?,
        timedout: r.int()?,
        interrupted: r.int()?,
        flaky: r.int()?,
        skipped: r.int()?,
        didnotrun: r.int()?,
        failing_streak: r.int()?,
        passing_streak: r.int()?,
        wasted_ms: r.int()?,
        category: r.int()?,
        last_day: r.int()?,
        speed_class: r.int()?,
        recent: r.bytes()?,
        recent_ms: r.bytes()?,
    };
    // A reserved row has counted nothing yet.
    if columns.total == 0 && columns.recent.is_empty() {
        return Ok((lane, case, None));
    }
    let state = TestState::from_columns(&columns).map_err(|_| StoreError::Damaged("the state of a test"))?;
    Ok((lane, case, Some(state)))
}

/// Writes the states of a batch.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn write_states(session: &mut Session, project: ProjectId, states: &States) -> Result<()> {
    let mut rows = WRITE_STATES.rows();
    for ((lane, case), state) in states {
        let c = state.to_columns();
        rows.push([
            (*lane).into(),
            (*case).into(),
            c.last_order_at.into(),
            c.last_execution_id.into(),
            c.last_outcome.into(),
            c.by_browser.into(),
            c.last_passed_at.into(),
            c.last_passed_execution_id.into(),
            c.last_failed_at.into(),
            c.first_seen_at.into(),
            c.total.into(),
            c.passed.into(),
            c.failed.into(),
            c.timedout.into(),
            c.interrupted.into(),
            c.flaky.into(),
            c.skipped.into(),
            c.didnotrun.into(),
            c.failing_streak.into(),
            c.passing_streak.into(),
            c.wasted_ms.into(),
            c.category.into(),
            c.last_day.into(),
            c.speed_class.into(),
            c.recent.into(),
            c.recent_ms.into(),
        ]);
    }
    session.execute_bulk(&WRITE_STATES, args![project], rows).await?;
    Ok(())
}

/// The newest executions of a test in a lane, for rebuilding its state: a walk
/// over the days back from the newest one.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn newest_observations(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    test_case: TestCaseId,
    newest: Day,
    first_seen: Day,
) -> Result<Vec<Observation>> {
    let members = session.all(&MEMBER_LANES, args![project, lane]).await?;
    let members = members.iter().map(|row| row.reader().int()).collect::<Result<Vec<_>>>()?;
    let wanted = i64::try_from(MAX_RECENT).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    let mut upper = newest.0;
    for span in [7, 28, 112, 448] {
        let lower = (upper - span + 1).max(first_seen.0);
        let days: Vec<i64> = (lower..=upper).collect();
        let missing = wanted - i64::try_from(found.len()).unwrap_or(wanted);
        let rows = session
            .all(&NEWEST_OBSERVATIONS, args![project, test_case, upper, days, members.clone(), missing])
            .await?;
        for row in &rows {
            let mut r = row.reader();
            found.push(Observation {
                execution: ExecutionId(r.int()?),
                order_at: r.time()?,
                outcome: Outcome::from_code(r.int()?).ok_or(StoreError::Damaged("an unknown outcome"))?,
                browser: r.int()?,
                duration_ms: r.int()?,
                wasted_ms: r.int()?,
                mass_failure: false,
            });
        }
        upper = lower - 1;
        if upper < first_seen.0 || found.len() >= MAX_RECENT {
            break;
        }
    }
    Ok(found)
}

/// The state of one test in one lane.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn state(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    test_case: TestCaseId,
) -> Result<Option<TestState>> {
    let row = session.first(&STATE, args![project, lane, test_case]).await?;
    Ok(row.as_ref().map(read_state).transpose()?.and_then(|(_, _, state)| state))
}

/// What a batch adds to days of tests; negative where it takes back.
#[derive(Debug, Default)]
pub struct TestDays(BTreeMap<(i64, TestCaseId), DayDelta>);

/// Counts of one test on one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DayDelta {
    /// Executions.
    pub runs: i64,
    /// Passed, flaky ones included.
    pub passed: i64,
    /// Failed, timed out ones included.
    pub failed: i64,
    /// Passed after a failed attempt.
    pub flaky: i64,
    /// Sum of durations of executions that ran, ms.
    pub dur_sum: i64,
    /// Number of executions that ran.
    pub dur_n: i64,
}

impl TestDays {
    /// Counts an execution (`sign` 1) or takes it back (`sign` -1).
    pub fn count(&mut self, lane: i64, test_case: TestCaseId, outcome: Outcome, duration_ms: i64, sign: i64) {
        let day = self.0.entry((lane, test_case)).or_default();
        day.runs += sign;
        match outcome {
            Outcome::Passed => day.passed += sign,
            Outcome::Flaky => {
                day.passed += sign;
                day.flaky += sign;
            }
            Outcome::Failed | Outcome::TimedOut => day.failed += sign,
            Outcome::Interrupted | Outcome::Skipped | Outcome::DidNotRun => {}
        }
        if !matches!(outcome, Outcome::Skipped | Outcome::DidNotRun) {
            day.dur_sum += sign * duration_ms;
            day.dur_n += sign;
        }
    }
}

/// Adds a batch to the days of its tests.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn add_test_days(
    session: &mut Session,
    project: ProjectId,
    day: Day,
    days: TestDays,
) -> Result<()> {
    let mut rows = ADD_TEST_DAYS.rows();
    for ((lane, case), delta) in days.0 {
        if delta == DayDelta::default() {
            continue;
        }
        rows.push([
            lane.into(),
            day.into(),
            case.into(),
            delta.runs.into(),
            delta.passed.into(),
            delta.failed.into(),
            delta.flaky.into(),
            delta.dur_sum.into(),
            delta.dur_n.into(),
        ]);
    }
    session.execute_bulk(&ADD_TEST_DAYS, args![project], rows).await?;
    Ok(())
}

/// Days of one test in one lane, oldest first; days without executions are
/// left out.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn test_days(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    test_case: TestCaseId,
    days: Vec<i64>,
) -> Result<Vec<(Day, DayDelta)>> {
    let rows = session.all(&TEST_DAYS, args![project, lane, test_case, days]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let day = Day(r.int()?);
            Ok((
                day,
                DayDelta {
                    runs: r.int()?,
                    passed: r.int()?,
                    failed: r.int()?,
                    flaky: r.int()?,
                    dur_sum: r.int()?,
                    dur_n: r.int()?,
                },
            ))
        })
        .collect()
}

/// What a run contributes to a day of its project.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunContribution {
    /// 1 once the run exists.
    pub runs: i64,
    /// 1 when it passed.
    pub runs_passed: i64,
    /// Totals of the run.
    pub totals: Totals,
}

/// Replaces what a run contributed to a day of its project in some lanes.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn add_project_day(
    session: &mut Session,
    project: ProjectId,
    lanes: &[i64],
    day: Day,
    is_full: bool,
    before: &RunContribution,
    after: &RunContribution,
) -> Result<()> {
    let (b, a) = (&before.totals, &after.totals);
    for lane in lanes {
        session
            .execute(
                &ADD_PROJECT_DAY,
                args![
                    project,
                    *lane,
                    day,
                    is_full,
                    after.runs - before.runs,
                    after.runs_passed - before.runs_passed,
                    a.total_tests - b.total_tests,
                    a.passed_tests - b.passed_tests,
                    a.failed_tests - b.failed_tests,
                    a.flaky_tests - b.flaky_tests,
                    a.skipped_tests - b.skipped_tests,
                    a.did_not_run_tests - b.did_not_run_tests,
                    a.interrupted_tests - b.interrupted_tests
                ],
            )
            .await?;
    }
    Ok(())
}

/// One day of a project.
#[derive(Debug, Clone, Copy)]
pub struct ProjectDay {
    /// Day.
    pub day: Day,
    /// Runs.
    pub runs: i64,
    /// Runs that passed.
    pub runs_passed: i64,
    /// Totals over these runs; timed out is not told apart.
    pub totals: Totals,
}

/// Days of a project in one lane from `since` on, oldest first.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn project_days(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    since: Day,
) -> Result<Vec<ProjectDay>> {
    let rows = session.all(&PROJECT_DAYS, args![project, lane, since]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(ProjectDay {
                day: Day(r.int()?),
                runs: r.int()?,
                runs_passed: r.int()?,
                totals: Totals {
                    total_tests: r.int()?,
                    passed_tests: r.int()?,
                    failed_tests: r.int()?,
                    flaky_tests: r.int()?,
                    skipped_tests: r.int()?,
                    did_not_run_tests: r.int()?,
                    interrupted_tests: r.int()?,
                    timed_out_tests: 0,
                },
            })
        })
        .collect()
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
    let base = "SELECT c.id FROM test_state s JOIN test_cases c ON c.project_id = s.project_id AND c.id = s.test_case_id \
                WHERE s.project_id = $1 AND s.lane_id = $2 AND s.total > 0";
    let mut filter = Filter::new(session.backend(), base, args![project, lane])
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
    let filter = ordered(filter, order, limit);
    let rows = session.list(filter).await?;
    let ids = rows.iter().map(|row| row.reader().int()).collect::<Result<Vec<_>>>()?;
    with_states(session, project, lane, ids).await
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
    let filter = Filter::new(
        session.backend(),
        concat!("SELECT ", state_columns!(), " FROM test_state s WHERE s.project_id = $1 AND s.lane_id = $2"),
        args![project, lane],
    )
    .and("s.test_case_id in_ints(?)", args![ids.clone()])
    .end("ORDER BY s.test_case_id", Args::new());
    let mut states = HashMap::new();
    for row in session.list(filter).await? {
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
