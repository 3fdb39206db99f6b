//! What runs say at the code host of their project: one comment on the open request of their commit or branch, edited in
//! place, and one status of their commit.
//!
//! `subscriber` turns domain events into rows in the transaction that moves its cursor; a job posts what they want
//! (`posting`). A comment is found by a random marker that was stored before it was created, so none is created twice.
//! A place shows the newest run: an older one never takes its place.

mod facts;
mod log;
mod posting;
mod settings;
mod subscriber;

pub use log::{FeedbackEntry, FeedbackItem, feedback_log, of_run, purge_log, repost};
pub use posting::{PostFeedback, post};
pub use settings::{ProjectFeedback, edit_project, of_project};
pub(crate) use subscriber::queue_feedback;
