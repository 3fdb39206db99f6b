//! The tests of a lane by how flaky and how slow they are. Bounded by the
//! tests of the project, whatever their history.

use std::collections::HashSet;

use callboard_domain::ids::{ExecutionId, ProjectId, TestCaseId};
use callboard_domain::lane::LaneKind;
use callboard_domain::test_state::{TestCategory, TestState, passed_durations};
use callboard_domain::time::{Day, Timestamp};

use super::portfolio::LaneOfEach;
use super::states::{read_state, read_state_of, state_columns};
use crate::Result;
use crate::db::{Backend, Filter, Reader, Row, Session, args, statements};

/// Tests by their score in lanes that stand beside their projects, in two lists of
/// the same length.
macro_rules! flaky_in {
    (sqlite $which:literal) => {
        concat!(
            "SELECT ",
            state_columns!(),
            ", s.project_id FROM json_each($1) p CROSS JOIN test_state s WHERE s.project_id = p.value \
             AND s.lane_id = json_extract($2, '$[' || p.key || ']') AND s.flaky_score > 0 AND s.flaky_score >= $3",
            $which
        )
    };
    (postgres $which:literal) => {
        concat!(
            "SELECT ",
            state_columns!(),
            ", s.project_id FROM unnest($1::bigint[], $2::bigint[]) AS w(project_id, lane_id) CROSS JOIN LATERAL \
             (SELECT * FROM test_state t WHERE t.project_id = w.project_id AND t.lane_id = w.lane_id \
             AND t.flaky_score > 0 AND t.flaky_score >= $3",
            $which,
            " OFFSET 0) AS s"
        )
    };
}

statements! {
    /// The newest durations of the tests of a lane.
    DURATIONS = "SELECT test_case_id, last_execution_id, recent, recent_ms FROM test_state \
        WHERE project_id = $1 AND lane_id = $2 AND speed_class > 0 AND last_day >= $3";
    /// The same of the tests that ever timed out, of some projects. ix: lanes_key, test_state_timed_out
    DURATIONS_OF_TIMED_OUT = "SELECT s.test_case_id, s.last_execution_id, s.recent, s.recent_ms, s.project_id FROM lanes l CROSS JOIN test_state s \
        WHERE l.project_id in_ints($1) AND l.kind = $2 AND l.branch = $3 AND l.environment = $4 \
        AND s.project_id = l.project_id AND s.lane_id = l.id AND s.timedout > 0";
    /// The last day on which each of some tests failed or flaked, by one look for each: all of them together would be found
    /// by going through what failed on all of those days. ix: test_daily_failing
    LAST_FAILING_DAYS = "SELECT c.value, (SELECT MAX(d.day) FROM test_daily d WHERE d.project_id = $1 AND d.lane_id = $2 \
        AND d.test_case_id = c.value AND d.day >= $3 AND d.day <= $4 AND d.failed + d.flaky > 0) FROM json_each($5) c",
        postgres "SELECT asked.id, (SELECT d.day FROM test_daily d WHERE d.project_id = $1 AND d.lane_id = $2 \
        AND d.test_case_id BETWEEN asked.id AND asked.id AND d.day >= $3 AND d.day <= $4 AND d.failed + d.flaky > 0 \
        ORDER BY d.test_case_id DESC, d.day DESC LIMIT 1) FROM unnest($5::bigint[]) AS asked(id)";
    /// The states of some tests in a lane.
    STATES_OF = concat!(
        "SELECT ", state_columns!(), " FROM test_state s WHERE s.project_id = $1 AND s.lane_id = $2 AND s.test_case_id in_ints($3)"
    );
    /// The lanes of all runs and of some branches in some projects, and how many of their tests are at least so flaky.
    /// ix: lanes_key, test_state_by_flakiness
    COUNT_FLAKY_IN = "SELECT l.project_id, l.kind, l.branch, l.id, (SELECT COUNT(*) FROM (SELECT 1 FROM test_state s \
        WHERE s.project_id = l.project_id AND s.lane_id = l.id AND s.flaky_score > 0 AND s.flaky_score >= $3 LIMIT $4) f) \
        FROM lanes l WHERE l.project_id in_ints($1) AND l.kind in_ints($5) AND l.branch in_texts($2) AND l.environment = $6";
    /// The tests that are at least so flaky in one lane of each of some projects. ix: test_state_by_flakiness
    FLAKY_IN = flaky_in!(sqlite ""), postgres flaky_in!(postgres "");
    /// Those of them that passed no more when they ran last. ix: test_state_by_category
    UNWELL_FLAKY_IN = flaky_in!(sqlite " AND s.category in_ints($4)"), postgres flaky_in!(postgres " AND t.category in_ints($4)");
    /// Which of some projects have a test that is at least so flaky in some lane. ix: test_state_by_flakiness
    WITH_FLAKY = "SELECT p.id FROM projects p WHERE p.id in_ints($1) AND EXISTS (SELECT 1 FROM test_state s \
        WHERE s.project_id = p.id AND s.flaky_score > 0 AND s.flaky_score >= $2)";
}

