//! What people change of a cluster.

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;

use super::ClusterRow;
use crate::Result;
use crate::db::{Session, args, statements};

statements! {
    /// Writes what people change.
    EDIT = "UPDATE failure_clusters SET title = $3, status = $4, status_at = $5, note = $6, base_commit = $7, assignee_id = $8, \
        snoozed_until = $9, fix_at = $10, ttr_ms = $11, fix_verification = $12, fix_run_id = $13, fix_commit = $14, updated_at = $15, \
        is_quiet = $16, is_touched = 1 WHERE project_id = $1 AND id = $2";
    /// Counts open clusters of a project.
    COUNT_OPEN = "UPDATE project_stats SET open_clusters = open_clusters + $2 WHERE project_id = $1";
}

/// Writes what people changed of a locked cluster.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn write(session: &mut Session, row: &ClusterRow, now: Timestamp) -> Result<()> {
    session
        .execute(
            &EDIT,
            args![
                row.project,
                row.id,
                row.title.clone(),
                row.status.as_str(),
                row.status_at,
                row.note.clone(),
                row.base_commit.clone(),
                row.assignee,
                row.snoozed_until,
                row.fix_at,
                row.ttr_ms,
                row.fix_verification.clone(),
                row.fix_run,
                row.fix_commit.clone(),
                now,
                row.is_quiet
            ],
        )
        .await?;
    Ok(())
}

/// Adds to the number of open clusters of a project; its row is locked late
/// in every transaction.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn count_open(session: &mut Session, project: ProjectId, more: i64) -> Result<()> {
    if more != 0 {
        session.execute(&COUNT_OPEN, args![project, more]).await?;
    }
    Ok(())
}
