//! Runs on their way out. A deleted run leaves the list of runs immediately: its
//! row and its place in the directory go in the transaction that hides it,
//! and a row here keeps what the later steps need. Each step deletes a bounded
//! number of rows; done twice it does nothing more.

use std::collections::HashSet;

use callboard_domain::ids::{BlobId, DeletionId, ExecutionId, ProjectId, RunId};
use callboard_domain::time::Timestamp;

use super::kept;
use crate::db::{Backend, Filter, Row, Session, args, statements};
use crate::executions::ExecutionRow;
use crate::ids::{self, Listed};
use crate::projects::Growth;
use crate::runs::expired;
use crate::{Result, StoreError, diagnoses, executions, test_cases, unclaimed, upload_tickets};

statements! {
    /// A run that goes.
    INSERT = "INSERT INTO doomed_runs (project_id, run_id, receipt_id, lane_id, lanes, order_at, is_mass_failure, kept) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    /// The next run of a deletion. ix: doomed_runs_of_receipt
    NEXT = "SELECT project_id, run_id, lane_id, lanes, order_at, is_mass_failure, kept \
        FROM doomed_runs WHERE receipt_id = $1 ORDER BY run_id LIMIT 1";
    /// How many runs of a deletion are left. ix: doomed_runs_of_receipt
    COUNT = "SELECT COUNT(*) FROM doomed_runs WHERE receipt_id = $1";
    /// The projects of the runs of a deletion. ix: doomed_runs_of_receipt
    PROJECTS = "SELECT DISTINCT project_id FROM doomed_runs WHERE receipt_id = $1 ORDER BY project_id";
    /// Whether a run is being deleted. PK
    IS_DOOMED = "SELECT 1 FROM doomed_runs WHERE project_id = $1 AND run_id = $2";
    /// A run of which nothing is left.
    FORGET = "DELETE FROM doomed_runs WHERE project_id = $1 AND run_id = $2";
    /// The row of a run.
    DELETE_RUN = "DELETE FROM test_runs WHERE project_id = $1 AND id = $2";
    /// Its place in the directory.
    UNLIST_RUN = "DELETE FROM id_directory WHERE kind = 1 AND id = $1";
    /// What opened it. ix: run_slots_of_run
    DELETE_SLOTS = "DELETE FROM run_slots WHERE project_id = $1 AND run_id = $2";
    /// What clients fed it with. ix: run_tokens_of_run
    DELETE_TOKENS = "DELETE FROM run_tokens WHERE project_id = $1 AND run_id = $2";
    /// The group it was the newest of: its next shard makes a new run. PK
    LEAVE_GROUP = "UPDATE run_groups SET newest_run_id = NULL WHERE project_id = $1 AND instance_id = $2 AND shard_total = $3 \
        AND newest_run_id = $4";
    /// The counters of a project without some of its runs, and with some whose details are gone or back.
    /// ix: test_runs_by_time, test_runs_full, expired_runs_by_time
    UNCOUNT_RUNS = "UPDATE project_stats SET runs = runs - $2, expired_runs = expired_runs + $3, \
        latest_run_id = (SELECT r.id FROM test_runs r WHERE r.project_id = $1 ORDER BY r.order_at DESC, r.id DESC LIMIT 1), \
        last_run_at = (SELECT MAX(u.at) FROM (SELECT MAX(r.order_at) AS at FROM test_runs r WHERE r.project_id = $1 \
            UNION ALL SELECT MAX(x.order_at) FROM expired_runs x WHERE x.project_id = $1) u), \
        last_expired_at = (SELECT x.order_at FROM expired_runs x WHERE x.project_id = $1 AND x.is_full = 1 \
            ORDER BY x.order_at DESC, x.id DESC LIMIT 1), \
        latest_full_run_id = (SELECT r.id FROM test_runs r WHERE r.project_id = $1 AND r.is_full = 1 \
            AND r.status NOT IN ('initializing', 'running', 'finalizing') ORDER BY r.order_at DESC, r.id DESC LIMIT 1) \
        WHERE project_id = $1";
    /// Files of a run, a batch. ix: files_of_run
    FILES = "SELECT id FROM files WHERE project_id = $1 AND run_id = $2 ORDER BY id LIMIT $3";
    /// Removes files.
    DELETE_FILES = "DELETE FROM files WHERE project_id = $1 AND id in_ints($2) RETURNING id, blob_id";
    /// Their places in the directory.
    UNLIST_FILES = "DELETE FROM id_directory WHERE kind = 3 AND id in_ints($1)";
    /// What the objects of a run's reports and evidence come to. ix: reports_of_run, packs_of_run
    OWN_OBJECTS = "SELECT CAST(COALESCE(SUM(n), 0) AS BIGINT), CAST(COALESCE(SUM(bytes), 0) AS BIGINT), CAST(COALESCE(SUM(reports), 0) AS BIGINT), \
        CAST(COALESCE(SUM(packs), 0) AS BIGINT) FROM \
        (SELECT entries AS n, size AS bytes, 1 AS reports, 0 AS packs FROM reports WHERE project_id = $1 AND run_id = $2 \
         UNION ALL SELECT COUNT(DISTINCT NULLIF(key, '')), COALESCE(SUM(size), 0), 0, COUNT(*) FROM packs \
         WHERE project_id = $1 AND run_id = $2) o";
    /// The reports of a run. ix: reports_of_run
    DELETE_REPORTS = "DELETE FROM reports WHERE project_id = $1 AND run_id = $2";
    /// Bytes of some evidence packs of a run that have no object. ix: packs_of_run, PK
    DELETE_PACK_BYTES = "DELETE FROM pack_bytes WHERE project_id = $1 AND pack_id IN (SELECT p.id FROM packs p \
        WHERE p.project_id = $1 AND p.run_id = $2 AND p.key = '' \
        AND EXISTS (SELECT 1 FROM pack_bytes b WHERE b.project_id = p.project_id AND b.pack_id = p.id) LIMIT $3)";
    /// The evidence packs of a run. ix: packs_of_run
    DELETE_PACKS = "DELETE FROM packs WHERE project_id = $1 AND run_id = $2";
    /// Removes executions. PK
    DELETE_EXECUTIONS = "DELETE FROM executions WHERE project_id = $1 AND run_id = $2 AND id in_ints($3) RETURNING id";
    /// States of tests that nothing counts for any more. PK
    DELETE_EMPTY_STATES = "DELETE FROM test_state WHERE project_id = $1 AND lane_id in_ints($2) AND test_case_id in_ints($3) AND total <= 0 \
        RETURNING lane_id, test_case_id";
    /// Directory places of the links of a run and its executions. ix: entity_links_of_entity
    UNLIST_LINKS = "DELETE FROM id_directory WHERE kind = 12 AND id IN (SELECT id FROM entity_links WHERE project_id = $1 \
        AND ((entity_kind = 1 AND entity_id = $2) OR (entity_kind = 2 AND entity_id > $3 AND entity_id <= $4)))";
    /// Links of a run and its executions. ix: entity_links_of_entity
    DELETE_LINKS = "DELETE FROM entity_links WHERE project_id = $1 \
        AND ((entity_kind = 1 AND entity_id = $2) OR (entity_kind = 2 AND entity_id > $3 AND entity_id <= $4))";
    /// Markers outlive the run they went with. ix: markers_of_run
    LEAVE_MARKERS = "UPDATE markers SET run_id = NULL WHERE project_id = $1 AND run_id = $2 AND run_id IS NOT NULL";
    /// Exports of a run and its executions. There are few of a project, and only of the last days.
    DELETE_EXPORTS = "DELETE FROM exports WHERE project_id = $1 AND ((kind = 'run' AND target_id = $2) \
        OR (kind = 'execution' AND target_id > $3 AND target_id <= $4)) RETURNING id, path";
    /// Results of gates of a run. PK
    DELETE_GATE_RESULTS = "DELETE FROM gate_results WHERE project_id = $1 AND run_id = $2";
    /// What a run said at its code host. PK
    DELETE_FEEDBACK = "DELETE FROM scm_feedback WHERE project_id = $1 AND run_id = $2";
    /// Events of a run. PK
    DELETE_FEED = "DELETE FROM run_feed WHERE project_id = $1 AND run_id = $2";
    /// Details of a run. PK
    DELETE_DETAILS = "DELETE FROM run_details WHERE project_id = $1 AND run_id = $2";
    /// What its tests called. PK
    DELETE_ENDPOINTS = "DELETE FROM run_endpoints WHERE project_id = $1 AND run_id = $2";
    /// What a run adds to its clusters. PK
    DELETE_CLUSTER_RUNS = "DELETE FROM cluster_runs WHERE project_id = $1 AND run_id = $2";
}

