//! Deliveries: one message to one channel, and how far it is.

use callboard_domain::ids::{ChannelId, DeliveryId, ProjectId, UserId};
use callboard_domain::notifications::{DeliveryState, NotificationEvent};
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, StoreError};

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Id.
    pub id: DeliveryId,
    /// Channel.
    pub channel: ChannelId,
    /// Project of the event; `None` for a test message.
    pub project: Option<ProjectId>,
    /// Event.
    pub event: NotificationEvent,
    /// The message, as JSON.
    pub payload: String,
    /// How far it is.
    pub state: DeliveryState,
    /// Attempts so far.
    pub attempts: i64,
    /// When it is tried again.
    pub next_at: Option<Timestamp>,
    /// Status of the last answer.
    pub response_status: Option<i64>,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// When the event was handled.
    pub created_at: Timestamp,
    /// When the recipient accepted it.
    pub sent_at: Option<Timestamp>,
}

/// A delivery that does not exist yet.
#[derive(Debug, Clone)]
pub struct NewDelivery {
    /// Channel.
    pub channel: ChannelId,
    /// Project of the event.
    pub project: Option<ProjectId>,
    /// Event.
    pub event: NotificationEvent,
    /// Names event and channel; a second delivery of the same key is not stored. `None` for one that is always stored.
    pub dedupe_key: Option<String>,
    /// The message, as JSON.
    pub payload: String,
}

macro_rules! select {
    ($tail:literal) => {
        concat!(
            "SELECT id, channel_id, project_id, event, payload, state, attempts, next_at, response_status, error, created_at, sent_at \
             FROM deliveries ",
            $tail
        )
    };
}

