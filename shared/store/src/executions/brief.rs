//! Executions with only what comparisons, counts and time lines need: a whole
//! run is read in one range of the primary key.

use std::collections::{BTreeMap, HashMap};

use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::test_state::ExecutionFlags;
use callboard_domain::time::{Day, Timestamp};

use super::Worker;
use crate::db::{Backend, Filter, Row, Session, args, statements};
use crate::runs::RunRow;
use crate::{Result, StoreError};

/// An execution in short.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BriefRow {
    /// Id.
    pub id: ExecutionId,
    /// Test case.
    pub test_case: TestCaseId,
    /// Browser project within the project.
    pub browser_id: i64,
    /// Outcome.
    pub outcome: Outcome,
    /// What is remarkable about it.
    pub flags: ExecutionFlags,
    /// Highest retry.
    pub retries: i64,
    /// Duration of the deciding attempt, ms.
    pub duration_ms: i64,
    /// Sum over all attempts, ms.
    pub total_duration_ms: i64,
    /// Start of the earliest attempt.
    pub started_at: Option<Timestamp>,
    /// Worker of the deciding attempt.
    pub worker_index: Option<i64>,
    /// Its slot among the parallel workers.
    pub parallel_index: Option<i64>,
    /// Shard of the deciding attempt.
    pub shard_index: Option<i64>,
    /// Line of the test.
    pub line: Option<i64>,
    /// Cluster of its failure.
    pub cluster: Option<ClusterId>,
}

impl BriefRow {
    /// What tells it from the others of its run.
    #[must_use]
    pub const fn series(&self) -> (TestCaseId, i64) {
        (self.test_case, self.browser_id)
    }
}

macro_rules! brief_columns {
    () => {
        "e.id, e.test_case_id, e.browser_id, e.outcome, e.flags, e.retries, e.duration, e.total_duration, \
         e.started_at, e.worker_index, e.parallel_index, e.shard_index, e.line, e.cluster_id"
    };
}

macro_rules! select_brief {
    ($tail:literal) => {
        concat!("SELECT ", brief_columns!(), " FROM executions e ", $tail)
    };
}

statements! {
    /// A part of a run's executions by id.
    OF_RUN = select_brief!("WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 ORDER BY e.id LIMIT $5");
    /// Failures of a run outside of quarantine that are new: of tests that passed before, or of some clusters.
    NEW_FAILURES = select_brief!("WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 AND e.outcome <= 2 \
        AND (e.flags & 16) = 0 AND ((e.flags & 2) <> 0 OR e.cluster_id in_ints($5)) ORDER BY e.id LIMIT $6");
    /// Tests of a run that pass again.
    FIXED = select_brief!("WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 AND (e.flags & 8) <> 0 ORDER BY e.id LIMIT $5");
    /// Lines on which some tests stood, each in its own run. ix: executions_history
    LINES_OF_TESTS = "SELECT e.run_id, e.test_case_id, e.line FROM json_each($2) asked CROSS JOIN executions e \
        WHERE e.project_id = $1 AND e.day = asked.value ->> 0 AND e.test_case_id = asked.value ->> 2 \
        AND e.run_id = asked.value ->> 1",
        postgres "SELECT e.run_id, e.test_case_id, e.line FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) \
        AS asked(day, run_id, test_id) CROSS JOIN LATERAL (SELECT * FROM executions x WHERE x.project_id = $1 \
        AND x.day = asked.day AND x.test_case_id = asked.test_id AND x.run_id = asked.run_id OFFSET 0) AS e";
    /// Durations of the newest passes of some tests on some days before a run in its lane, at most so many of each in a
    /// browser project, newest first. ix: executions_history
    PASSES_BEFORE = "SELECT o.test_case_id, o.browser_id, o.duration FROM (SELECT e.test_case_id, e.browser_id, e.duration, \
        ROW_NUMBER() OVER (PARTITION BY e.test_case_id, e.browser_id ORDER BY r.order_at DESC, e.id DESC) AS place \
        FROM executions e JOIN test_runs r ON r.project_id = e.project_id AND r.id = e.run_id \
        WHERE e.project_id = $1 AND e.day in_ints($2) AND e.test_case_id in_ints($3) AND e.lane_id = $4 AND e.outcome IN (3, 7) \
        AND (r.order_at, e.run_id) < ($5, $6)) o WHERE o.place <= $7 ORDER BY o.place";
    /// Executions of a run by their outcome and flags.
    BY_FLAGS = "SELECT outcome, flags, COUNT(*) FROM executions \
        WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4 GROUP BY outcome, flags";
    /// How many clusters a run is the first to show. PK, bounded by the clusters of the run
    COUNT_NEW = "SELECT COUNT(*) FROM cluster_runs k JOIN failure_clusters c ON c.project_id = k.project_id AND c.id = k.cluster_id \
        WHERE k.project_id = $1 AND k.run_id = $2 AND c.first_run_id = $2";
    /// The workers of a run that began with a test.
    WORKERS = concat!("SELECT DISTINCT COALESCE(e.shard_index, 0) AS shard, ", worker_slot!(), " AS slot FROM executions e \
        WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 AND e.started_at IS NOT NULL ORDER BY shard, slot LIMIT $5");
    /// Executions of a run by file and outcome.
    BY_FILE = "SELECT c.file_path, e.outcome, COUNT(*), CAST(SUM(e.total_duration) AS BIGINT) FROM executions e \
        JOIN test_cases c ON c.project_id = e.project_id AND c.id = e.test_case_id \
        WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 GROUP BY c.file_path, e.outcome";
    /// Tests of a run that did not run for one of some reasons.
    NOT_RUN_FOR = "SELECT COUNT(*) FROM executions WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4 \
        AND outcome = $5 AND reason in_texts($6)";
    /// Of the tests of a run with some tags: how many fail, without those in quarantine.
    BY_TAG = "SELECT t.tag, CAST(SUM(CASE WHEN e.rank = 1 AND (e.flags & $6) = 0 THEN 1 ELSE 0 END) AS BIGINT) FROM executions e \
        JOIN test_case_tags t ON t.project_id = e.project_id AND t.test_case_id = e.test_case_id \
        WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 AND t.tag in_texts($5) GROUP BY t.tag";
}

