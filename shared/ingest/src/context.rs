//! What every question needs besides its arguments.

use std::sync::Arc;

use callboard_core::Links;
use callboard_domain::retention::Overrides;
use callboard_domain::run_life::Patience;
use callboard_store::Store;

use crate::stage::write_queue::WriteCoalescer;

/// The store, and how links to pages begin.
#[derive(Debug, Clone)]
pub struct Context {
    /// Rows and objects.
    pub store: Store,
    /// Where the pages are.
    pub links: Links,
    /// How long to wait for the clients of a run.
    pub patience: Patience,
    /// What the environment of the service sets of retention.
    pub retention: Arc<Overrides>,
    /// How long a change of retention that keeps less waits, milliseconds.
    pub retention_grace_ms: i64,
    /// How long what a person deletes can be restored, ms; 0 when it cannot.
    pub deletion_grace_ms: i64,
    /// Whether callers have to sign in.
    pub requires_sign_in: bool,
    /// What the requests of this process share that stream results.
    pub write_coalescer: WriteCoalescer,
}
