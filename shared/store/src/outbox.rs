//! The outbox: domain events, stored in the transaction that makes them true
//! and delivered to subscribers afterwards, in one order per project.
//!
//! Appending takes no lock. An event gets its place in the order (`seq`) when
//! it is delivered, under the lock of the project's row in `event_streams`, so
//! no event can be committed behind a cursor. Ids ascend in the order of
//! commits that depend on each other, because they are taken while the changed
//! row is locked.

use callboard_domain::events::DomainEvent;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;

use crate::db::{Bulk, Column, Session, args, statements};
use crate::{Result, StoreError};

statements! {
    /// The first event of a project creates its row.
    OPEN_STREAM = "INSERT INTO event_streams (project_id, last_seq) VALUES ($1, 0) ON CONFLICT (project_id) DO NOTHING";
    /// Locks the order of a project's events. PK
    LOCK_STREAM = "SELECT last_seq FROM event_streams WHERE project_id = $1 for_update()";
    /// Gives new events their places. ix: domain_events_new
    SEQUENCE = "UPDATE domain_events SET seq = $2 + n.place FROM (SELECT id AS new_id, ROW_NUMBER() OVER (ORDER BY id) AS place \
        FROM domain_events WHERE project_id = $1 AND seq IS NULL) n WHERE id = n.new_id";
    /// Counts the places that were given. PK
    ADVANCE_STREAM = "UPDATE event_streams SET last_seq = last_seq + $2 WHERE project_id = $1";
    /// Locks how far a subscriber is. PK
    LOCK_CURSOR = "SELECT seq FROM event_cursors WHERE project_id = $1 AND subscriber = $2 for_update()";
    /// A subscriber that handles the first event of a project.
    OPEN_CURSOR = "INSERT INTO event_cursors (project_id, subscriber, seq) VALUES ($1, $2, 0) ON CONFLICT (project_id, subscriber) DO NOTHING";
    /// Moves a cursor forward. PK
    SET_CURSOR = "UPDATE event_cursors SET seq = $3 WHERE project_id = $1 AND subscriber = $2";
    /// Events after a place. ix: domain_events_in_order
    AFTER = "SELECT seq, data, at FROM domain_events WHERE project_id = $1 AND seq > $2 AND seq IS NOT NULL ORDER BY seq LIMIT $3";
    /// Projects with events that have no place yet. ix: domain_events_new
    NEW_IN = "SELECT DISTINCT project_id FROM domain_events WHERE seq IS NULL ORDER BY project_id LIMIT $1";
    /// Projects in which a subscriber is behind.
    BEHIND_IN = "SELECT s.project_id FROM event_streams s JOIN event_cursors c ON c.project_id = s.project_id \
        WHERE c.seq < s.last_seq GROUP BY s.project_id ORDER BY s.project_id LIMIT $1";
    /// Deletes old events. ix: domain_events_by_time
    PURGE = "DELETE FROM domain_events WHERE id IN (SELECT id FROM domain_events WHERE at < $1 ORDER BY at LIMIT $2)";
}

static APPEND: Bulk = Bulk::new(
    "outbox::APPEND",
    2,
    "INSERT INTO domain_events (project_id, at, data) SELECT $1, $2, r.data FROM",
    &[Column::Text("data")],
    "WHERE true",
);

pub(crate) static BULKS: &[&Bulk] = &[&APPEND];

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its place among the events of the project, from 1.
    pub seq: i64,
    /// What happened.
    pub event: DomainEvent,
    /// When it was stored.
    pub at: Timestamp,
}

/// Stores events as part of the caller's transaction.
///
/// # Errors
/// [`StoreError`].
pub async fn append(
    session: &mut Session,
    project: ProjectId,
    events: &[DomainEvent],
    now: Timestamp,
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let mut rows = APPEND.rows();
    for event in events {
        let data =
            serde_json::to_string(event).map_err(|_| StoreError::Damaged("an event that is not JSON"))?;
        rows.push([data.into()]);
    }
    session.execute_bulk(&APPEND, args![project, now], rows).await
}

/// Gives the new events of a project their places. Belongs into a short
/// transaction of its own.
///
/// # Errors
/// [`StoreError`].
pub async fn sequence(session: &mut Session, project: ProjectId) -> Result<()> {
    session.execute(&OPEN_STREAM, args![project]).await?;
    let last = session.one(&LOCK_STREAM, args![project]).await?.reader().int()?;
    let given = session.execute(&SEQUENCE, args![project, last]).await?;
    if given > 0 {
        let given = i64::try_from(given).unwrap_or(i64::MAX);
        session.execute(&ADVANCE_STREAM, args![project, given]).await?;
    }
    Ok(())
}

/// Locks the cursor of a subscriber; returns the next events it has to handle.
///
/// # Errors
/// [`StoreError`].
pub async fn next(
    session: &mut Session,
    project: ProjectId,
    subscriber: &str,
    limit: i64,
) -> Result<Vec<StoredEvent>> {
    session.execute(&OPEN_CURSOR, args![project, subscriber]).await?;
    let seq = session.one(&LOCK_CURSOR, args![project, subscriber]).await?.reader().int()?;
    let rows = session.all(&AFTER, args![project, seq, limit]).await?;
    let mut events = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut r = row.reader();
        let (seq, data, at) = (r.int()?, r.text()?, r.time()?);
        let event = serde_json::from_str(&data).map_err(|_| StoreError::Damaged("a domain event"))?;
        events.push(StoredEvent { seq, event, at });
    }
    Ok(events)
}

/// Notes that a subscriber handled all events up to `seq`.
///
/// # Errors
/// [`StoreError`].
pub async fn set_cursor(session: &mut Session, project: ProjectId, subscriber: &str, seq: i64) -> Result<()> {
    session.execute(&SET_CURSOR, args![project, subscriber, seq]).await?;
    Ok(())
}

/// Projects with events that some subscriber has not handled, at most `limit`.
///
/// # Errors
/// [`StoreError`].
pub async fn waiting(session: &mut Session, limit: i64) -> Result<Vec<ProjectId>> {
    let mut projects = Vec::new();
    for statement in [&NEW_IN, &BEHIND_IN] {
        for row in session.all(statement, args![limit]).await? {
            projects.push(ProjectId(row.reader().int()?));
        }
    }
    projects.sort_unstable();
    projects.dedup();
    Ok(projects)
}

/// Deletes at most `limit` events stored before `before`; returns how many.
///
/// # Errors
/// [`StoreError`].
pub async fn purge(session: &mut Session, before: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE, args![before, limit]).await
}
