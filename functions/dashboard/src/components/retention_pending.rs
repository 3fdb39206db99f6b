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
    /// How it is undone.
    undo: Undo,
    now: Timestamp,
}

/// How a change is undone.
enum Undo {
    /// By this call.
    Call(String),
    /// Where the service runs.
    InEnvironment,
    /// By tracking the branches again.
    ByTracking,
}

impl HtmlSafe for RetentionPending {}

impl RetentionPending {
    /// A change that people asked for.
    pub(crate) fn undoable(change: PendingChange, undo: impl Into<String>, now: Timestamp) -> Self {
        Self::new(change, Undo::Call(undo.into()), now)
    }

    /// A change that the environment of the service asks for.
    pub(crate) fn of_environment(change: PendingChange, now: Timestamp) -> Self {
        Self::new(change, Undo::InEnvironment, now)
    }

    /// A change of the default or tracked branches.
    pub(crate) fn of_branches(change: PendingChange, now: Timestamp) -> Self {
        Self::new(change, Undo::ByTracking, now)
    }

    fn new(change: PendingChange, undo: Undo, now: Timestamp) -> Self {
        Self { what: deletes(&change.preview), change, undo, now }
    }
}
