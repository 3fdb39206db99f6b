//! `/settings/…`: what holds for the whole instance. Accounts and the audit
//! log have pages of their own, and so has each project.

mod diagnosis;
mod feedback;
mod flakiness;
mod instance;
mod mail;
mod notifications;
mod numbers;
mod project_list;
mod projects;
mod retention;
mod source_control;
mod storage;
mod tags;
mod timeouts;

pub(crate) use diagnosis::diagnosis;
pub(crate) use feedback::feedback;
pub(crate) use flakiness::flakiness;
pub(crate) use instance::instance;
pub(crate) use mail::mail;
pub(crate) use notifications::{deliveries, event_label, notifications};
pub(crate) use projects::projects;
pub(crate) use retention::retention;
pub(crate) use source_control::source_control;
pub(crate) use storage::storage;
pub(crate) use tags::tags;
pub(crate) use timeouts::timeouts;
