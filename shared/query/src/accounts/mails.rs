//! Mails about accounts: what is enqueued in the transaction that makes a
//! mail necessary, and what the worker does before it writes one. Tokens are
//! made by the worker, so that none stands in a queue.

use callboard_auth::token::{self, NewToken, TokenKind};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use callboard_store::accounts::api_keys::{self, KeyListed};
use callboard_store::accounts::tokens::{self, NewAccountToken, TokenPurpose};
use callboard_store::accounts::users::{self, UserRow, email_key};
use callboard_store::jobs::{self, Payload};
use callboard_store::{Session, Store, StoreError, boxed};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::visitor::Visitor;
use crate::Result;

/// Somebody asked for a link to set a new password. The address may be
/// anything.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResetMail {
    /// As it was given.
    pub address: String,
}

impl Payload for ResetMail {
    const KIND: &'static str = "mail_reset";
    // Whom somebody asked about is nobody's business afterwards.
    const IS_SECRET: bool = true;
}

/// Somebody wants to prove the address of their account.
#[derive(Debug, Serialize, Deserialize)]
pub struct VerifyMail {
    /// The account.
    pub user: i64,
    /// The address to prove.
    pub address: String,
}

impl Payload for VerifyMail {
    const KIND: &'static str = "mail_verify";
}

/// Somebody should know what happened to their account.
#[derive(Debug, Serialize, Deserialize)]
pub struct NoticeMail {
    /// The account.
    pub user: i64,
    /// Where it had a trusted address when it happened.
    pub address: String,
    /// What happened.
    pub notice: Notice,
}

impl Payload for NoticeMail {
    const KIND: &'static str = "mail_notice";
}

/// What people are told about their account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// The password was changed by somebody who knew the old one.
    PasswordChanged,
    /// The password was set with a mailed link.
    PasswordReset,
    /// The e-mail address was changed; told to the old one.
    EmailChanged,
    /// A provider's account was linked.
    ProviderLinked,
    /// The provider's account was unlinked.
    ProviderUnlinked,
}

impl Notice {
    const fn word(self) -> &'static str {
        match self {
            Self::PasswordChanged => "password_changed",
            Self::PasswordReset => "password_reset",
            Self::EmailChanged => "email_changed",
            Self::ProviderLinked => "provider_linked",
            Self::ProviderUnlinked => "provider_unlinked",
        }
    }
}

/// Tells an account's trusted address what happened, as part of the
/// transaction in which it happens. `user` is the account as it was before,
/// where the address itself changes.
///
/// # Errors
/// [`StoreError::Database`].
#[boxed]
pub async fn notify(
    session: &mut Session,
    user: &UserRow,
    notice: Notice,
    now: Timestamp,
) -> std::result::Result<(), StoreError> {
    let Some(email) = user.email.as_ref().filter(|email| email.source.is_trusted()) else { return Ok(()) };
    let key = format!("user:{}:notice:{}:{}", user.id, notice.word(), now.millis());
    let payload = NoticeMail { user: user.id.get(), address: email.address.clone(), notice };
    jobs::enqueue(session, &key, None, &payload, now).await?;
    Ok(())
}

/// Enqueues the answer to "I forgot my password". The same is written
/// whatever the address is; the worker finds out whose it is.
///
/// # Errors
/// [`crate::QueryError::Store`],
/// [`crate::QueryError::Sealing`] without randomness.
#[boxed]
pub async fn forgot(store: &Store, address: &str, visitor: &Visitor, now: Timestamp) -> Result<()> {
    // Random: every request is one of its own.
    let key = format!("mail_reset:{}", hex::encode(token::mint(TokenKind::Reset)?.hash));
    // Longer than an address can be finds nobody.
    let address = if address.len() <= MAX_ADDRESS_BYTES { address.to_owned() } else { String::new() };
    let mut session = store.db().begin().await?;
    jobs::enqueue(&mut session, &key, None, &ResetMail { address }, now).await?;
    let noted =
        visitor.note(&mut session, AuditAction::PasswordResetRequested, None, Map::new(), now).await?;
    session.commit().await?;
    noted.committed();
    Ok(())
}

/// Longest e-mail address (RFC 5321).
const MAX_ADDRESS_BYTES: usize = 254;

/// The trusted address a link for a new password may go to, when there is an
/// enabled account that has a password or an open invitation.
///
/// # Errors
/// [`crate::QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn recipient_of_reset(store: &Store, address: &str, now: Timestamp) -> Result<Option<UserRow>> {
    let mut session = store.db().read().await?;
    let found = users::by_email(&mut session, &email_key(address)).await?;
    let Some(user) = found.filter(|user| user.disabled_at.is_none()) else { return Ok(None) };
    let may = !user.password.is_empty()
        || tokens::has_open(&mut session, user.id, TokenPurpose::Invite, now).await?;
    Ok(may.then_some(user))
}

/// Makes a token of an account that leaves in a mail to `address`. Older ones
/// of its purpose open nothing from here on.
///
/// # Errors
/// [`crate::QueryError::Store`],
/// [`crate::QueryError::Sealing`] without randomness.
#[boxed]
pub async fn mint(
    store: &Store,
    user: UserId,
    purpose: TokenPurpose,
    address: Option<String>,
    now: Timestamp,
) -> Result<NewToken> {
    let kind = match purpose {
        TokenPurpose::Reset => TokenKind::Reset,
        TokenPurpose::Verify => TokenKind::Verify,
        TokenPurpose::Invite => TokenKind::Invite,
    };
    let fresh = token::mint(kind)?;
    let new = NewAccountToken { hash: fresh.hash, user, purpose, email: address, created_at: now };
    let mut session = store.db().begin().await?;
    tokens::insert(&mut session, &new).await?;
    session.commit().await?;
    Ok(fresh)
}

/// The account of a job, unless it is gone or disabled.
///
/// # Errors
/// [`crate::QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn account(store: &Store, user: UserId) -> Result<Option<UserRow>> {
    let found = users::get(&mut store.db().read().await?, user).await?;
    Ok(found.filter(|user| user.disabled_at.is_none()))
}

/// The keys of an account that still open something: a new password does not
/// end them, so its owner is told about them.
///
/// # Errors
/// [`crate::QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn live_keys(store: &Store, user: UserId, now: Timestamp) -> Result<Vec<KeyListed>> {
    let mut session = store.db().read().await?;
    let keys = api_keys::of_user(&mut session, user, None, now, api_keys::MAX_LIVE).await?;
    let is_live = |key: &KeyListed| key.revoked_at.is_none() && key.expires_at.is_none_or(|end| end > now);
    Ok(keys.into_iter().filter(is_live).collect())
}
