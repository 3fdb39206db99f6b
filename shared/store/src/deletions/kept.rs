//! Rows of runs and projects whose deletion can be restored. They are moved to
//! tables of their own, so that no reader has to leave them out, and moved back
//! by a restore. Each table has the columns of the one its rows come from, in
//! the same order.

use callboard_domain::ids::{ClusterId, DeletionId, ExecutionId, ProjectId, RunId};
use callboard_domain::time::Timestamp;

use super::runs::{DoomedRun, read_doomed};
use crate::Result;
use crate::db::{Session, args, statements};
use crate::ids::{self, Listed};
use crate::projects::Growth;

statements! {
    /// Keeps the row of a run.
    KEEP_RUN = "INSERT INTO deleted_runs SELECT * FROM test_runs WHERE project_id = $1 AND id = $2";
    /// Its slots answer to no client any more. ix: run_slots_of_run
    CLOSE_SLOTS = "UPDATE run_slots SET start_key = NULL, recovery_key = NULL WHERE project_id = $1 AND run_id = $2";
    /// Exports of a project that may hold rows of a deleted run expire.
    EXPIRE_EXPORTS = "UPDATE exports SET expires_at = $2 WHERE project_id = $1 AND kind IN ('project', 'cluster') AND expires_at > $2";
    /// The next run of a deletion whose rows are still in the aggregates. ix: doomed_runs_of_receipt
    NEXT_COUNTED = "SELECT project_id, run_id, lane_id, lanes, order_at, is_mass_failure, kept \
        FROM doomed_runs WHERE receipt_id = $1 AND kept = 1 ORDER BY run_id LIMIT 1";
    /// The rows of a run are out of the aggregates.
    MARK_UNCOUNTED = "UPDATE doomed_runs SET kept = 2 WHERE project_id = $1 AND run_id = $2";
    /// Keeps executions.
    KEEP_EXECUTIONS = "INSERT INTO deleted_executions SELECT * FROM executions WHERE project_id = $1 AND run_id = $2 AND id in_ints($3)";
    /// Frees kept executions, a batch. ix: deleted_executions_key
    DELETE_EXECUTIONS = "DELETE FROM deleted_executions WHERE project_id = $1 AND run_id = $2 AND id IN (SELECT id FROM deleted_executions \
        WHERE project_id = $1 AND run_id = $2 ORDER BY id LIMIT $3)";
    /// Frees the kept row of a run. ix: deleted_runs_key
    DELETE_RUN = "DELETE FROM deleted_runs WHERE project_id = $1 AND id = $2";
    /// The slots of a run. ix: run_slots_of_run
    DELETE_SLOTS = "DELETE FROM run_slots WHERE project_id = $1 AND run_id = $2";
    /// All executions of a kept run wait to be counted again.
    COUNT_AGAIN = "UPDATE deleted_runs SET counted_to = 0, uncounted_since = $3 WHERE project_id = $1 AND id = $2 AND next_ordinal > 1";
    /// What the job is told that hides, unless it is done. ix: jobs_key
    HIDING = "SELECT payload FROM jobs WHERE key = $1 AND state <> 'done'";
    /// Moves the row of a run back.
    RESTORE_RUN = "INSERT INTO test_runs SELECT * FROM deleted_runs WHERE project_id = $1 AND id = $2";
    /// Moves its executions back.
    RESTORE_EXECUTIONS = "INSERT INTO executions SELECT * FROM deleted_executions WHERE project_id = $1 AND run_id = $2";
    /// Those of tests whose history was joined meanwhile count for the test it was joined with. PK
    FOLLOW_JOINS = "UPDATE executions SET reported_as = test_case_id, test_case_id = \
        (SELECT c.joined_to FROM test_cases c WHERE c.project_id = $1 AND c.id = executions.test_case_id) \
        WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4 AND EXISTS (SELECT 1 FROM test_cases c \
        WHERE c.project_id = $1 AND c.id = executions.test_case_id AND c.joined_to IS NOT NULL AND NOT EXISTS \
        (SELECT 1 FROM executions k WHERE k.project_id = $1 AND k.day = executions.day AND k.test_case_id = c.joined_to AND k.run_id = $2))";
    /// And those of tests that were made two again count for their own. PK
    LEAVE_JOINS = "UPDATE executions SET test_case_id = reported_as, reported_as = NULL \
        WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4 AND reported_as IS NOT NULL AND EXISTS (SELECT 1 FROM test_cases c \
        WHERE c.project_id = $1 AND c.id = executions.reported_as AND c.joined_to IS NULL)";
    /// What was moved back.
    FORGET_EXECUTIONS = "DELETE FROM deleted_executions WHERE project_id = $1 AND run_id = $2";
    /// The cluster an execution counts for. PK
    SET_CLUSTER = "UPDATE executions SET cluster_id = $4 WHERE project_id = $1 AND run_id = $2 AND id = $3";

    /// Counts into the numbers of a project.
    COUNT = "UPDATE project_stats SET test_cases = test_cases + $2, executions = executions + $3, \
        open_clusters = open_clusters + $4 WHERE project_id = $1";
    /// The same while it is hidden. ix: deleted_project_stats_key
    COUNT_HIDDEN = "UPDATE deleted_project_stats SET test_cases = test_cases + $2, executions = executions + $3, \
        open_clusters = open_clusters + $4 WHERE project_id = $1";
    /// Nobody counts into a project while its numbers move.
    LOCK_STATS = "SELECT runs FROM project_stats WHERE project_id = $1 for_update()";
    /// The same when they move back. ix: deleted_project_stats_key
    LOCK_HIDDEN_STATS = "SELECT runs FROM deleted_project_stats WHERE project_id = $1 for_update()";
    /// Keeps the row of a project.
    KEEP_PROJECT = "INSERT INTO deleted_projects SELECT * FROM projects WHERE id = $1";
    /// Keeps its counters.
    KEEP_STATS = "INSERT INTO deleted_project_stats SELECT * FROM project_stats WHERE project_id = $1";
    /// Keeps who has access to it. ix: project_assignments_of_project
    KEEP_ASSIGNMENTS = "INSERT INTO deleted_project_assignments SELECT * FROM project_assignments WHERE project_id = $1";
    /// Keeps its tags. PK
    KEEP_TAGS = "INSERT INTO deleted_project_tags SELECT * FROM project_tags WHERE project_id = $1";
    /// The name of a kept project.
    NAME = "SELECT name FROM deleted_projects WHERE id = $1";
    /// Whether a project has a name. ix: projects_name
    IS_NAMED = "SELECT 1 FROM projects WHERE name = $1";
    /// Gives a kept project another name.
    RENAME = "UPDATE deleted_projects SET name = $2 WHERE id = $1";
    /// Moves a project back.
    RESTORE_PROJECT = "INSERT INTO projects SELECT * FROM deleted_projects WHERE id = $1";
    /// Moves its counters back.
    RESTORE_STATS = "INSERT INTO project_stats SELECT * FROM deleted_project_stats WHERE project_id = $1";
    /// Gives access again to the accounts that still exist.
    RESTORE_ASSIGNMENTS = "INSERT INTO project_assignments SELECT * FROM deleted_project_assignments WHERE project_id = $1 \
        AND user_id IN (SELECT id FROM users)";
    /// Moves the tags back that still exist.
    RESTORE_TAGS = "INSERT INTO project_tags SELECT * FROM deleted_project_tags WHERE project_id = $1 AND tag_id IN (SELECT id FROM tags)";
    FORGET_PROJECT = "DELETE FROM deleted_projects WHERE id = $1";
    FORGET_STATS = "DELETE FROM deleted_project_stats WHERE project_id = $1";
    FORGET_ASSIGNMENTS = "DELETE FROM deleted_project_assignments WHERE project_id = $1";
    FORGET_TAGS = "DELETE FROM deleted_project_tags WHERE project_id = $1";
}

