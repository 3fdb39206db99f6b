//! Of processes that run on one database at the same time, the stricter
//! authentication mode wins: one that requires sign-in checks in, and one that
//! does not answers nothing as long as such a check-in is recent.

use callboard_domain::time::Timestamp;
pub use callboard_store::instance::{CHECK_IN_LIFETIME_MS, SignInState};
use callboard_store::runs::tokens;
use callboard_store::{Store, boxed, instance};

use super::enabling;
use crate::Result;

/// Notes that `process`, which requires sign-in, is running.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn check_in(store: &Store, process: &str, now: Timestamp) -> Result<()> {
    let mut session = store.db().begin().await?;
    instance::check_in(&mut session, process, now).await?;
    Ok(session.commit().await?)
}

/// Notes that `process` stops, so that one without sign-in can take over immediately.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn check_out(store: &Store, process: &str) -> Result<()> {
    let mut session = store.db().begin().await?;
    instance::check_out(&mut session, process).await?;
    Ok(session.commit().await?)
}

/// What a process that does not require sign-in has to know.
///
/// # Errors
/// [`crate::QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn sign_in_state(store: &Store, now: Timestamp) -> Result<SignInState> {
    Ok(instance::sign_in_state(store.db(), now).await?)
}

/// Stops being open because another process requires sign-in: run tokens that
/// were given out meanwhile belong to nobody, and are revoked.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn close(store: &Store, now: Timestamp) -> Result<()> {
    let mut session = store.db().begin().await?;
    tokens::revoke_ownerless(&mut session, now).await?;
    Ok(session.commit().await?)
}

/// Becomes open again after the others have stopped.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn reopen(store: &Store, now: Timestamp) -> Result<()> {
    enabling::deploy(store, false, now).await
}
