//! Executions: one row per test case, run and browser project, its attempts
//! inside. Rows of a run are one contiguous id range; the history of a test is
//! read day by day.

use std::collections::HashMap;

use callboard_domain::attempts::{AttemptFacts, EvidenceSlice};
use callboard_domain::failure::Fingerprint;
use callboard_domain::ids::{ClusterId, ExecutionId, PackId, ProjectId, RunId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::test_state::{ExecutionFlags, Predecessors};
use callboard_domain::time::{Day, Timestamp};
use callboard_domain::totals::Totals;

use crate::db::{Bulk, Column, Reader, Row, Session, args, statements};
use crate::rollups::states;
use crate::{Result, StoreError};

/// A stored execution.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionRow {
    /// Id.
    pub id: ExecutionId,
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// Test case.
    pub test_case: TestCaseId,
    /// UTC day of the run's order key.
    pub day: Day,
    /// Most specific lane of the run.
    pub lane_id: i64,
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
    /// Time its retries cost, ms; `None` in rows that were written before that
    /// was known, which cost what did not decide.
    pub retries_ms: Option<i64>,
    /// Repetitions of `--repeat-each` beyond the first one.
    pub extra_repetitions: i64,
    /// Start of the earliest attempt.
    pub started_at: Option<Timestamp>,
    /// What the deciding attempt told.
    pub facts: AttemptFacts,
    /// Number of stored traces.
    pub traces: i64,
    /// Number of stored attachments.
    pub files: i64,
    /// Attempts as JSON, when there is more to know than this row says.
    pub attempts: Option<String>,
    /// Evidence of the deciding attempt.
    pub evidence: Option<EvidenceSlice>,
    /// The cluster its failure counts for. What leads there is the fingerprint
    /// in `facts`, that of the attempt that failed last.
    pub cluster: Option<ClusterId>,
    /// The joined test under whose identity it came; `None` for the test's own.
    pub reported_as: Option<TestCaseId>,
}

impl ExecutionRow {
    /// The test under whose path it came.
    #[must_use]
    pub fn came_as(&self) -> TestCaseId {
        self.reported_as.unwrap_or(self.test_case)
    }

    /// Time spent on attempts that did not matter in the end, ms: what a flaky
    /// or failing test costs beside itself. 0 when it passed on the first attempt.
    #[must_use]
    pub fn lost_ms(&self) -> i64 {
        lost_ms(self.outcome, self.retries_ms, self.total_duration_ms - self.duration_ms)
    }
}

/// [`ExecutionRow::lost_ms`] by what is stored of it, and by the time of
/// attempts that did not decide.
fn lost_ms(outcome: Outcome, stored: Option<i64>, others_ms: i64) -> i64 {
    match outcome {
        Outcome::Flaky | Outcome::Failed | Outcome::TimedOut => stored.unwrap_or(others_ms.max(0)),
        _ => 0,
    }
}

macro_rules! columns {
    () => {
        "e.id, e.project_id, e.run_id, e.test_case_id, e.day, e.lane_id, e.browser_id, e.outcome, e.flags, e.retries, \
         e.duration, e.total_duration, e.timeout_ms, e.started_at, e.worker_index, e.parallel_index, e.shard_index, \
         e.line, e.col, e.error_summary, e.slowest_step, e.slowest_ms, e.wasted_ms, e.lcp, e.inp, e.ttfb, e.cls_milli, \
         e.n_steps, e.n_console, e.n_network, e.n_traces, e.n_files, e.reason, e.blocked_by, e.raw_status, e.attempts, \
         e.pack_id, e.pack_offset, e.pack_length, e.fingerprint, e.cluster_id, e.lost_ms, \
         e.skip_reason, e.extra_repetitions, e.reported_as"
    };
}

macro_rules! select_execution {
    ($tail:literal) => {
        concat!("SELECT ", columns!(), " FROM executions e ", $tail)
    };
}

/// The place of the worker that ran an execution: that of one that never
/// started, told as -1 or not at all, is the first.
macro_rules! worker_slot {
    () => {
        "CASE WHEN COALESCE(e.parallel_index, e.worker_index) > 0 THEN COALESCE(e.parallel_index, e.worker_index) ELSE 0 END"
    };
}

// After the macros, which they use.
pub mod brief;
pub mod counting;
pub mod grid;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod moving;

