//! Tokens that left in a mailed link: setting a password, proving an address,
//! accepting an invitation. Only hashes are stored; each is used once.

use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::{Result, StoreError};

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenPurpose {
    /// Setting a new password.
    Reset,
    /// Proving an e-mail address.
    Verify,
    /// Setting the first password of an invited account.
    Invite,
}

impl TokenPurpose {
    const ALL: [Self; 3] = [Self::Reset, Self::Verify, Self::Invite];

    /// The spelling in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Verify => "verify",
            Self::Invite => "invite",
        }
    }

    /// How long such a token opens something, milliseconds.
    #[must_use]
    pub const fn lifetime_ms(self) -> i64 {
        const HOUR_MS: i64 = 60 * 60 * 1000;
        match self {
            Self::Reset => HOUR_MS,
            Self::Verify => 24 * HOUR_MS,
            Self::Invite => 72 * HOUR_MS,
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|purpose| purpose.as_str() == text);
        known.ok_or(StoreError::Damaged("an unknown purpose of a token"))
    }
}

/// A token about to be stored.
#[derive(Debug, Clone)]
pub struct NewAccountToken {
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// The account it is for.
    pub user: UserId,
    /// What it is for.
    pub purpose: TokenPurpose,
    /// The address it proves, or was sent to.
    pub email: Option<String>,
    /// Now.
    pub created_at: Timestamp,
}

/// A token that was used just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedToken {
    /// The account it was for.
    pub user: UserId,
    /// What it was for.
    pub purpose: TokenPurpose,
    /// The address it proves, or was sent to.
    pub email: Option<String>,
}

statements! {
    /// A newer token makes the older ones of its purpose worthless. ix: account_tokens_of_user
    VOID = "UPDATE account_tokens SET used_at = $3 WHERE user_id = $1 AND purpose = $2 AND used_at IS NULL";
    /// Every open token of an account. ix: account_tokens_of_user
    VOID_ALL = "UPDATE account_tokens SET used_at = $2 WHERE user_id = $1 AND used_at IS NULL";
    /// A new token.
    INSERT = "INSERT INTO account_tokens (token_hash, user_id, purpose, email, expires_at, created_at) \
              VALUES ($1, $2, $3, $4, $5, $6)";
    /// Whether a token would set a password.
    SETS_PASSWORD = "SELECT EXISTS (SELECT 1 FROM account_tokens WHERE token_hash = $1 \
                     AND purpose IN ('reset', 'invite') AND used_at IS NULL AND expires_at > $2)";
    /// Uses a token that sets a password: a row is returned to exactly one caller.
    USE_FOR_PASSWORD = "UPDATE account_tokens SET used_at = $2 WHERE token_hash = $1 AND purpose IN ('reset', 'invite') \
                        AND used_at IS NULL AND expires_at > $2 RETURNING user_id, purpose, email";
    /// Uses a token that proves an address.
    USE_FOR_PROOF = "UPDATE account_tokens SET used_at = $2 WHERE token_hash = $1 AND purpose = 'verify' \
                     AND used_at IS NULL AND expires_at > $2 RETURNING user_id, purpose, email";
    /// Whether an account has an open token of a purpose. ix: account_tokens_of_user
    HAS_OPEN = "SELECT EXISTS (SELECT 1 FROM account_tokens WHERE user_id = $1 AND purpose = $2 \
                AND used_at IS NULL AND expires_at > $3)";
    /// Expired long enough ago. ix: account_tokens_by_expiry
    PURGE = "DELETE FROM account_tokens WHERE token_hash IN \
             (SELECT o.token_hash FROM account_tokens o WHERE o.expires_at < $1 LIMIT $2)";
}

/// Stores a token; the account's older ones of its purpose open nothing from
/// here on.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn insert(session: &mut Session, new: &NewAccountToken) -> Result<()> {
    let purpose = new.purpose.as_str();
    session.execute(&VOID, args![new.user, purpose, new.created_at]).await?;
    let expires_at = Timestamp(new.created_at.millis() + new.purpose.lifetime_ms());
    let values = args![new.hash, new.user, purpose, new.email.clone(), expires_at, new.created_at];
    session.execute(&INSERT, values).await?;
    Ok(())
}

/// Makes the open tokens of one purpose worthless.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn void(session: &mut Session, user: UserId, purpose: TokenPurpose, now: Timestamp) -> Result<()> {
    session.execute(&VOID, args![user, purpose.as_str(), now]).await?;
    Ok(())
}

/// Makes every open token of an account worthless.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn void_all(session: &mut Session, user: UserId, now: Timestamp) -> Result<()> {
    session.execute(&VOID_ALL, args![user, now]).await?;
    Ok(())
}

/// Whether a token would set a password now. Asked before the work of
/// hashing; [`use_for_password`] decides.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn sets_password(session: &mut Session, hash: [u8; 32], now: Timestamp) -> Result<bool> {
    session.one(&SETS_PASSWORD, args![hash, now]).await?.reader().flag()
}

/// Uses a token that sets a password. Of any number of callers at the same time
/// exactly one gets it.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn use_for_password(
    session: &mut Session,
    hash: [u8; 32],
    now: Timestamp,
) -> Result<Option<UsedToken>> {
    session.first(&USE_FOR_PASSWORD, args![hash, now]).await?.as_ref().map(read).transpose()
}

/// Uses a token that proves an address.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn use_for_proof(
    session: &mut Session,
    hash: [u8; 32],
    now: Timestamp,
) -> Result<Option<UsedToken>> {
    session.first(&USE_FOR_PROOF, args![hash, now]).await?.as_ref().map(read).transpose()
}

/// Whether an account has an open token of a purpose.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn has_open(
    session: &mut Session,
    user: UserId,
    purpose: TokenPurpose,
    now: Timestamp,
) -> Result<bool> {
    session.one(&HAS_OPEN, args![user, purpose.as_str(), now]).await?.reader().flag()
}

fn read(row: &Row) -> Result<UsedToken> {
    let mut r = row.reader();
    Ok(UsedToken { user: UserId(r.int()?), purpose: TokenPurpose::parse(&r.text()?)?, email: r.opt_text()? })
}

/// Removes up to `limit` tokens that expired before a moment.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn purge(session: &mut Session, before: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE, args![before, limit]).await
}
