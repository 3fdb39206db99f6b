//! The notifications of a person in the header of the pages.

use callboard_auth::scope::Scope;
use callboard_domain::ids::{DeliveryId, ProjectId, UserId};
use callboard_domain::notifications::{FailureLine, Message};
use callboard_domain::time::Timestamp;
use callboard_store::notifications::inbox::{self, InboxRow};
use callboard_store::{boxed, feed};
use serde::Serialize;
use utoipa::ToSchema;

use super::message::read_message;
use crate::page::{Slice, fetch};
use crate::{Context, Entity, QueryError, Result};

pub use callboard_store::notifications::inbox::Unread;

/// Unread notifications that are counted at most.
pub const MOST_UNREAD: i64 = 100;

/// A notification.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboxItem {
    /// Notification id.
    pub id: i64,
    /// Event.
    #[schema(example = "run.failed")]
    pub event: &'static str,
    /// What is new, on one line.
    pub headline: String,
    /// Details, one fact each.
    pub facts: Vec<String>,
    /// Failures that are new.
    pub failures: Vec<NewFailureLine>,
    /// Page that shows it.
    pub url: String,
    /// Project it is about.
    pub project_id: Option<i64>,
    /// Name of that project.
    pub project_name: Option<String>,
    /// When it arrived.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was read; null for unread.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub read_at: Option<Timestamp>,
}

/// A failure that is new in a notification.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewFailureLine {
    /// Title of the test.
    pub title: String,
    /// Cause.
    pub cause: Option<String>,
    /// Owner of the test.
    pub owner: Option<String>,
    /// Other tests with the same cause.
    pub same_cause: i64,
    /// Page of the failure.
    pub url: String,
}

impl From<FailureLine> for NewFailureLine {
    fn from(line: FailureLine) -> Self {
        let FailureLine { title, cause, owner, same_cause, url } = line;
        Self { title, cause, owner, same_cause, url }
    }
}

impl InboxItem {
    fn from_row(row: InboxRow) -> Self {
        let Message { headline, facts, failures, url, project_name, .. } =
            read_message(&row.payload).unwrap_or_default();
        Self {
            id: row.id.get(),
            event: row.event.as_str(),
            headline,
            facts,
            failures: failures.into_iter().map(NewFailureLine::from).collect(),
            url,
            project_id: row.project.map(ProjectId::get),
            project_name,
            created_at: row.created_at,
            read_at: row.read_at,
        }
    }
}

fn in_scope(scope: &Scope) -> Option<Vec<i64>> {
    scope.projects().map(|projects| projects.into_iter().map(ProjectId::get).collect())
}

/// Notifications of a person about projects in scope, newest first.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn inbox(
    ctx: &Context,
    user: UserId,
    scope: &Scope,
    unread: bool,
    before: Option<i64>,
    limit: usize,
) -> Result<Slice<InboxItem, i64>> {
    let mut session = ctx.store.db().read().await?;
    let before = before.map(DeliveryId);
    let rows = inbox::list(&mut session, user, in_scope(scope), unread, before, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row: &InboxRow| row.id.get()).map(InboxItem::from_row))
}

/// How many notifications of a person are unread, up to [`MOST_UNREAD`].
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn unread(ctx: &Context, user: UserId, scope: &Scope) -> Result<Unread> {
    let mut session = ctx.store.db().read().await?;
    Ok(inbox::unread(&mut session, user, in_scope(scope), MOST_UNREAD).await?)
}

/// The same, with the number of the newest event about all runs: a page that follows the stream from there misses none.
/// Who reaches no project misses none from the beginning either, and is not shown how much others do.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn bell(ctx: &Context, user: UserId, scope: &Scope) -> Result<(Unread, i64)> {
    let mut session = ctx.store.db().read().await?;
    let reaches_nothing = scope.projects().is_some_and(|projects| projects.is_empty());
    let after = if reaches_nothing { 0 } else { feed::global_head(&mut session).await? };
    Ok((inbox::unread(&mut session, user, in_scope(scope), MOST_UNREAD).await?, after))
}

/// Marks a notification of a person in scope as read.
///
/// # Errors
/// [`QueryError::NotFound`].
pub async fn mark_read(
    ctx: &Context,
    user: UserId,
    scope: &Scope,
    id: DeliveryId,
    now: Timestamp,
) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    if !inbox::mark_read(&mut session, user, in_scope(scope), id, now).await? {
        return Err(QueryError::not_found(Entity::Notification, id));
    }
    Ok(session.commit().await?)
}

/// Marks the notifications of a person in scope as read, up to the newest one they have seen. Returns how many were
/// unread.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn mark_read_up_to(
    ctx: &Context,
    user: UserId,
    scope: &Scope,
    newest: DeliveryId,
    now: Timestamp,
) -> Result<u64> {
    let mut session = ctx.store.db().begin().await?;
    let marked = inbox::mark_read_up_to(&mut session, user, in_scope(scope), newest, now).await?;
    session.commit().await?;
    Ok(marked)
}