pub use history::{History, HistoryFilter, TriedExecution, Walk};
pub use list::{
    ExecutionFilter, ExecutionOrder, FlagMask, Recurring, Worker, count, failing_of_project, list,
};
pub use moving::{of_tests, outside_lane, set_lane, set_tests};

statements! {
    /// One execution.
    BY_ID = select_execution!("WHERE e.project_id = $1 AND e.run_id = $2 AND e.id = $3");
    /// Some executions of some runs. PK
    BY_IDS = select_execution!("WHERE e.project_id = $1 AND e.run_id in_ints($2) AND e.id in_ints($3)");
    /// The rows of a run behind an id. PK
    OF_RUN_AFTER = select_execution!("WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 ORDER BY e.id LIMIT $5");
    /// The rows of a run behind an id that hold a list of attempts. PK
    WITH_ATTEMPTS_AFTER = select_execution!("WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 \
        AND e.attempts IS NOT NULL ORDER BY e.id LIMIT $5");
    /// The rows of a batch in one run. Told to look for each test, PostgreSQL does not read a day of the project to find
    /// them. ix: executions_history
    OF_BATCH = select_execution!("WHERE e.project_id = $1 AND e.day = $2 AND e.run_id = $3 AND e.test_case_id in_ints($4)"),
        postgres concat!("SELECT ", columns!(), " FROM unnest($4::bigint[]) AS test(id) CROSS JOIN LATERAL \
        (SELECT * FROM executions x WHERE x.project_id = $1 AND x.day = $2 AND x.test_case_id = test.id AND x.run_id = $3 \
        OFFSET 0) AS e");
    /// Durations of a run that count for its mean and percentile.
    /// One list in one row: every row is a message of SQLite's thread.
    DURATIONS = "SELECT json_group_array(duration) FROM executions \
        WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4 AND outcome NOT IN (5, 6)",
        postgres "SELECT COALESCE(json_agg(duration), '[]')::text FROM executions \
        WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4 AND outcome NOT IN (5, 6)";
    /// Timeouts of some executions.
    TIMEOUTS = "SELECT id, timeout_ms, flags FROM executions WHERE project_id = $1 AND run_id in_ints($2) AND id in_ints($3)";
    /// Timeouts of some executions of several projects, by one look for each.
    TIMEOUTS_IN = "SELECT e.id, e.timeout_ms, e.flags FROM json_each($1) p CROSS JOIN executions e WHERE e.project_id = p.value \
        AND e.run_id = json_extract($2, '$[' || p.key || ']') AND e.id = json_extract($3, '$[' || p.key || ']')",
        postgres "SELECT e.id, e.timeout_ms, e.flags FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS w(project_id, run_id, id) \
        JOIN executions e ON e.project_id = w.project_id AND e.run_id = w.run_id AND e.id = w.id";
    /// Executions of a run by outcome, with their sums.
    SUMS = "SELECT outcome, COUNT(*), CAST(SUM(total_duration) AS BIGINT), CAST(SUM(wasted_ms) AS BIGINT), \
        CAST(SUM(CASE WHEN outcome NOT IN (1, 2, 3) THEN 0 WHEN lost_ms IS NOT NULL THEN lost_ms \
        WHEN total_duration > duration THEN total_duration - duration ELSE 0 END) AS BIGINT), CAST(SUM(extra_repetitions) AS BIGINT) \
        FROM executions \
        WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4 GROUP BY outcome";
    /// Decided executions of a run by where they ran, and those of them with a failing attempt.
    PLACES = "SELECT browser_id, shard_index, COUNT(*), CAST(SUM(CASE WHEN outcome = 7 THEN 0 ELSE 1 END) AS BIGINT) \
        FROM executions WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4 AND outcome IN (1, 2, 3, 7) \
        GROUP BY browser_id, shard_index";
    /// Counts stored files on their execution.
    COUNT_FILES = "UPDATE executions SET n_traces = n_traces + $4, n_files = n_files + $5 \
        WHERE project_id = $1 AND run_id = $2 AND id = $3";
}

