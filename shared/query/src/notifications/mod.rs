//! Notifications: channels of the installation, subscriptions to events, and
//! deliveries.
//!
//! `subscriber` turns domain events into deliveries in the transaction that
//! moves its cursor; a job sends each one. How a message looks in a channel is
//! in `callboard-integrations`.

mod channels;
mod deliveries;
mod message;
mod subscriber;
mod subscriptions;
mod summary;
mod unsubscribe;

pub use channels::{
    Channel, ChannelConfig, ChannelEdit, channel, create, delete, edit, is_confirmed_address, list, rotate,
};
pub use deliveries::{
    Begun, Delivery, Outcome, SendNotification, begin, deliveries, finish, purge_deliveries, retry, send_test,
};
pub(crate) use message::{ended_as, name_of, shown_name};
pub(crate) use subscriber::queue_deliveries;
pub use subscriptions::{
    QuietHoursShape, Subscription, SubscriptionEdit, create_subscription, delete_subscription,
    edit_subscription, subscription, subscriptions,
};
pub use summary::send_held;
pub use unsubscribe::{unsubscribe, unsubscribe_token};
