//! Run tokens: what a client that feeds a run is recognised by. Only their
//! SHA-256 is stored; the clear text exists in the answer that mints it.

use callboard_domain::ids::{ApiKeyId, ProjectId, RunId, SlotId, UserId};
use callboard_domain::run_life::EndReason;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::db::{Read, Row, Session, args, statements};
use crate::ids::Listed;
use crate::{Result, StoreError, intake};

/// Whether who had the token `t` of the run `r` minted may still mint it, at `$4`.
macro_rules! is_minter_ok {
    () => {
        "COALESCE((t.minted_by_user IS NULL OR (u.disabled_at IS NULL AND (u.role = 'administrator' OR (u.role = 'reporter' \
            AND EXISTS (SELECT 1 FROM project_assignments a WHERE a.user_id = u.id \
                AND (a.project_id IS NULL OR a.project_id = r.project_id)))))) \
          AND (t.minted_by_key IS NULL OR (k.id IS NOT NULL AND k.revoked_at IS NULL \
            AND (k.expires_at IS NULL OR k.expires_at > $4))), FALSE)"
    };
}

/// The run `r` that `$1` and `$2` name in the directory, and of the tokens the one
/// with the hash `$3` as `t`.
macro_rules! run_and_token {
    () => {
        "FROM id_directory d JOIN projects p ON p.id = d.project_id \
        JOIN test_runs r ON r.project_id = d.project_id AND r.id = d.id \
        LEFT JOIN run_tokens t ON t.project_id = r.project_id AND t.token_hash = $3 AND t.run_id = r.id \
        LEFT JOIN users u ON u.id = t.minted_by_user \
        LEFT JOIN api_keys k ON k.id = t.minted_by_key \
        WHERE d.kind = $1 AND d.id = $2"
    };
}

/// Where the project and the slot of a client come from who may bring results to a
/// run that goes on. Whom [`CHECK`] would refuse is not in it; nor are clients of
/// runs that are being set up, or ended because nothing was heard of them.
macro_rules! feeding_client {
    () => {
        concat!(
            run_and_token!(),
            " AND r.status IN ('running', 'finalizing') AND t.kind = 'stream' AND t.revoked_at IS NULL \
              AND t.expires_at > $4 AND ",
            is_minter_ok!()
        )
    };
}
pub(crate) use {feeding_client, is_minter_ok, run_and_token};

statements! {
    /// A new token.
    INSERT = "INSERT INTO run_tokens (project_id, token_hash, run_id, slot_id, kind, minted_by_user, minted_by_key, minted_at, expires_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    /// What a token is to a run, and where the run stands; no row when there is no such run. PK
    CHECK = concat!("SELECT r.project_id, r.status, r.end_reason, t.kind, t.slot_id, t.used_at IS NOT NULL, \
        t.revoked_at IS NOT NULL, t.expires_at <= $4, ", is_minter_ok!(), " ", run_and_token!());
    /// Who a token was minted for. PK
    MINTER = "SELECT minted_by_user, minted_by_key FROM run_tokens WHERE project_id = $1 AND token_hash = $2";
    /// Uses a set-up token up; no row when that happened before.
    USE = "UPDATE run_tokens SET used_at = $3 WHERE project_id = $1 AND token_hash = $2 AND used_at IS NULL";
    /// Revokes all tokens of a run. ix: run_tokens_of_run
    REVOKE = "UPDATE run_tokens SET revoked_at = $3 WHERE project_id = $1 AND run_id = $2 AND revoked_at IS NULL";
    /// Revokes tokens that nobody in particular was given.
    REVOKE_OWNERLESS = "UPDATE run_tokens SET revoked_at = $1 WHERE minted_by_user IS NULL AND revoked_at IS NULL";
    /// Forgets tokens that expired long ago. ix: run_tokens_by_expiry
    PURGE = "DELETE FROM run_tokens WHERE (project_id, token_hash) IN \
        (SELECT project_id, token_hash FROM run_tokens WHERE expires_at <= $1 LIMIT $2)";
}

/// Revokes the tokens that were given out while nobody had to sign in.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn revoke_ownerless(session: &mut Session, now: Timestamp) -> Result<u64> {
    session.execute(&REVOKE_OWNERLESS, args![now]).await
}

/// How long a token opens its run.
const LIFE_MS: i64 = 24 * 60 * 60 * 1000;

/// What a token is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Beginning, once.
    Setup,
    /// Everything after.
    Stream,
}

impl TokenKind {
    /// The spelling in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Stream => "stream",
        }
    }
}

/// The SHA-256 of a token: what is compared and stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash(pub(crate) [u8; 32]);

impl TokenHash {
    /// Of a token as a client sends it.
    #[must_use]
    pub fn from_token(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }
}

