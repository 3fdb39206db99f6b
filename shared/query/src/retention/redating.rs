//! Dating anew what is stored already, when the policy has changed: run by
//! run, from the oldest. Whatever is written meanwhile is dated by the new
//! policy anyway.

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_store::jobs::{self, Payload};
use callboard_store::retention::{PlacedRun, runs_after};
use callboard_store::{Session, Store, StoreError, boxed, instance, runs};
use serde::{Deserialize, Serialize};

use super::dating::{date_by, policy_of};
use crate::{Context, Result};

/// Runs of one job.
const RUNS: i64 = 20;
/// Notes that stored data is being dated by defaults that keep everything:
/// dates from earlier defaults are taken back once.
const DATED: &str = "retention_dated_to_keep";

/// Runs that are to be dated anew.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Redate {
    /// Only of this project.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// Those behind this one: order key and id.
    #[serde(default)]
    pub after: Option<(i64, i64)>,
}

impl Payload for Redate {
    const KIND: &'static str = "redate_expiry";
}

/// Dates all runs of a project, or of all projects, anew.
pub(crate) async fn enqueue(session: &mut Session, project: Option<ProjectId>, now: Timestamp) -> Result<()> {
    let of = project.map_or_else(|| "all".to_owned(), |project| project.to_string());
    let job = Redate { project, after: None };
    jobs::enqueue(session, &format!("redate:{of}:{}", now.millis()), project, &job, now).await?;
    Ok(())
}

/// Enqueues the dating of all stored data, once in the life of an
/// installation: dates of earlier releases came from other defaults.
pub(super) async fn begin(store: &Store, now: Timestamp) -> Result<()> {
    if instance::has(store.db(), DATED).await? {
        return Ok(());
    }
    let mut session = store.db().begin().await?;
    if instance::claim(&mut session, DATED, now).await? {
        enqueue(&mut session, None, now).await?;
    }
    session.commit().await?;
    Ok(())
}

/// Dates the next runs; the job for those behind them, `None` when there are
/// none.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn redate(ctx: &Context, job: Redate) -> Result<Option<Redate>> {
    let after = job.after.unwrap_or((i64::MIN, 0));
    let mut session = ctx.store.db().read().await?;
    let placed = runs_after(&mut session, job.project, after, RUNS).await?;
    drop(session);
    let Some(last) = placed.last().copied() else { return Ok(None) };
    for place in placed {
        date_one(ctx, place).await?;
    }
    Ok(Some(Redate { after: Some((last.order_at.millis(), last.run.get())), ..job }))
}

/// Dates a run that still exists. It is locked first, as by everybody who
/// writes what belongs to it.
async fn date_one(ctx: &Context, place: PlacedRun) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let run = match runs::lock(&mut session, place.project, place.run).await {
        Err(StoreError::RunGone) => return Ok(()),
        run => run?,
    };
    let Some((project, policy)) = policy_of(&mut session, place.project).await? else { return Ok(()) };
    if run.status.is_final() {
        date_by(&mut session, &policy, &project, &run).await?;
    }
    Ok(session.commit().await?)
}
