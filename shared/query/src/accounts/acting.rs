//! Who does something with accounts, when, and from where: what every change
//! of an account needs besides its arguments, and what the audit log notes.

use callboard_auth::{Denied, Identity};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ApiKeyId, ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_store::Session;
use callboard_store::audit::{self, Actor, AuditEvent, Recorded, Target};
use serde_json::{Map, Value};

use crate::Result;

/// A sign-in counts as recent for this long, milliseconds.
const RECENT_MS: i64 = 15 * 60 * 1000;

/// Somebody doing something at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Acting<'r> {
    /// Who.
    pub caller: &'r Identity,
    /// Keyed hash of the address the request came from.
    pub address_hash: Option<[u8; 32]>,
    /// Now.
    pub now: Timestamp,
}

impl Acting<'_> {
    /// Whether this account is the caller's own.
    #[must_use]
    pub fn is_own(&self, user: UserId) -> bool {
        self.caller.user_id() == Some(user)
    }

    /// Whether the caller signed in a short while ago: proof enough for what
    /// otherwise takes the password.
    #[must_use]
    pub fn signed_in_recently(&self) -> bool {
        let signed_in = self.caller.session().map(|session| session.auth_at.millis());
        signed_in.is_some_and(|at| self.now.millis() - at <= RECENT_MS)
    }

    /// Fails for a key that is narrowed to projects: with it nobody hands out
    /// more than those projects.
    ///
    /// # Errors
    /// [`Denied::KeyScopeDenied`].
    pub(crate) fn reaches_everything(&self) -> std::result::Result<(), Denied> {
        if self.caller.reaches_everything() { Ok(()) } else { Err(Denied::KeyScopeDenied) }
    }

    /// Writes what was done into the audit log, in the transaction of the
    /// change.
    pub(crate) async fn record(
        &self,
        session: &mut Session,
        action: AuditAction,
        (kind, id): (&'static str, i64),
        project: Option<ProjectId>,
        detail: Value,
    ) -> Result<Recorded> {
        let detail = match detail {
            Value::Object(detail) => detail,
            _ => Map::new(),
        };
        let actor = Actor {
            user: self.caller.user_id(),
            key: self.caller.key_id().map(ApiKeyId::get),
            address_hash: self.address_hash,
        };
        let target = Some(Target { kind, id });
        Ok(audit::record(session, AuditEvent { at: self.now, actor, action, target, project, detail })
            .await?)
    }
}
