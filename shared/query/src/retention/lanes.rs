//! Numbers that go: those of branches nobody follows and nobody runs any more,
//! and those of days longer ago than the policy keeps. What all branches have
//! in common stays: nothing is taken back from the lane of all runs but its
//! oldest days.

use callboard_domain::ids::ProjectId;
use callboard_domain::time::{Day, Timestamp};
use callboard_store::jobs::Payload;
use callboard_store::retention::lanes;
use callboard_store::{Session, StoreError, boxed};
use serde::{Deserialize, Serialize};

use super::dating::{follows, policy_of};
use crate::{Context, Result};

/// Rows of one transaction.
const ROWS: i64 = 2_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Numbers whose time is over are forgotten, project by project.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct ForgetNumbers {
    /// Those of projects behind this one.
    #[serde(default)]
    pub after: Option<ProjectId>,
}

impl Payload for ForgetNumbers {
    const KIND: &'static str = "lane_expiry";
}

/// Forgets numbers of the next project; the job for those behind it, `None`
/// when there are none.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn forget_numbers(
    ctx: &Context,
    job: ForgetNumbers,
    now: Timestamp,
) -> Result<Option<ForgetNumbers>> {
    let mut session = ctx.store.db().read().await?;
    let Some(project) = lanes::next_project(&mut session, job.after).await? else { return Ok(None) };
    let next = Some(ForgetNumbers { after: Some(project) });
    let Some((row, policy)) = policy_of(&mut session, project).await? else { return Ok(next) };
    let since = policy.rollups.untracked_branch_days.map(|days| Timestamp(now.millis() - days * DAY_MS));
    let silent = match since {
        Some(since) => lanes::silent(&mut session, project, since).await?,
        None => Vec::new(),
    };
    let before = policy.rollups.daily_days.map(|days| Day(now.day().0 - days));
    let all = if before.is_some() { lanes::with_numbers(&mut session, project).await? } else { Vec::new() };
    drop(session);
    if let Some(since) = since {
        for (lane, _) in silent.iter().filter(|(_, branch)| !follows(&row, branch)) {
            forget_lane(ctx, project, *lane, since).await?;
        }
    }
    if let Some(before) = before {
        while step(ctx, async |session| lanes::delete_days_of_project(session, project, before, ROWS).await)
            .await?
        {}
        for lane in all {
            while step(ctx, async |session| lanes::delete_days(session, project, lane, before, ROWS).await)
                .await?
            {}
        }
    }
    Ok(next)
}

async fn forget_lane(ctx: &Context, project: ProjectId, lane: i64, since: Timestamp) -> Result<()> {
    if step(ctx, async |session| lanes::clear(session, project, lane, since).await).await? {
        while step(ctx, async |session| lanes::delete_numbers(session, project, lane, ROWS).await).await? {}
    }
    Ok(())
}

/// One transaction.
async fn step(
    ctx: &Context,
    work: impl AsyncFnOnce(&mut Session) -> std::result::Result<bool, StoreError>,
) -> Result<bool> {
    let mut session = ctx.store.db().begin().await?;
    let goes_on = work(&mut session).await?;
    session.commit().await?;
    Ok(goes_on)
}
