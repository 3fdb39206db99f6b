//! What ingest counts: which executions a cluster explains, by test, run and
//! day.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::time::{Day, Timestamp};

use super::{ClusterRow, ClusterStatus};
use crate::Result;
use crate::db::{Bulk, Column, Session, args, statements};

statements! {
    /// How often some tests failed for some clusters. PK
    TESTS = "SELECT cluster_id, test_case_id, n, first_at, last_at, last_execution_id FROM cluster_tests \
        WHERE project_id = $1 AND cluster_id in_ints($2) AND test_case_id in_ints($3)";
    /// Forgets tests that do not fail for some clusters any more. PK
    DROP_TESTS = "DELETE FROM cluster_tests WHERE project_id = $1 AND cluster_id in_ints($2) AND test_case_id in_ints($3) AND n <= 0";
    /// Forgets clusters that nothing of a run counts for any more. PK
    DROP_RUNS = "DELETE FROM cluster_runs WHERE project_id = $1 AND run_id = $2 AND cluster_id in_ints($3) AND n <= 0";
    /// Forgets a day of clusters on which nothing counts any more. PK
    DROP_DAYS = "DELETE FROM cluster_daily WHERE project_id = $1 AND cluster_id in_ints($2) AND day = $3 AND n <= 0";
    /// First and last occurrence of a test in a cluster. ix: executions_cluster
    SPAN_OF_TEST = "SELECT e.id, r.order_at FROM executions e JOIN test_runs r ON r.project_id = e.project_id AND r.id = e.run_id \
        WHERE e.project_id = $1 AND e.cluster_id = $2 AND e.test_case_id = $3 AND e.cluster_id IS NOT NULL ORDER BY r.order_at, e.id";
    /// Whether anything of a run counts for a cluster. PK
    IN_RUN = "SELECT n FROM cluster_runs WHERE project_id = $1 AND run_id = $2 AND cluster_id = $3";
    /// The run that shows a cluster first. ix: cluster_runs_of_cluster
    FIRST_RUN = "SELECT r.id, r.order_at FROM cluster_runs k JOIN test_runs r ON r.project_id = k.project_id AND r.id = k.run_id \
        WHERE k.project_id = $1 AND k.cluster_id = $2 ORDER BY r.order_at, r.id LIMIT 1";
    /// The run that shows a cluster last. ix: cluster_runs_of_cluster
    LAST_RUN = "SELECT r.id, r.order_at FROM cluster_runs k JOIN test_runs r ON r.project_id = k.project_id AND r.id = k.run_id \
        WHERE k.project_id = $1 AND k.cluster_id = $2 ORDER BY r.order_at DESC, r.id DESC LIMIT 1";
    /// The newest occurrence of a cluster in one run. ix: executions_cluster
    NEWEST_IN_RUN = "SELECT id, outcome FROM executions WHERE project_id = $1 AND cluster_id = $2 AND day = $3 AND id > $4 AND id <= $5 \
        AND cluster_id IS NOT NULL ORDER BY id DESC LIMIT 1";
}

static WRITE_TESTS: Bulk = Bulk::new(
    "clusters::WRITE_TESTS",
    1,
    "INSERT INTO cluster_tests (project_id, cluster_id, test_case_id, n, first_at, last_at, last_execution_id) \
     SELECT $1, r.cluster_id, r.test_case_id, r.n, r.first_at, r.last_at, r.last_execution_id FROM",
    &[
        Column::Int("cluster_id"),
        Column::Int("test_case_id"),
        Column::Int("n"),
        Column::Int("first_at"),
        Column::Int("last_at"),
        Column::Int("last_execution_id"),
    ],
    "WHERE true ON CONFLICT (project_id, cluster_id, test_case_id) DO UPDATE SET n = excluded.n, first_at = excluded.first_at, \
     last_at = excluded.last_at, last_execution_id = excluded.last_execution_id",
);

