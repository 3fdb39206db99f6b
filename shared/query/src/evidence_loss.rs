//! Evidence that was not stored: what a client is warned of is also an event of the run, once per request.

use callboard_domain::events::DomainEvent;
use callboard_domain::ids::RunId;
use callboard_domain::ingest::Warnings;
use callboard_domain::time::Timestamp;
use callboard_store::ids::{self, Listed};

use crate::{Context, Result, events};

/// Warnings that say that evidence is lost. Fields that are no evidence, and what can be sent again, are not among them.
const LOST: [&str; 6] =
    ["attempts_dropped", "entry_cut", "entry_too_large", "file_ignored", "part_ignored", "unsafe_report"];

/// Reports what a request lost of a run, if anything.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn report(ctx: &Context, run: RunId, warnings: &Warnings, now: Timestamp) -> Result<()> {
    let mut lost = warnings.as_slice().iter().filter(|warning| LOST.contains(&warning.code));
    let Some(first) = lost.next() else { return Ok(()) };
    let reason = match lost.count() {
        0 => first.message.clone(),
        more => format!("{} And {more} more.", first.message),
    };
    let mut session = ctx.store.db().begin().await?;
    let Some(project) = ids::project_of(&mut session, Listed::Run, run.get()).await? else { return Ok(()) };
    events::emit(&mut session, project, &[DomainEvent::EvidenceDropped { run, reason }], now).await?;
    Ok(session.commit().await?)
}