/// A run on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoomedRun {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// The most specific lane it counted in.
    pub lane_id: i64,
    /// All lanes it counted in, ascending.
    pub lanes: Vec<i64>,
    /// Its order key.
    pub order_at: Timestamp,
    /// Whether it was flagged as a mass failure.
    pub is_mass_failure: bool,
    /// What becomes of its rows.
    pub rows: RowsOfRun,
}

/// What becomes of the rows of a deleted run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsOfRun {
    /// They are freed immediately.
    Freed,
    /// They are kept for a restore, and the aggregates still count them.
    KeptCounted,
    /// They are kept for a restore, and taken out of the aggregates.
    KeptUncounted,
}

impl RowsOfRun {
    const fn code(self) -> i64 {
        match self {
            Self::Freed => 0,
            Self::KeptCounted => 1,
            Self::KeptUncounted => 2,
        }
    }

    fn from_code(code: i64) -> Result<Self> {
        match code {
            0 => Ok(Self::Freed),
            1 => Ok(Self::KeptCounted),
            2 => Ok(Self::KeptUncounted),
            _ => Err(StoreError::Damaged("whether rows of a deleted run are kept")),
        }
    }
}

/// The group a sharded run belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Grouping key of its clients.
    pub instance_id: String,
    /// Number of its shards.
    pub shard_total: i64,
}

