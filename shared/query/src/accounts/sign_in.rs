//! Signing in with name and password, and out again.
//!
//! A sign-in has three steps, because its middle is work that must not hold a
//! connection: [`Candidate::find`] reads the account, whoever has a core to
//! spare hashes (the same work whatever was found), [`finish`] begins the
//! session or notes the failure.

use callboard_auth::session_cookie::SessionClaims;
use callboard_auth::username::username_key;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use callboard_store::accounts::sessions::{self, NewSession};
use callboard_store::accounts::users::{self, UserRow};
use callboard_store::{Session, Store, boxed};
use serde_json::{Map, json};

use super::refusal::AccountRefusal;
use super::visitor::Visitor;
use crate::Result;

/// Longest name of a browser that is kept, characters.
const MAX_USER_AGENT_CHARS: usize = 200;

/// A session that has just begun.
#[derive(Debug)]
pub struct SignedIn {
    /// The account.
    pub user: UserRow,
    /// What the session's cookie says.
    pub claims: SessionClaims,
}

/// Begins a session of an account as part of the caller's transaction. The
/// session the request presented ends: what was known before a sign-in opens
/// nothing after it.
///
/// # Errors
/// [`crate::QueryError::Store`],
/// [`crate::QueryError::Sealing`] without randomness.
#[boxed]
pub async fn begin_session(
    session: &mut Session,
    user: &UserRow,
    method: &'static str,
    visitor: &Visitor,
    now: Timestamp,
) -> Result<SessionClaims> {
    if let Some(presented) = visitor.session {
        sessions::revoke(session, presented, now).await?;
    }
    let claims = SessionClaims::start(user.id, user.session_epoch, now)?;
    let new = NewSession {
        sid_hash: claims.sid_hash(),
        user: user.id,
        epoch: user.session_epoch,
        auth_at: now,
        created_at: now,
        expires_at: claims.expires_at,
        method,
        ip_hash: visitor.address_hash.map(Vec::from),
        user_agent: visitor.user_agent.as_ref().map(|name| name.chars().take(MAX_USER_AGENT_CHARS).collect()),
    };
    sessions::insert(session, &new).await?;
    Ok(claims)
}

/// The account a name was given for, which may not exist.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// What the name is compared and counted by.
    pub account_key: String,
    user: Option<UserRow>,
}

/// What the work on a password found.
#[derive(Debug)]
pub enum Checked {
    /// It is not the account's, or there is no account to sign in to.
    Wrong,
    /// It is the account's.
    Right {
        /// A hash to store instead of a weaker one.
        stronger: Option<String>,
    },
}

impl Candidate {
    /// Looks for the account of a name.
    ///
    /// # Errors
    /// [`crate::QueryError::Store`] when the database does not answer.
    #[boxed]
    pub async fn find(store: &Store, username: &str) -> Result<Self> {
        let account_key = username_key(username);
        let user = users::by_name(&mut store.db().read().await?, &account_key).await?;
        Ok(Self { account_key, user })
    }

    /// The account, when there is one.
    #[must_use]
    pub fn user_id(&self) -> Option<UserId> {
        self.user.as_ref().map(|user| user.id)
    }

    /// The hash that its password is compared with. There is none without an
    /// account, for a disabled one and for one without a password: those are
    /// refused after the same work.
    #[must_use]
    pub fn password_hash(&self) -> Option<&str> {
        let enabled = self.user.as_ref().filter(|user| user.disabled_at.is_none());
        enabled.map(|user| user.password.as_str()).filter(|hash| !hash.is_empty())
    }
}

/// Begins the session of a candidate whose password was right, or notes the
/// failure.
///
/// # Errors
/// [`AccountRefusal::InvalidCredentials`], the same for every reason;
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn finish(
    store: &Store,
    candidate: Candidate,
    checked: Checked,
    visitor: &Visitor,
    now: Timestamp,
) -> Result<SignedIn> {
    let mut session = store.db().begin().await?;
    let found = match (checked, candidate.user) {
        (Checked::Right { stronger }, Some(seen)) => {
            // A change since it was read bumped the epoch: then the password that was checked is not the account's.
            let locked = users::lock(&mut session, seen.id).await?;
            let unchanged =
                |user: &UserRow| user.session_epoch == seen.session_epoch && user.disabled_at.is_none();
            locked.filter(unchanged).map(|user| (user, stronger)).ok_or(Some(seen.id))
        }
        (_, seen) => Err(seen.map(|user| user.id)),
    };
    match found {
        Ok((mut user, stronger)) => {
            if let Some(stronger) = stronger {
                user.password = stronger;
                user.updated_at = now;
                users::save(&mut session, &user).await?;
            }
            let claims = begin_session(&mut session, &user, "password", visitor, now).await?;
            let noted = by_subject(visitor, user.id)
                .note(&mut session, AuditAction::LoginSucceeded, Some(user.id), Map::new(), now)
                .await?;
            session.commit().await?;
            noted.committed();
            Ok(SignedIn { user, claims })
        }
        Err(subject) => {
            let noted =
                visitor.note(&mut session, AuditAction::LoginFailed, subject, Map::new(), now).await?;
            session.commit().await?;
            noted.committed();
            Err(AccountRefusal::InvalidCredentials.into())
        }
    }
}

/// Notes that a sign-in was not looked at because too many failed before it.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn note_limited(
    store: &Store,
    candidate: &Candidate,
    visitor: &Visitor,
    now: Timestamp,
) -> Result<()> {
    let mut session = store.db().begin().await?;
    let subject = candidate.user_id();
    let noted = visitor.note(&mut session, AuditAction::LoginLimited, subject, Map::new(), now).await?;
    session.commit().await?;
    noted.committed();
    Ok(())
}

/// Ends the session a request presented; without one nothing happens.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn sign_out(store: &Store, visitor: &Visitor, now: Timestamp) -> Result<()> {
    let Some(presented) = visitor.session else { return Ok(()) };
    let mut session = store.db().begin().await?;
    if sessions::revoke(&mut session, presented, now).await? {
        let noted = visitor.note(&mut session, AuditAction::Logout, visitor.user, Map::new(), now).await?;
        session.commit().await?;
        noted.committed();
    }
    Ok(())
}

/// A visitor who acts as the account that was proven just now.
pub(crate) fn by_subject(visitor: &Visitor, user: UserId) -> Visitor {
    Visitor { user: Some(user), key: None, ..visitor.clone() }
}

/// Detail of an entry that names one thing.
pub(crate) fn detail(name: &str, value: impl serde::Serialize) -> Map<String, serde_json::Value> {
    Map::from_iter([(name.to_owned(), json!(value))])
}