/// Keeps the row of a run that is about to be deleted, and its slots; exports
/// that may hold its rows expire.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub(super) async fn keep_run(session: &mut Session, project: ProjectId, run: RunId) -> Result<()> {
    session.execute(&KEEP_RUN, args![project, run]).await?;
    session.execute(&CLOSE_SLOTS, args![project, run]).await?;
    Ok(())
}

/// Makes exports of a project expire that may hold rows of a deleted run.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn expire_exports(session: &mut Session, project: ProjectId, now: Timestamp) -> Result<()> {
    session.execute(&EXPIRE_EXPORTS, args![project, now]).await?;
    Ok(())
}

/// The next run of a deletion whose rows are kept and still in the aggregates.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn next_counted(session: &mut Session, receipt: DeletionId) -> Result<Option<DoomedRun>> {
    session.first(&NEXT_COUNTED, args![receipt]).await?.as_ref().map(read_doomed).transpose()
}

/// The payload of the job that hides, by its key; `None` when it is done.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn hiding(session: &mut Session, key: &str) -> Result<Option<String>> {
    session.first(&HIDING, args![key]).await?.map(|row| row.reader().text()).transpose()
}

/// Notes that the rows of a run are out of the aggregates.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn mark_uncounted(session: &mut Session, run: &DoomedRun) -> Result<()> {
    session.execute(&MARK_UNCOUNTED, args![run.project, run.run]).await?;
    Ok(())
}

/// Keeps executions that are about to be deleted.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn keep_executions(session: &mut Session, run: &DoomedRun, ids: Vec<i64>) -> Result<()> {
    session.execute(&KEEP_EXECUTIONS, args![run.project, run.run, ids]).await?;
    Ok(())
}

