//! Reports with more files than a client waits for: a job writes what the call
//! that received the archive did not. It goes on where it was when its time is
//! over, so that an archive of any size is unpacked in the end.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callboard_domain::ids::{ProjectId, ReportId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::jobs::Payload;
use callboard_store::reports::{self, BegunReport, ReportRow};
use callboard_store::{StoreError, boxed, deletions};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::unpacking::{Next, unpack_from};
use super::{AtOnce, Complete};
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, QueryError, Result};
use callboard_core::retry::repeated;

/// A report whose archive was looked through and is not unpacked yet.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct UnpackReport {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// The report.
    pub report: ReportId,
    /// How many files it has.
    pub entries: usize,
    /// Their bytes.
    pub size: i64,
    /// How many of them, from the first on, are objects already.
    pub written: usize,
}

impl Payload for UnpackReport {
    const KIND: &'static str = "unpack_report";
}

/// How often it is looked whether the run is still there.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Unpacks a report for as long as `has_time` says so, and makes it visible when
/// it is complete. Answers what is left.
///
/// # Errors
/// [`QueryError::Store`]; files that were written are written again.
#[boxed]
pub async fn unpack_report(
    ctx: &Context,
    job: UnpackReport,
    has_time: &(dyn Fn() -> bool + Sync),
    now: Timestamp,
) -> Result<Option<UnpackReport>> {
    let begun = BegunReport::new(job.project, job.run, job.report);
    // Without one, its run was deleted, or an earlier attempt completed it.
    if let Some(row) = waiting(ctx, &job).await? {
        match write(ctx, &job, &begun, has_time).await {
            Ok(Some(written)) if written < job.entries => return Ok(Some(UnpackReport { written, ..job })),
            Ok(Some(_)) => repeated(|| show(ctx, &job, &begun, &row, now)).await?,
            Ok(None) => forget(ctx, &job, &begun, now).await?,
            Err(error) if reports::is_overdue(&row, now) => {
                tracing::error!(%error, report = %begun.id, "a report is given up that could not be unpacked for long");
                forget(ctx, &job, &begun, now).await?;
            }
            Err(error) => return Err(error),
        }
    }
    // What a deletion has not come to is counted by it.
    if deletions::runs::is_doomed(&mut ctx.store.db().read().await?, job.project, job.run).await? {
        return Err(StoreError::Busy("files of a run that is being deleted").into());
    }
    reports::clear(&ctx.store, job.project, &begun, now).await?;
    Ok(None)
}

async fn waiting(ctx: &Context, job: &UnpackReport) -> Result<Option<ReportRow>> {
    Ok(reports::left(&mut ctx.store.db().read().await?, job.project, job.report).await?)
}

/// How many files are objects now; `None` when the archive is damaged.
async fn write(
    ctx: &Context,
    job: &UnpackReport,
    begun: &BegunReport,
    has_time: &(dyn Fn() -> bool + Sync),
) -> Result<Option<usize>> {
    let archive = begun.archive_key();
    let is_wanted = AtomicBool::new(true);
    let (mut is_first, mut least) = (true, AtOnce::least());
    let mut pace = |size| {
        // Getting to the first file can take all the time there is: some are written nevertheless.
        let is_due = std::mem::take(&mut is_first) || least.take(size) == Next::Write || has_time();
        if is_due && is_wanted.load(Ordering::Relaxed) { Next::Write } else { Next::Stop }
    };
    let mut unpacking = pin!(unpack_from(ctx, &archive, &begun.prefix, job.written, &mut pace));
    let unpacked = loop {
        tokio::select! {
            unpacked = &mut unpacking => break unpacked?,
            () = sleep(LOOK_AGAIN) => match waiting(ctx, job).await {
                Ok(row) => is_wanted.store(row.is_some(), Ordering::Relaxed),
                Err(error) => tracing::warn!(%error, archive, "a report may not be wanted any more"),
            },
        }
    };
    Ok(match unpacked {
        Ok(contents) => Some(contents.written),
        Err(why) => {
            tracing::error!(archive, why, "the archive of a report is not what it was when it was received");
            None
        }
    })
}

async fn show(
    ctx: &Context,
    job: &UnpackReport,
    begun: &BegunReport,
    row: &ReportRow,
    now: Timestamp,
) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let shown = async {
        let locked = LockedRun::lock(&mut session, job.project, job.run).await?;
        let report = Complete { begun, entry: &row.entry, size: job.size, entries: job.entries };
        report.show(&mut session, &locked, now).await
    };
    match shown.await {
        // The deletion of its run takes it.
        Err(QueryError::Store(StoreError::RunGone | StoreError::ProjectGone)) => Ok(()),
        // Another worker completed it, or it waited for so long that the sweep was allowed to take its files.
        Err(QueryError::Store(StoreError::ContentGone)) => {
            drop(session);
            forget(ctx, job, begun, now).await
        }
        shown => {
            shown?;
            Ok(session.commit().await?)
        }
    }
}

async fn forget(ctx: &Context, job: &UnpackReport, begun: &BegunReport, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    reports::discard_waiting(&mut session, job.project, begun, now).await?;
    Ok(session.commit().await?)
}
