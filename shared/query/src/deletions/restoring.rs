//! Restoring what a person deleted, until its grace period is over.

use std::time::{Duration, Instant};

use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{DeletionId, ProjectId};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::deletions::runs as doomed;
use callboard_store::deletions::{self, DeletionState, ReceiptRow, kept};
use callboard_store::jobs::{self, Payload};
use callboard_store::projects::{self, edit};
use callboard_store::{Store, boxed};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::{Advanced, DeleteTarget, Receipt, hiding, takes_back};
use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::{Context, Entity, QueryError, Result, retention};
use callboard_core::retry::repeated;
use callboard_ingest::restore_run;

/// How long a request restores runs itself; the job does the rest.
const OWN_WORK: Duration = Duration::from_secs(2);
/// Most names that are tried for a restored project.
const MAX_NAMES: usize = 10_000;
/// Longest name of a project, characters.
const MAX_NAME_CHARS: usize = 255;

/// The work of restoring runs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RestoreTarget {
    /// The receipt.
    pub receipt: i64,
}

impl Payload for RestoreTarget {
    const KIND: &'static str = "restore_target";
}

impl RestoreTarget {
    fn key(receipt: DeletionId) -> String {
        format!("deletion:{receipt}:restore")
    }
}

/// A project that came back under another name, because its own is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RenamedProject {
    /// Project id.
    pub id: i64,
    /// Its name before.
    #[schema(example = "shop")]
    pub from: String,
    /// Its name now.
    #[schema(example = "shop (restored)")]
    pub to: String,
}

/// What a restore did.
#[derive(Debug, Clone)]
pub struct Restored {
    /// The receipt; `restoring` while rows of large runs are still moving.
    pub receipt: Receipt,
    /// The project, when it has another name now.
    pub renamed: Option<RenamedProject>,
}

/// Restores what a deletion hid. Runs that take longer come back in the
/// background; a restore that stopped goes on when it is asked for again.
///
/// # Errors
/// [`QueryError::NotFound`]; [`AdministrationRule`] when the deletion is not
/// restorable, not any more, was restored before or is being restored.
pub async fn restore(ctx: &Context, acting: Acting<'_>, id: DeletionId) -> Result<Restored> {
    let renamed = repeated(|| request(ctx, acting, id)).await?;
    let until = Instant::now() + OWN_WORK;
    while Instant::now() < until {
        if advance_restoring(&ctx.store, id, acting.now).await? == Advanced::Done {
            break;
        }
    }
    Ok(Restored { receipt: super::get(ctx, id).await?, renamed })
}

