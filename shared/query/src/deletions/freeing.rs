//! The job of a deletion, one bounded step at a time. Each step is a
//! transaction, or a call of the object store followed by one; each may be
//! done again after a crash.
//!
//! In this order: further runs are hidden; then, run by run, files and their
//! references, reports and evidence, executions with what they count for, all
//! other rows, and the objects under the run's own prefixes; then content that
//! only the deletion still held and objects that were left to it; then, for a
//! project, its tables and all that lies under its prefix. Complete is a
//! deletion when listings come back empty.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::ids::{BlobId, DeletionId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::blobs::freeing;
use callboard_store::db::Session;
use callboard_store::deletions::runs::{self as doomed, DoomedRun, RowsOfRun, RunsToDelete};
use callboard_store::deletions::{self, DeletionState, ReceiptRow, kept, project as doomed_project};
use callboard_store::jobs::{self, Payload};
use callboard_store::objects::Cleared;
use callboard_store::{Store, StoreError, boxed, intake, storage, unclaimed, upload_tickets};

use super::{DeleteTarget, HideTarget, RestoreTarget, hiding, takes_back};
use crate::Result;
use callboard_ingest::{Followed, by_lane, hide_runs, queue_behind, uncount};

/// Rows of one step.
const BATCH: i64 = 500;
/// Runs hidden in one step.
const HIDDEN: i64 = 50;
/// Objects of one step.
const OBJECTS: i64 = 200;

/// How far a step brought a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advanced {
    /// There is more to do.
    Further,
    /// The rest are runs of a deleted project; it has to be restored or freed first.
    Waiting,
    /// Nothing is left.
    Done,
}

/// Does the next step of a deletion.
///
/// # Errors
/// [`crate::QueryError::Store`] when the database or the object store refuses;
/// the same step is done again then.
#[boxed]
pub async fn advance(store: &Store, job: &DeleteTarget, now: Timestamp) -> Result<Advanced> {
    let id = DeletionId(job.receipt);
    let receipt = deletions::get(&mut store.db().read().await?, id).await?;
    let is_open =
        |receipt: &ReceiptRow| !receipt.state.is_over() && receipt.state != DeletionState::Restoring;
    let Some(mut receipt) = receipt.filter(is_open) else { return Ok(Advanced::Done) };
    // Only the job that hides knows all runs; it may not have run yet.
    let may_hide = matches!(receipt.state, DeletionState::Pending | DeletionState::Failed);
    if may_hide && receipt.restorable_until.is_some() {
        match hide_rest(store, id, now).await? {
            Advanced::Done => {}
            advanced => return Ok(advanced),
        }
    }
    // From here on nothing is added to it, and it cannot be restored.
    let is_begun = receipt.target_kind == "files" || receipt.restorable_until.is_some();
    if is_begun && receipt.state == DeletionState::Pending {
        let mut session = store.db().begin().await?;
        deletions::begin(&mut session, id).await?;
        session.commit().await?;
        return Ok(Advanced::Further);
    }
    receipt.state = DeletionState::Freeing;
    receipt.error = None;
    let work = Work { store, now, takes_back: takes_back(&receipt) };
    if work.uncount_kept(&receipt).await? {
        return Ok(Advanced::Further);
    }
    if let Some(further) = &job.further
        && work.hide_further(&mut receipt, &further.into()).await?
    {
        return Ok(Advanced::Further);
    }
    let whole = (receipt.target_kind == "project").then_some(ProjectId(receipt.target_id));
    if let Some(project) = whole
        && work.hide_all(&mut receipt, project).await?
    {
        return Ok(Advanced::Further);
    }
    let next = doomed::next(&mut store.db().read().await?, id).await?;
    if let Some(run) = next {
        work.free_run(&mut receipt, &run).await?;
        return Ok(Advanced::Further);
    }
    if work.free_content(&mut receipt).await? {
        return Ok(Advanced::Further);
    }
    let freed = unclaimed::free(store, id, OBJECTS).await?;
    if freed.refused > 0 {
        return Err(StoreError::Busy("objects that the object store did not delete").into());
    }
    if freed.deleted > 0 {
        return Ok(Advanced::Further);
    }
    if let Some(project) = whole
        && work.free_project(&mut receipt, project).await?
    {
        return Ok(Advanced::Further);
    }
    let mut session = store.db().begin().await?;
    if let Some(further) = &job.further
        && doomed::match_in_deleted_projects(&mut session, &further.into()).await?
    {
        return Ok(Advanced::Waiting);
    }
    let left = freeing::left_of(&mut session, id).await?;
    if left.to_go > 0 {
        return Err(StoreError::Busy("objects that another process is deleting").into());
    }
    receipt.state = DeletionState::Complete;
    receipt.objects.add(-left.kept.count, -left.kept.bytes);
    receipt.kept_shared.add(left.kept.count, left.kept.bytes);
    // What the rows said and what the listings said is the same, unless a crash came between.
    receipt.objects.count = receipt.objects.count.max(receipt.freed.count);
    receipt.objects.bytes = receipt.objects.bytes.max(receipt.freed.bytes);
    receipt.freed = receipt.objects;
    receipt.remaining = 0;
    (receipt.completed_at, receipt.verified_at) = (Some(now), Some(now));
    deletions::save(&mut session, &receipt).await?;
    session.commit().await?;
    Ok(Advanced::Done)
}

