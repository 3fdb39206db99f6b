//! Storage quotas: what is set, and who has reached which share of it. Every crossing is reported once.

use callboard_auth::scope::Authorized;
use callboard_domain::events::DomainEvent;
use callboard_domain::ids::ProjectId;
use callboard_domain::setting::SettingsGroup as _;
use callboard_domain::storage_quota::StorageQuota;
use callboard_domain::time::Timestamp;
use callboard_store::notifications::quotas::{self, ProjectUsage};
use callboard_store::{StoreError, boxed};
use serde_json::{Map, Value};

use crate::accounts::Acting;
use crate::settings::{self, Edited};
use crate::{Context, Result, events, notifications};

/// Projects that are checked by one statement.
const BATCH: i64 = 200;

/// What is set for a project.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn of_project(ctx: &Context, project: Authorized<ProjectId>) -> Result<StorageQuota> {
    settings::stored(&mut ctx.store.db().read().await?, Some(project.get())).await
}

/// Changes what is set for a project.
///
/// # Errors
/// [`crate::QueryError::Store`]; the answer says which value cannot be set.
pub async fn edit_project(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    body: &Map<String, Value>,
) -> Result<Edited> {
    settings::write::<StorageQuota>(ctx, acting, Some(project.get()), body).await
}

/// Reports every project that reached another share of its quota, and the instance.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn check(ctx: &Context, now: Timestamp) -> Result<()> {
    let mut after = ProjectId(0);
    loop {
        let mut session = ctx.store.db().read().await?;
        let found = quotas::usage(&mut session, after, StorageQuota::NAME, BATCH).await?;
        drop(session);
        let Some(last) = found.last() else { break };
        after = last.project;
        for usage in &found {
            check_project(ctx, usage, now).await?;
        }
    }
    check_instance(ctx, now).await
}

async fn check_project(ctx: &Context, usage: &ProjectUsage, now: Timestamp) -> Result<()> {
    let quota: StorageQuota = serde_json::from_str(&usage.settings)
        .map_err(|_| StoreError::Damaged("the storage quota of a project"))?;
    let level = quota.level(usage.bytes);
    let project = Some(usage.project);
    if quotas::level(&mut ctx.store.db().read().await?, project).await? == level {
        return Ok(());
    }
    let mut session = ctx.store.db().begin().await?;
    let before = quotas::level(&mut session, project).await?;
    if quotas::set_level(&mut session, project, level, now).await? && level > before {
        let event = DomainEvent::StorageQuotaReached {
            level,
            used_bytes: usage.bytes,
            quota_bytes: quota.quota_bytes.unwrap_or_default(),
        };
        events::emit(&mut session, usage.project, &[event], now).await?;
    }
    Ok(session.commit().await?)
}

async fn check_instance(ctx: &Context, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let quota: StorageQuota = settings::stored(&mut session, None).await?;
    let used = match quota.quota_bytes {
        Some(_) => quotas::total(&mut session).await?,
        None => 0,
    };
    let level = quota.level(used);
    let before = quotas::level(&mut session, None).await?;
    if level != before && quotas::set_level(&mut session, None, level, now).await? && level > before {
        notifications::report_instance_quota(
            ctx,
            &mut session,
            level,
            used,
            quota.quota_bytes.unwrap_or_default(),
            now,
        )
        .await?;
    }
    Ok(session.commit().await?)
}
