//! The audit log, as administrators read it.

use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_store::audit::{self, AuditEntry, AuditFilter};
use callboard_store::boxed;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::page::{COUNTED_TO, Slice, Total, fetch};
use crate::{Context, Result};

/// Which entries a list shows.
#[derive(Debug, Clone, Default)]
pub struct AuditFilters {
    /// Only what this account did.
    pub user: Option<UserId>,
    /// Only actions whose word begins so.
    pub action: Option<String>,
    /// Only in this project.
    pub project: Option<ProjectId>,
    /// Only done to this kind of thing.
    pub target_kind: Option<String>,
    /// Only done to the thing with this id.
    pub target_id: Option<i64>,
    /// At this moment or later.
    pub from: Option<Timestamp>,
    /// At this moment or earlier.
    pub to: Option<Timestamp>,
}

/// Who did something.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditActor {
    /// The account.
    pub user_id: Option<i64>,
    /// Its name, while it exists.
    pub username: Option<String>,
    /// The API key that was used.
    pub key_id: Option<i64>,
    /// The beginning of that key.
    pub key_prefix: Option<String>,
    /// Whether nobody did it: no account and no address is known.
    pub system: bool,
}

/// An entry of the audit log.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditItem {
    /// Entry id.
    pub id: i64,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Who.
    pub actor: AuditActor,
    /// What: a subject and what became of it.
    #[schema(example = "user.created")]
    pub action: String,
    /// Kind of what it was done to.
    #[schema(example = "user")]
    pub target_type: Option<String>,
    /// Id of what it was done to.
    pub target_id: Option<i64>,
    /// Name of the account or project it was done to, while it exists.
    pub target_name: Option<String>,
    /// In which project.
    pub project_id: Option<i64>,
    /// Name of that project, while it exists.
    pub project_name: Option<String>,
    /// Keyed hash of the address it came from: tells two apart and leads back to none.
    pub address_hash: Option<String>,
    /// What else is known; its keys depend on the action.
    pub detail: Map<String, Value>,
}

impl AuditItem {
    fn from_entry(entry: AuditEntry) -> Self {
        Self {
            id: entry.id,
            at: entry.at,
            actor: AuditActor {
                user_id: entry.user.map(UserId::get),
                username: entry.username,
                key_id: entry.key,
                key_prefix: entry.key_prefix,
                system: entry.user.is_none() && entry.key.is_none() && entry.address_hash.is_none(),
            },
            action: entry.action,
            target_type: entry.target_kind,
            target_id: entry.target_id,
            target_name: entry.target_name,
            project_id: entry.project.map(ProjectId::get),
            project_name: entry.project_name,
            address_hash: entry.address_hash.map(hex::encode),
            // An entry that cannot be read is shown without its detail rather than not at all.
            detail: serde_json::from_str(&entry.detail).unwrap_or_default(),
        }
    }
}

/// Key of a page: when the last entry was written, and its id.
pub type AuditKey = (i64, i64);

/// Entries, newest first.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    filters: &AuditFilters,
    after: Option<AuditKey>,
    limit: usize,
) -> Result<Slice<AuditItem, AuditKey>> {
    let wanted = wanted(filters, after);
    let mut session = ctx.store.db().read().await?;
    let rows = audit::list(&mut session, &wanted, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |entry| (entry.at.millis(), entry.id)).map(AuditItem::from_entry))
}

/// How many entries there are, where one index counts them; `None` is not
/// known.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn count(ctx: &Context, filters: &AuditFilters) -> Result<Option<Total>> {
    if !is_led(filters) {
        return Ok(None);
    }
    let mut session = ctx.store.db().read().await?;
    let counted = audit::count(&mut session, &wanted(filters, None), COUNTED_TO).await?;
    Ok(Some(Total::of_counted(counted)))
}

/// Whether one index has exactly the entries of a list: those of accounts,
/// actions and projects go by time, those of targets do not.
fn is_led(filters: &AuditFilters) -> bool {
    let by_time = [filters.user.is_some(), filters.action.is_some(), filters.project.is_some()];
    let by_time = by_time.iter().filter(|is_asked| **is_asked).count();
    if filters.target_kind.is_none() && filters.target_id.is_none() {
        return by_time <= 1;
    }
    by_time == 0 && filters.target_kind.is_some() && filters.from.is_none() && filters.to.is_none()
}

fn wanted(filters: &AuditFilters, after: Option<AuditKey>) -> AuditFilter {
    AuditFilter {
        user: filters.user,
        actions: filters.action.as_deref().map(|prefix| AuditAction::beginning_with(prefix).collect()),
        project: filters.project,
        target_kind: filters.target_kind.clone(),
        target_id: filters.target_id,
        from: filters.from,
        before: filters.to.map(|to| Timestamp(to.millis() + 1)),
        after,
    }
}
