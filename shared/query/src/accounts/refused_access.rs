//! The audit log's entries about what was refused. Refusals cost their sender
//! nothing, so they are counted first. Of access that was refused there is one
//! entry an hour for each caller, route, reason and target; of changes that could
//! not be made there is one for each. The number for each caller is bounded; one
//! more entry says that the bound was reached.

use callboard_auth::limits::{
    NOTED_ACCESS, NOTED_ACCESS_LIMIT, NOTED_ACCESS_OF_CALLER, NOTED_CHANGE, Window,
};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_store::Store;
use callboard_store::audit::{self, Actor, AuditEvent, Target};
use serde_json::Map;

use crate::Result;
use crate::limits::{LimitError, Limits};

/// What was asked for, and why it was refused.
#[derive(Debug, Clone, Copy)]
pub struct RefusedAccess<'r> {
    /// Who counts as one: an account, or an address.
    pub subject: &'r [u8],
    /// Who asked, as far as it is known.
    pub actor: Actor,
    /// The name of the route.
    pub route: &'static str,
    /// The error code of the answer.
    pub code: &'r str,
}

/// Notes a refusal, unless its like was noted within the hour. `target` is what
/// was asked for.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn note(
    store: &Store,
    limits: &Limits,
    refused: RefusedAccess<'_>,
    target: (Option<Target>, Option<ProjectId>),
    now: Timestamp,
) -> Result<()> {
    let named = target.0.map(|target| format!("{}:{}", target.kind, target.id)).unwrap_or_default();
    let parts = [refused.route, "|", refused.code, "|", &named].concat();
    let one = [refused.subject, parts.as_bytes()].concat();
    if !is_within(limits, NOTED_ACCESS, &one, now).await? {
        return Ok(());
    }
    if is_within(limits, NOTED_ACCESS_OF_CALLER, refused.subject, now).await? {
        return write(store, AuditAction::AccessRefused, refused, target, now).await;
    }
    if is_within(limits, NOTED_ACCESS_LIMIT, refused.subject, now).await? {
        let unlisted = RefusedAccess { code: "more_not_listed", ..refused };
        return write(store, AuditAction::AccessRefused, unlisted, target, now).await;
    }
    Ok(())
}

/// Notes that a change could not be made. `target` is what was to be changed.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn note_change(
    store: &Store,
    limits: &Limits,
    refused: RefusedAccess<'_>,
    target: (Option<Target>, Option<ProjectId>),
    now: Timestamp,
) -> Result<()> {
    if !is_within(limits, NOTED_CHANGE, refused.subject, now).await? {
        return Ok(());
    }
    write(store, AuditAction::ChangeRefused, refused, target, now).await
}

async fn is_within(limits: &Limits, class: Window, subject: &[u8], now: Timestamp) -> Result<bool> {
    match limits.check(class, subject, now).await {
        Ok(()) => Ok(true),
        Err(LimitError::Limited { .. }) => Ok(false),
        Err(LimitError::Store(error)) => Err(error.into()),
    }
}

async fn write(
    store: &Store,
    action: AuditAction,
    refused: RefusedAccess<'_>,
    (target, project): (Option<Target>, Option<ProjectId>),
    now: Timestamp,
) -> Result<()> {
    let detail = Map::from_iter([
        ("route".to_owned(), refused.route.into()),
        ("code".to_owned(), refused.code.into()),
    ]);
    let mut session = store.db().begin().await?;
    let event = AuditEvent { at: now, actor: refused.actor, action, target, project, detail };
    let noted = audit::record(&mut session, event).await?;
    session.commit().await?;
    noted.committed();
    Ok(())
}