static UPSERT: Bulk = Bulk::new(
    "executions::UPSERT",
    4,
    "INSERT INTO executions (id, project_id, run_id, test_case_id, day, lane_id, browser_id, outcome, rank, flags, retries, \
     duration, total_duration, timeout_ms, started_at, worker_index, parallel_index, shard_index, line, col, error_summary, \
     slowest_step, slowest_ms, wasted_ms, lcp, inp, ttfb, cls_milli, n_steps, n_console, n_network, n_traces, n_files, \
     reason, blocked_by, raw_status, attempts, pack_id, pack_offset, pack_length, fingerprint, cluster_id, lost_ms, skip_reason, \
     extra_repetitions, reported_as) SELECT r.id, $1, $2, r.test_case_id, $3, $4, r.browser_id, r.outcome, r.rank, r.flags, r.retries, r.duration, \
     r.total_duration, r.timeout_ms, r.started_at, r.worker_index, r.parallel_index, r.shard_index, r.line, r.col, \
     r.error_summary, r.slowest_step, r.slowest_ms, r.wasted_ms, r.lcp, r.inp, r.ttfb, r.cls_milli, r.n_steps, \
     r.n_console, r.n_network, 0, 0, r.reason, r.blocked_by, r.raw_status, r.attempts, r.pack_id, r.pack_offset, \
     r.pack_length, r.fingerprint, r.cluster_id, r.lost_ms, r.skip_reason, r.extra_repetitions, r.reported_as FROM",
    &[
        Column::Int("id"),
        Column::Int("test_case_id"),
        Column::Int("browser_id"),
        Column::Int("outcome"),
        Column::Int("rank"),
        Column::Int("flags"),
        Column::Int("retries"),
        Column::Int("duration"),
        Column::Int("total_duration"),
        Column::Int("timeout_ms"),
        Column::Int("started_at"),
        Column::Int("worker_index"),
        Column::Int("parallel_index"),
        Column::Int("shard_index"),
        Column::Int("line"),
        Column::Int("col"),
        Column::Text("error_summary"),
        Column::Text("slowest_step"),
        Column::Int("slowest_ms"),
        Column::Int("wasted_ms"),
        Column::Int("lcp"),
        Column::Int("inp"),
        Column::Int("ttfb"),
        Column::Int("cls_milli"),
        Column::Int("n_steps"),
        Column::Int("n_console"),
        Column::Int("n_network"),
        Column::Text("reason"),
        Column::Text("blocked_by"),
        Column::Text("raw_status"),
        Column::Text("attempts"),
        Column::Int("pack_id"),
        Column::Int("pack_offset"),
        Column::Int("pack_length"),
        Column::Bytes("fingerprint"),
        Column::Int("cluster_id"),
        Column::Int("lost_ms"),
        Column::Text("skip_reason"),
        Column::Int("extra_repetitions"),
        Column::Int("reported_as"),
    ],
    "WHERE true ON CONFLICT (project_id, day, test_case_id, run_id, browser_id) DO UPDATE SET \
     outcome = excluded.outcome, rank = excluded.rank, flags = excluded.flags, retries = excluded.retries, \
     duration = excluded.duration, total_duration = excluded.total_duration, timeout_ms = excluded.timeout_ms, \
     started_at = excluded.started_at, worker_index = excluded.worker_index, parallel_index = excluded.parallel_index, \
     shard_index = excluded.shard_index, line = excluded.line, col = excluded.col, error_summary = excluded.error_summary, \
     slowest_step = excluded.slowest_step, slowest_ms = excluded.slowest_ms, wasted_ms = excluded.wasted_ms, \
     lcp = excluded.lcp, inp = excluded.inp, ttfb = excluded.ttfb, cls_milli = excluded.cls_milli, \
     n_steps = excluded.n_steps, n_console = excluded.n_console, n_network = excluded.n_network, \
     reason = excluded.reason, blocked_by = excluded.blocked_by, raw_status = excluded.raw_status, \
     attempts = excluded.attempts, pack_id = excluded.pack_id, pack_offset = excluded.pack_offset, \
     pack_length = excluded.pack_length, fingerprint = excluded.fingerprint, cluster_id = excluded.cluster_id, lost_ms = excluded.lost_ms, \
     skip_reason = excluded.skip_reason, extra_repetitions = excluded.extra_repetitions",
);

pub(crate) static BULKS: &[&Bulk] = &[&UPSERT];

