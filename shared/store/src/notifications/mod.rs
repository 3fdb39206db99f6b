//! Notifications as rows: channels, subscriptions to them, and deliveries. They
//! belong to the installation, or to a person.

pub mod channels;
pub mod concerned;
pub mod deliveries;
pub mod held;
pub mod inbox;
pub mod quotas;
pub mod subscriptions;
pub mod told;
