//! The job that takes hidden runs out of the aggregates while they can still
//! be restored: a bounded number of rows in each transaction. Their rows are
//! moved aside, not deleted.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::ids::{DeletionId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::deletions::runs::{self as doomed, DoomedRun, RowsOfRun};
use callboard_store::deletions::{self, DeletionState, ReceiptRow, kept};
use callboard_store::jobs::Payload;
use callboard_store::{Store, boxed};
use serde::{Deserialize, Serialize};

use super::{Advanced, FurtherRuns, takes_back};
use crate::Result;
use callboard_ingest::{Followed, by_lane, hide_runs, queue_behind, uncount, uncount_endpoints};

/// Executions of one step.
const BATCH: i64 = 500;
/// Runs hidden in one step.
const HIDDEN: i64 = 50;

/// The work that follows the hiding of runs that can be restored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HideTarget {
    /// The receipt.
    pub receipt: i64,
    /// Further runs that go with it.
    #[serde(default)]
    pub further: Option<FurtherRuns>,
}

impl Payload for HideTarget {
    const KIND: &'static str = "hide_target";
}

impl HideTarget {
    /// The key of its job.
    pub(super) fn key(receipt: DeletionId) -> String {
        format!("deletion:{receipt}:hide")
    }
}

/// Does the next step of hiding.
///
/// # Errors
/// [`crate::QueryError::Store`]; the same step is done again then.
#[boxed]
pub async fn advance_hiding(store: &Store, job: &mut HideTarget, now: Timestamp) -> Result<Advanced> {
    let mut session = store.db().begin().await?;
    let receipt = deletions::lock(&mut session, DeletionId(job.receipt)).await?;
    // A restore does the rest itself; the job that frees does, except for runs that only this one knows.
    let is_open = |receipt: &ReceiptRow| match receipt.state {
        DeletionState::Pending => true,
        DeletionState::Freeing | DeletionState::Failed => job.further.is_some(),
        _ => false,
    };
    let Some(mut receipt) = receipt.filter(is_open) else { return Ok(Advanced::Done) };
    if let Some(further) = &job.further {
        if hide_further(&mut session, &mut receipt, further).await? {
            session.commit().await?;
            return Ok(Advanced::Further);
        }
        if !doomed::match_in_deleted_projects(&mut session, &further.into()).await? {
            job.further = None;
        }
    }
    let Some(run) = kept::next_counted(&mut session, receipt.id).await? else {
        return Ok(if job.further.is_some() { Advanced::Waiting } else { Advanced::Done });
    };
    uncount_step(&mut session, &receipt, &run, now).await?;
    session.commit().await?;
    Ok(Advanced::Further)
}

/// Hides further runs that match; `false` when there are none.
async fn hide_further(
    session: &mut Session,
    receipt: &mut ReceiptRow,
    further: &FurtherRuns,
) -> Result<bool> {
    let mut of_project: BTreeMap<ProjectId, BTreeSet<RunId>> = BTreeMap::new();
    for (project, run) in doomed::matching(session, &further.into(), HIDDEN).await? {
        of_project.entry(project).or_default().insert(run);
    }
    if of_project.is_empty() {
        return Ok(false);
    }
    for (project, runs) in of_project {
        let takes_back = takes_back(receipt);
        hide_runs(session, project, &runs, receipt.id, takes_back, RowsOfRun::KeptCounted).await?;
    }
    receipt.remaining = doomed::left(session, receipt.id).await?;
    deletions::save(session, receipt).await?;
    Ok(true)
}

/// Moves the next executions of a run aside, and takes them out of the
/// aggregates when a person deleted them.
pub(super) async fn uncount_step(
    session: &mut Session,
    receipt: &ReceiptRow,
    run: &DoomedRun,
    now: Timestamp,
) -> Result<()> {
    let takes_back = takes_back(receipt);
    let mut rows = doomed::executions(session, run, BATCH).await?;
    if rows.is_empty() {
        if takes_back {
            uncount_endpoints(session, run).await?;
        }
        return Ok(kept::mark_uncounted(session, run).await?);
    }
    let ids = rows.iter().map(|row| row.id.get()).collect();
    kept::keep_executions(session, run, ids).await?;
    doomed::delete_executions(session, run, &mut rows).await?;
    if !takes_back {
        return Ok(());
    }
    uncount(session, run, &rows, now).await?;
    for (lane, rows) in by_lane(&rows) {
        let (lane, at) = ((run.project, lane), (run.order_at, run.run));
        let gone: Vec<Followed> = rows.iter().filter_map(Followed::from_row).collect();
        queue_behind(session, lane, at, &gone, now).await?;
    }
    Ok(())
}
