//! The state of every test in every lane, locked and written in key order.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_domain::flakiness::score_of;
use callboard_domain::ids::{ExecutionId, ProjectId, TestCaseId};
use callboard_domain::lane::LaneKind;
use callboard_domain::status::Outcome;
use callboard_domain::test_state::{MAX_RECENT, Observation, Predecessors, StateColumns, TestState};
use callboard_domain::time::Day;

use crate::db::{Backend, Bulk, Column, Reader, Row, Session, args, statements};
use crate::{Result, StoreError, lanes};

macro_rules! state_columns {
    () => {
        "s.lane_id, s.test_case_id, s.last_order_at, s.last_execution_id, s.last_outcome, s.by_browser, s.last_passed_at, \
         s.last_passed_execution_id, s.last_failed_at, s.first_seen_at, s.total, s.passed, s.failed, s.timedout, \
         s.interrupted, s.flaky, s.skipped, s.didnotrun, s.failing_streak, s.passing_streak, s.wasted_ms, s.category, \
         s.last_day, s.speed_class, s.recent, s.recent_ms, s.flaky_score"
    };
}
pub(super) use state_columns;

/// What every write of a state changes: the columns no index holds.
macro_rules! set_counts {
    () => {
        "WHERE true ON CONFLICT (project_id, lane_id, test_case_id) DO UPDATE SET last_order_at = excluded.last_order_at, \
         last_execution_id = excluded.last_execution_id, last_outcome = excluded.last_outcome, by_browser = excluded.by_browser, \
         last_passed_at = excluded.last_passed_at, last_passed_execution_id = excluded.last_passed_execution_id, \
         last_failed_at = excluded.last_failed_at, first_seen_at = excluded.first_seen_at, total = excluded.total, \
         passed = excluded.passed, failed = excluded.failed, timedout = excluded.timedout, interrupted = excluded.interrupted, \
         flaky = excluded.flaky, skipped = excluded.skipped, didnotrun = excluded.didnotrun, \
         failing_streak = excluded.failing_streak, passing_streak = excluded.passing_streak, wasted_ms = excluded.wasted_ms, \
         recent = excluded.recent, recent_ms = excluded.recent_ms"
    };
}

