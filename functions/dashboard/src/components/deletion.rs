//! Deleting and restoring: what a person chooses before a deletion, and the
//! list of deletions with what can still be restored.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::Timestamp;
use callboard_http::ApiError;
use callboard_query::deletions::{self, DeletionFilters, Receipt};

use crate::filters;
use crate::visit::Visit;

/// Restorable deletions a list shows.
const RESTORABLE: i64 = 200;
/// The newest deletions a list looks for others in.
const NEWEST: usize = 100;
/// Other deletions a list shows.
const OTHERS: usize = 10;

/// Inputs of `components/deletion_choice.html`: until when a deletion can be
/// restored, and the choice to go without that.
#[derive(Template)]
#[template(path = "components/deletion_choice.html")]
pub(crate) struct DeletionChoice {
    /// `None` when the service has no grace period.
    restorable_until: Option<Timestamp>,
    now: Timestamp,
}

impl HtmlSafe for DeletionChoice {}

impl DeletionChoice {
    /// By the grace period of the service.
    pub(crate) fn new(visit: &Visit) -> Self {
        let grace_ms = visit.ctx.deletion_grace_ms;
        let restorable_until = (grace_ms > 0).then(|| Timestamp(visit.now.millis() + grace_ms));
        Self { restorable_until, now: visit.now }
    }
}

/// Inputs of `components/deletion_list.html`: restorable deletions first, then
/// the newest others.
#[derive(Template)]
#[template(path = "components/deletion_list.html")]
pub(crate) struct DeletionList {
    rows: Vec<Receipt>,
    now: Timestamp,
}

impl HtmlSafe for DeletionList {}

impl DeletionList {
    /// Reads them.
    ///
    /// # Errors
    /// When the database refuses.
    pub(crate) async fn read(visit: &Visit) -> Result<Self, ApiError> {
        let mut rows = deletions::restorable(&visit.ctx, visit.now, RESTORABLE).await?;
        let all = deletions::list(&visit.ctx, DeletionFilters::default(), None, NEWEST).await?;
        let others = all.items.into_iter().filter(|receipt| !is_restorable(receipt, &visit.now));
        rows.extend(others.take(OTHERS));
        Ok(Self { rows, now: visit.now })
    }
}

fn is_restorable(receipt: &Receipt, now: &Timestamp) -> bool {
    receipt.restorable_until.is_some_and(|until| *now < until)
}

/// What a receipt is about.
fn kind_of(receipt: &Receipt) -> &'static str {
    match (receipt.target.kind.as_str(), receipt.reason.as_str()) {
        ("project", _) => "Project",
        (_, "retention") => "Deleted by retention",
        (_, "purge") => "Cleaned up",
        ("run", _) => "Run",
        _ => "Runs",
    }
}

/// The state of a receipt.
fn state_of(receipt: &Receipt, now: &Timestamp) -> &'static str {
    match receipt.state {
        "pending" if is_restorable(receipt, now) => "Restorable",
        "pending" => "Pending",
        "freeing" => "Freeing",
        "complete" => "Deleted",
        "restoring" => "Restoring",
        "restored" => "Restored",
        _ => "Failed",
    }
}
