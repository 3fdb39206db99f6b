//! Keys under which a client may repeat a request without repeating its
//! effect. A key is claimed before the work begins and holds the answer once
//! it is done.
//!
//! Invariant: of several requests with one key, one holds the claim. It lasts
//! [`CLAIM_MS`] and is renewed while the work goes on, so that a process that
//! died does not block its key; who lost a claim changes nothing any more.

use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::{Result, StoreError};

/// How long a claim holds without being renewed, in milliseconds.
pub const CLAIM_MS: i64 = 60_000;
/// How long an answer is kept, in milliseconds.
pub const ANSWER_MS: i64 = 24 * 60 * 60 * 1000;

statements! {
    /// Takes a key that nobody holds, or whose time is over.
    CLAIM = "INSERT INTO idempotency_keys (principal, key, state, expires_at) VALUES ($1, $2, 'running', $3) \
        ON CONFLICT (principal, key) DO UPDATE SET state = 'running', body_hash = NULL, status = NULL, response = NULL, \
        expires_at = excluded.expires_at WHERE idempotency_keys.expires_at <= $4";
    /// What a key holds.
    HELD = "SELECT state, body_hash, status, response FROM idempotency_keys WHERE principal = $1 AND key = $2";
    /// Prolongs a claim. Its end tells one claim from the next: it only grows.
    RENEW = "UPDATE idempotency_keys SET expires_at = $4 \
        WHERE principal = $1 AND key = $2 AND state = 'running' AND expires_at = $3";
    /// Turns a claim into an answer.
    COMPLETE = "UPDATE idempotency_keys SET state = 'done', body_hash = $4, status = $5, response = $6, expires_at = $7 \
        WHERE principal = $1 AND key = $2 AND state = 'running' AND expires_at = $3";
    /// Gives a claim back.
    RELEASE = "DELETE FROM idempotency_keys WHERE principal = $1 AND key = $2 AND state = 'running' AND expires_at = $3";
    /// Some keys whose time is over. ix: idempotency_keys_by_expiry
    PURGE = "DELETE FROM idempotency_keys WHERE (principal, key) IN \
        (SELECT k.principal, k.key FROM idempotency_keys k WHERE k.expires_at <= $1 ORDER BY k.expires_at LIMIT $2)";
}

/// The right to do the work of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    principal: String,
    key: String,
    expires_at: Timestamp,
}

/// The first answer given under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstAnswer {
    /// What tells the request it answers from all others.
    pub request: [u8; 32],
    /// HTTP status.
    pub status: u16,
    /// The body, sealed: answers may hold tokens.
    pub body: String,
}

/// What a request finds under its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing: the work is this request's to do.
    Claimed(Claim),
    /// Another request at work.
    Running,
    /// An answer.
    Answered(FirstAnswer),
}

/// Claims a key of a principal, or tells what is in the way.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn claim(session: &mut Session, principal: &str, key: &str, now: Timestamp) -> Result<Found> {
    let expires_at = Timestamp(now.millis() + CLAIM_MS);
    if session.execute(&CLAIM, args![principal, key, expires_at, now]).await? > 0 {
        let (principal, key) = (principal.to_owned(), key.to_owned());
        return Ok(Found::Claimed(Claim { principal, key, expires_at }));
    }
    let held = session.first(&HELD, args![principal, key]).await?;
    // A claim that was given back in between: the client may try again immediately.
    Ok(held.as_ref().map(read).transpose()?.unwrap_or(Found::Running))
}

fn read(row: &Row) -> Result<Found> {
    let mut r = row.reader();
    if r.text()? == "running" {
        return Ok(Found::Running);
    }
    let damaged = || StoreError::Damaged("an answer under an idempotency key");
    Ok(Found::Answered(FirstAnswer {
        request: r.opt_bytes()?.and_then(|hash| hash.try_into().ok()).ok_or_else(damaged)?,
        status: r.opt_int()?.and_then(|status| status.try_into().ok()).ok_or_else(damaged)?,
        body: r.opt_text()?.ok_or_else(damaged)?,
    }))
}

/// Prolongs a claim; `false` when it was lost.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn renew(session: &mut Session, claim: &mut Claim, now: Timestamp) -> Result<bool> {
    // Later than before, whatever the clock does.
    let expires_at = Timestamp((now.millis() + CLAIM_MS).max(claim.expires_at.millis() + 1));
    let args = args![&claim.principal, &claim.key, claim.expires_at, expires_at];
    let is_held = session.execute(&RENEW, args).await? > 0;
    claim.expires_at = expires_at;
    Ok(is_held)
}

/// Keeps the answer of a claim; nothing happens to a claim that was lost.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn complete(
    session: &mut Session,
    claim: &Claim,
    answer: &FirstAnswer,
    now: Timestamp,
) -> Result<()> {
    let expires_at = Timestamp(now.millis() + ANSWER_MS);
    let status = i64::from(answer.status);
    let args = args![
        &claim.principal,
        &claim.key,
        claim.expires_at,
        answer.request,
        status,
        &answer.body,
        expires_at
    ];
    session.execute(&COMPLETE, args).await?;
    Ok(())
}

/// Gives a claim back, so that the request can be made again.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn release(session: &mut Session, claim: &Claim) -> Result<()> {
    session.execute(&RELEASE, args![&claim.principal, &claim.key, claim.expires_at]).await?;
    Ok(())
}

/// Removes at most `limit` keys whose time is over and tells how many it were.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn purge(session: &mut Session, now: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE, args![now, limit]).await
}