static ADD_RUNS: Bulk = Bulk::new(
    "clusters::ADD_RUNS",
    2,
    "INSERT INTO cluster_runs AS k (project_id, run_id, cluster_id, n, flaky_n) SELECT $1, $2, r.cluster_id, r.n, r.flaky_n FROM",
    &[Column::Int("cluster_id"), Column::Int("n"), Column::Int("flaky_n")],
    "WHERE true ON CONFLICT (project_id, run_id, cluster_id) DO UPDATE SET n = k.n + excluded.n, flaky_n = k.flaky_n + excluded.flaky_n",
);

static ADD_DAYS: Bulk = Bulk::new(
    "clusters::ADD_DAYS",
    2,
    "INSERT INTO cluster_daily AS k (project_id, cluster_id, day, n) SELECT $1, r.cluster_id, $2, r.n FROM",
    &[Column::Int("cluster_id"), Column::Int("n")],
    "WHERE true ON CONFLICT (project_id, cluster_id, day) DO UPDATE SET n = k.n + excluded.n",
);

static WRITE: Bulk = Bulk::new(
    "clusters::WRITE",
    2,
    "UPDATE failure_clusters AS c SET occurrences = r.occurrences, affected_tests = r.affected_tests, \
     first_run_id = r.first_run_id, first_execution_id = r.first_execution_id, first_seen_at = r.first_seen_at, \
     last_run_id = r.last_run_id, last_seen_at = r.last_seen_at, last_status = r.last_status, status = r.status, \
     status_at = r.status_at, snoozed_until = r.snoozed_until, fix_run_id = r.fix_run_id, fix_at = r.fix_at, \
     fix_commit = r.fix_commit, ttr_ms = r.ttr_ms, fix_verification = r.fix_verification, false_quiets = r.false_quiets, \
     is_quiet = r.is_quiet, \
     updated_at = $2 FROM",
    &[
        Column::Int("id"),
        Column::Int("occurrences"),
        Column::Int("affected_tests"),
        Column::Int("first_run_id"),
        Column::Int("first_execution_id"),
        Column::Int("first_seen_at"),
        Column::Int("last_run_id"),
        Column::Int("last_seen_at"),
        Column::Text("last_status"),
        Column::Text("status"),
        Column::Int("status_at"),
        Column::Int("snoozed_until"),
        Column::Int("fix_run_id"),
        Column::Int("fix_at"),
        Column::Text("fix_commit"),
        Column::Int("ttr_ms"),
        Column::Text("fix_verification"),
        Column::Int("false_quiets"),
        Column::Int("is_quiet"),
    ],
    "WHERE c.project_id = $1 AND c.id = r.id",
);

pub(crate) static BULKS: &[&Bulk] = &[&WRITE_TESTS, &ADD_RUNS, &ADD_DAYS, &WRITE];

/// The run whose executions are counted.
#[derive(Debug, Clone, Copy)]
pub struct CountedRun {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// Its order key.
    pub order_at: Timestamp,
    /// When its tests began; later than the order key for a run that was prepared before.
    pub start: Timestamp,
    /// Whether it ran on the default branch.
    pub is_default_branch: bool,
}

/// An execution that counts for a cluster, or no longer does.
#[derive(Debug, Clone, Copy)]
pub struct Occurrence {
    /// Cluster.
    pub cluster: ClusterId,
    /// Test.
    pub test_case: TestCaseId,
    /// Execution.
    pub execution: ExecutionId,
    /// How it ended.
    pub outcome: Outcome,
    /// 1 for one more, -1 for one less.
    pub sign: i64,
}

#[derive(Debug, Clone, Copy)]
struct TestCount {
    n: i64,
    first_at: i64,
    last_at: i64,
    last_execution: i64,
}

/// What counting did to the clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many more clusters are open and have occurrences.
    pub open: i64,
    /// Other runs that were the first to show a cluster, or are now.
    pub first_shown_by: BTreeSet<RunId>,
    /// Clusters that have their first occurrence.
    pub opened: Vec<ClusterId>,
    /// Clusters that were resolved or seemed to be fixed, and occurred again.
    pub reopened: Vec<ClusterId>,
}