statements! {
    /// States of a batch, locked in the order of the lists, and whether their lanes believe failures.
    LOCK_STATES = concat!(
        "SELECT ", state_columns!(), ", (SELECT l.kind FROM lanes l WHERE l.project_id = s.project_id AND l.id = s.lane_id) \
         FROM test_state s WHERE s.project_id = $1 AND s.lane_id in_ints($2) \
         AND s.test_case_id in_ints($3)"
    ), whole "vvvvvbvvvvvvvvvvvvvvvvvvbbvv", postgres concat!(
        "SELECT ", state_columns!(), ", (SELECT l.kind FROM lanes l WHERE l.project_id = s.project_id AND l.id = s.lane_id) \
         FROM unnest($2::bigint[]) AS lane(id) CROSS JOIN unnest($3::bigint[]) AS test(id) CROSS JOIN LATERAL \
         (SELECT * FROM test_state x WHERE x.project_id = $1 AND x.lane_id = lane.id AND x.test_case_id BETWEEN test.id AND test.id \
         ORDER BY x.test_case_id LIMIT 1 FOR UPDATE) AS s"
    );
    /// The state of one test in one lane.
    STATE = concat!(
        "SELECT ", state_columns!(), " FROM test_state s WHERE s.project_id = $1 AND s.lane_id = $2 AND s.test_case_id = $3"
    );
    /// States of some tests in one lane, as they are.
    STATES_IN = concat!(
        "SELECT ", state_columns!(), " FROM test_state s WHERE s.project_id = $1 AND s.lane_id = $2 AND s.test_case_id in_ints($3)"
    ), postgres concat!(
        "SELECT ", state_columns!(), " FROM unnest($3::bigint[]) AS test(id) CROSS JOIN LATERAL \
         (SELECT * FROM test_state x WHERE x.project_id = $1 AND x.lane_id = $2 AND x.test_case_id BETWEEN test.id AND test.id \
         ORDER BY x.test_case_id LIMIT 1) AS s"
    );
    /// States of some tests, each in its own lane, as they are.
    STATES_OF = concat!(
        "SELECT ", state_columns!(), " FROM json_each($2) asked CROSS JOIN test_state s \
         WHERE s.project_id = $1 AND s.lane_id = asked.value ->> 0 AND s.test_case_id = asked.value ->> 1"
    ), postgres concat!(
        "SELECT ", state_columns!(), " FROM unnest($2::bigint[], $3::bigint[]) AS asked(lane_id, test_id) CROSS JOIN LATERAL \
         (SELECT * FROM test_state x WHERE x.project_id = $1 AND x.lane_id = asked.lane_id \
         AND x.test_case_id BETWEEN asked.test_id AND asked.test_id ORDER BY x.test_case_id LIMIT 1) AS s"
    );
    /// What came before some tests in one lane.
    PREDECESSORS = "SELECT test_case_id, last_order_at, last_execution_id, by_browser FROM test_state \
        WHERE project_id = $1 AND lane_id = $2 AND test_case_id in_ints($3) AND total > 0",
        whole "vvvb", postgres "SELECT s.test_case_id, s.last_order_at, s.last_execution_id, s.by_browser FROM unnest($3::bigint[]) AS test(id) \
        CROSS JOIN LATERAL (SELECT * FROM test_state x WHERE x.project_id = $1 AND x.lane_id = $2 \
        AND x.test_case_id BETWEEN test.id AND test.id AND x.total > 0 ORDER BY x.test_case_id LIMIT 1) AS s";
    /// The newest executions of each of some tests in some lanes, for rebuilding their states, as far as they are counted.
    /// ix: executions_history
    NEWEST_OBSERVATIONS = "SELECT o.test_case_id, o.id, o.order_at, o.outcome, o.browser_id, o.duration, o.wasted_ms, o.total_duration, o.lost_ms, o.is_mass_failure FROM \
        (SELECT e.test_case_id, e.id, r.order_at, e.outcome, e.browser_id, e.duration, e.wasted_ms, e.total_duration, e.lost_ms, r.is_mass_failure, \
        ROW_NUMBER() OVER (PARTITION BY e.test_case_id ORDER BY r.order_at DESC, e.id DESC) AS place \
        FROM executions e JOIN test_runs r ON r.project_id = e.project_id AND r.id = e.run_id \
        WHERE e.project_id = $1 AND e.day in_ints($2) AND e.test_case_id in_ints($3) AND e.lane_id in_ints($4) \
        AND e.id - e.run_id * 1048576 <= r.counted_to) o \
        WHERE o.place <= $5";
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
/// Writes states of tests that are new to a lane, or whose place in an index
/// has changed.
static WRITE_STATES: Bulk = Bulk::new(
    "rollups::WRITE_STATES",
    1,
    WRITE_HEAD,
    WRITE_COLUMNS,
    concat!(
        set_counts!(),
        ", category = excluded.category, last_day = excluded.last_day, speed_class = excluded.speed_class, \
         flaky_score = excluded.flaky_score"
    ),
);
/// Writes states whose places in all indexes stay. SQLite writes the indexes
/// of every column that is named, whether it changes or not: 20,000 rows take
/// 70 ms without them and 120 ms with them.
static WRITE_COUNTS: Bulk = Bulk::new("rollups::WRITE_COUNTS", 1, WRITE_HEAD, WRITE_COLUMNS, set_counts!());

const WRITE_HEAD: &str = "INSERT INTO test_state (project_id, lane_id, test_case_id, last_order_at, last_execution_id, last_outcome, \
     by_browser, last_passed_at, last_passed_execution_id, last_failed_at, first_seen_at, total, passed, failed, timedout, \
     interrupted, flaky, skipped, didnotrun, failing_streak, passing_streak, wasted_ms, category, last_day, speed_class, recent, \
     recent_ms, flaky_score) \
     SELECT $1, r.lane_id, r.test_case_id, r.last_order_at, r.last_execution_id, r.last_outcome, r.by_browser, r.last_passed_at, \
     r.last_passed_execution_id, r.last_failed_at, r.first_seen_at, r.total, r.passed, r.failed, r.timedout, r.interrupted, \
     r.flaky, r.skipped, r.didnotrun, r.failing_streak, r.passing_streak, r.wasted_ms, r.category, r.last_day, r.speed_class, \
     r.recent, r.recent_ms, r.flaky_score FROM";
const WRITE_COLUMNS: &[Column] = &[
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
    Column::Int("flaky_score"),
];

/// Tests whose history is read by one statement.
const REBUILT_TOGETHER: usize = 200;
/// [`MAX_RECENT`] as a bound value.
const MOST_OBSERVATIONS: i64 = MAX_RECENT as i64;

pub(crate) static BULKS: &[&Bulk] = &[&RESERVE_STATES, &WRITE_STATES, &WRITE_COUNTS];

/// States of a batch by lane and test.
#[derive(Debug, Default)]
pub struct States {
    held: BTreeMap<(i64, TestCaseId), Held>,
    /// Which lanes hold one branch, as far as their states told.
    of_one_branch: BTreeMap<i64, bool>,
}

#[derive(Debug)]
struct Held {
    state: TestState,
    /// Where it stands in the indexes; `None` for one that is not stored yet.
    place: Option<Place>,
}

/// The columns of a state that indexes hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    category: i64,
    last_day: i64,
    speed_class: i64,
    flaky_score: i64,
}

