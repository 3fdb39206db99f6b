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
    /// The tool for agents it is done with.
    pub tool: Option<&'static str>,
}

impl<'r> Acting<'r> {
    /// A caller who does something themselves.
    #[must_use]
    pub const fn directly(caller: &'r Identity, address_hash: Option<[u8; 32]>, now: Timestamp) -> Self {
        Self { caller, address_hash, now, tool: None }
    }
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

    /// Whom the audit log names.
    #[must_use]
    pub fn actor(&self) -> Actor {
        let key = self.caller.key_id().map(ApiKeyId::get);
        Actor { user: self.caller.user_id(), key, address_hash: self.address_hash }
    }

    /// Fails for a key that is narrowed to projects: with it nobody hands out
    /// more than those projects.
    ///
    /// # Errors
    /// [`Denied::KeyScopeDenied`].
    pub fn reaches_everything(&self) -> std::result::Result<(), Denied> {
        if self.caller.reaches_everything() { Ok(()) } else { Err(Denied::KeyScopeDenied) }
    }

    /// Writes what was done into the audit log, in the transaction of the
    /// change.
    ///
    /// # Errors
    /// [`crate::QueryError::Store`].
    pub async fn record(
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
        let (action, detail) = match self.tool {
            Some(tool) => (AuditAction::McpWrite, by_tool(tool, action, detail)),
            None => (action, detail),
        };
        let actor = self.actor();
        let target = Some(Target { kind, id });
        Ok(audit::record(session, AuditEvent { at: self.now, actor, action, target, project, detail })
            .await?)
    }
}

/// What a tool did, with the fields it changed as they were and as they are.
/// What did not exist was nothing.
fn by_tool(tool: &str, action: AuditAction, detail: Map<String, Value>) -> Map<String, Value> {
    let is_change = |value: &Value| value.get("before").is_some() && value.get("after").is_some();
    let (before, after) = if !detail.is_empty() && detail.values().all(is_change) {
        let side = |name: &str| {
            let fields = detail.iter().map(|(field, change)| (field.clone(), change[name].clone()));
            Value::Object(fields.collect())
        };
        (side("before"), side("after"))
    } else {
        (Value::Null, Value::Object(detail))
    };
    Map::from_iter([
        ("tool".to_owned(), tool.into()),
        ("action".to_owned(), action.as_str().into()),
        ("before".to_owned(), before),
        ("after".to_owned(), after),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_tool_did_is_told_as_it_was_and_as_it_is() {
        let told = |detail: Value| {
            let Value::Object(detail) = detail else { unreachable!("an object was written") };
            let told = by_tool("a_tool", AuditAction::ClusterChanged, detail);
            assert_eq!((&told["tool"], &told["action"]), (&json!("a_tool"), &json!("cluster.changed")));
            (told["before"].clone(), told["after"].clone())
        };
        let changed = json!({ "status": { "before": "open", "after": "ignored" }, "note": { "before": null, "after": "x" } });
        assert_eq!(
            told(changed),
            (json!({ "status": "open", "note": null }), json!({ "status": "ignored", "note": "x" }))
        );
        let made = json!({ "name": "pay", "module": "./pages" });
        assert_eq!(told(made.clone()), (Value::Null, made));
    }
}
