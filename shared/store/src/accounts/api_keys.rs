//! API keys: only their hash is kept. A key created with another key dies
//! with it.

use callboard_domain::account::KeyPermission;
use callboard_domain::ids::{ApiKeyId, ProjectId, UserId};
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, Statement, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, StoreError};

/// Most live keys of one account.
pub const MAX_LIVE: i64 = 100;

/// A key about to be stored.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Whose it is.
    pub user: UserId,
    /// What it is for.
    pub name: String,
    /// SHA-256 of the key.
    pub key_hash: [u8; 32],
    /// The part of it that may be shown.
    pub key_prefix: String,
    /// What it may be used for.
    pub permission: KeyPermission,
    /// The projects it is narrowed to.
    pub projects: Option<Vec<ProjectId>>,
    /// The key it was created with.
    pub parent: Option<ApiKeyId>,
    /// Who created it.
    pub created_by: UserId,
    /// Now.
    pub created_at: Timestamp,
    /// When it stops.
    pub expires_at: Option<Timestamp>,
}

/// A key as lists show it.
#[derive(Debug, Clone)]
pub struct KeyListed {
    /// Id.
    pub id: ApiKeyId,
    /// Whose it is.
    pub user: UserId,
    /// What it is for.
    pub name: String,
    /// The part of it that may be shown.
    pub key_prefix: String,
    /// What it may be used for.
    pub permission: KeyPermission,
    /// The projects it is narrowed to.
    pub projects: Option<Vec<ProjectId>>,
    /// Who created it.
    pub created_by: UserId,
    /// When.
    pub created_at: Timestamp,
    /// Last noted use.
    pub last_used_at: Option<Timestamp>,
    /// When it stops.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

macro_rules! select_key {
    ($tail:literal) => {
        concat!(
            "SELECT id, user_id, name, key_prefix, permission, project_ids, created_by, created_at, last_used_at, \
             expires_at, revoked_at FROM api_keys ",
            $tail
        )
    };
}

statements! {
    /// A new key.
    INSERT = "INSERT INTO api_keys (id, user_id, name, key_hash, key_prefix, permission, project_ids, parent_key_id, \
              created_by, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    /// One key of an account.
    OF_USER_ONE = select_key!("WHERE user_id = $1 AND id = $2");
    /// One key of an account, held until the end of the transaction.
    LOCK_ONE = select_key!("WHERE user_id = $1 AND id = $2 for_update()");
    /// Keys of an account, newest first; long revoked ones are left out. ix: api_keys_of_user
    OF_USER = select_key!("WHERE user_id = $1 AND id < $2 AND (revoked_at IS NULL OR revoked_at > $3) ORDER BY id DESC LIMIT $4");
    /// Keys of an account that open something. ix: api_keys_of_user
    COUNT_LIVE = "SELECT COUNT(*) FROM api_keys WHERE user_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)";
    /// Revokes a key and every key created with it. ix: api_keys_of_parent
    REVOKE = "WITH RECURSIVE t(id) AS (SELECT id FROM api_keys WHERE id = $1 \
              UNION SELECT c.id FROM api_keys c JOIN t ON c.parent_key_id = t.id) \
              UPDATE api_keys SET revoked_at = $2 WHERE revoked_at IS NULL AND id IN (SELECT id FROM t)";
    /// Revokes all keys of an account and every key created with them. ix: api_keys_of_user, api_keys_of_parent
    REVOKE_OF_USER = "WITH RECURSIVE t(id) AS (SELECT id FROM api_keys WHERE user_id = $1 \
              UNION SELECT c.id FROM api_keys c JOIN t ON c.parent_key_id = t.id) \
              UPDATE api_keys SET revoked_at = $2 WHERE revoked_at IS NULL AND id IN (SELECT id FROM t)";
    /// Notes a use.
    USED = "UPDATE api_keys SET last_used_at = $2, last_used_ip = $3 WHERE id = $1";
}

fn read(row: &Row) -> Result<KeyListed> {
    let mut r = row.reader();
    Ok(KeyListed {
        id: ApiKeyId(r.int()?),
        user: UserId(r.int()?),
        name: r.text()?,
        key_prefix: r.text()?,
        permission: KeyPermission::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown permission"))?,
        projects: r
            .opt_text()?
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(|_| StoreError::Damaged("a list of projects is not one"))?,
        created_by: UserId(r.int()?),
        created_at: r.time()?,
        last_used_at: r.opt_time()?,
        expires_at: r.opt_time()?,
        revoked_at: r.opt_time()?,
    })
}

/// Stores a new key.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn insert(session: &mut Session, new: &NewKey) -> Result<ApiKeyId> {
    let id = ids::allocate_one(session, Kind::ApiKey).await?;
    let projects = new.projects.as_ref().map(|projects| {
        let ids: Vec<String> = projects.iter().map(ToString::to_string).collect();
        format!("[{}]", ids.join(","))
    });
    let values = args![
        id,
        new.user,
        &new.name,
        new.key_hash,
        &new.key_prefix,
        new.permission.as_str(),
        projects,
        new.parent,
        new.created_by,
        new.created_at,
        new.expires_at,
    ];
    session.execute(&INSERT, values).await?;
    Ok(ApiKeyId(id))
}

/// One key of an account.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, user: UserId, key: ApiKeyId) -> Result<Option<KeyListed>> {
    session.first(&OF_USER_ONE, args![user, key]).await?.as_ref().map(read).transpose()
}

/// One key of an account, held until the end of the transaction: no key is
/// created with it, and it is not revoked, while another transaction holds it.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock(session: &mut Session, user: UserId, key: ApiKeyId) -> Result<Option<KeyListed>> {
    session.first(&LOCK_ONE, args![user, key]).await?.as_ref().map(read).transpose()
}

/// A page of an account's keys, newest first, without those revoked before
/// `revoked_since`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_user(
    session: &mut Session,
    user: UserId,
    before: Option<ApiKeyId>,
    revoked_since: Timestamp,
    limit: i64,
) -> Result<Vec<KeyListed>> {
    let before = before.map_or(i64::MAX, ApiKeyId::get);
    session.all(&OF_USER, args![user, before, revoked_since, limit]).await?.iter().map(read).collect()
}

/// How many keys of an account open something.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn count_live(session: &mut Session, user: UserId, now: Timestamp) -> Result<i64> {
    session.one(&COUNT_LIVE, args![user, now]).await?.reader().int()
}

/// Revokes a key with every key created with it; tells how many.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn revoke(session: &mut Session, key: ApiKeyId, now: Timestamp) -> Result<u64> {
    until_none_is_left(session, &REVOKE, key.get(), now).await
}

/// Revokes all keys of an account with every key created with them; tells how
/// many.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn revoke_of_user(session: &mut Session, user: UserId, now: Timestamp) -> Result<u64> {
    until_none_is_left(session, &REVOKE_OF_USER, user.get(), now).await
}

/// A key that is being created while its parent is revoked is not seen by the
/// statement that waited for it, but by the next one. What was revoked stays
/// locked, so that no further key is created with it.
async fn until_none_is_left(
    session: &mut Session,
    statement: &Statement,
    root: i64,
    now: Timestamp,
) -> Result<u64> {
    let mut revoked = 0;
    loop {
        match session.execute(statement, args![root, now]).await? {
            0 => return Ok(revoked),
            more => revoked += more,
        }
    }
}

/// Notes that a key is in use.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn used(
    session: &mut Session,
    key: ApiKeyId,
    address: Option<Vec<u8>>,
    now: Timestamp,
) -> Result<()> {
    session.execute(&USED, args![key, now, address]).await?;
    Ok(())
}
