//! What `SERVICE_RETENTION` sets, compared with what was in force at the last
//! start: what keeps more applies immediately, what keeps less waits for the
//! grace as if a person had set it.

use callboard_domain::audit::AuditAction;
use callboard_domain::retention::{Edit, Split, shortened, split};
use callboard_domain::time::Timestamp;
use callboard_store::audit::Recorded;
use callboard_store::retention::runs_after;
use callboard_store::{StoreError, boxed, settings};
use serde_json::json;

use super::changes::{ATTEMPTS, ApplyRetention, numbers, record_by_service};
use super::settings::{GROUP, VARIABLE, effective_at};
use super::{preview, redating};
use crate::{Context, Result};
use callboard_core::retention::{Pending, Stored};

/// Compares the environment with what is stored, and has data of earlier
/// releases dated. Done at every start.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn start(ctx: &Context, now: Timestamp) -> Result<()> {
    redating::begin(&ctx.store, now).await?;
    for _ in 0..ATTEMPTS {
        if compare(ctx, now).await? {
            return Ok(());
        }
    }
    Err(StoreError::Busy("a policy that others change").into())
}

/// Compares once; `false` when the policy was changed meanwhile.
async fn compare(ctx: &Context, now: Timestamp) -> Result<bool> {
    let mut session = ctx.store.db().read().await?;
    let row = settings::get(&mut session, None, GROUP).await?;
    let seen = Stored::read(row.as_ref())?;
    if seen.wanted_environment() == *ctx.retention {
        return Ok(true);
    }
    let before = seen.environment.clone().unwrap_or_default();
    let resolve =
        |environment: &_| Stored { environment: Some(Clone::clone(environment)), ..seen.clone() }.policy();
    let (in_force, wanted) = (resolve(&before), resolve(&ctx.retention));
    let has_grace =
        ctx.retention_grace_ms > 0 && !runs_after(&mut session, None, (i64::MIN, 0), 1).await?.is_empty();
    let keys = shortened(&in_force, &wanted);
    let at = if has_grace { effective_at(ctx, now) } else { now };
    let preview = preview::of_all_projects(&mut session, &wanted, at).await?;
    drop(session);

    let split = if has_grace {
        split(&before, &ctx.retention, resolve)
    } else {
        Split { in_force: (*ctx.retention).clone(), waiting: Edit::default() }
    };
    let is_waiting = !split.waiting.is_empty();
    let mut session = ctx.store.db().begin().await?;
    let row = settings::lock(&mut session, None, GROUP, now).await?;
    let mut stored = Stored::read(Some(&row))?;
    if stored != seen {
        return Ok(false);
    }
    stored.environment = Some(split.in_force);
    stored.pending_environment = is_waiting.then_some(Pending {
        waiting: split.waiting,
        effective_at: at,
        requested_at: now,
        requested_by: None,
        preview,
    });
    settings::set(&mut session, None, GROUP, &stored.to_json(), row.updated_at, row.updated_by).await?;
    redating::enqueue(&mut session, None, now).await?;
    let mut recorded: Option<Recorded> = None;
    if is_waiting {
        ApplyRetention { project: None, is_from_environment: true }.enqueue(&mut session, at, now).await?;
        let mut detail = numbers(&keys, &preview, at);
        detail["variable"] = json!(VARIABLE);
        let action = AuditAction::RetentionQueued;
        recorded = Some(record_by_service(&mut session, action, None, detail, now).await?);
    }
    session.commit().await?;
    if let Some(recorded) = recorded {
        recorded.committed();
    }
    if !keys.is_empty() {
        tracing::warn!(
            keys = keys.join(", "),
            runs = preview.runs,
            files = preview.files,
            bytes = preview.bytes,
            at_least = preview.partial,
            effective_at = %at.to_iso(),
            "SERVICE_RETENTION keeps less than before and will delete data; change it and restart to keep it"
        );
    }
    Ok(true)
}