statements! {
    /// A new delivery, unless the channel gets the same message already. ix: deliveries_key
    INSERT = "INSERT INTO deliveries (id, channel_id, project_id, event, dedupe_key, payload, state, next_at, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $7) ON CONFLICT (dedupe_key) DO NOTHING";
    /// One delivery. PK
    BY_ID = select!("WHERE id = $1");
    /// One delivery, locked. PK
    LOCK = select!("WHERE id = $1 for_update()");
    /// The log of a channel, newest first. ix: deliveries_of_channel
    OF_CHANNEL = select!("WHERE channel_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
    /// The same in one state. ix: deliveries_of_channel
    OF_CHANNEL_IN_STATE = select!("WHERE channel_id = $1 AND id < $2 AND state = $4 ORDER BY id DESC LIMIT $3");
    /// When a delivery of a channel was made, counted from the newest. ix: deliveries_of_channel
    BEFORE_NEWEST = "SELECT created_at FROM deliveries WHERE channel_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2";
    /// A notification in the header of the pages, which arrives with this statement. ix: deliveries_key
    INSERT_INBOX = "INSERT INTO deliveries (id, channel_id, project_id, event, dedupe_key, payload, state, created_at, sent_at, inbox_user_id) \
        VALUES ($1, $2, $3, $4, $5, $6, 'sent', $7, $7, $8) ON CONFLICT (dedupe_key) DO NOTHING";
    /// How far a delivery is. PK
    SAVE = "UPDATE deliveries SET state = $2, attempts = $3, next_at = $4, response_status = $5, error = $6, sent_at = $7 WHERE id = $1";
    /// Replaces the message of a delivery. PK
    SET_PAYLOAD = "UPDATE deliveries SET payload = $2 WHERE id = $1";
    /// Deletes old deliveries. ix: deliveries_by_time
    PURGE = "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE created_at < $1 ORDER BY created_at, id LIMIT $2)";
}

fn read(row: &Row) -> Result<DeliveryRow> {
    let mut r = row.reader();
    let unknown = || StoreError::Damaged("an unknown word of a delivery");
    Ok(DeliveryRow {
        id: DeliveryId(r.int()?),
        channel: ChannelId(r.int()?),
        project: r.opt_int()?.map(ProjectId),
        event: NotificationEvent::parse(&r.text()?).ok_or_else(unknown)?,
        payload: r.text()?,
        state: DeliveryState::parse(&r.text()?).ok_or_else(unknown)?,
        attempts: r.int()?,
        next_at: r.opt_time()?,
        response_status: r.opt_int()?,
        error: r.opt_text()?,
        created_at: r.time()?,
        sent_at: r.opt_time()?,
    })
}

/// Stores a new delivery; `None` when the channel gets the same message already.
///
/// # Errors
/// [`StoreError`].
pub async fn insert(session: &mut Session, new: &NewDelivery, now: Timestamp) -> Result<Option<DeliveryId>> {
    let id = DeliveryId(ids::allocate_one(session, Kind::Delivery).await?);
    let key = new.dedupe_key.clone().unwrap_or_else(|| format!("delivery:{id}"));
    let args = args![id, new.channel, new.project, new.event.as_str(), key, &new.payload, now];
    Ok((session.execute(&INSERT, args).await? == 1).then_some(id))
}

/// Stores a notification of a person; `None` when it is there already.
///
/// # Errors
/// [`StoreError`].
pub async fn insert_inbox(
    session: &mut Session,
    new: &NewDelivery,
    user: UserId,
    now: Timestamp,
) -> Result<Option<DeliveryId>> {
    let id = DeliveryId(ids::allocate_one(session, Kind::Delivery).await?);
    let key = new.dedupe_key.clone().unwrap_or_else(|| format!("delivery:{id}"));
    let args = args![id, new.channel, new.project, new.event.as_str(), key, &new.payload, now, user];
    Ok((session.execute(&INSERT_INBOX, args).await? == 1).then_some(id))
}

/// One delivery.
///
/// # Errors
/// [`StoreError`].
pub async fn get(session: &mut Session, id: DeliveryId) -> Result<Option<DeliveryRow>> {
    session.first(&BY_ID, args![id]).await?.as_ref().map(read).transpose()
}

/// One delivery, locked until the transaction ends.
///
/// # Errors
/// [`StoreError`].
pub async fn lock(session: &mut Session, id: DeliveryId) -> Result<Option<DeliveryRow>> {
    session.first(&LOCK, args![id]).await?.as_ref().map(read).transpose()
}

/// The log of a channel, newest first, before one of its deliveries.
///
/// # Errors
/// [`StoreError`].
pub async fn of_channel(
    session: &mut Session,
    channel: ChannelId,
    state: Option<DeliveryState>,
    before: Option<DeliveryId>,
    limit: i64,
) -> Result<Vec<DeliveryRow>> {
    let before = before.map_or(i64::MAX, DeliveryId::get);
    let rows = match state {
        None => session.all(&OF_CHANNEL, args![channel, before, limit]).await?,
        Some(state) => {
            session.all(&OF_CHANNEL_IN_STATE, args![channel, before, limit, state.as_str()]).await?
        }
    };
    rows.iter().map(read).collect()
}

/// When the newest delivery but `newer` of a channel was made.
///
/// # Errors
/// [`StoreError`].
pub async fn made_before_newest(
    session: &mut Session,
    channel: ChannelId,
    newer: i64,
) -> Result<Option<Timestamp>> {
    let row = session.first(&BEFORE_NEWEST, args![channel, newer]).await?;
    row.as_ref().map(|row| row.reader().time()).transpose()
}

/// Writes how far a delivery is that was read with [`lock`].
///
/// # Errors
/// [`StoreError`].
pub async fn save(session: &mut Session, row: &DeliveryRow) -> Result<()> {
    let args = args![
        row.id,
        row.state.as_str(),
        row.attempts,
        row.next_at,
        row.response_status,
        row.error.clone(),
        row.sent_at
    ];
    session.execute(&SAVE, args).await?;
    Ok(())
}

/// Replaces the message of a delivery.
///
/// # Errors
/// [`StoreError`].
pub async fn set_payload(session: &mut Session, id: DeliveryId, payload: &str) -> Result<()> {
    session.execute(&SET_PAYLOAD, args![id, payload]).await?;
    Ok(())
}

/// Deletes at most `limit` deliveries that are older than `before`.
///
/// # Errors
/// [`StoreError`].
pub async fn purge(session: &mut Session, before: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE, args![before, limit]).await
}
