//! From a credential to a caller. One statement finds the account with its
//! role and projects; nothing of it is remembered between requests.

use callboard_auth::session_cookie::SessionClaims;
use callboard_auth::{Account, AccountFacts, Identity, SessionProof};
use callboard_domain::time::Timestamp;
use callboard_store::Store;
use callboard_store::accounts::principal::{self, AccountRow};
use callboard_store::accounts::{api_keys, sessions};
use callboard_store::boxed;

use crate::Result;

/// A session's use is noted at most this often, milliseconds.
const SEEN_EVERY_MS: i64 = 5 * 60 * 1000;
/// A key's use is noted at most this often, milliseconds.
const USED_EVERY_MS: i64 = 60 * 60 * 1000;

/// The caller with a session; none when the session is over in any way.
///
/// # Errors
/// [`crate::QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn by_session(store: &Store, claims: &SessionClaims, now: Timestamp) -> Result<Option<Identity>> {
    let sid_hash = claims.sid_hash();
    let found =
        principal::by_session(&mut store.db().read().await?, sid_hash, claims.user, claims.epoch, now)
            .await?;
    let Some(found) = found else { return Ok(None) };
    if now.millis() - found.last_seen_at.millis() > SEEN_EVERY_MS {
        let mut session = store.db().begin().await?;
        sessions::seen(&mut session, sid_hash, now).await?;
        session.commit().await?;
    }
    let proof = SessionProof { sid_hash, epoch: claims.epoch, auth_at: found.auth_at };
    Ok(Some(Identity::signed_in(facts(found.account), proof)))
}

/// The caller with an API key, given as its hash; none when the key opens
/// nothing. `address` is a keyed hash of where the request came from.
///
/// # Errors
/// [`crate::QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn by_key(
    store: &Store,
    key_hash: [u8; 32],
    address: Option<Vec<u8>>,
    now: Timestamp,
) -> Result<Option<Identity>> {
    let Some(found) = principal::by_key(&mut store.db().read().await?, key_hash, now).await? else {
        return Ok(None);
    };
    if found.last_used_at.is_none_or(|used| now.millis() - used.millis() > USED_EVERY_MS) {
        let mut session = store.db().begin().await?;
        api_keys::used(&mut session, found.key, address, now).await?;
        session.commit().await?;
    }
    Ok(Some(Identity::with_key(facts(found.account), found.key, found.permission, found.key_projects)))
}

/// What the caller's kernel needs of an account's row.
pub(crate) fn facts(row: AccountRow) -> AccountFacts {
    AccountFacts {
        account: Account { user: row.user, username: row.username.into(), role: row.role, epoch: row.epoch },
        all_projects: row.all_projects,
        projects: row.projects,
    }
}