/// Those of some projects that have a test with at least this score in some
/// lane.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn with_flaky(session: &mut Session, projects: Vec<i64>, least: i64) -> Result<HashSet<ProjectId>> {
    let rows = session.all(&WITH_FLAKY, args![projects, least]).await?;
    rows.iter().map(|row| Ok(ProjectId(row.reader().int()?))).collect()
}

/// Which tests may be flaky.
#[derive(Debug, Clone, Default)]
pub struct FlakyFilter {
    /// Least stored score; `None` takes every test that ever failed, for
    /// windows other than that of the stored score.
    pub min_score: Option<i64>,
    /// Only tests with all of these tags.
    pub tags: Vec<String>,
    /// Only this owner.
    pub owner: Option<String>,
    /// Only this priority.
    pub priority: Option<String>,
    /// Only this cause.
    pub root_cause: Option<String>,
}

/// A test that may be flaky.
#[derive(Debug, Clone)]
pub struct FlakyRow {
    /// The test.
    pub case: TestCaseId,
    /// Its state in the lane.
    pub state: TestState,
}

/// The tests of a lane that may be flaky, in no particular order.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn maybe_flaky(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    wanted: &FlakyFilter,
) -> Result<Vec<FlakyRow>> {
    let filter = flaky(session.backend(), project, lane, wanted);
    let mut found = Vec::new();
    for row in session.list(filter).await? {
        let stored = read_state(&row)?;
        if let Some(state) = stored.state {
            found.push(FlakyRow { case: stored.case, state });
        }
    }
    Ok(found)
}

fn flaky(backend: Backend, project: ProjectId, lane: i64, wanted: &FlakyFilter) -> Filter {
    let base = concat!(
        "SELECT ",
        state_columns!(),
        " FROM test_state s JOIN test_cases c ON c.project_id = s.project_id AND c.id = s.test_case_id \
         WHERE s.project_id = $1 AND s.lane_id = $2"
    );
    let filter = Filter::new(backend, base, args![project, lane]);
    let mut filter = match wanted.min_score {
        Some(score) => filter.and("s.flaky_score > 0 AND s.flaky_score >= ?", args![score]),
        None => filter.and("s.failed + s.flaky > 0", args![]),
    }
    .and_if("COALESCE(c.owner, c.code_owner) = ?", wanted.owner.clone())
    .and_if("c.priority = ?", wanted.priority.clone())
    .and_if("c.root_cause = ?", wanted.root_cause.clone());
    for tag in &wanted.tags {
        filter = filter.and(
            "EXISTS (SELECT 1 FROM test_case_tags t WHERE t.project_id = c.project_id AND t.tag = ? AND t.test_case_id = c.id)",
            args![tag],
        );
    }
    filter
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let word = || Some(String::new());
    let all = FlakyFilter {
        min_score: Some(1),
        tags: vec![String::new(), String::new()],
        owner: word(),
        priority: word(),
        root_cause: word(),
    };
    [FlakyFilter::default(), all].iter().map(|wanted| flaky(backend, ProjectId(1), 0, wanted)).collect()
}

/// A lane, and how many flaky tests it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlakyLane {
    /// The project.
    pub project: ProjectId,
    /// Its lane.
    pub lane: i64,
    /// The branch of its runs; `None` for the lane of all branches.
    pub branch: Option<String>,
    /// How many tests have at least the score.
    pub tests: i64,
}

/// The lanes of all branches, and of some, in some projects, as far as they
/// exist, each with how many tests have at least a score, up to `most`: of runs
/// in one environment, or of all.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn count_flaky_in(
    session: &mut Session,
    projects: Vec<i64>,
    mut branches: Vec<String>,
    environment: Option<&str>,
    score: i64,
    most: i64,
) -> Result<Vec<FlakyLane>> {
    // The lane of all branches names none.
    branches.push(String::new());
    let (of_all, of_branch) = match environment {
        None => (LaneKind::All, LaneKind::Branch),
        Some(_) => (LaneKind::Environment, LaneKind::BranchAndEnvironment),
    };
    let kinds = vec![of_all.code(), of_branch.code()];
    let environment = environment.unwrap_or_default();
    let args = args![projects, branches, score, most, kinds, environment];
    let rows = session.all(&COUNT_FLAKY_IN, args).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let project = ProjectId(r.int()?);
            let (kind, branch) = (r.int()?, r.text()?);
            let branch = (kind == of_branch.code()).then_some(branch);
            Ok(FlakyLane { project, lane: r.int()?, branch, tests: r.int()? })
        })
        .collect()
}