/// Words of `fix_verification` of a cluster that occurred again.
const REGRESSED: &str = "regressed";

/// Counts occurrences. `clusters` are the locked rows of all clusters they
/// name; the executions themselves are written already. A resolved cluster
/// that a run shows which began after that is open again.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn apply(
    session: &mut Session,
    run: CountedRun,
    clusters: Vec<ClusterRow>,
    occurrences: &[Occurrence],
    now: Timestamp,
) -> Result<Counted> {
    if occurrences.is_empty() {
        return Ok(Counted::default());
    }
    let mut rows: BTreeMap<ClusterId, ClusterRow> = clusters.into_iter().map(|row| (row.id, row)).collect();
    let was_open = open(&rows);
    let shown_by = |row: &ClusterRow| (row.occurrences > 0).then_some(row.first_run);
    let first_before: BTreeMap<ClusterId, Option<RunId>> =
        rows.iter().map(|(id, row)| (*id, shown_by(row))).collect();
    let regressed_before: BTreeSet<ClusterId> =
        rows.values().filter(|row| has_regressed(row)).map(|row| row.id).collect();
    count_tests(session, run, &mut rows, occurrences).await?;
    count_runs_and_days(session, run, occurrences).await?;

    let mut less = BTreeSet::new();
    for one in occurrences {
        let Some(row) = rows.get_mut(&one.cluster) else { continue };
        if one.sign < 0 {
            row.occurrences -= 1;
            less.insert(one.cluster);
        }
    }
    for one in occurrences.iter().filter(|one| one.sign > 0) {
        if let Some(row) = rows.get_mut(&one.cluster) {
            see(row, run, one, now);
        }
    }
    for cluster in less {
        if let Some(row) = rows.get_mut(&cluster) {
            look_back(session, run, row).await?;
        }
    }
    write(session, run.project, rows.values(), now).await?;
    let moved = rows.values().filter(|row| first_before.get(&row.id) != Some(&shown_by(row)));
    let mut first_shown_by: BTreeSet<RunId> = moved
        .flat_map(|row| [shown_by(row), first_before.get(&row.id).copied().flatten()])
        .flatten()
        .collect();
    first_shown_by.remove(&run.run);
    let is_new = |row: &&ClusterRow| row.occurrences > 0 && first_before.get(&row.id) == Some(&None);
    let is_back = |row: &&ClusterRow| has_regressed(row) && !regressed_before.contains(&row.id);
    let opened = rows.values().filter(is_new).map(|row| row.id).collect();
    let reopened = rows.values().filter(is_back).map(|row| row.id).collect();
    Ok(Counted { open: open(&rows) - was_open, first_shown_by, opened, reopened })
}

fn has_regressed(row: &ClusterRow) -> bool {
    row.fix_verification.as_deref() == Some(REGRESSED)
}

fn open(rows: &BTreeMap<ClusterId, ClusterRow>) -> i64 {
    let count = rows.values().filter(|row| row.status == ClusterStatus::Open && row.occurrences > 0).count();
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// How a failing execution is called in a cluster.
fn status_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Flaky => "flaky",
        other => other.status().as_str(),
    }
}

/// One more occurrence.
fn see(row: &mut ClusterRow, run: CountedRun, one: &Occurrence, now: Timestamp) {
    let key = (run.order_at, run.run);
    let is_only = row.occurrences <= 0;
    row.occurrences = row.occurrences.max(0) + 1;
    if is_only || key < (row.first_seen_at, row.first_run) {
        (row.first_seen_at, row.first_run) = key;
        row.first_execution = one.execution;
    }
    let is_newer = is_only || key >= (row.last_seen_at, row.last_run);
    if is_newer {
        (row.last_seen_at, row.last_run) = key;
        row.last_status = status_word(one.outcome).to_owned();
    }
    // A run that began before the repair, or was imported, says nothing about it.
    let is_after = |moment: Timestamp| run.start > moment;
    let was_fixed = if row.status == ClusterStatus::Resolved {
        is_after(row.status_at)
    } else {
        row.fix_at.is_some_and(is_after)
    };
    if was_fixed {
        let was_believed = row.status == ClusterStatus::Resolved || row.fix_verification.is_some();
        if row.status == ClusterStatus::Resolved {
            row.status = ClusterStatus::Open;
            row.status_at = now;
        }
        row.false_quiets += i64::from(row.is_quiet);
        row.fix_verification = was_believed.then(|| REGRESSED.to_owned());
        (row.fix_run, row.fix_at, row.fix_commit, row.ttr_ms) = (None, None, None, None);
        row.is_quiet = false;
    }
    if run.is_default_branch && row.snoozed_until.is_some_and(is_after) {
        row.snoozed_until = None;
    }
}