/// Does the next step of the job that hides, when that job is not done.
async fn hide_rest(store: &Store, id: DeletionId, now: Timestamp) -> Result<Advanced> {
    let payload = kept::hiding(&mut store.db().read().await?, &HideTarget::key(id)).await?;
    let Some(payload) = payload else { return Ok(Advanced::Done) };
    let mut job: HideTarget =
        serde_json::from_str(&payload).map_err(|_| StoreError::Damaged("the payload of a job that hides"))?;
    hiding::advance_hiding(store, &mut job, now).await
}

/// Notes on the receipt that a step failed. It is tried again; after the last
/// attempt of the queue, when [`resume`] says so.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn note_failure(store: &Store, job: &DeleteTarget, message: &str, is_last: bool) -> Result<()> {
    let mut session = store.db().begin().await?;
    let receipt = deletions::get(&mut session, DeletionId(job.receipt)).await?;
    if let Some(mut receipt) = receipt.filter(|receipt| !receipt.state.is_over()) {
        // What is still being hidden has not begun to free.
        let is_hiding = receipt.state == DeletionState::Pending && receipt.restorable_until.is_some();
        receipt.state = match (is_last, is_hiding) {
            (true, _) => DeletionState::Failed,
            (false, true) => DeletionState::Pending,
            (false, false) => DeletionState::Freeing,
        };
        receipt.error = Some(message.to_owned());
        deletions::save(&mut session, &receipt).await?;
        session.commit().await?;
    }
    Ok(())
}

/// Takes deletions and restores up again whose job was given up: an object store
/// that was away for long must not leave anything behind. Answers how many.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn resume(store: &Store, now: Timestamp) -> Result<u64> {
    let mut session = store.db().begin().await?;
    let mut resumed = 0;
    for kind in [HideTarget::KIND, RestoreTarget::KIND, DeleteTarget::KIND] {
        resumed += jobs::revive(&mut session, kind, now).await?;
    }
    session.commit().await?;
    Ok(resumed)
}

struct Work<'s> {
    store: &'s Store,
    now: Timestamp,
    /// Whether what the rows counted for goes with them.
    takes_back: bool,
}