/// Hides a run: its row, its place in the directory and everything that could
/// feed it are gone with the transaction; what a restore needs is kept.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn doom(session: &mut Session, receipt: DeletionId, run: &DoomedRun) -> Result<()> {
    let (project, id) = (run.project, run.run);
    let lanes = serde_json::Value::from(run.lanes.clone()).to_string();
    let values =
        args![project, id, receipt, run.lane_id, lanes, run.order_at, run.is_mass_failure, run.rows.code()];
    session.execute(&INSERT, values).await?;
    if run.rows == RowsOfRun::Freed {
        session.execute(&DELETE_SLOTS, args![project, id]).await?;
    } else {
        kept::keep_run(session, project, id).await?;
    }
    session.execute(&DELETE_TOKENS, args![project, id]).await?;
    session.execute(&DELETE_RUN, args![project, id]).await?;
    session.execute(&UNLIST_RUN, args![id]).await?;
    Ok(())
}

/// Takes a run out of the group it was the newest of. Groups are locked before
/// their runs.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn leave_group(session: &mut Session, project: ProjectId, group: &Group, run: RunId) -> Result<()> {
    let Group { instance_id, shard_total } = group;
    session.execute(&LEAVE_GROUP, args![project, instance_id, *shard_total, run]).await?;
    Ok(())
}

/// Takes `count` runs that are gone out of the counters of their project. With
/// `takes_back` nothing counts them any more; otherwise only their details are
/// gone, and [`expired::keep`] stored how they ended.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn uncount_runs(
    session: &mut Session,
    project: ProjectId,
    count: i64,
    takes_back: bool,
) -> Result<()> {
    let (gone, expired) = if takes_back { (count, 0) } else { (0, count) };
    session.execute(&UNCOUNT_RUNS, args![project, gone, expired]).await?;
    Ok(())
}