/// Executions of a cluster with their runs, to which conditions are added. ix: executions_cluster
pub(crate) const OCCURRENCES: &str = select_execution!(
    "JOIN test_runs r ON r.project_id = e.project_id AND r.id = e.run_id \
     WHERE e.project_id = $1 AND e.cluster_id = $2 AND e.cluster_id IS NOT NULL"
);
/// Failing executions that no cluster explains, with their runs. ix: executions_rank
pub(crate) const UNCLUSTERED: &str = select_execution!(
    "JOIN test_runs r ON r.project_id = e.project_id AND r.id = e.run_id \
     WHERE e.project_id = $1 AND e.rank = 1 AND e.rank < 6 AND e.cluster_id IS NULL"
);

/// Reads a row of these.
pub(crate) fn read_occurrence(row: &Row) -> Result<ExecutionRow> {
    read(row)
}

fn read(row: &Row) -> Result<ExecutionRow> {
    read_from(row.reader())
}

fn read_from(mut r: Reader<'_>) -> Result<ExecutionRow> {
    let (id, project, run, test_case) = (r.int()?, r.int()?, r.int()?, r.int()?);
    let (day, lane_id, browser_id, outcome) = (r.int()?, r.int()?, r.int()?, r.int()?);
    let flags = ExecutionFlags::from_bits(r.int()?);
    let (retries, duration_ms, total_duration_ms, timeout_ms) = (r.int()?, r.int()?, r.int()?, r.opt_int()?);
    let started_at = r.opt_time()?;
    let facts = AttemptFacts {
        timeout_ms,
        worker_index: r.opt_int()?,
        parallel_index: r.opt_int()?,
        shard_index: r.opt_int()?,
        line: r.opt_int()?,
        column: r.opt_int()?,
        error_summary: r.opt_text()?,
        slowest_step: r.opt_text()?,
        slowest_ms: r.opt_int()?,
        wasted_ms: r.int()?,
        lcp: r.opt_int()?,
        inp: r.opt_int()?,
        ttfb: r.opt_int()?,
        cls_milli: r.opt_int()?,
        steps: r.int()?,
        console: r.int()?,
        network: r.int()?,
        expected_failure: flags.contains(ExecutionFlags::EXPECTED_FAILURE),
        marked_slow: flags.contains(ExecutionFlags::MARKED_SLOW),
        ..AttemptFacts::default()
    };
    let (traces, files) = (r.int()?, r.int()?);
    let facts = AttemptFacts {
        did_not_run_reason: r.opt_text()?,
        blocked_by: r.opt_text()?,
        raw_status: r.opt_text()?,
        ..facts
    };
    let attempts = r.opt_text()?;
    let evidence = match (r.opt_int()?, r.opt_int()?, r.opt_int()?) {
        (Some(pack), Some(offset), Some(length)) => {
            Some(EvidenceSlice { pack: PackId(pack), offset, length })
        }
        _ => None,
    };
    let fingerprint = r.opt_bytes()?.and_then(|bytes| Fingerprint::from_bytes(&bytes));
    let cluster = r.opt_int()?.map(ClusterId);
    let retries_ms = r.opt_int()?;
    let facts = AttemptFacts { fingerprint, skip_reason: r.opt_text()?, ..facts };
    Ok(ExecutionRow {
        id: ExecutionId(id),
        project: ProjectId(project),
        run: RunId(run),
        test_case: TestCaseId(test_case),
        day: Day(day),
        lane_id,
        browser_id,
        outcome: Outcome::from_code(outcome).ok_or(StoreError::Damaged("an unknown outcome"))?,
        flags,
        retries,
        duration_ms,
        total_duration_ms,
        started_at,
        facts,
        traces,
        files,
        attempts,
        evidence,
        cluster,
        retries_ms,
        extra_repetitions: r.int()?,
        reported_as: r.opt_int()?.map(TestCaseId),
    })
}

/// Where the rows of one batch belong.
#[derive(Debug, Clone, Copy)]
pub struct RunPlace {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// UTC day of the run's order key.
    pub day: Day,
    /// Most specific lane.
    pub lane_id: i64,
}

/// The stored rows of a batch.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_batch(
    session: &mut Session,
    place: RunPlace,
    test_cases: Vec<i64>,
) -> Result<Vec<ExecutionRow>> {
    let rows = session.all(&OF_BATCH, args![place.project, place.day, place.run, test_cases]).await?;
    rows.iter().map(read).collect()
}

