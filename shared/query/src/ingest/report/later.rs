//! Reports with more files than a client waits for: a job writes what the call
//! that received the archive did not. It goes on where it was when its time is
//! over, so that an archive of any size is unpacked in the end.

use callboard_domain::ids::{ProjectId, ReportId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::jobs::Payload;
use callboard_store::reports::{self, BegunReport, ReportRow};
use callboard_store::{StoreError, boxed};
use serde::{Deserialize, Serialize};

use super::Complete;
use super::unpacking::{Next, unpack_from};
use crate::conflicts::repeated;
use crate::ingest::locked::LockedRun;
use crate::{Context, QueryError, Result};

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
    let begun = BegunReport::of(job.project, job.run, job.report);
    let row = reports::left(&mut ctx.store.db().read().await?, job.project, job.report).await?;
    // Without one, its run was deleted, or an earlier attempt completed it.
    if let Some(row) = row {
        let written = write(ctx, &job, &begun, has_time).await?;
        match written {
            Some(written) if written < job.entries => return Ok(Some(UnpackReport { written, ..job })),
            Some(_) => repeated(|| show(ctx, &job, &begun, &row, now)).await?,
            None => forget(ctx, &job, &begun, now).await?,
        }
    }
    reports::remove_archive(&ctx.store, &begun).await?;
    Ok(None)
}

/// How many files are objects now; `None` when the archive cannot be read any
/// more.
async fn write(
    ctx: &Context,
    job: &UnpackReport,
    begun: &BegunReport,
    has_time: &(dyn Fn() -> bool + Sync),
) -> Result<Option<usize>> {
    let archive = begun.archive_key();
    if ctx.store.objects().size(&archive).await?.is_none() {
        tracing::error!(archive, "the archive of a report is gone before it was unpacked");
        return Ok(None);
    }
    let mut pace = |_| if has_time() { Next::Write } else { Next::Stop };
    match unpack_from(ctx, &archive, &begun.prefix, job.written, &mut pace).await? {
        Ok(contents) => Ok(Some(contents.written)),
        Err(why) => {
            tracing::error!(archive, why, "the archive of a report is not what it was when it was received");
            Ok(None)
        }
    }
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
        report.show(&mut session, ctx, &locked, now).await
    };
    match shown.await {
        // Its run is being deleted, or it waited for so long that the sweep was allowed to take its files.
        Err(QueryError::Store(StoreError::RunGone | StoreError::ProjectGone | StoreError::ContentGone)) => {
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
    reports::discard(&mut session, job.project, begun, now).await?;
    Ok(session.commit().await?)
}
