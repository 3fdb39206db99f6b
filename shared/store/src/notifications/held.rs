//! Messages that wait: for a digest, the end of quiet hours, or the next hour of a channel that has sent enough.

use callboard_domain::ids::{ChannelId, ProjectId, SubscriptionId};
use callboard_domain::notifications::NotificationEvent;
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::{Result, StoreError};

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRow {
    /// Names event and channel, as the key of its delivery would.
    pub dedupe_key: String,
    /// Channel.
    pub channel: ChannelId,
    /// Subscription that asked for it.
    pub subscription: SubscriptionId,
    /// Project of the event; `None` for what is about the instance.
    pub project: Option<ProjectId>,
    /// Event.
    pub event: NotificationEvent,
    /// The message, as JSON.
    pub payload: String,
    /// When it is sent.
    pub due_at: Timestamp,
    /// When the event was handled.
    pub created_at: Timestamp,
}

/// Stands for the instance.
const INSTANCE: i64 = 0;

statements! {
    /// Holds a message back, unless the channel has it already. PK
    INSERT = "INSERT INTO held_notifications (dedupe_key, channel_id, subscription_id, project_id, event, payload, due_at, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (dedupe_key) DO NOTHING";
    /// What of a channel is due, oldest first. ix: held_notifications_of_channel
    DUE = "SELECT dedupe_key, channel_id, subscription_id, project_id, event, payload, due_at, created_at FROM held_notifications \
        WHERE channel_id = $1 AND due_at <= $2 ORDER BY due_at, created_at, dedupe_key LIMIT $3";
    /// A channel for which something is due. ix: held_notifications_by_time
    NEXT_CHANNEL = "SELECT channel_id FROM held_notifications WHERE due_at <= $1 ORDER BY due_at, channel_id LIMIT 1";
    /// Removes one. PK
    DELETE = "DELETE FROM held_notifications WHERE dedupe_key = $1";
    /// Removes those of a subscription. ix: held_notifications_of_subscription
    DELETE_OF_SUBSCRIPTION = "DELETE FROM held_notifications WHERE subscription_id = $1";
}

fn read(row: &Row) -> Result<HeldRow> {
    let mut r = row.reader();
    Ok(HeldRow {
        dedupe_key: r.text()?,
        channel: ChannelId(r.int()?),
        subscription: SubscriptionId(r.int()?),
        project: Some(r.int()?).filter(|id| *id != INSTANCE).map(ProjectId),
        event: NotificationEvent::parse(&r.text()?)
            .ok_or(StoreError::Damaged("the event of a message that waits"))?,
        payload: r.text()?,
        due_at: r.time()?,
        created_at: r.time()?,
    })
}

/// Holds a message back; false when the channel has it already.
///
/// # Errors
/// [`StoreError`].
pub async fn insert(session: &mut Session, row: &HeldRow) -> Result<bool> {
    let args = args![
        &row.dedupe_key,
        row.channel,
        row.subscription,
        row.project.map_or(INSTANCE, ProjectId::get),
        row.event.as_str(),
        &row.payload,
        row.due_at,
        row.created_at
    ];
    Ok(session.execute(&INSERT, args).await? == 1)
}

/// The channel for which something is due longest.
///
/// # Errors
/// [`StoreError`].
pub async fn next_channel(session: &mut Session, until: Timestamp) -> Result<Option<ChannelId>> {
    let row = session.first(&NEXT_CHANNEL, args![until]).await?;
    Ok(row.as_ref().map(|row| row.reader().int()).transpose()?.map(ChannelId))
}

/// What of a channel is due until a moment, oldest first.
///
/// # Errors
/// [`StoreError`].
pub async fn due(
    session: &mut Session,
    channel: ChannelId,
    until: Timestamp,
    limit: i64,
) -> Result<Vec<HeldRow>> {
    session.all(&DUE, args![channel, until, limit]).await?.iter().map(read).collect()
}

/// Removes a message that waits no longer; false when somebody else did.
///
/// # Errors
/// [`StoreError`].
pub async fn delete(session: &mut Session, dedupe_key: &str) -> Result<bool> {
    Ok(session.execute(&DELETE, args![dedupe_key]).await? == 1)
}

/// Removes what a subscription asked for and was not sent yet.
///
/// # Errors
/// [`StoreError`].
pub async fn delete_of_subscription(session: &mut Session, subscription: SubscriptionId) -> Result<()> {
    session.execute(&DELETE_OF_SUBSCRIPTION, args![subscription]).await?;
    Ok(())
}