/// Counts a run whose details are back.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn unexpire_run(session: &mut Session, project: ProjectId, run: RunId) -> Result<()> {
    expired::forget(session, project, run).await?;
    session.execute(&UNCOUNT_RUNS, args![project, 0, -1]).await?;
    Ok(())
}

/// The next run of a deletion that is not gone yet.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn next(session: &mut Session, receipt: DeletionId) -> Result<Option<DoomedRun>> {
    session.first(&NEXT, args![receipt]).await?.as_ref().map(read_doomed).transpose()
}

pub(super) fn read_doomed(row: &Row) -> Result<DoomedRun> {
    let mut r = row.reader();
    Ok(DoomedRun {
        project: ProjectId(r.int()?),
        run: RunId(r.int()?),
        lane_id: r.int()?,
        lanes: serde_json::from_str(&r.text()?)
            .map_err(|_| StoreError::Damaged("the lanes of a deleted run"))?,
        order_at: r.time()?,
        is_mass_failure: r.flag()?,
        rows: RowsOfRun::from_code(r.int()?)?,
    })
}

/// How many runs of a deletion are not gone yet.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn left(session: &mut Session, receipt: DeletionId) -> Result<i64> {
    session.one(&COUNT, args![receipt]).await?.reader().int()
}

/// The projects of the runs of a deletion that are not gone yet.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn projects(session: &mut Session, receipt: DeletionId) -> Result<Vec<ProjectId>> {
    let rows = session.all(&PROJECTS, args![receipt]).await?;
    rows.iter().map(|row| row.reader().int().map(ProjectId)).collect()
}

/// Whether a run is being deleted, and not gone yet.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn is_doomed(session: &mut Session, project: ProjectId, run: RunId) -> Result<bool> {
    Ok(session.first(&IS_DOOMED, args![project, run]).await?.is_some())
}

/// Notes that a run was restored.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn spare(session: &mut Session, run: &DoomedRun) -> Result<()> {
    session.execute(&FORGET, args![run.project, run.run]).await?;
    Ok(())
}

/// Notes that nothing of a run is left.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn forget(session: &mut Session, run: &DoomedRun) -> Result<()> {
    if run.rows != RowsOfRun::Freed {
        kept::forget_run(session, run.project, run.run).await?;
    }
    session.execute(&FORGET, args![run.project, run.run]).await?;
    Ok(())
}

/// Deletes at most `limit` files of a run and answers the content they
/// referred to, one entry for each.
///
/// # Errors
/// [`StoreError::Database`],
/// [`StoreError::Busy`] when somebody else deleted them meanwhile.
pub async fn delete_files(session: &mut Session, run: &DoomedRun, limit: i64) -> Result<Vec<BlobId>> {
    let first = session.all(&FILES, args![run.project, run.run, limit]).await?;
    let first = first.iter().map(|row| row.reader().int()).collect::<Result<Vec<_>>>()?;
    if first.is_empty() {
        return Ok(Vec::new());
    }
    // Who took over from a worker that stood still has seen the same files; each is let go of by who deletes it.
    let rows = session.all(&DELETE_FILES, args![run.project, first]).await?;
    if rows.is_empty() {
        return Err(StoreError::Busy("files that another process is deleting"));
    }
    let (mut files, mut blobs) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for row in &rows {
        let mut r = row.reader();
        files.push(r.int()?);
        blobs.push(BlobId(r.int()?));
    }
    session.execute(&UNLIST_FILES, args![files]).await?;
    Ok(blobs)
}

/// What lay under a run's own prefixes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnObjects {
    /// Objects.
    pub objects: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Reports.
    pub reports: i64,
    /// Evidence packs.
    pub packs: i64,
}