/// [`of_batch`], with what came before the tests in the run's own lane.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_batch_with_predecessors(
    session: &mut Session,
    place: RunPlace,
    test_cases: Vec<i64>,
) -> Result<(Vec<ExecutionRow>, HashMap<TestCaseId, Predecessors>)> {
    let batch = (&OF_BATCH, args![place.project, place.day, place.run, test_cases.clone()]);
    let before = (&states::PREDECESSORS, args![place.project, place.lane_id, test_cases]);
    let [rows, before] = session.each([batch, before]).await?;
    Ok((rows.iter().map(read).collect::<Result<_>>()?, states::read_predecessors(&before)?))
}

/// Writes the rows of a batch; file counts of existing rows are kept.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn upsert(
    session: &mut Session,
    place: RunPlace,
    executions: impl Iterator<Item = &ExecutionRow>,
) -> Result<()> {
    let mut rows = UPSERT.rows();
    for execution in executions {
        let f = &execution.facts;
        rows.push([
            execution.id.into(),
            execution.test_case.into(),
            execution.browser_id.into(),
            execution.outcome.code().into(),
            execution.outcome.rank().into(),
            execution.flags.bits().into(),
            execution.retries.into(),
            execution.duration_ms.into(),
            execution.total_duration_ms.into(),
            f.timeout_ms.into(),
            execution.started_at.into(),
            f.worker_index.into(),
            f.parallel_index.into(),
            f.shard_index.into(),
            f.line.into(),
            f.column.into(),
            f.error_summary.clone().into(),
            f.slowest_step.clone().into(),
            f.slowest_ms.into(),
            f.wasted_ms.into(),
            f.lcp.into(),
            f.inp.into(),
            f.ttfb.into(),
            f.cls_milli.into(),
            f.steps.into(),
            f.console.into(),
            f.network.into(),
            f.did_not_run_reason.clone().into(),
            f.blocked_by.clone().into(),
            f.raw_status.clone().into(),
            execution.attempts.clone().into(),
            execution.evidence.as_ref().map(|slice| slice.pack.get()).into(),
            execution.evidence.as_ref().map(|slice| slice.offset).into(),
            execution.evidence.as_ref().map(|slice| slice.length).into(),
            f.fingerprint.map(|fingerprint| fingerprint.0.to_vec()).into(),
            execution.cluster.map(ClusterId::get).into(),
            execution.retries_ms.into(),
            f.skip_reason.clone().into(),
            execution.extra_repetitions.into(),
            execution.reported_as.map(TestCaseId::get).into(),
        ]);
    }
    let scalars = args![place.project, place.run, place.day, place.lane_id];
    session.execute_bulk(&UPSERT, scalars, rows).await?;
    Ok(())
}

/// One execution.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, project: ProjectId, id: ExecutionId) -> Result<Option<ExecutionRow>> {
    session.first(&BY_ID, args![project, id.run(), id]).await?.as_ref().map(read).transpose()
}

/// Several executions by id; those that are gone are left out.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get_many(
    session: &mut Session,
    project: ProjectId,
    ids: &[ExecutionId],
) -> Result<Vec<ExecutionRow>> {
    let mut runs: Vec<i64> = ids.iter().map(|id| id.run().get()).collect();
    runs.sort_unstable();
    runs.dedup();
    let ids: Vec<i64> = ids.iter().map(|id| id.get()).collect();
    session.all(&BY_IDS, args![project, runs, ids]).await?.iter().map(read).collect()
}

/// At most `limit` executions of a run, by id.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn first_of_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    limit: i64,
) -> Result<Vec<ExecutionRow>> {
    of_run_after(session, project, run, None, limit).await
}

/// Executions of a run behind an id, in the order of their ids, at most `limit`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_run_after(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    after: Option<ExecutionId>,
    limit: i64,
) -> Result<Vec<ExecutionRow>> {
    let (low, high) = ExecutionId::range_of(run);
    let low = after.map_or(low, |after| after.get().max(low));
    session.all(&OF_RUN_AFTER, args![project, run, low, high, limit]).await?.iter().map(read).collect()
}

/// [`of_run_after`] of those executions that hold a list of attempts: the
/// others have one attempt, which their row describes.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn with_attempts_after(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    after: Option<ExecutionId>,
    limit: i64,
) -> Result<Vec<ExecutionRow>> {
    let (low, high) = ExecutionId::range_of(run);
    let low = after.map_or(low, |after| after.get().max(low));
    let rows = session.all(&WITH_ATTEMPTS_AFTER, args![project, run, low, high, limit]).await?;
    rows.iter().map(read).collect()
}