/// Who had a token minted, checked again at each use. Nobody in particular
/// with authentication off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Minter {
    /// The account.
    pub user: Option<UserId>,
    /// The key it used.
    pub key: Option<ApiKeyId>,
}

/// A stored token as one run sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRow {
    /// What it is good for.
    pub kind: TokenKind,
    /// The slot it was minted for.
    pub slot: SlotId,
    /// Used up (set-up tokens).
    pub used: bool,
    /// Revoked, or its minter lost the right to mint it.
    pub revoked: bool,
    /// Too old.
    pub expired: bool,
}

/// A run as the bearer of a token finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedToken {
    /// Its project.
    pub project: ProjectId,
    /// Where it stands.
    pub status: RunStatus,
    /// Why it ended, when not by its results.
    pub end_reason: Option<EndReason>,
    /// The token; `None` when it was never minted for the run.
    pub token: Option<TokenRow>,
}

/// Mints a token and answers its clear text: 64 hex characters.
///
/// # Errors
/// [`StoreError::Damaged`] when the system gives no random bytes;
/// [`StoreError::Database`].
pub async fn mint(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    slot: SlotId,
    kind: TokenKind,
    minter: Minter,
    now: Timestamp,
) -> Result<String> {
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret).map_err(|_| StoreError::Damaged("the system gives no random bytes"))?;
    let token = hex::encode(secret);
    let args = args![
        project,
        TokenHash::from_token(&token).0,
        run,
        slot,
        kind.as_str(),
        minter.user,
        minter.key,
        now,
        now.millis() + LIFE_MS
    ];
    session.write(&INSERT, args).await?;
    Ok(token)
}

/// What a token is to a run: `None` when there is no such run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn check(
    session: &mut Session,
    run: RunId,
    token: TokenHash,
    now: Timestamp,
) -> Result<Option<CheckedToken>> {
    let (statement, args) = check_read(run, token, now);
    session.first(statement, args).await?.as_ref().map(read).transpose()
}

/// What is known of the client of a run that sends results.
#[derive(Debug)]
pub struct Feeder {
    /// What its token is to the run; `None` when there is no such run.
    pub token: Option<CheckedToken>,
    /// Which of its attempts were sent before.
    pub known: Vec<i64>,
}

/// [`check`] of a client that sends results, with which of its attempts were sent
/// before: on SQLite in one way to the database.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn check_feeder(
    session: &mut Session,
    run: RunId,
    token: TokenHash,
    keys: Vec<i64>,
    now: Timestamp,
) -> Result<Feeder> {
    let reads = [check_read(run, token, now), intake::known_read(run, keys)];
    let [token, known] = session.each(reads).await?;
    let token = token.first().map(read).transpose()?;
    Ok(Feeder { token, known: intake::read_known(&known)? })
}

fn check_read(run: RunId, token: TokenHash, now: Timestamp) -> Read {
    (&CHECK, args![Listed::Run as i64, run, token.0, now])
}

fn read(row: &Row) -> Result<CheckedToken> {
    let mut r = row.reader();
    let project = ProjectId(r.int()?);
    let status = RunStatus::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown run status"))?;
    let end_reason = r.opt_text()?.as_deref().and_then(EndReason::parse);
    let kind = match r.opt_text()?.as_deref() {
        None => return Ok(CheckedToken { project, status, end_reason, token: None }),
        Some("setup") => TokenKind::Setup,
        Some(_) => TokenKind::Stream,
    };
    let slot = SlotId(r.int()?);
    let (used, is_revoked, expired, is_minter_ok) = (r.flag()?, r.flag()?, r.flag()?, r.flag()?);
    let token = TokenRow { kind, slot, used, revoked: is_revoked || !is_minter_ok, expired };
    Ok(CheckedToken { project, status, end_reason, token: Some(token) })
}

/// Who a token was minted for.
///
/// # Errors
/// [`StoreError::Damaged`] when there is no such token.
pub async fn minter(session: &mut Session, project: ProjectId, token: TokenHash) -> Result<Minter> {
    let row = session.one(&MINTER, args![project, token.0]).await?;
    let mut r = row.reader();
    Ok(Minter { user: r.opt_int()?.map(UserId), key: r.opt_int()?.map(ApiKeyId) })
}

/// Uses a set-up token up; `false` when it was used before.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn use_up(
    session: &mut Session,
    project: ProjectId,
    token: TokenHash,
    now: Timestamp,
) -> Result<bool> {
    Ok(session.execute(&USE, args![project, token.0, now]).await? == 1)
}

/// Revokes all tokens of a run and answers how many still opened something.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn revoke(session: &mut Session, project: ProjectId, run: RunId, now: Timestamp) -> Result<u64> {
    session.execute(&REVOKE, args![project, run, now]).await
}

/// Forgets at most `limit` tokens that expired before a moment; answers how
/// many.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn purge(session: &mut Session, before: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE, args![before, limit]).await
}
