//! A change of retention that is not in force yet: what it deletes, when, and
//! how to undo it.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::Timestamp;
use callboard_query::retention::PendingChange;

use crate::filters;
use crate::text::deletes;

/// Inputs of `components/retention_pending.html`.
#[derive(Template)]
#[template(path = "components/retention_pending.html")]
pub(crate) struct RetentionPending {
    change: PendingChange,
    /// What is deleted, if anything is.
    what: Option<String>,
    /// The call that undoes it; none for what the environment asks for.
    undo: Option<String>,
    now: Timestamp,
}

impl HtmlSafe for RetentionPending {}

impl RetentionPending {
    /// A change that people asked for.
    pub(crate) fn undoable(change: PendingChange, undo: impl Into<String>, now: Timestamp) -> Self {
        Self::new(change, Some(undo.into()), now)
    }

    /// A change that the environment of the service asks for.
    pub(crate) fn of_environment(change: PendingChange, now: Timestamp) -> Self {
        Self::new(change, None, now)
    }

    fn new(change: PendingChange, undo: Option<String>, now: Timestamp) -> Self {
        Self { what: deletes(&change.preview), change, undo, now }
    }
}