fn read(row: &Row) -> Result<BriefRow> {
    let mut r = row.reader();
    Ok(BriefRow {
        id: ExecutionId(r.int()?),
        test_case: TestCaseId(r.int()?),
        browser_id: r.int()?,
        outcome: outcome(r.int()?)?,
        flags: ExecutionFlags::from_bits(r.int()?),
        retries: r.int()?,
        duration_ms: r.int()?,
        total_duration_ms: r.int()?,
        started_at: r.opt_time()?,
        worker_index: r.opt_int()?,
        parallel_index: r.opt_int()?,
        shard_index: r.opt_int()?,
        line: r.opt_int()?,
        cluster: r.opt_int()?.map(ClusterId),
    })
}

fn outcome(code: i64) -> Result<Outcome> {
    Outcome::from_code(code).ok_or(StoreError::Damaged("an unknown outcome"))
}

/// Executions of a run behind an id, at most `limit`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    after: Option<ExecutionId>,
    limit: i64,
) -> Result<Vec<BriefRow>> {
    let (low, high) = ExecutionId::range_of(run);
    let low = after.map_or(low, |after| after.get().max(low));
    session.all(&OF_RUN, args![project, run, low, high, limit]).await?.iter().map(read).collect()
}

/// Failures of a run outside of quarantine that are new: of tests that passed before, or of some clusters; at most `limit`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn new_failures(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    new_clusters: Vec<i64>,
    limit: i64,
) -> Result<Vec<BriefRow>> {
    let (low, high) = ExecutionId::range_of(run);
    let args = args![project, run, low, high, new_clusters, limit];
    session.all(&NEW_FAILURES, args).await?.iter().map(read).collect()
}

/// Tests of a run that failed before and pass now, at most `limit`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn fixed(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    limit: i64,
) -> Result<Vec<BriefRow>> {
    let (low, high) = ExecutionId::range_of(run);
    session.all(&FIXED, args![project, run, low, high, limit]).await?.iter().map(read).collect()
}

/// Durations (ms) of the newest passes of some tests in the lane of a run and
/// before it, by test and browser project, oldest first: at most `limit` of
/// each, out of the `days` up to the run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn passes_before(
    session: &mut Session,
    run: &RunRow,
    days: i64,
    tests: Vec<i64>,
    limit: i64,
) -> Result<HashMap<(TestCaseId, i64), Vec<i64>>> {
    let last = run.order_at.day().0;
    let days: Vec<i64> = (last - days + 1..=last).collect();
    let args = args![run.project, days, tests, run.lane_id, run.order_at, run.id, limit];
    let mut found: HashMap<(TestCaseId, i64), Vec<i64>> = HashMap::new();
    for row in session.all(&PASSES_BEFORE, args).await? {
        let mut r = row.reader();
        let series = (TestCaseId(r.int()?), r.int()?);
        found.entry(series).or_default().push(r.int()?);
    }
    found.values_mut().for_each(|durations| durations.reverse());
    Ok(found)
}

/// Where some tests stood in some runs, of each of which the day is known: the run
/// and the line of each execution, if it has one.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lines_of_tests(
    session: &mut Session,
    project: ProjectId,
    asked: &[(Day, RunId, TestCaseId)],
) -> Result<Vec<(RunId, TestCaseId, Option<i64>)>> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let days: Vec<i64> = asked.iter().map(|(day, _, _)| day.0).collect();
    let runs = asked.iter().map(|(_, run, _)| run.get()).collect();
    let tests = asked.iter().map(|(_, _, test)| test.get()).collect();
    let rows = session.all(&LINES_OF_TESTS, args![project, vec![days, runs, tests]]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((RunId(r.int()?), TestCaseId(r.int()?), r.opt_int()?))
        })
        .collect()
}

