//! Runs: one, several, those that go on; what is written of them, their slots
//! and lists beside. Lists sort by `order_at`, the start time as first
//! received, which never changes.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;

use crate::db::{Session, args, statements};
use crate::lanes::{self, CountingLane};
use crate::{Result, StoreError};
use row::{read, select_run};
use slots::SlotRow;

pub mod compared;
pub mod counting;
pub(crate) mod creating;
pub(crate) mod details;
pub mod expired;
pub mod groups;
pub(crate) mod list;
pub(crate) mod newest;
mod row;
pub mod slots;
pub mod tokens;
pub(crate) mod writing;

pub use compared::{Compared, Pin};
pub use creating::{NewRun, create};
pub use details::{RunDetails, details, metadata_of, update_details};
pub use list::{DurationRow, RunFilter, RunsCounted, count, durations, list};
pub use newest::{BriefRow, Newest, latest_of, newest_of};
pub use row::{RunRow, TestDurations};
pub use writing::{describe, set_mass_failure, touch, update};

statements! {
    /// One run.
    BY_ID = select_run!("WHERE project_id = $1 AND id = $2");
    /// One run, locked for the rest of the transaction.
    LOCK = select_run!("WHERE project_id = $1 AND id = $2 for_update()");
    /// Several runs of one project.
    BY_IDS = select_run!("WHERE project_id = $1 AND id in_ints($2)");
    /// Runs of some projects that are still going on. ix: test_runs_open
    OPEN_OF = select_run!("WHERE project_id in_ints($1) AND status IN ('initializing', 'running', 'finalizing') ORDER BY id DESC LIMIT $2");
    /// Runs that are still going on, of projects that are not hidden. ix: test_runs_open
    OPEN = select_run!("WHERE status IN ('initializing', 'running', 'finalizing') \
        AND EXISTS (SELECT 1 FROM projects p WHERE p.id = test_runs.project_id) ORDER BY id DESC LIMIT $1");
    /// Unfinished runs of which all, or one of their live clients, gave no sign of life since a moment. ix: test_runs_open, run_slots_of_run
    SILENT = "SELECT r.project_id, r.id FROM test_runs r WHERE r.status IN ('initializing', 'running', 'finalizing') \
        AND (r.last_activity_at <= $1 OR EXISTS (SELECT 1 FROM run_slots s WHERE s.project_id = r.project_id AND s.run_id = r.id \
        AND s.state = 'live' AND s.last_activity_at <= $1)) AND EXISTS (SELECT 1 FROM projects p WHERE p.id = r.project_id) \
        AND r.id > $2 ORDER BY r.id LIMIT $3";
    /// Unfinished unsharded runs of a pipeline that gave no sign of life since a moment. ix: test_runs_by_instance
    SUPERSEDED = "SELECT id FROM test_runs WHERE project_id = $1 AND instance_id = $2 AND shard_total IS NULL \
        AND status IN ('initializing', 'running', 'finalizing') AND last_activity_at < $3 ORDER BY id";
    /// Commits of some runs.
    COMMITS_OF = "SELECT id, commit_sha FROM test_runs WHERE project_id in_ints($1) AND id in_ints($2) AND commit_sha IS NOT NULL";
}

/// One run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, project: ProjectId, run: RunId) -> Result<Option<RunRow>> {
    session.first(&BY_ID, args![project, run]).await?.as_ref().map(read).transpose()
}

/// One run, locked until the transaction ends.
///
/// # Errors
/// [`StoreError::RunGone`] when there is no such run any more.
pub async fn lock(session: &mut Session, project: ProjectId, run: RunId) -> Result<RunRow> {
    read(&session.first(&LOCK, args![project, run]).await?.ok_or(StoreError::RunGone)?)
}

/// A run, locked until the transaction ends, with its slots in the order they
/// were opened and the lanes of its branch and environment.
///
/// # Errors
/// [`StoreError::RunGone`] when there is no such run any more.
pub async fn lock_with_slots(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
) -> Result<(RunRow, Vec<SlotRow>, Vec<CountingLane>)> {
    let args = || args![project, run];
    let reads = [(&LOCK, args()), (&slots::OF_RUN, args()), (&lanes::OF_RUN, args())];
    let [row, slots, lanes] = session.each(reads).await?;
    let row = read(row.first().ok_or(StoreError::RunGone)?)?;
    let slots = slots.iter().map(slots::read).collect::<Result<_>>()?;
    let lanes = lanes.iter().map(lanes::counting).collect::<Result<_>>()?;
    Ok((row, slots, lanes))
}

/// Several runs of a project, in no particular order.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get_many(session: &mut Session, project: ProjectId, ids: Vec<i64>) -> Result<Vec<RunRow>> {
    session.all(&BY_IDS, args![project, ids]).await?.iter().map(read).collect()
}

/// Unfinished runs, newest first; `projects` limits them to some projects.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn open(session: &mut Session, projects: Option<&[ProjectId]>, limit: i64) -> Result<Vec<RunRow>> {
    let rows = match projects {
        Some(projects) => {
            let ids: Vec<i64> = projects.iter().map(|id| id.get()).collect();
            session.all(&OPEN_OF, args![ids, limit]).await?
        }
        None => session.all(&OPEN, args![limit]).await?,
    };
    rows.iter().map(read).collect()
}

/// Unfinished runs of all projects without a sign of life since a moment, by
/// id, after a run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn silent(
    session: &mut Session,
    since: Timestamp,
    after: Option<RunId>,
    limit: i64,
) -> Result<Vec<(ProjectId, RunId)>> {
    let after = after.map_or(0, RunId::get);
    let rows = session.all(&SILENT, args![since, after, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ProjectId(r.int()?), RunId(r.int()?)))
        })
        .collect()
}

/// Unfinished unsharded runs of a pipeline without a sign of life since a
/// moment, in ascending order.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn silent_of_instance(
    session: &mut Session,
    project: ProjectId,
    instance: &str,
    since: Timestamp,
) -> Result<Vec<RunId>> {
    let rows = session.all(&SUPERSEDED, args![project, instance, since]).await?;
    rows.iter().map(|row| row.reader().int().map(RunId)).collect()
}

/// The commits of some runs, as far as they are known.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn commits_of(
    session: &mut Session,
    projects: Vec<i64>,
    runs: Vec<i64>,
) -> Result<std::collections::HashMap<RunId, String>> {
    let rows = session.all(&COMMITS_OF, args![projects, runs]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((RunId(r.int()?), r.text()?))
        })
        .collect()
}