impl Place {
    const fn from_columns(columns: &StateColumns, flaky_score: i64) -> Self {
        let &StateColumns { category, last_day, speed_class, .. } = columns;
        Self { category, last_day, speed_class, flaky_score }
    }
}

impl States {
    /// The state of a test in a lane; `None` while it has none.
    #[must_use]
    pub fn get(&self, key: &(i64, TestCaseId)) -> Option<&TestState> {
        self.held.get(key).map(|held| &held.state)
    }

    /// [`States::get`], to be changed.
    pub fn get_mut(&mut self, key: &(i64, TestCaseId)) -> Option<&mut TestState> {
        self.held.get_mut(key).map(|held| &mut held.state)
    }

    /// Takes those of other lanes as well.
    pub fn join(&mut self, mut others: Self) {
        self.held.append(&mut others.held);
        self.of_one_branch.append(&mut others.of_one_branch);
    }

    /// Adds the state of a test that has none in the lane.
    pub fn insert(&mut self, key: (i64, TestCaseId), state: TestState) {
        self.held.insert(key, Held { state, place: None });
    }
}

/// The stored states of a batch, locked until the transaction ends; lanes and
/// tests ascend. Tests that have none yet are reserved first, so that two
/// transactions never both think to be the first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock_states(
    session: &mut Session,
    project: ProjectId,
    lanes: &[i64],
    test_cases: &[TestCaseId],
) -> Result<States> {
    if session.backend() == Backend::Sqlite {
        return lock_in(session, project, lanes, test_cases).await;
    }
    // One lane after the other, whoever locks: a row that is reserved is locked after those that were there.
    let mut states = States::default();
    for lane in lanes {
        states.join(lock_in(session, project, &[*lane], test_cases).await?);
    }
    Ok(states)
}

async fn lock_in(
    session: &mut Session,
    project: ProjectId,
    lanes: &[i64],
    test_cases: &[TestCaseId],
) -> Result<States> {
    let mut ids: Vec<i64> = test_cases.iter().map(|id| id.get()).collect();
    // Rows are locked as the list goes: in the same order by everybody.
    ids.sort_unstable();
    ids.dedup();
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
    let mut states = States::default();
    for row in &rows {
        let mut r = row.reader();
        let (lane, case, columns, flaky_score) = read_columns(&mut r)?;
        if let Some(kind) = r.opt_int()?.and_then(LaneKind::from_code) {
            let holds_one = matches!(kind, LaneKind::Branch | LaneKind::BranchAndEnvironment);
            states.of_one_branch.insert(lane, holds_one);
        }
        if let Some(state) = state_of(&columns)? {
            states.held.insert(
                (lane, case),
                Held { state, place: Some(Place::from_columns(&columns, flaky_score)) },
            );
        }
    }
    Ok(states)
}