/// Deletes at most `limit` kept executions of a run; returns how many.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn delete_executions(session: &mut Session, run: &DoomedRun, limit: i64) -> Result<i64> {
    let deleted = session.execute(&DELETE_EXECUTIONS, args![run.project, run.run, limit]).await?;
    Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
}

/// Deletes the kept row of a run and its slots.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub(super) async fn forget_run(session: &mut Session, project: ProjectId, run: RunId) -> Result<()> {
    session.execute(&DELETE_RUN, args![project, run]).await?;
    session.execute(&DELETE_SLOTS, args![project, run]).await?;
    Ok(())
}

/// Moves a run back with its executions. With `counts_again` they wait to be
/// counted, because they were taken out of the aggregates.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn restore_run(
    session: &mut Session,
    run: &DoomedRun,
    counts_again: bool,
    now: Timestamp,
) -> Result<()> {
    let (project, id) = (run.project, run.run);
    if counts_again {
        session.execute(&COUNT_AGAIN, args![project, id, now]).await?;
    }
    session.execute(&RESTORE_RUN, args![project, id]).await?;
    session.execute(&DELETE_RUN, args![project, id]).await?;
    session.execute(&RESTORE_EXECUTIONS, args![project, id]).await?;
    session.execute(&FORGET_EXECUTIONS, args![project, id]).await?;
    if counts_again {
        let (low, high) = ExecutionId::range_of(id);
        session.execute(&LEAVE_JOINS, args![project, id, low, high]).await?;
        session.execute(&FOLLOW_JOINS, args![project, id, low, high]).await?;
    }
    ids::list(session, Listed::Run, project, &[id.get()]).await
}

/// Sets the cluster an execution counts for.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn set_cluster(
    session: &mut Session,
    run: &DoomedRun,
    execution: ExecutionId,
    cluster: ClusterId,
) -> Result<()> {
    session.execute(&SET_CLUSTER, args![run.project, run.run, execution, cluster]).await?;
    Ok(())
}

/// Counts tests, executions and open clusters into a project, also while it is
/// hidden: what waits in it is counted meanwhile, and has to be right when it
/// comes back. Nothing happens when it is gone.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn count(session: &mut Session, project: ProjectId, growth: &Growth) -> Result<()> {
    // Restored between the first two, it is found by the third.
    for statement in [&COUNT, &COUNT_HIDDEN, &COUNT] {
        let args = args![project, growth.test_cases, growth.executions, growth.open_clusters];
        if session.execute(statement, args).await? > 0 {
            break;
        }
    }
    Ok(())
}

/// Locks the counters of a project that is about to be hidden: nobody counts
/// into it while they move.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn lock_counters(session: &mut Session, project: ProjectId) -> Result<()> {
    session.first(&LOCK_STATS, args![project]).await?;
    Ok(())
}

/// Keeps the rows of a project that is about to be hidden; its counters are
/// locked.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn keep_project(session: &mut Session, project: ProjectId) -> Result<()> {
    for statement in [&KEEP_PROJECT, &KEEP_STATS, &KEEP_ASSIGNMENTS, &KEEP_TAGS] {
        session.execute(statement, args![project]).await?;
    }
    Ok(())
}

/// Deletes the kept rows of a project.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn forget_project(session: &mut Session, project: ProjectId) -> Result<()> {
    for statement in [&FORGET_PROJECT, &FORGET_STATS, &FORGET_ASSIGNMENTS, &FORGET_TAGS] {
        session.execute(statement, args![project]).await?;
    }
    Ok(())
}

/// The name of a kept project.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn name_of_project(session: &mut Session, project: ProjectId) -> Result<Option<String>> {
    session.first(&NAME, args![project]).await?.map(|row| row.reader().text()).transpose()
}

/// Whether a project has a name.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn is_name_taken(session: &mut Session, name: &str) -> Result<bool> {
    Ok(session.first(&IS_NAMED, args![name]).await?.is_some())
}

/// Gives a kept project another name.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn rename_project(session: &mut Session, project: ProjectId, name: &str) -> Result<()> {
    session.execute(&RENAME, args![project, name]).await?;
    Ok(())
}

/// Moves a project back, for the accounts and with the tags that still exist.
///
/// # Errors
/// [`crate::StoreError::Database`], also when another
/// project has its name.
pub async fn restore_project(session: &mut Session, project: ProjectId) -> Result<()> {
    session.first(&LOCK_HIDDEN_STATS, args![project]).await?;
    for statement in [&RESTORE_PROJECT, &RESTORE_STATS, &RESTORE_ASSIGNMENTS, &RESTORE_TAGS] {
        session.execute(statement, args![project]).await?;
    }
    forget_project(session, project).await
}
