//! Sessions: one row for each sign-in. The row is the authority; the cookie
//! only names it.

use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Row, Session, args, statements};

/// Most live sessions of one account; reporters sign in for each upload.
pub const MAX_LIVE: i64 = 500;

const HASH_BYTES: usize = 32;

/// A session about to be stored.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// SHA-256 of the session's id.
    pub sid_hash: [u8; 32],
    /// The account.
    pub user: UserId,
    /// The account's epoch at this moment.
    pub epoch: i64,
    /// When the person proved who they are.
    pub auth_at: Timestamp,
    /// Now.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Timestamp,
    /// How the person signed in: `password`, `setup`, a provider's name.
    pub method: &'static str,
    /// Keyed hash of the address it came from.
    pub ip_hash: Option<Vec<u8>>,
    /// What the browser calls itself.
    pub user_agent: Option<String>,
}

/// A session as lists show it.
#[derive(Debug, Clone)]
pub struct SessionListed {
    /// SHA-256 of the session's id; never shown whole.
    pub sid_hash: Vec<u8>,
    /// How the person signed in.
    pub method: String,
    /// What the browser calls itself.
    pub user_agent: Option<String>,
    /// When the person signed in.
    pub created_at: Timestamp,
    /// Last noted use.
    pub last_seen_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Timestamp,
}

statements! {
    /// A new session.
    INSERT = "INSERT INTO sessions (sid_hash, user_id, epoch, auth_at, created_at, last_seen_at, expires_at, method, ip_hash, user_agent) \
              VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9)";
    /// Ends the oldest live sessions beyond a number. ix: sessions_of_user
    REVOKE_SURPLUS = "UPDATE sessions SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL AND sid_hash IN \
              (SELECT o.sid_hash FROM sessions o WHERE o.user_id = $1 AND o.revoked_at IS NULL AND o.expires_at > $2 \
               ORDER BY o.created_at DESC, o.sid_hash LIMIT 100000 OFFSET $3)";
    /// Ends one session.
    REVOKE = "UPDATE sessions SET revoked_at = $2 WHERE sid_hash = $1 AND revoked_at IS NULL";
    /// Ends one session of an account.
    REVOKE_OF = "UPDATE sessions SET revoked_at = $3 WHERE user_id = $1 AND sid_hash = $2 AND revoked_at IS NULL";
    /// Ends every session of an account but one; those that ended by themselves are left. ix: sessions_of_user
    REVOKE_ALL = "UPDATE sessions SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > $2 AND sid_hash <> $3";
    /// Notes a use.
    SEEN = "UPDATE sessions SET last_seen_at = $2 WHERE sid_hash = $1 AND last_seen_at < $2";
    /// Carries a session into its account's new epoch.
    MOVE_TO_EPOCH = "UPDATE sessions SET epoch = $2 WHERE sid_hash = $1";
    /// Live sessions of an account, newest first. ix: sessions_of_user
    OF_USER = "SELECT sid_hash, method, user_agent, created_at, last_seen_at, expires_at FROM sessions \
               WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > $2 AND epoch = $3 \
               AND (created_at, sid_hash) < ($4, $5) ORDER BY created_at DESC, sid_hash DESC LIMIT $6";
    /// A live session of an account whose hash begins so, given as the first
    /// and the last hash that do. ix: sessions_of_user
    BEGINNING_WITH = "SELECT sid_hash FROM sessions WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > $2 AND epoch = $3 \
               AND sid_hash >= $4 AND sid_hash <= $5 LIMIT 1";
    /// Ended long enough ago. ix: sessions_by_expiry
    PURGE = "DELETE FROM sessions WHERE sid_hash IN (SELECT o.sid_hash FROM sessions o WHERE o.expires_at < $1 LIMIT $2)";
}

/// Stores a session and ends the account's oldest ones beyond
/// [`MAX_LIVE`].
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn insert(session: &mut Session, new: &NewSession) -> Result<()> {
    let values = args![
        new.sid_hash,
        new.user,
        new.epoch,
        new.auth_at,
        new.created_at,
        new.expires_at,
        new.method,
        new.ip_hash.clone(),
        new.user_agent.clone(),
    ];
    session.execute(&INSERT, values).await?;
    session.execute(&REVOKE_SURPLUS, args![new.user, new.created_at, MAX_LIVE]).await?;
    Ok(())
}

/// Ends a session; nothing happens when it has ended.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn revoke(session: &mut Session, sid_hash: [u8; 32], now: Timestamp) -> Result<bool> {
    Ok(session.execute(&REVOKE, args![sid_hash, now]).await? == 1)
}

/// Ends a session of one account; tells whether there was one.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn revoke_of(
    session: &mut Session,
    user: UserId,
    sid_hash: Vec<u8>,
    now: Timestamp,
) -> Result<bool> {
    Ok(session.execute(&REVOKE_OF, args![user, sid_hash, now]).await? == 1)
}

/// Ends every session of an account, except the one to keep; tells how many.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn revoke_all(
    session: &mut Session,
    user: UserId,
    keep: Option<[u8; 32]>,
    now: Timestamp,
) -> Result<u64> {
    session.execute(&REVOKE_ALL, args![user, now, keep.unwrap_or_default()]).await
}

/// Notes that a session is in use.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn seen(session: &mut Session, sid_hash: [u8; 32], now: Timestamp) -> Result<()> {
    session.execute(&SEEN, args![sid_hash, now]).await?;
    Ok(())
}

/// Carries a session into its account's new epoch: the session that acted
/// outlives the change that ended the others.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn move_to_epoch(session: &mut Session, sid_hash: [u8; 32], epoch: i64) -> Result<()> {
    session.execute(&MOVE_TO_EPOCH, args![sid_hash, epoch]).await?;
    Ok(())
}

/// A page of the live sessions of an account, newest first. `before` is the
/// last row of the page before: when it was created, and its hash or the
/// beginning of it.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn of_user(
    session: &mut Session,
    user: UserId,
    epoch: i64,
    now: Timestamp,
    before: Option<(Timestamp, Vec<u8>)>,
    limit: i64,
) -> Result<Vec<SessionListed>> {
    let (at, sid_hash) = before.unwrap_or((Timestamp(i64::MAX), Vec::new()));
    session.all(&OF_USER, args![user, now, epoch, at, sid_hash, limit]).await?.iter().map(read).collect()
}

/// The hash of the live session of an account that begins so.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn beginning_with(
    session: &mut Session,
    user: UserId,
    epoch: i64,
    beginning: &[u8],
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    let mut last = beginning.to_vec();
    last.resize(HASH_BYTES.max(beginning.len()), u8::MAX);
    let found = session.first(&BEGINNING_WITH, args![user, now, epoch, beginning, last]).await?;
    found.map(|row| row.reader().bytes()).transpose()
}

fn read(row: &Row) -> Result<SessionListed> {
    let mut r = row.reader();
    Ok(SessionListed {
        sid_hash: r.bytes()?,
        method: r.text()?,
        user_agent: r.opt_text()?,
        created_at: r.time()?,
        last_seen_at: r.time()?,
        expires_at: r.time()?,
    })
}

/// Removes up to `limit` sessions that ended before a moment.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn purge(session: &mut Session, before: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE, args![before, limit]).await
}
