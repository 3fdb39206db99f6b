//! What retention deletes: whole runs, and files and evidence of runs that
//! stay. Both leave receipts and are freed as what people delete.

use std::collections::BTreeSet;

use callboard_domain::ids::{DeletionId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::deletions::runs::RowsOfRun;
use callboard_store::deletions::{self, NewReceipt};
use callboard_store::{Session, feed, jobs};

use super::DeleteTarget;
use crate::Result;
use callboard_ingest::hide_runs;

const REASON: &str = "retention";

/// Hides runs whose time is over; the numbers they counted for stay. Answers
/// how many there still were.
pub(crate) async fn delete_runs(
    session: &mut Session,
    project: ProjectId,
    runs: &BTreeSet<RunId>,
    now: Timestamp,
) -> Result<i64> {
    let count = i64::try_from(runs.len()).unwrap_or(i64::MAX);
    let label = if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
    let new = NewReceipt {
        project: Some(project),
        target_kind: "runs",
        target_id: project.get(),
        label: &label,
        reason: REASON,
        requested_by: None,
        runs: count,
        restorable_until: None,
    };
    let receipt = deletions::create(session, &new, now).await?;
    let hidden = hide_runs(session, project, runs, receipt, false, RowsOfRun::Freed).await?;
    super::enqueue_freeing(session, receipt, Some(project), None, now, now).await?;
    for run in runs {
        feed::publish(session, "run-deleted", *run, project, None, now).await?;
    }
    Ok(hidden)
}

/// The receipt that takes on files and evidence of a project: one that has not
/// begun to free, or a new one, which begins at `free_at`. It is locked; what
/// it takes on is added by the caller.
pub(crate) async fn receipt_for_files(
    session: &mut Session,
    project: ProjectId,
    free_at: Timestamp,
    now: Timestamp,
) -> Result<DeletionId> {
    if let Some(open) = deletions::open_for_files(session, project).await? {
        return Ok(open);
    }
    let new = NewReceipt {
        project: Some(project),
        target_kind: "files",
        target_id: project.get(),
        label: "Files and evidence",
        reason: REASON,
        requested_by: None,
        runs: 0,
        restorable_until: None,
    };
    let receipt = deletions::create(session, &new, now).await?;
    let job = DeleteTarget { receipt: receipt.get(), further: None };
    jobs::enqueue_at(session, &DeleteTarget::key(receipt), Some(project), &job, free_at, now).await?;
    Ok(receipt)
}