/// A stored state with its score.
pub(super) struct StoredState {
    pub(super) case: TestCaseId,
    /// `None` for a reserved row.
    pub(super) state: Option<TestState>,
    pub(super) flaky_score: i64,
}

pub(super) fn read_state(row: &Row) -> Result<StoredState> {
    let (_, case, columns, flaky_score) = read_columns(&mut row.reader())?;
    Ok(StoredState { case, state: state_of(&columns)?, flaky_score })
}

/// The same of a row that ends with the project, and the lane.
pub(super) fn read_state_of(row: &Row) -> Result<(ProjectId, i64, StoredState)> {
    let mut r = row.reader();
    let (lane, case, columns, flaky_score) = read_columns(&mut r)?;
    let stored = StoredState { case, state: state_of(&columns)?, flaky_score };
    Ok((ProjectId(r.int()?), lane, stored))
}

fn read_columns(r: &mut Reader<'_>) -> Result<(i64, TestCaseId, StateColumns, i64)> {
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
    let flaky_score = r.int()?;
    Ok((lane, case, columns, flaky_score))
}

fn state_of(columns: &StateColumns) -> Result<Option<TestState>> {
    // A reserved row has counted nothing yet.
    if columns.total == 0 && columns.recent.is_empty() {
        return Ok(None);
    }
    let state = TestState::from_columns(columns).map_err(|_| StoreError::Damaged("the state of a test"))?;
    Ok(Some(state))
}

/// Writes the states of a batch with their flaky scores.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn write_states(session: &mut Session, project: ProjectId, states: &States) -> Result<()> {
    let believing = lanes_that_believe_failures(session, project, states).await?;
    let (mut moved, mut unmoved) = (WRITE_STATES.rows(), WRITE_COUNTS.rows());
    for ((lane, case), Held { state, place }) in &states.held {
        let c = state.to_columns();
        let flaky_score = score_of(state, believing.contains(lane));
        let rows =
            if *place == Some(Place::from_columns(&c, flaky_score)) { &mut unmoved } else { &mut moved };
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
            flaky_score.into(),
        ]);
    }
    session.execute_bulk(&WRITE_STATES, args![project], moved).await?;
    session.execute_bulk(&WRITE_COUNTS, args![project], unmoved).await?;
    Ok(())
}

/// The lanes of one branch. Most batches know of no failure, and do not ask.
async fn lanes_that_believe_failures(
    session: &mut Session,
    project: ProjectId,
    states: &States,
) -> Result<Vec<i64>> {
    let is_clean = |outcome| !matches!(outcome, Outcome::Failed | Outcome::TimedOut | Outcome::Flaky);
    let is_steady = |held: &Held| held.state.recent().all(|recent| is_clean(recent.outcome));
    if states.held.values().all(is_steady) {
        return Ok(Vec::new());
    }
    let mut lanes: Vec<i64> = states.held.keys().map(|(lane, _)| *lane).collect();
    lanes.dedup();
    if lanes.iter().all(|lane| states.of_one_branch.contains_key(lane)) {
        lanes.retain(|lane| states.of_one_branch[lane]);
        return Ok(lanes);
    }
    lanes::of_one_branch(session, project, lanes).await
}