/// Deletes the bytes of at most `limit` packs of a run that have no object;
/// answers how many parts they had.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn delete_pack_bytes(session: &mut Session, run: &DoomedRun, limit: i64) -> Result<u64> {
    session.execute(&DELETE_PACK_BYTES, args![run.project, run.run, limit]).await
}

/// Deletes the rows of a run's reports and evidence, and answers what lies in
/// the object store for them.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn delete_own(session: &mut Session, run: &DoomedRun) -> Result<OwnObjects> {
    let args = || args![run.project, run.run];
    let row = session.one(&OWN_OBJECTS, args()).await?;
    let mut r = row.reader();
    let own = OwnObjects { objects: r.int()?, bytes: r.int()?, reports: r.int()?, packs: r.int()? };
    session.execute(&DELETE_REPORTS, args()).await?;
    session.execute(&DELETE_PACKS, args()).await?;
    Ok(own)
}

/// At most `limit` executions of a run, by id.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn executions(session: &mut Session, run: &DoomedRun, limit: i64) -> Result<Vec<ExecutionRow>> {
    executions::first_of_run(session, run.project, run.run, limit).await
}

/// Deletes executions of a run; leaves those in the list that were still there,
/// which are for the caller to take back.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn delete_executions(
    session: &mut Session,
    run: &DoomedRun,
    rows: &mut Vec<ExecutionRow>,
) -> Result<()> {
    let ids: Vec<i64> = rows.iter().map(|row| row.id.get()).collect();
    let deleted = session.all(&DELETE_EXECUTIONS, args![run.project, run.run, ids]).await?;
    let deleted = deleted.iter().map(|row| row.reader().int()).collect::<Result<HashSet<_>>>()?;
    rows.retain(|row| deleted.contains(&row.id.get()));
    Ok(())
}

/// Forgets the states of tests that nothing counts for any more. Those that no
/// run of the project is left of do not count as its tests either.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn delete_empty_states(
    session: &mut Session,
    project: ProjectId,
    lanes: &[i64],
    test_cases: Vec<i64>,
) -> Result<()> {
    let deleted = session.all(&DELETE_EMPTY_STATES, args![project, lanes.to_vec(), test_cases]).await?;
    // Lane 0 holds all runs of a project: without a state there, a test has none.
    let mut without_run = Vec::new();
    for row in &deleted {
        let mut r = row.reader();
        if r.int()? == 0 {
            without_run.push(r.int()?);
        }
    }
    if !without_run.is_empty() {
        without_run.sort_unstable();
        let gone = test_cases::let_go(session, project, without_run).await?;
        let test_cases = -i64::try_from(gone).unwrap_or(i64::MAX);
        kept::count(session, project, &Growth { test_cases, ..Growth::default() }).await?;
    }
    Ok(())
}

/// Deletes everything else that hangs on a run, and leaves the bytes of its
/// exports and staged uploads to the deletion; answers how many rows.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn delete_rest(
    session: &mut Session,
    run: &DoomedRun,
    receipt: DeletionId,
    now: Timestamp,
) -> Result<i64> {
    let (project, id) = (run.project, run.run);
    let (low, high) = ExecutionId::range_of(id);
    diagnoses::delete_of_executions(session, project, low, high).await?;
    session.execute(&UNLIST_LINKS, args![project, id, low, high]).await?;
    let mut deleted = session.execute(&DELETE_LINKS, args![project, id, low, high]).await?;
    for export in session.all(&DELETE_EXPORTS, args![project, id, low, high]).await? {
        let mut r = export.reader();
        ids::unlist(session, Listed::Export, r.int()?).await?;
        if let Some(key) = r.opt_text()? {
            unclaimed::abandon_to(session, project, &key, receipt, now).await?;
        }
        deleted += 1;
    }
    upload_tickets::revoke_of_run(session, project, id, receipt, now).await?;
    session.execute(&LEAVE_MARKERS, args![project, id]).await?;
    let rest = [
        &DELETE_GATE_RESULTS,
        &DELETE_FEEDBACK,
        &DELETE_CLUSTER_RUNS,
        &DELETE_ENDPOINTS,
        &DELETE_FEED,
        &DELETE_DETAILS,
    ];
    for statement in rest {
        deleted += session.execute(statement, args![project, id]).await?;
    }
    Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
}

