//! What a finished run says about its tests: whether it says anything at all,
//! and, in `classification`, why those are flaky that are.
//!
//! Everything is a function of rows, so a late shard or a repeated job gives
//! the same as if all had come at the same time.

use callboard_domain::flakiness;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_ingest::remember_mass_failure;
use callboard_store::boxed;
use callboard_store::runs::{self, RunRow};

use super::classification::find_causes;
use super::settings::effective;
use crate::{Context, Result};

/// Judges a final run.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn judge_run(ctx: &Context, project: ProjectId, run: RunId) -> Result<()> {
    match mark_mass_failure(ctx, project, run).await? {
        Some(run) => find_causes(ctx, run).await,
        None => Ok(()),
    }
}

/// Notes whether the run failed as a whole, on its row and in the recent
/// history of each of its tests, a part of them at a time: nobody who writes
/// waits for all of them. Answers the run when it did not.
///
/// What breaks off in between is made good by the next call. A run is marked
/// before its tests, and each call goes over the tests of a marked run again; it
/// loses its mark after them, unless results came meanwhile.
async fn mark_mass_failure(ctx: &Context, project: ProjectId, id: RunId) -> Result<Option<RunRow>> {
    loop {
        let mut session = ctx.store.db().read().await?;
        let Some(run) = runs::get(&mut session, project, id).await? else { return Ok(None) };
        let may_be_one = run.status.is_final() && run.totals_from_rows && any_failed(&run);
        let is_one = may_be_one && {
            let rate = effective(&mut session, project).await?.mass_failure_rate;
            flakiness::is_mass_failure(&run.totals, rate)
        };
        drop(session);
        match (is_one, run.is_mass_failure) {
            (false, false) => return Ok(Some(run)),
            (true, is_marked) => {
                if is_marked || set_mass_failure(ctx, &run, true).await? {
                    remember_mass_failure(ctx, project, id, true).await?;
                    return Ok(None);
                }
            }
            // Looked at again without its mark.
            (false, true) => {
                remember_mass_failure(ctx, project, id, false).await?;
                set_mass_failure(ctx, &run, false).await?;
            }
        }
    }
}

/// Whether a test of a run failed.
fn any_failed(run: &RunRow) -> bool {
    run.totals.failed_tests + run.totals.timed_out_tests > 0
}

/// Writes whether a run failed as a whole; `false` when it changed since it
/// was read.
async fn set_mass_failure(ctx: &Context, read: &RunRow, is_mass_failure: bool) -> Result<bool> {
    let mut session = ctx.store.db().begin().await?;
    let run = runs::lock(&mut session, read.project, read.id).await?;
    if run.version != read.version {
        return Ok(false);
    }
    runs::set_mass_failure(&mut session, run.project, run.id, is_mass_failure).await?;
    session.commit().await?;
    Ok(true)
}