async fn request(ctx: &Context, acting: Acting<'_>, id: DeletionId) -> Result<Option<RenamedProject>> {
    let now = acting.now;
    let mut session = ctx.store.db().begin().await?;
    let receipt = deletions::lock(&mut session, id).await?;
    let receipt = receipt.ok_or_else(|| QueryError::not_found(Entity::Deletion, id))?;
    if receipt.state == DeletionState::Restoring {
        // One whose job was given up, or never came to be, goes on.
        let is_new = enqueue(&mut session, &receipt, now).await?;
        let revived = jobs::revive(&mut session, RestoreTarget::KIND, now).await?;
        session.commit().await?;
        let goes_on = is_new || revived > 0;
        return if goes_on { Ok(None) } else { Err(AdministrationRule::RestoringAlready.into()) };
    }
    require_restorable(&receipt, now)?;
    deletions::request_restore(&mut session, id, now).await?;
    jobs::forget_unclaimed(&mut session, &DeleteTarget::key(id)).await?;
    let mut renamed = None;
    if receipt.target_kind == "project" {
        renamed = restore_project(&mut session, ProjectId(receipt.target_id), now).await?;
        let project = ProjectId(receipt.target_id);
        retention::enqueue_redating(&mut session, Some(project), now).await?;
        retention::renew_pending(ctx, &mut session, project, now).await?;
        deletions::finish_restore(&mut session, id, now).await?;
    } else {
        require_projects(&mut session, &receipt).await?;
        enqueue(&mut session, &receipt, now).await?;
    }
    let mut detail = json!({ "kind": receipt.target_kind, "label": receipt.label });
    if let Some(renamed) = &renamed {
        detail["renamed"] = json!(renamed.to);
    }
    let target = ("deletion", id.get());
    let recorded =
        acting.record(&mut session, AuditAction::DeletionRestored, target, receipt.project, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(renamed)
}

/// Queues the job that restores, unless there is one; whether there was none.
async fn enqueue(session: &mut Session, receipt: &ReceiptRow, now: Timestamp) -> Result<bool> {
    let job = RestoreTarget { receipt: receipt.id.get() };
    Ok(jobs::enqueue(session, &RestoreTarget::key(receipt.id), receipt.project, &job, now).await?)
}

fn require_restorable(receipt: &ReceiptRow, now: Timestamp) -> Result<()> {
    let rule = match receipt.state {
        DeletionState::Restored => AdministrationRule::RestoredBefore,
        _ if receipt.restorable_until.is_none() => AdministrationRule::NeverRestorable,
        _ if receipt.is_restorable(now) => return Ok(()),
        _ => AdministrationRule::RestoreTooLate,
    };
    Err(rule.into())
}

/// Runs of a project that is deleted itself cannot come back before it does.
async fn require_projects(session: &mut Session, receipt: &ReceiptRow) -> Result<()> {
    for project in doomed::projects(session, receipt.id).await? {
        if projects::get(session, project).await?.is_none() {
            return Err(AdministrationRule::ProjectIsDeleted.into());
        }
    }
    Ok(())
}

/// Restores a project, under another name when its own is taken.
async fn restore_project(
    session: &mut Session,
    project: ProjectId,
    now: Timestamp,
) -> Result<Option<RenamedProject>> {
    let name = kept::name_of_project(session, project).await?;
    let name = name.ok_or(AdministrationRule::RestoreTooLate)?;
    let free = free_name(session, &name).await?;
    if free == name {
        kept::restore_project(session, project).await?;
        return Ok(None);
    }
    kept::rename_project(session, project, &free).await?;
    kept::restore_project(session, project).await?;
    // Also writes the words by which it is found.
    if let Some(found) = edit::lock(session, project).await? {
        edit::save(session, &found, now).await?;
    }
    Ok(Some(RenamedProject { id: project.get(), from: name, to: free }))
}

/// `shop`, `shop (restored)`, `shop (restored 2)`, and so on.
async fn free_name(session: &mut Session, name: &str) -> Result<String> {
    if !kept::is_name_taken(session, name).await? {
        return Ok(name.to_owned());
    }
    for number in 1..MAX_NAMES {
        let suffix = if number == 1 { " (restored)".to_owned() } else { format!(" (restored {number})") };
        let stem: String = name.chars().take(MAX_NAME_CHARS - suffix.len()).collect();
        let candidate = format!("{}{suffix}", stem.trim_end());
        if !kept::is_name_taken(session, &candidate).await? {
            return Ok(candidate);
        }
    }
    Err(AdministrationRule::ProjectNameTaken.into())
}

/// Does the next step of restoring runs: one that was not yet taken out of the
/// aggregates is first, so that it is added to them exactly once.
///
/// # Errors
/// [`QueryError::Store`]; the same step is done again then.
#[boxed]
pub async fn advance_restoring(store: &Store, id: DeletionId, now: Timestamp) -> Result<Advanced> {
    repeated(|| restoring_step(store, id, now)).await
}

async fn restoring_step(store: &Store, id: DeletionId, now: Timestamp) -> Result<Advanced> {
    let mut session = store.db().begin().await?;
    let receipt = deletions::lock(&mut session, id).await?;
    let Some(receipt) = receipt.filter(|receipt| receipt.state == DeletionState::Restoring) else {
        return Ok(Advanced::Done);
    };
    if let Some(run) = kept::next_counted(&mut session, id).await? {
        hiding::uncount_step(&mut session, &receipt, &run, now).await?;
        session.commit().await?;
        return Ok(Advanced::Further);
    }
    let done = match doomed::next(&mut session, id).await? {
        Some(run) => {
            restore_run(&mut session, &run, takes_back(&receipt), now).await?;
            Advanced::Further
        }
        None => {
            deletions::finish_restore(&mut session, id, now).await?;
            Advanced::Done
        }
    };
    session.commit().await?;
    Ok(done)
}
