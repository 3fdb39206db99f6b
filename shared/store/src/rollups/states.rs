//! The state of every test in every lane, locked and written in key order.

use std::collections::{BTreeMap, HashMap};

use callboard_domain::ids::{ExecutionId, ProjectId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::test_state::{MAX_RECENT, Observation, StateColumns, TestState};
use callboard_domain::time::Day;

use crate::db::{Backend, Bulk, Column, Row, Session, args, statements};
use crate::{Result, StoreError};

macro_rules! state_columns {
    () => {
        "s.lane_id, s.test_case_id, s.last_order_at, s.last_execution_id, s.last_outcome, s.by_browser, s.last_passed_at, \
         s.last_passed_execution_id, s.last_failed_at, s.first_seen_at, s.total, s.passed, s.failed, s.timedout, \
         s.interrupted, s.flaky, s.skipped, s.didnotrun, s.failing_streak, s.passing_streak, s.wasted_ms, s.category, \
         s.last_day, s.speed_class, s.recent, s.recent_ms"
    };
}
pub(super) use state_columns;

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

pub(crate) static BULKS: &[&Bulk] = &[&RESERVE_STATES, &WRITE_STATES];

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

pub(super) fn read_state(row: &Row) -> Result<(i64, TestCaseId, Option<TestState>)> {
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
