//! The sessions of an account, as their owner and administrators see and end
//! them. A session is named by half of the hash of its id: enough to tell it
//! from all others, and nothing that opens it.

use callboard_auth::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use callboard_store::accounts::sessions::{self, SessionListed};
use callboard_store::accounts::users as store_users;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::Acting;
use super::editing::end_sessions;
use super::users::{accepted, locked, required};
use crate::page::{Slice, fetch};
use crate::{Context, Entity, QueryError, Result};

const NAME_BYTES: usize = 16;

/// The name of a session in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionName([u8; NAME_BYTES]);

impl SessionName {
    /// Reads 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let bytes = hex::decode(text).ok().filter(|_| is_lower)?;
        bytes.try_into().ok().map(Self)
    }

    fn from_hash(sid_hash: &[u8]) -> Self {
        let mut name = [0; NAME_BYTES];
        name.iter_mut().zip(sid_hash).for_each(|(to, from)| *to = *from);
        Self(name)
    }
}

impl std::fmt::Display for SessionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// A session of an account.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionItem {
    /// Its name in this list; not what its cookie holds.
    #[schema(example = "1f40fc92da241694750979ee6cf582f2")]
    pub id: String,
    /// How the person signed in: `password`, `setup` or a provider.
    #[schema(example = "password")]
    pub method: String,
    /// What the browser calls itself.
    pub user_agent: Option<String>,
    /// When the person signed in.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Last noted use, at most every five minutes.
    #[schema(value_type = String, format = DateTime)]
    pub last_seen_at: Timestamp,
    /// When it ends by itself.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
    /// Whether it is the one this request came with.
    pub current: bool,
}

/// Key of a page of sessions: when the last one was created, and its name.
pub type SessionKey = (i64, String);

fn key(row: &SessionListed) -> SessionKey {
    (row.created_at.millis(), SessionName::from_hash(&row.sid_hash).to_string())
}

/// Live sessions of an account, newest first.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn list(
    ctx: &Context,
    acting: Acting<'_>,
    user: Authorized<UserId>,
    after: Option<SessionKey>,
    limit: usize,
) -> Result<Slice<SessionItem, SessionKey>> {
    let mut session = ctx.store.db().read().await?;
    let row = required(&mut session, user.get()).await?;
    // A key that names no session is altered; the list then goes on behind its moment.
    let after = after.map(|(at, name)| {
        (Timestamp(at), SessionName::parse(&name).map(|name| name.0.to_vec()).unwrap_or_default())
    });
    let (epoch, now) = (row.session_epoch, acting.now);
    let rows = sessions::of_user(&mut session, row.id, epoch, now, after, fetch(limit)).await?;
    let current = acting.caller.session().map(|own| own.sid_hash);
    Ok(Slice::cut(rows, limit, key).map(|row| SessionItem {
        id: SessionName::from_hash(&row.sid_hash).to_string(),
        current: current.is_some_and(|current| current.as_slice() == row.sid_hash),
        method: row.method,
        user_agent: row.user_agent,
        created_at: row.created_at,
        last_seen_at: row.last_seen_at,
        expires_at: row.expires_at,
    }))
}

/// Ends one session of an account.
///
/// # Errors
/// [`QueryError::NotFound`] when there is no such live session.
pub async fn end(
    ctx: &Context,
    acting: Acting<'_>,
    user: Authorized<UserId>,
    name: &SessionName,
) -> Result<()> {
    acting.reaches_everything()?;
    let missing = || QueryError::not_found(Entity::Session, name);
    let mut session = ctx.store.db().begin().await?;
    let row = required(&mut session, user.get()).await?;
    let found =
        sessions::beginning_with(&mut session, row.id, row.session_epoch, &name.0, acting.now).await?;
    if !sessions::revoke_of(&mut session, row.id, found.ok_or_else(missing)?, acting.now).await? {
        return Err(missing());
    }
    let detail = json!({ "ended": 1 });
    let target = ("user", row.id.get());
    let recorded = acting.record(&mut session, AuditAction::SessionsRevoked, target, None, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}

/// What signing an account out everywhere led to.
#[derive(Debug, Clone, Copy)]
pub struct SignedOut {
    /// Sessions that ended.
    pub ended: u64,
    /// The epoch that the caller's own session was carried into.
    pub own_session_moved_to: Option<i64>,
}

/// Ends every session of an account, except the one the caller acts with.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn sign_out(ctx: &Context, acting: Acting<'_>, user: Authorized<UserId>) -> Result<SignedOut> {
    acting.reaches_everything()?;
    let mut session = ctx.store.db().begin().await?;
    let mut row = locked(&mut session, user.get()).await?;
    row.session_epoch += 1;
    let done = end_sessions(&mut session, acting, &row).await?;
    accepted(store_users::save(&mut session, &row).await?)?;
    let detail = json!({ "ended": done.ended });
    let target = ("user", row.id.get());
    let recorded = acting.record(&mut session, AuditAction::SessionsRevoked, target, None, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(SignedOut { ended: done.ended, own_session_moved_to: done.carried_into })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_by_half_of_its_hash() {
        let name = SessionName::from_hash(&[0xab; 32]);
        assert_eq!(name.to_string(), "ab".repeat(16));
        assert_eq!(SessionName::parse(&name.to_string()), Some(name));
        for wrong in ["", "ab", &"AB".repeat(16), &"ab".repeat(17), &"zz".repeat(16)] {
            assert_eq!(SessionName::parse(wrong), None, "{wrong}");
        }
    }
}
