//! Where a message goes once it is due: into the header of the pages, or into the queue.

use callboard_domain::ids::DeliveryId;
use callboard_domain::notifications::{ChannelKind, Message, NotificationEvent};
use callboard_domain::time::Timestamp;
use callboard_store::accounts::users::{self, UserFilter};
use callboard_store::db::Session;
use callboard_store::jobs::{self, Payload};
use callboard_store::notifications::channels::ChannelRow;
use callboard_store::notifications::deliveries::{self, NewDelivery};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::channels::own_channel;
use crate::{Context, Result};

/// A delivery is to be sent.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct SendNotification {
    /// Delivery.
    pub delivery: DeliveryId,
}

impl Payload for SendNotification {
    const KIND: &'static str = "send_notification";
}

impl SendNotification {
    pub(super) fn key(self, attempt: i64) -> String {
        format!("delivery:{}:{attempt}", self.delivery)
    }
}

/// Administrators who are told that a channel of the instance paused.
const MOST_ADMINISTRATORS: i64 = 50;

/// Stores a delivery and sees that it arrives. `None` when the channel has the message already.
pub(super) async fn dispatch(
    session: &mut Session,
    channel: &ChannelRow,
    new: &NewDelivery,
    now: Timestamp,
) -> Result<Option<DeliveryId>> {
    if let (ChannelKind::Browser, Some(user)) = (channel.kind, channel.user) {
        return Ok(deliveries::insert_inbox(session, new, user, now).await?);
    }
    let id = deliveries::insert(session, new, now).await?;
    if let Some(delivery) = id {
        let job = SendNotification { delivery };
        jobs::enqueue(session, &job.key(0), new.project, &job, now).await?;
    }
    Ok(id)
}

/// Tells the owner of a channel in the header of the pages that it paused; of a channel of the instance its creator, or
/// every administrator when nobody is known to have created it.
pub(super) async fn report_pause(
    ctx: &Context,
    session: &mut Session,
    channel: &ChannelRow,
    now: Timestamp,
) -> Result<()> {
    let mut owners: Vec<_> = channel.user.or(channel.created_by).into_iter().collect();
    if let Some(owner) = owners.first()
        && users::get(session, *owner).await?.is_none_or(|user| user.disabled_at.is_some())
    {
        owners.clear();
    }
    if owners.is_empty() && channel.user.is_none() {
        let administrators = UserFilter {
            role: Some(callboard_domain::account::Role::Administrator),
            disabled: Some(false),
            ..UserFilter::default()
        };
        let found = users::list(session, &administrators, None, MOST_ADMINISTRATORS).await?;
        owners = found.into_iter().map(|user| user.id).collect();
    }
    let message = Message {
        headline: format!("The channel “{}” is paused", channel.name),
        facts: vec![
            "20 deliveries failed in a row. Nothing is sent until somebody resumes it.".to_owned(),
            channel.last_error.clone().unwrap_or_default(),
        ],
        url: ctx.links.channel(channel.id.get()),
        ..Message::default()
    };
    for owner in owners {
        let own = own_channel(session, owner, ChannelKind::Browser, now).await?;
        let new = NewDelivery {
            channel: own.id,
            project: None,
            event: NotificationEvent::ChannelPaused,
            dedupe_key: Some(format!("paused:{}:{}:{owner}", channel.id, now.millis())),
            payload: json!(message).to_string(),
        };
        dispatch(session, &own, &new, now).await?;
    }
    Ok(())
}
