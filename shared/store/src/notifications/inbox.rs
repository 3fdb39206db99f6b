//! The notifications of a person in the header of the pages: deliveries to their browser channel. Of projects that the
//! person does not reach any more, and of deleted ones, nothing is read.

use callboard_domain::ids::{DeliveryId, ProjectId, UserId};
use callboard_domain::notifications::NotificationEvent;
use callboard_domain::time::Timestamp;

use crate::db::{Filter, Row, Session, args, statements};
use crate::{Backend, Result, StoreError};

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxRow {
    /// Id of the delivery.
    pub id: DeliveryId,
    /// Project of the event.
    pub project: Option<ProjectId>,
    /// Event.
    pub event: NotificationEvent,
    /// The message, as JSON.
    pub payload: String,
    /// When it arrived.
    pub created_at: Timestamp,
    /// When the person read it.
    pub read_at: Option<Timestamp>,
}

/// How many notifications are unread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unread {
    /// How many, up to a limit.
    pub count: i64,
    /// The newest of them; 0 without one.
    pub newest: i64,
}

statements! {
    /// Marks a notification as read. PK
    MARK_ONE = "UPDATE deliveries SET read_at = $3 WHERE id = $2 AND inbox_user_id = $1 AND read_at IS NULL";
    /// Marks all as read up to one of them. ix: deliveries_unread
    MARK_UP_TO = "UPDATE deliveries SET read_at = $3 WHERE inbox_user_id = $1 AND id <= $2 AND read_at IS NULL";
    /// The same of some projects, and of none. ix: deliveries_unread
    MARK_UP_TO_IN = "UPDATE deliveries SET read_at = $3 WHERE inbox_user_id = $1 AND id <= $2 AND read_at IS NULL \
        AND (project_id IS NULL OR project_id in_ints($4))";
    /// A notification of a person, and its project. PK
    OWN = "SELECT project_id FROM deliveries WHERE id = $2 AND inbox_user_id = $1";
}

fn read(row: &Row) -> Result<InboxRow> {
    let mut r = row.reader();
    Ok(InboxRow {
        id: DeliveryId(r.int()?),
        project: r.opt_int()?.map(ProjectId),
        event: NotificationEvent::parse(&r.text()?)
            .ok_or(StoreError::Damaged("the event of a notification"))?,
        payload: r.text()?,
        created_at: r.time()?,
        read_at: r.opt_time()?,
    })
}

/// Which notifications of a person are read: those of projects in scope that exist.
fn in_scope(filter: Filter, scope: Option<Vec<i64>>, unread: bool) -> Filter {
    let filter = filter
        .and("(d.project_id IS NULL OR EXISTS (SELECT 1 FROM projects p WHERE p.id = d.project_id))", args![])
        .and_if("(d.project_id IS NULL OR d.project_id in_ints(?))", scope);
    if unread { filter.and("d.read_at IS NULL", args![]) } else { filter }
}

/// Notifications of a person, newest first, before one of them. ix: deliveries_inbox
///
/// # Errors
/// [`StoreError`].
pub async fn list(
    session: &mut Session,
    user: UserId,
    scope: Option<Vec<i64>>,
    unread: bool,
    before: Option<DeliveryId>,
    limit: i64,
) -> Result<Vec<InboxRow>> {
    let filter = list_filter(session.backend(), user, scope, unread, before, limit);
    session.list(filter).await?.iter().map(read).collect()
}

fn list_filter(
    backend: Backend,
    user: UserId,
    scope: Option<Vec<i64>>,
    unread: bool,
    before: Option<DeliveryId>,
    limit: i64,
) -> Filter {
    let base = "SELECT d.id, d.project_id, d.event, d.payload, d.created_at, d.read_at FROM deliveries d \
        WHERE d.inbox_user_id = $1 AND d.id < $2";
    let before = before.map_or(i64::MAX, DeliveryId::get);
    in_scope(Filter::new(backend, base, args![user, before]), scope, unread)
        .end("ORDER BY d.id DESC LIMIT ?", args![limit])
}

/// How many notifications of a person are unread, up to `most`. ix: deliveries_unread
///
/// # Errors
/// [`StoreError`].
pub async fn unread(
    session: &mut Session,
    user: UserId,
    scope: Option<Vec<i64>>,
    most: i64,
) -> Result<Unread> {
    let filter = unread_filter(session.backend(), user, scope, most);
    let rows = session.list(filter).await?;
    let Some(row) = rows.first() else { return Ok(Unread::default()) };
    let mut r = row.reader();
    Ok(Unread { count: r.int()?, newest: r.int()? })
}

fn unread_filter(backend: Backend, user: UserId, scope: Option<Vec<i64>>, most: i64) -> Filter {
    let base = "SELECT COUNT(*), COALESCE(MAX(n.id), 0) FROM (SELECT d.id FROM deliveries d WHERE d.inbox_user_id = $1";
    in_scope(Filter::new(backend, base, args![user]), scope, true)
        .end("ORDER BY d.id DESC LIMIT ?) n", args![most])
}

/// What the statements can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let user = UserId(1);
    vec![
        list_filter(backend, user, None, false, None, 1),
        list_filter(backend, user, Some(vec![1]), true, None, 1),
        unread_filter(backend, user, None, 1),
        unread_filter(backend, user, Some(vec![1]), 1),
    ]
}

/// Marks a notification of a person as read; false when they have none of this id in scope.
///
/// # Errors
/// [`StoreError`].
pub async fn mark_read(
    session: &mut Session,
    user: UserId,
    scope: Option<Vec<i64>>,
    id: DeliveryId,
    now: Timestamp,
) -> Result<bool> {
    let Some(row) = session.first(&OWN, args![user, id]).await? else { return Ok(false) };
    let project = row.reader().opt_int()?;
    if let (Some(project), Some(scope)) = (project, scope)
        && !scope.contains(&project)
    {
        return Ok(false);
    }
    session.execute(&MARK_ONE, args![user, id, now]).await?;
    Ok(true)
}

/// Marks the notifications of a person in scope as read, up to one of them.
///
/// # Errors
/// [`StoreError`].
pub async fn mark_read_up_to(
    session: &mut Session,
    user: UserId,
    scope: Option<Vec<i64>>,
    id: DeliveryId,
    now: Timestamp,
) -> Result<u64> {
    match scope {
        Some(scope) => session.execute(&MARK_UP_TO_IN, args![user, id, now, scope]).await,
        None => session.execute(&MARK_UP_TO, args![user, id, now]).await,
    }
}
