//! Where a request about an account comes from, as sessions and the audit log
//! keep it.

use callboard_auth::Identity;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use callboard_store::audit::{self, Actor, AuditEvent, Recorded, Target};
use callboard_store::{Session, StoreError, boxed};
use serde_json::{Map, Value};

/// The browser or program a request comes from.
#[derive(Debug, Clone, Default)]
pub struct Visitor {
    /// Keyed hash of its address.
    pub address_hash: Option<[u8; 32]>,
    /// What it calls itself.
    pub user_agent: Option<String>,
    /// The session it presented, by the hash of its id.
    pub session: Option<[u8; 32]>,
    /// The account it was recognised as.
    pub user: Option<UserId>,
    /// The API key it was recognised by.
    pub key: Option<i64>,
}

impl Visitor {
    /// The visitor of a request, without where it comes from.
    #[must_use]
    pub fn recognised(identity: &Identity) -> Self {
        Self {
            session: identity.session().map(|session| session.sid_hash),
            user: identity.user_id(),
            key: identity.key_id().map(callboard_domain::ids::ApiKeyId::get),
            ..Self::default()
        }
    }

    /// Who the audit log names.
    #[must_use]
    pub const fn actor(&self) -> Actor {
        Actor { user: self.user, key: self.key, address_hash: self.address_hash }
    }

    /// Notes what was done about an account, in the transaction that does it.
    /// Without somebody who is signed in, who acts is `subject` itself.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    #[boxed]
    pub async fn note(
        &self,
        session: &mut Session,
        action: AuditAction,
        subject: Option<UserId>,
        detail: Map<String, Value>,
        now: Timestamp,
    ) -> Result<Recorded, StoreError> {
        let event = AuditEvent {
            at: now,
            actor: self.actor(),
            action,
            target: subject.map(|user| Target { kind: "user", id: user.get() }),
            project: None,
            detail,
        };
        audit::record(session, event).await
    }
}
