//! Changes of the default branch and of the tracked ones. Runs of branches that
//! are no longer tracked may have to be deleted sooner, so they are kept as
//! before until the grace of a shortened policy is over.

use callboard_auth::scope::Authorized;
use callboard_core::retention::{HeldBranches, Stored};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::lane::LaneKind;
use callboard_domain::retention::{Policy, is_tracked, shortened};
use callboard_store::audit::Recorded;
use callboard_store::projects::ProjectRow;
use callboard_store::settings::{self, StoredSettings};
use callboard_store::{Session, lanes, projects};

use super::changes::{ApplyRetention, numbers};
use super::preview;
use super::settings::{BRANCH_KEYS, GROUP, effective_at, stored_both};
use crate::accounts::Acting;
use crate::{Change, Context, Result};

/// Branches of a project that are looked at.
const MAX_BRANCHES: i64 = 5_000;
/// As long as no default branch is set, every branch is tracked.
const EVERY_BRANCH: &str = "*";

fn tracks(project: &ProjectRow, branch: &str) -> bool {
    is_tracked(branch, project.default_branch.as_deref(), &project.tracked_branches)
}

/// What a change of branches leaves without being tracked, when that can delete
/// something; counted before the transaction that writes the change.
pub(crate) async fn plan(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    default_branch: &Change<String>,
    tracked_branches: &Change<Vec<String>>,
) -> Result<Option<HeldBranches>> {
    if ctx.retention_grace_ms == 0 || default_branch.is_keep() && tracked_branches.is_keep() {
        return Ok(None);
    }
    let mut session = ctx.store.db().read().await?;
    let Some(before) = projects::get(&mut session, project.get()).await? else { return Ok(None) };
    let mut after = before.clone();
    after.default_branch = default_branch.clone().applied_to(after.default_branch.take());
    after.tracked_branches = tracked_branches
        .clone()
        .applied_to(Some(std::mem::take(&mut after.tracked_branches)))
        .unwrap_or_default();
    let (of_instance, of_project) = stored_both(&mut session, before.id).await?;
    let policy = of_project.set.over(&of_instance.policy());
    if shortened(&Policy::default(), &policy).is_empty() {
        return Ok(None);
    }
    let branches = lanes::recent(&mut session, before.id, LaneKind::Branch, MAX_BRANCHES).await?;
    if !branches.iter().any(|lane| tracks(&before, &lane.name) && !tracks(&after, &lane.name)) {
        return Ok(None);
    }
    let at = effective_at(ctx, acting.now);
    let preview = preview::of_row(&mut session, &after, &policy, at).await?;
    let mut patterns = before.tracked_branches;
    patterns.push(before.default_branch.unwrap_or_else(|| EVERY_BRANCH.to_owned()));
    Ok(Some(HeldBranches {
        patterns,
        effective_at: at.millis(),
        requested_at: acting.now.millis(),
        requested_by: acting.caller.user_id().map(UserId::get),
        preview,
    }))
}

/// Keeps branches like tracked ones until the grace is over, in the transaction
/// that changes the project.
pub(crate) async fn hold(
    session: &mut Session,
    acting: Acting<'_>,
    project: ProjectId,
    mut held: HeldBranches,
) -> Result<Recorded> {
    let row = settings::lock(session, Some(project), GROUP, acting.now).await?;
    let mut stored = Stored::read(Some(&row))?;
    if let Some(earlier) = stored.held_branches.take() {
        held.patterns.extend(earlier.patterns);
        held.patterns.sort_unstable();
        held.patterns.dedup();
    }
    let (at, preview) = (held.effective_at(), held.preview);
    stored.held_branches = Some(held);
    let StoredSettings { updated_at, updated_by, .. } = row;
    settings::set(session, Some(project), GROUP, &stored.to_json(), updated_at, updated_by).await?;
    let job = ApplyRetention { project: Some(project), is_from_environment: false };
    job.enqueue(session, at, acting.now).await?;
    let detail = numbers(&BRANCH_KEYS, &preview, at);
    let target = ("project", project.get());
    acting.record(session, AuditAction::RetentionQueued, target, Some(project), detail).await
}