/// Executions of a run that share outcome and flags.
#[derive(Debug, Clone, Copy)]
pub struct FlagGroup {
    /// Their outcome.
    pub outcome: Outcome,
    /// Their flags.
    pub flags: ExecutionFlags,
    /// How many there are.
    pub count: i64,
}

fn flag_group(row: &Row) -> Result<FlagGroup> {
    let mut r = row.reader();
    let (outcome, flags) = (outcome(r.int()?)?, ExecutionFlags::from_bits(r.int()?));
    Ok(FlagGroup { outcome, flags, count: r.int()? })
}

/// Counts the executions of a run by outcome and flags.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_flags(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<FlagGroup>> {
    let (low, high) = ExecutionId::range_of(run);
    session.all(&BY_FLAGS, args![project, run, low, high]).await?.iter().map(flag_group).collect()
}

/// [`by_flags`], and how many clusters the run is the first to show.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_flags_with_new_clusters(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
) -> Result<(Vec<FlagGroup>, i64)> {
    let (low, high) = ExecutionId::range_of(run);
    let reads = [(&BY_FLAGS, args![project, run, low, high]), (&COUNT_NEW, args![project, run])];
    let [groups, new] = session.each(reads).await?;
    let groups = groups.iter().map(flag_group).collect::<Result<_>>()?;
    let new = new.first().ok_or(StoreError::Damaged("a count without a number"))?;
    Ok((groups, new.reader().int()?))
}

/// What the tests of one file add up to in a run.
#[derive(Debug, Clone, Default)]
pub struct FileSums {
    /// Executions by outcome.
    pub outcomes: HashMap<Outcome, i64>,
    /// Sum over all attempts, ms.
    pub duration_ms: i64,
}

/// Counts the executions of a run by file.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_file(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
) -> Result<HashMap<String, FileSums>> {
    let (low, high) = ExecutionId::range_of(run);
    let mut files: HashMap<String, FileSums> = HashMap::new();
    for row in session.all(&BY_FILE, args![project, run, low, high]).await? {
        let mut r = row.reader();
        let sums = files.entry(r.text()?).or_default();
        let outcome = outcome(r.int()?)?;
        *sums.outcomes.entry(outcome).or_default() += r.int()?;
        sums.duration_ms += r.int()?;
    }
    Ok(files)
}

/// Those of some tags that a test of the run has, each with how many of its
/// tests fail, without those in quarantine.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_tag(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    tags: Vec<String>,
) -> Result<BTreeMap<String, i64>> {
    if tags.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (low, high) = ExecutionId::range_of(run);
    let args = args![project, run, low, high, tags, ExecutionFlags::QUARANTINED.bits()];
    let rows = session.all(&BY_TAG, args).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((r.text()?, r.int()?))
        })
        .collect()
}

/// How many tests of a run did not run for one of some reasons.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn not_run_for(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    reasons: Vec<String>,
) -> Result<i64> {
    let (low, high) = ExecutionId::range_of(run);
    let args = args![project, run, low, high, Outcome::DidNotRun.code(), reasons];
    session.one(&NOT_RUN_FOR, args).await?.reader().int()
}

/// Place in a time line: worker, start and id.
pub type TimeKey = (i64, i64, i64);

/// Executions of a run that say when and on which worker they ran, by worker
/// and start; sorted within the run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn timeline(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    worker: Option<i64>,
    after: Option<TimeKey>,
    limit: i64,
) -> Result<Vec<BriefRow>> {
    let filter = by_time(session.backend(), project, run, worker, after, limit);
    session.list(filter).await?.iter().map(read).collect()
}

/// The workers of a run that began with a test, up to `most`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn workers(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    most: i64,
) -> Result<Vec<Worker>> {
    let (low, high) = ExecutionId::range_of(run);
    let rows = session.all(&WORKERS, args![project, run, low, high, most]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(Worker { shard: r.int()?, slot: r.int()? })
        })
        .collect()
}

fn by_time(
    backend: Backend,
    project: ProjectId,
    run: RunId,
    worker: Option<i64>,
    after: Option<TimeKey>,
    limit: i64,
) -> Filter {
    let (low, high) = ExecutionId::range_of(run);
    let base = select_brief!(
        "WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 \
         AND e.worker_index IS NOT NULL AND e.started_at IS NOT NULL"
    );
    let filter = Filter::new(backend, base, args![project, run, low, high]);
    let filter = filter.and_if("e.worker_index = ?", worker);
    let filter = match after {
        Some((worker, at, id)) => {
            filter.and("(e.worker_index, e.started_at, e.id) > (?, ?, ?)", args![worker, at, id])
        }
        None => filter,
    };
    filter.end("ORDER BY e.worker_index, e.started_at, e.id LIMIT ?", args![limit])
}

/// What the time line can look like, for the test that prepares every
/// statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    vec![
        by_time(backend, ProjectId(1), RunId(1), None, None, 1),
        by_time(backend, ProjectId(1), RunId(1), Some(1), Some((1, 1, 1)), 1),
    ]
}