/// After an occurrence was taken back: the first and the last run again, when
/// this run was one of them.
async fn look_back(session: &mut Session, run: CountedRun, row: &mut ClusterRow) -> Result<()> {
    if row.occurrences <= 0 || (row.first_run != run.run && row.last_run != run.run) {
        return Ok(());
    }
    let (project, cluster) = (run.project, row.id);
    let still = session.first(&IN_RUN, args![project, run.run, cluster]).await?;
    if still.is_none() {
        refresh(session, project, row).await?;
    }
    Ok(())
}

/// Reads first and last occurrence of a cluster anew.
pub(super) async fn refresh(session: &mut Session, project: ProjectId, row: &mut ClusterRow) -> Result<()> {
    for is_first in [true, false] {
        let statement = if is_first { &FIRST_RUN } else { &LAST_RUN };
        let Some(found) = session.first(statement, args![project, row.id]).await? else { return Ok(()) };
        let mut r = found.reader();
        let (run, at) = (RunId(r.int()?), r.time()?);
        let (low, high) = ExecutionId::range_of(run);
        let newest = session.first(&NEWEST_IN_RUN, args![project, row.id, at.day(), low, high]).await?;
        let newest = newest.map(|newest| -> Result<_> {
            let mut r = newest.reader();
            Ok((ExecutionId(r.int()?), Outcome::from_code(r.int()?)))
        });
        let newest = newest.transpose()?;
        if is_first {
            (row.first_run, row.first_seen_at) = (run, at);
            row.first_execution = newest.map_or(row.first_execution, |(id, _)| id);
        } else {
            (row.last_run, row.last_seen_at) = (run, at);
            if let Some(outcome) = newest.and_then(|(_, outcome)| outcome) {
                row.last_status = status_word(outcome).to_owned();
            }
        }
    }
    Ok(())
}

