//! Notifications: channels of the instance and of people, subscriptions to events, and
//! deliveries.
//!
//! `subscriber` turns domain events into deliveries in the transaction that
//! moves its cursor; a job sends each one. How a message looks in a channel is
//! in `callboard-integrations`.

mod channels;
mod deliveries;
mod dispatch;
mod inbox;
mod message;
mod notices;
mod recipients;
mod subscriber;
mod subscriptions;
mod summary;
mod unsubscribe;

pub use channels::{
    Channel, ChannelConfig, ChannelEdit, FormerSecret, NewChannel, channel, confirmed_address, create,
    delete, edit, is_confirmed_address, list, own_name, rotate,
};
pub use deliveries::{
    Begun, Delivery, Outcome, begin, deliveries, finish, purge_deliveries, retry, send_test,
};
pub use dispatch::SendNotification;
pub use inbox::{
    InboxItem, MOST_UNREAD, NewFailureLine, Unread, bell, inbox, mark_read, mark_read_up_to, unread,
};
pub(crate) use message::{ended_as, name_of, shown_name};
pub(crate) use subscriber::queue_deliveries;
pub use subscriptions::{
    QuietHoursShape, Subscription, SubscriptionEdit, Watched, create_subscription, delete_subscription,
    edit_subscription, subscription, subscriptions, watching,
};
pub use summary::send_held;
pub use unsubscribe::{unsubscribe, unsubscribe_token};

use callboard_domain::notifications::NotificationEvent;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;

use crate::{Context, Result};

/// Reports to channels of the instance that it reached a share of its storage quota.
pub(crate) async fn report_instance_quota(
    ctx: &Context,
    session: &mut Session,
    level: i64,
    used_bytes: i64,
    quota_bytes: i64,
    now: Timestamp,
) -> Result<()> {
    let message = message::about_instance_quota(ctx, message::QuotaFacts { level, used_bytes, quota_bytes });
    let key = format!("quota:{level}:{}", now.millis());
    subscriber::queue_for_instance(session, NotificationEvent::StorageQuota, &key, &message, now).await
}