/// The newest executions of each of some tests in a lane, for rebuilding their
/// states: a walk over the days back from the newest one, up to the first day
/// any of them was seen. Tests are read `REBUILT_TOGETHER` at a time, which
/// bounds the memory. Executions that wait to be counted are left out.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn newest_observations(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    test_cases: &[TestCaseId],
    newest: Day,
    first_seen: Day,
) -> Result<HashMap<TestCaseId, Vec<Observation>>> {
    let members = session.all(&MEMBER_LANES, args![project, lane]).await?;
    let members = members.iter().map(|row| row.reader().int()).collect::<Result<Vec<_>>>()?;
    let mut found: HashMap<TestCaseId, Vec<Observation>> = HashMap::with_capacity(test_cases.len());
    for test_cases in test_cases.chunks(REBUILT_TOGETHER) {
        let mut missing: Vec<i64> = test_cases.iter().map(|case| case.get()).collect();
        let mut upper = newest.0;
        for span in [7, 28, 112, 448] {
            let lower = (upper - span + 1).max(first_seen.0);
            let days: Vec<i64> = (lower..=upper).collect();
            let args = args![project, days, missing.clone(), members.clone(), MOST_OBSERVATIONS];
            for row in session.all(&NEWEST_OBSERVATIONS, args).await? {
                let mut r = row.reader();
                let case = TestCaseId(r.int()?);
                let observation = Observation {
                    execution: ExecutionId(r.int()?),
                    order_at: r.time()?,
                    outcome: Outcome::from_code(r.int()?).ok_or(StoreError::Damaged("an unknown outcome"))?,
                    browser: r.int()?,
                    duration_ms: r.int()?,
                    wasted_ms: r.int()?,
                    lost_ms: 0,
                    mass_failure: false,
                };
                // An observation only tells of it when the outcome can have cost time.
                let others_ms = r.int()? - observation.duration_ms;
                let lost_ms = r.opt_int()?.unwrap_or(others_ms);
                let mass_failure = r.flag()?;
                found.entry(case).or_default().push(Observation { lost_ms, mass_failure, ..observation });
            }
            upper = lower - 1;
            missing.retain(|case| found.get(&TestCaseId(*case)).is_none_or(|all| all.len() < MAX_RECENT));
            if upper < first_seen.0 || missing.is_empty() {
                break;
            }
        }
    }
    Ok(found)
}

/// States of some tests in one lane, as they are; tests without one are left
/// out.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn states_in(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    test_cases: Vec<i64>,
) -> Result<HashMap<TestCaseId, TestState>> {
    let mut states = HashMap::with_capacity(test_cases.len());
    for row in session.all(&STATES_IN, args![project, lane, test_cases]).await? {
        let stored = read_state(&row)?;
        states.extend(stored.state.map(|state| (stored.case, state)));
    }
    Ok(states)
}

/// States of some tests, each asked for with its lane, as they are; tests without
/// one there are left out.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn states_of(
    session: &mut Session,
    project: ProjectId,
    asked: &BTreeSet<(i64, TestCaseId)>,
) -> Result<States> {
    if asked.is_empty() {
        return Ok(States::default());
    }
    let lanes: Vec<i64> = asked.iter().map(|(lane, _)| *lane).collect();
    let cases = asked.iter().map(|(_, case)| case.get()).collect();
    let mut states = States::default();
    for row in session.all(&STATES_OF, args![project, vec![lanes, cases]]).await? {
        let (lane, case, columns, _) = read_columns(&mut row.reader())?;
        if let Some(state) = state_of(&columns)? {
            states.insert((lane, case), state);
        }
    }
    Ok(states)
}

/// What came before some tests in one lane; tests without a state are left out.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn predecessors(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    test_cases: Vec<i64>,
) -> Result<HashMap<TestCaseId, Predecessors>> {
    read_predecessors(&session.all(&PREDECESSORS, args![project, lane, test_cases]).await?)
}

pub(crate) fn read_predecessors(rows: &[Row]) -> Result<HashMap<TestCaseId, Predecessors>> {
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let case = TestCaseId(r.int()?);
            let found = Predecessors::from_columns(r.time()?, ExecutionId(r.int()?), &r.bytes()?);
            Ok((case, found.map_err(|_| StoreError::Damaged("the state of a test"))?))
        })
        .collect()
}

/// The state of one test in one lane.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn state(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    test_case: TestCaseId,
) -> Result<Option<TestState>> {
    let row = session.first(&STATE, args![project, lane, test_case]).await?;
    Ok(row.as_ref().map(read_state).transpose()?.and_then(|stored| stored.state))
}
