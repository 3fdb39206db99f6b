//! Values that may come back once: the states of sign-ins elsewhere and the
//! signatures of the schedule. What stands here was used.

use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Session, args, statements};

statements! {
    /// Notes a use: a row is written for exactly one caller.
    CLAIM = "INSERT INTO used_states (state_hash, expires_at) VALUES ($1, $2) ON CONFLICT (state_hash) DO NOTHING";
    /// Values nobody would accept any more. ix: used_states_by_expiry
    PURGE = "DELETE FROM used_states WHERE state_hash IN \
             (SELECT o.state_hash FROM used_states o WHERE o.expires_at < $1 LIMIT $2)";
}

/// Notes that a value is used, given as its hash, and tells whether this is
/// the first time. `expires_at` is the moment from which it is refused anyway.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn claim(session: &mut Session, hash: [u8; 32], expires_at: Timestamp) -> Result<bool> {
    Ok(session.execute(&CLAIM, args![hash, expires_at]).await? == 1)
}

/// Removes up to `limit` values that expired before a moment.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn purge(session: &mut Session, before: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE, args![before, limit]).await
}
