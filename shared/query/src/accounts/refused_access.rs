//! The audit log's entries about access that was refused. Refusals cost their
//! sender nothing, so they are counted first: one entry an hour for each
//! caller, route and reason, and a bounded number for each caller.

use callboard_auth::limits::{NOTED_ACCESS, NOTED_ACCESS_OF_CALLER};
use callboard_domain::audit::AuditAction;
use callboard_domain::time::Timestamp;
use callboard_store::Store;
use callboard_store::audit::{self, Actor, AuditEvent};
use serde_json::Map;

use crate::Result;
use crate::limits::{LimitError, Limits};

/// What was asked for, and why it was refused.
#[derive(Debug, Clone, Copy)]
pub struct RefusedAccess<'r> {
    /// Who counts as one: an account, or an address.
    pub subject: &'r [u8],
    /// Who asked, as far as it is known.
    pub actor: Actor,
    /// The name of the route.
    pub route: &'static str,
    /// The error code of the answer.
    pub code: &'r str,
}

/// Notes a refusal, unless its like was noted within the hour.
///
/// # Errors
/// [`crate::QueryError::Store`] when the database refuses.
pub async fn note(store: &Store, limits: &Limits, refused: RefusedAccess<'_>, now: Timestamp) -> Result<()> {
    let one = [refused.subject, refused.route.as_bytes(), b"|", refused.code.as_bytes()].concat();
    for (class, subject) in [(NOTED_ACCESS, one.as_slice()), (NOTED_ACCESS_OF_CALLER, refused.subject)] {
        match limits.check(class, subject, now).await {
            Ok(()) => {}
            Err(LimitError::Limited { .. }) => return Ok(()),
            Err(LimitError::Store(error)) => return Err(error.into()),
        }
    }
    let detail = Map::from_iter([
        ("route".to_owned(), refused.route.into()),
        ("code".to_owned(), refused.code.into()),
    ]);
    let mut session = store.db().begin().await?;
    let action = AuditAction::AccessRefused;
    let event = AuditEvent { at: now, actor: refused.actor, action, target: None, project: None, detail };
    let noted = audit::record(&mut session, event).await?;
    session.commit().await?;
    noted.committed();
    Ok(())
}
