//! Groups: the shards of one pipeline. The row is the lock under which a shard
//! finds its run, so that shards which start at the same time make one run.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Session, args, statements};

statements! {
    /// Makes a group; a concurrent maker may have been first.
    INSERT = "INSERT INTO run_groups (project_id, instance_id, shard_total, newest_run_id, updated_at) \
        VALUES ($1, $2, $3, NULL, $4) ON CONFLICT (project_id, instance_id, shard_total) DO NOTHING";
    /// The newest run of a group. PK
    NEWEST = "SELECT newest_run_id FROM run_groups WHERE project_id = $1 AND instance_id = $2 AND shard_total = $3";
    /// The same, locked for the rest of the transaction. PK
    LOCK = "SELECT newest_run_id FROM run_groups WHERE project_id = $1 AND instance_id = $2 AND shard_total = $3 for_update()";
    /// A new run of a group.
    SET_NEWEST = "UPDATE run_groups SET newest_run_id = $4, updated_at = $5 \
        WHERE project_id = $1 AND instance_id = $2 AND shard_total = $3";
}

/// What shards of one run have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupKey {
    /// Project.
    pub project: ProjectId,
    /// Grouping key of the clients.
    pub instance_id: String,
    /// Number of shards.
    pub shard_total: i64,
}

/// The newest run of a group, without locking it.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn newest(session: &mut Session, key: &GroupKey) -> Result<Option<RunId>> {
    let row = session.first(&NEWEST, args![key.project, &key.instance_id, key.shard_total]).await?;
    Ok(row.map(|row| row.reader().opt_int()).transpose()?.flatten().map(RunId))
}

/// Locks a group for the rest of the transaction, made when it does not exist,
/// and answers its newest run.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn lock(session: &mut Session, key: &GroupKey, now: Timestamp) -> Result<Option<RunId>> {
    session.write(&INSERT, args![key.project, &key.instance_id, key.shard_total, now]).await?;
    let row = session.one(&LOCK, args![key.project, &key.instance_id, key.shard_total]).await?;
    Ok(row.reader().opt_int()?.map(RunId))
}

/// Makes a run the newest of its group.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn set_newest(session: &mut Session, key: &GroupKey, run: RunId, now: Timestamp) -> Result<()> {
    let args = args![key.project, &key.instance_id, key.shard_total, run, now];
    session.write(&SET_NEWEST, args).await?;
    Ok(())
}