/// Durations (ms) of a run's executions that ran.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn durations(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<i64>> {
    let (low, high) = ExecutionId::range_of(run);
    let list = session.one(&DURATIONS, args![project, run, low, high]).await?.reader().text()?;
    serde_json::from_str(&list).map_err(|_| StoreError::Damaged("a list of durations"))
}

/// How many executions of a run there were in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceCount {
    /// Browser project.
    pub browser_id: i64,
    /// Shard; `None` outside shards.
    pub shard_index: Option<i64>,
    /// Decided ones.
    pub ran: usize,
    /// Those with a failing attempt.
    pub failed: usize,
}

/// Counts the decided executions of a run by browser project and shard.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn places(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<PlaceCount>> {
    let (low, high) = ExecutionId::range_of(run);
    let rows = session.all(&PLACES, args![project, run, low, high]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let (browser_id, shard_index) = (r.int()?, r.opt_int()?);
            let mut count = || -> Result<usize> { Ok(usize::try_from(r.int()?).unwrap_or_default()) };
            Ok(PlaceCount { browser_id, shard_index, ran: count()?, failed: count()? })
        })
        .collect()
}

/// What the executions of a run add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunSums {
    /// Totals.
    pub totals: Totals,
    /// Sum over all attempts, ms.
    pub tests_ms: i64,
    /// Sum of fixed waits, ms.
    pub wasted_ms: i64,
    /// Sum of [`ExecutionRow::lost_ms`].
    pub lost_ms: i64,
    /// Sum of [`ExecutionRow::extra_repetitions`].
    pub extra_repetitions: i64,
}

/// Counts the executions of a run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn sums(session: &mut Session, project: ProjectId, run: RunId) -> Result<RunSums> {
    let (low, high) = ExecutionId::range_of(run);
    let mut sums = RunSums::default();
    for row in session.all(&SUMS, args![project, run, low, high]).await? {
        let mut r = row.reader();
        let outcome = Outcome::from_code(r.int()?).ok_or(StoreError::Damaged("an unknown outcome"))?;
        sums.totals.count(outcome, r.int()?);
        sums.tests_ms += r.int()?;
        sums.wasted_ms += r.int()?;
        sums.lost_ms += r.int()?;
        sums.extra_repetitions += r.int()?;
    }
    Ok(sums)
}

/// Adds to the file counts of an execution.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn count_files(
    session: &mut Session,
    project: ProjectId,
    id: ExecutionId,
    traces: i64,
    files: i64,
) -> Result<()> {
    session.execute(&COUNT_FILES, args![project, id.run(), id, traces, files]).await?;
    Ok(())
}

/// The timeouts (ms) of some executions, and whether their tests are marked as
/// slow.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn timeouts(
    session: &mut Session,
    project: ProjectId,
    ids: Vec<i64>,
) -> Result<HashMap<ExecutionId, (Option<i64>, bool)>> {
    let mut runs: Vec<i64> = ids.iter().map(|id| ExecutionId(*id).run().get()).collect();
    runs.sort_unstable();
    runs.dedup();
    read_timeouts(&session.all(&TIMEOUTS, args![project, runs, ids]).await?)
}

/// [`timeouts`] of executions of several projects.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn timeouts_in(
    session: &mut Session,
    executions: Vec<(ProjectId, ExecutionId)>,
) -> Result<HashMap<ExecutionId, (Option<i64>, bool)>> {
    if executions.is_empty() {
        return Ok(HashMap::new());
    }
    let (projects, ids): (Vec<i64>, Vec<i64>) =
        executions.iter().map(|(project, id)| (project.get(), id.get())).unzip();
    let runs: Vec<i64> = executions.iter().map(|(_, id)| id.run().get()).collect();
    read_timeouts(&session.all(&TIMEOUTS_IN, args![projects, runs, ids]).await?)
}

fn read_timeouts(rows: &[Row]) -> Result<HashMap<ExecutionId, (Option<i64>, bool)>> {
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let (id, timeout) = (ExecutionId(r.int()?), r.opt_int()?);
            let flags = ExecutionFlags::from_bits(r.int()?);
            Ok((id, (timeout, flags.contains(ExecutionFlags::MARKED_SLOW))))
        })
        .collect()
}