async fn count_tests(
    session: &mut Session,
    run: CountedRun,
    rows: &mut BTreeMap<ClusterId, ClusterRow>,
    occurrences: &[Occurrence],
) -> Result<()> {
    let project = run.project;
    let clusters: BTreeSet<i64> = occurrences.iter().map(|one| one.cluster.get()).collect();
    let cases: BTreeSet<i64> = occurrences.iter().map(|one| one.test_case.get()).collect();
    let (clusters, cases): (Vec<i64>, Vec<i64>) =
        (clusters.into_iter().collect(), cases.into_iter().collect());
    let mut counts: BTreeMap<(i64, i64), TestCount> = BTreeMap::new();
    for row in session.all(&TESTS, args![project, clusters.clone(), cases.clone()]).await? {
        let mut r = row.reader();
        let key = (r.int()?, r.int()?);
        let count =
            TestCount { n: r.int()?, first_at: r.int()?, last_at: r.int()?, last_execution: r.int()? };
        counts.insert(key, count);
    }
    let before: BTreeMap<(i64, i64), i64> = counts.iter().map(|(key, count)| (*key, count.n)).collect();
    let at = run.order_at.millis();
    let mut touched = BTreeSet::new();
    let mut stale = BTreeSet::new();
    for one in occurrences {
        let key = (one.cluster.get(), one.test_case.get());
        touched.insert(key);
        let count = counts.entry(key).or_insert(TestCount {
            n: 0,
            first_at: at,
            last_at: at,
            last_execution: one.execution.get(),
        });
        count.n += one.sign;
        if one.sign > 0 {
            count.first_at = count.first_at.min(at);
            if at >= count.last_at {
                (count.last_at, count.last_execution) = (at, one.execution.get());
            }
        } else if count.n > 0 && (at == count.first_at || at == count.last_at) {
            stale.insert(key);
        }
    }
    for (cluster, case) in stale {
        let Some(count) = counts.get_mut(&(cluster, case)).filter(|count| count.n > 0) else { continue };
        let span = session.all(&SPAN_OF_TEST, args![project, cluster, case]).await?;
        if let (Some(first), Some(last)) = (span.first(), span.last()) {
            let (mut first, mut last) = (first.reader(), last.reader());
            (_, count.first_at) = (first.int()?, first.int()?);
            (count.last_execution, count.last_at) = (last.int()?, last.int()?);
        }
    }
    let mut bulk = WRITE_TESTS.rows();
    for key in touched {
        let count = counts[&key];
        let (was, is) = (before.get(&key).copied().unwrap_or(0) > 0, count.n > 0);
        if let Some(row) = rows.get_mut(&ClusterId(key.0)) {
            row.affected_tests += i64::from(is) - i64::from(was);
        }
        bulk.push([
            key.0.into(),
            key.1.into(),
            count.n.into(),
            count.first_at.into(),
            count.last_at.into(),
            count.last_execution.into(),
        ]);
    }
    session.execute_bulk(&WRITE_TESTS, args![project], bulk).await?;
    if occurrences.iter().any(|one| one.sign < 0) {
        session.write(&DROP_TESTS, args![project, clusters, cases]).await?;
    }
    Ok(())
}

async fn count_runs_and_days(
    session: &mut Session,
    run: CountedRun,
    occurrences: &[Occurrence],
) -> Result<()> {
    let mut sums: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for one in occurrences {
        let (n, flaky) = sums.entry(one.cluster.get()).or_default();
        *n += one.sign;
        *flaky += if one.outcome == Outcome::Flaky { one.sign } else { 0 };
    }
    let (mut runs, mut days) = (ADD_RUNS.rows(), ADD_DAYS.rows());
    for (cluster, (n, flaky)) in &sums {
        if (*n, *flaky) != (0, 0) {
            runs.push([(*cluster).into(), (*n).into(), (*flaky).into()]);
        }
        if *n != 0 {
            days.push([(*cluster).into(), (*n).into()]);
        }
    }
    let day: Day = run.order_at.day();
    session.execute_bulk(&ADD_RUNS, args![run.project, run.run], runs).await?;
    session.execute_bulk(&ADD_DAYS, args![run.project, day], days).await?;
    if occurrences.iter().any(|one| one.sign < 0) {
        let clusters: Vec<i64> = sums.into_keys().collect();
        session.write(&DROP_RUNS, args![run.project, run.run, clusters.clone()]).await?;
        session.write(&DROP_DAYS, args![run.project, clusters, day]).await?;
    }
    Ok(())
}

/// Writes what ingest and completion change of locked clusters.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn write(
    session: &mut Session,
    project: ProjectId,
    clusters: impl IntoIterator<Item = &ClusterRow>,
    now: Timestamp,
) -> Result<()> {
    let mut bulk = WRITE.rows();
    for row in clusters {
        bulk.push([
            row.id.into(),
            row.occurrences.into(),
            row.affected_tests.into(),
            row.first_run.into(),
            row.first_execution.into(),
            row.first_seen_at.into(),
            row.last_run.into(),
            row.last_seen_at.into(),
            row.last_status.clone().into(),
            row.status.as_str().into(),
            row.status_at.into(),
            row.snoozed_until.into(),
            row.fix_run.into(),
            row.fix_at.into(),
            row.fix_commit.clone().into(),
            row.ttr_ms.into(),
            row.fix_verification.clone().into(),
            row.false_quiets.into(),
            row.is_quiet.into(),
        ]);
    }
    session.execute_bulk(&WRITE, args![project, now], bulk).await?;
    Ok(())
}
