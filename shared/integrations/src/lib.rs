//! Other people's services: how a message looks there, and how it is sent
//! through the one client for requests that leave this service.
//!
//! Lives here: formats and calls of chats and webhooks, clients of code hosts
//! ([`scm`]) and of language models ([`model`]). Must not live here: SQL, jobs, decisions about who is notified.

mod chat;
pub mod model;
mod notification;
pub mod scm;
mod signature;

pub use notification::{Failure, Notification, send};
