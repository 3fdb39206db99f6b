//! Notifications as rows: channels, subscriptions to them, and deliveries.
//! They belong to the installation.

pub mod channels;
pub mod deliveries;
pub mod held;
pub mod subscriptions;