/// The tests with at least a score, each with its project and its lane: of each
/// project in the lane beside it.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn flaky_in(
    session: &mut Session,
    (projects, lanes): (Vec<i64>, Vec<i64>),
    score: i64,
) -> Result<Vec<(ProjectId, i64, FlakyRow)>> {
    read_flaky(&session.all(&FLAKY_IN, args![projects, lanes, score]).await?)
}

/// Those of them that passed no more when they ran last: of these some may be
/// broken and not flaky.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn unwell_flaky_in(
    session: &mut Session,
    (projects, lanes): (Vec<i64>, Vec<i64>),
    score: i64,
) -> Result<Vec<(ProjectId, i64, FlakyRow)>> {
    use TestCategory::{DidNotRun, Failed, Interrupted, Skipped};
    let unwell: Vec<i64> = [Failed, Interrupted, DidNotRun, Skipped].map(TestCategory::code).to_vec();
    read_flaky(&session.all(&UNWELL_FLAKY_IN, args![projects, lanes, score, unwell]).await?)
}

fn read_flaky(rows: &[Row]) -> Result<Vec<(ProjectId, i64, FlakyRow)>> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let (project, lane, stored) = read_state_of(row)?;
        if let Some(state) = stored.state {
            found.push((project, lane, FlakyRow { case: stored.case, state }));
        }
    }
    Ok(found)
}

/// The states of some tests in a lane, in no particular order.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn states_of(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    cases: Vec<i64>,
) -> Result<Vec<(TestCaseId, TestState)>> {
    let mut found = Vec::new();
    for row in session.all(&STATES_OF, args![project, lane, cases]).await? {
        let stored = read_state(&row)?;
        if let Some(state) = stored.state {
            found.push((stored.case, state));
        }
    }
    Ok(found)
}

/// Newest durations of a test.
#[derive(Debug, Clone)]
pub struct Durations {
    /// The test.
    pub case: TestCaseId,
    /// Its newest execution.
    pub last_execution: ExecutionId,
    /// Durations of its newest passed executions, ms, oldest first.
    pub passed_ms: Vec<i64>,
    /// Timed out ones among the same newest executions.
    pub timed_out: i64,
    /// Failed ones, timed out ones included.
    pub failed: i64,
}

/// The durations of the newest `runs` passed executions of each test of a
/// lane that has any and that ran on a day or later. Bounded by the tests of the project.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn durations(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    runs: usize,
    since: Option<Day>,
) -> Result<Vec<Durations>> {
    let since = since.map_or(i64::MIN, |day| day.0);
    let rows = session.all(&DURATIONS, args![project, lane, since]).await?;
    rows.iter().filter_map(|row| read_durations(&mut row.reader(), runs).transpose()).collect()
}

/// [`durations`] of the tests that ever timed out in one lane of each of some
/// projects.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn durations_of_timed_out(
    session: &mut Session,
    LaneOfEach { projects, lane }: LaneOfEach,
    runs: usize,
) -> Result<Vec<(ProjectId, Durations)>> {
    let asked = args![projects, lane.kind.code(), &lane.branch, &lane.environment];
    let mut found = Vec::new();
    for row in session.all(&DURATIONS_OF_TIMED_OUT, asked).await? {
        let mut r = row.reader();
        if let Some(durations) = read_durations(&mut r, runs)? {
            found.push((ProjectId(r.int()?), durations));
        }
    }
    Ok(found)
}

fn read_durations(r: &mut Reader<'_>, runs: usize) -> Result<Option<Durations>> {
    let (case, last_execution) = (TestCaseId(r.int()?), ExecutionId(r.int()?));
    let newest = passed_durations(&r.bytes()?, &r.bytes()?, runs)
        .map_err(|_| crate::StoreError::Damaged("the state of a test"))?;
    Ok((!newest.passed_ms.is_empty()).then_some(Durations {
        case,
        last_execution,
        passed_ms: newest.passed_ms,
        timed_out: newest.timed_out,
        failed: newest.failed,
    }))
}

/// Start of the last UTC day on which each of some tests failed or flaked,
/// within the days given, be it in a run that failed as a whole.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn last_failing_days(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    cases: Vec<i64>,
    since: Day,
    until: Day,
) -> Result<Vec<(TestCaseId, Timestamp)>> {
    let rows = session.all(&LAST_FAILING_DAYS, args![project, lane, since.0, until.0, cases]).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut r = row.reader();
        let case = TestCaseId(r.int()?);
        found.extend(r.opt_int()?.map(|day| (case, Day(day).start())));
    }
    Ok(found)
}