impl Work<'_> {
    /// Writes how far it has come, with what is left.
    async fn save(&self, session: &mut Session, receipt: &mut ReceiptRow) -> Result<()> {
        let runs = doomed::left(session, receipt.id).await?;
        receipt.remaining = runs + (receipt.objects.count - receipt.freed.count).max(0);
        Ok(deletions::save(session, receipt).await?)
    }

    /// Takes the next rows out of the aggregates that were kept for a restore,
    /// when the grace period was too short for that; `false` when there are none.
    async fn uncount_kept(&self, receipt: &ReceiptRow) -> Result<bool> {
        let mut session = self.store.db().begin().await?;
        let Some(run) = kept::next_counted(&mut session, receipt.id).await? else { return Ok(false) };
        hiding::uncount_step(&mut session, receipt, &run, self.now).await?;
        session.commit().await?;
        Ok(true)
    }

    /// Hides further runs that match; `false` when there are none.
    async fn hide_further(&self, receipt: &mut ReceiptRow, wanted: &RunsToDelete) -> Result<bool> {
        let mut session = self.store.db().begin().await?;
        let mut of_project: BTreeMap<ProjectId, BTreeSet<RunId>> = BTreeMap::new();
        for (project, run) in doomed::matching(&mut session, wanted, HIDDEN).await? {
            of_project.entry(project).or_default().insert(run);
        }
        if of_project.is_empty() {
            return Ok(false);
        }
        for (project, runs) in of_project {
            let rows = RowsOfRun::Freed;
            hide_runs(&mut session, project, &runs, receipt.id, self.takes_back, rows).await?;
        }
        self.save(&mut session, receipt).await?;
        session.commit().await?;
        Ok(true)
    }

    /// Hides runs of a project that goes; `false` when there are none.
    async fn hide_all(&self, receipt: &mut ReceiptRow, project: ProjectId) -> Result<bool> {
        let mut session = self.store.db().begin().await?;
        let runs = doomed_project::runs(&mut session, project, HIDDEN).await?;
        if runs.is_empty() {
            return Ok(false);
        }
        let runs = runs.into_iter().collect();
        hide_runs(&mut session, project, &runs, receipt.id, false, RowsOfRun::Freed).await?;
        self.save(&mut session, receipt).await?;
        session.commit().await?;
        Ok(true)
    }

    /// The next step of freeing one run.
    async fn free_run(&self, receipt: &mut ReceiptRow, run: &DoomedRun) -> Result<()> {
        let mut session = self.store.db().begin().await?;
        let blobs = doomed::delete_files(&mut session, run, BATCH).await?;
        if !blobs.is_empty() {
            receipt.rows.files += i64::try_from(blobs.len()).unwrap_or(i64::MAX);
            self.release(&mut session, receipt, run.project, blobs).await?;
            self.save(&mut session, receipt).await?;
            return Ok(session.commit().await?);
        }
        if doomed::delete_pack_bytes(&mut session, run, BATCH).await? > 0 {
            self.save(&mut session, receipt).await?;
            return Ok(session.commit().await?);
        }
        let own = doomed::delete_own(&mut session, run).await?;
        if own.reports + own.packs > 0 {
            receipt.objects.add(own.objects, own.bytes);
            receipt.rows.files += own.reports;
            receipt.rows.other += own.packs;
            self.save(&mut session, receipt).await?;
            return Ok(session.commit().await?);
        }
        let mut rows = doomed::executions(&mut session, run, BATCH).await?;
        if !rows.is_empty() {
            doomed::delete_executions(&mut session, run, &mut rows).await?;
            let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
            receipt.rows.executions += count;
            if self.takes_back {
                uncount(&mut session, run, &rows, self.now).await?;
                for (lane, rows) in by_lane(&rows) {
                    let (lane, at) = ((run.project, lane), (run.order_at, run.run));
                    let gone: Vec<Followed> = rows.iter().filter_map(Followed::from_row).collect();
                    queue_behind(&mut session, lane, at, &gone, self.now).await?;
                }
            }
            self.save(&mut session, receipt).await?;
            return Ok(session.commit().await?);
        }
        let kept = kept::delete_executions(&mut session, run, BATCH).await?;
        if kept > 0 {
            receipt.rows.executions += kept;
            self.save(&mut session, receipt).await?;
            return Ok(session.commit().await?);
        }
        receipt.rows.other += doomed::delete_rest(&mut session, run, receipt.id, self.now).await?;
        storage::forget_run(&mut session, run.project, run.run, self.now).await?;
        deletions::save(&mut session, receipt).await?;
        session.commit().await?;
        self.clear_run(receipt, run).await
    }

    /// The last step of a run: what its clients sent last and what lies under its
    /// prefixes goes, then its mark.
    async fn clear_run(&self, receipt: &mut ReceiptRow, run: &DoomedRun) -> Result<()> {
        for folder in ["packs", "reports"] {
            let prefix = format!("project-{}/{folder}/{}/", run.project, run.run);
            self.clear(receipt, &prefix).await?;
        }
        intake::remove_all(self.store.db(), run.project, run.run).await?;
        receipt.rows.runs += 1;
        let mut session = self.store.db().begin().await?;
        doomed::forget(&mut session, run).await?;
        self.save(&mut session, receipt).await?;
        Ok(session.commit().await?)
    }

    /// Deletes what lies below a prefix, and asks again whether nothing is
    /// left.
    async fn clear(&self, receipt: &mut ReceiptRow, prefix: &str) -> Result<()> {
        let cleared = self.store.objects().clear_below(prefix).await?;
        receipt.freed.add(cleared.objects, cleared.bytes);
        if cleared != Cleared::default() && !self.store.objects().is_empty_below(prefix).await? {
            let mut session = self.store.db().begin().await?;
            self.save(&mut session, receipt).await?;
            session.commit().await?;
            return Err(StoreError::Busy("objects that came while they were deleted").into());
        }
        Ok(())
    }

    /// Lets go of content of deleted files.
    async fn release(
        &self,
        session: &mut Session,
        receipt: &mut ReceiptRow,
        project: ProjectId,
        blobs: Vec<BlobId>,
    ) -> Result<()> {
        // In the order of their ids: two deletions that share content wait for each other in turn.
        let mut counts: BTreeMap<BlobId, i64> = BTreeMap::new();
        for blob in blobs {
            *counts.entry(blob).or_default() += 1;
        }
        for (blob, count) in counts {
            let released = freeing::release_for(session, project, blob, count, receipt.id, self.now).await?;
            let count = if released.is_shared { &mut receipt.kept_shared } else { &mut receipt.objects };
            count.add(1, released.bytes);
        }
        Ok(())
    }

    /// Deletes content that only the deletion still held; `false` when there
    /// is none.
    async fn free_content(&self, receipt: &mut ReceiptRow) -> Result<bool> {
        let Some(freed) = freeing::free(self.store, receipt.id, self.now, OBJECTS).await? else {
            return Ok(false);
        };
        receipt.freed.add(freed.objects, freed.bytes);
        receipt.objects.add(freed.found.count, freed.found.bytes);
        let mut session = self.store.db().begin().await?;
        self.save(&mut session, receipt).await?;
        session.commit().await?;
        if freed.refused > 0 {
            return Err(StoreError::Busy("objects that the object store did not delete").into());
        }
        Ok(true)
    }

    /// The next step of freeing what is left of a project; `false` when
    /// nothing is.
    async fn free_project(&self, receipt: &mut ReceiptRow, project: ProjectId) -> Result<bool> {
        let mut session = self.store.db().begin().await?;
        kept::forget_project(&mut session, project).await?;
        if let Some(deleted) = doomed_project::delete_rows(&mut session, project, BATCH).await? {
            receipt.rows.other += deleted;
            deletions::save(&mut session, receipt).await?;
            session.commit().await?;
            return Ok(true);
        }
        if upload_tickets::revoke_of_project(&mut session, project, receipt.id, self.now).await? {
            session.commit().await?;
            return Ok(true);
        }
        let adopted = doomed_project::adopt_content(&mut session, project, receipt.id).await?;
        if adopted.count > 0 {
            receipt.objects.add(adopted.count, adopted.bytes);
            deletions::save(&mut session, receipt).await?;
        }
        session.commit().await?;
        if adopted.count > 0 {
            return Ok(true);
        }
        self.clear(receipt, &format!("project-{project}/")).await?;
        Ok(false)
    }
}