/// Runs that a deletion of several names by what they have in common.
#[derive(Debug, Clone)]
pub struct RunsToDelete {
    /// Only of this project.
    pub project: Option<ProjectId>,
    /// Only on this branch.
    pub branch: Option<String>,
    /// Only in this environment.
    pub environment: Option<String>,
    /// Only with one of these statuses.
    pub statuses: Option<Vec<String>>,
    /// Only those that began before.
    pub before: Timestamp,
}

const MATCHING: &str = "SELECT r.project_id, r.id FROM test_runs r WHERE r.pinned_at IS NULL \
    AND EXISTS (SELECT 1 FROM projects p WHERE p.id = r.project_id)";
const PINNED: &str = "SELECT r.project_id, r.id FROM test_runs r WHERE r.pinned_at IS NOT NULL \
    AND EXISTS (SELECT 1 FROM projects p WHERE p.id = r.project_id)";
const IN_DELETED_PROJECTS: &str = "SELECT r.project_id, r.id FROM test_runs r WHERE r.pinned_at IS NULL \
    AND EXISTS (SELECT 1 FROM deleted_projects p WHERE p.id = r.project_id)";

/// At most `limit` unpinned runs that match, oldest first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn matching(
    session: &mut Session,
    wanted: &RunsToDelete,
    limit: i64,
) -> Result<Vec<(ProjectId, RunId)>> {
    listed(session, page(session.backend(), MATCHING, wanted, limit)).await
}

/// Whether unpinned runs match whose project is deleted and can be restored.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn match_in_deleted_projects(session: &mut Session, wanted: &RunsToDelete) -> Result<bool> {
    Ok(!listed(session, page(session.backend(), IN_DELETED_PROJECTS, wanted, 1)).await?.is_empty())
}

/// At most `limit` pinned runs that match, oldest first; they stay.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn pinned(
    session: &mut Session,
    wanted: &RunsToDelete,
    limit: i64,
) -> Result<Vec<(ProjectId, RunId)>> {
    listed(session, page(session.backend(), PINNED, wanted, limit)).await
}

async fn listed(session: &mut Session, runs: Filter) -> Result<Vec<(ProjectId, RunId)>> {
    let rows: Vec<Row> = session.list(runs).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ProjectId(r.int()?), RunId(r.int()?)))
        })
        .collect()
}

fn page(backend: Backend, base: &'static str, wanted: &RunsToDelete, limit: i64) -> Filter {
    // ix: test_runs_all_by_time, test_runs_by_time, test_runs_by_branch, test_runs_by_environment
    Filter::new(backend, base, args![])
        .and_if("r.project_id = ?", wanted.project.map(ProjectId::get))
        .and("r.order_at < ?", args![wanted.before])
        .and_if("r.branch = ?", wanted.branch.clone())
        .and_if("r.environment = ?", wanted.environment.clone())
        .and_if("r.status in_texts(?)", wanted.statuses.clone())
        .end("ORDER BY r.order_at, r.id LIMIT ?", args![limit])
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let all = RunsToDelete {
        project: Some(ProjectId(1)),
        branch: Some(String::new()),
        environment: Some(String::new()),
        statuses: Some(Vec::new()),
        before: Timestamp(0),
    };
    let none = RunsToDelete { project: None, branch: None, environment: None, statuses: None, ..all.clone() };
    [MATCHING, PINNED, IN_DELETED_PROJECTS]
        .into_iter()
        .flat_map(|base| [page(backend, base, &none, 1), page(backend, base, &all, 1)])
        .collect()
}
