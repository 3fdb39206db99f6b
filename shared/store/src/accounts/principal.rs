//! Recognising a caller: account, role and projects in one indexed statement,
//! so that demotion, un-assignment and revocation act on the next request.

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::{ApiKeyId, ProjectId, UserId};
use callboard_domain::time::Timestamp;

use crate::db::{Backend, Row, Session, Statement, args};
use crate::{Result, StoreError};

/// An account as a request needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRow {
    /// The account.
    pub user: UserId,
    /// Name to sign in with.
    pub username: String,
    /// Role.
    pub role: Role,
    /// Sessions and file links of another epoch are dead.
    pub epoch: i64,
    /// Whether every project is assigned.
    pub all_projects: bool,
    /// Projects assigned one by one.
    pub projects: Vec<ProjectId>,
}

/// An account recognised by a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The account.
    pub account: AccountRow,
    /// When the person last proved who they are.
    pub auth_at: Timestamp,
    /// When the session was last noted as used.
    pub last_seen_at: Timestamp,
}

/// An account recognised by an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// The account.
    pub account: AccountRow,
    /// The key.
    pub key: ApiKeyId,
    /// What the key may be used for.
    pub permission: KeyPermission,
    /// The projects the key is narrowed to, when it is.
    pub key_projects: Option<Vec<ProjectId>>,
    /// When the key was last noted as used.
    pub last_used_at: Option<Timestamp>,
}

// The list of projects is an array on PostgreSQL and a JSON text on SQLite;
// both are handed over as JSON text.
macro_rules! principal {
    ($name:ident, $columns:literal, $tail:literal) => {
        principal!(@ $name,
            concat!("SELECT u.id, u.username, u.role, u.session_epoch, \
                EXISTS (SELECT 1 FROM project_assignments a WHERE a.user_id = u.id AND a.project_id IS NULL), \
                (SELECT json_group_array(a.project_id) FROM project_assignments a \
                 WHERE a.user_id = u.id AND a.project_id IS NOT NULL)", $columns, " ", $tail),
            concat!("SELECT u.id, u.username, u.role, u.session_epoch, \
                EXISTS (SELECT 1 FROM project_assignments a WHERE a.user_id = u.id AND a.project_id IS NULL), \
                (SELECT COALESCE(json_agg(a.project_id), '[]')::text FROM project_assignments a \
                 WHERE a.user_id = u.id AND a.project_id IS NOT NULL)", $columns, " ", $tail));
    };
    (@ $name:ident, $sqlite:expr, $postgres:expr) => {
        mod $name {
            use super::Statement;
            pub(super) static SQLITE: Statement = Statement::new(concat!("principal::", stringify!($name)), $sqlite);
            pub(super) static POSTGRES: Statement = Statement::new(concat!("principal::", stringify!($name)), $postgres);
        }
    };
}

principal!(
    by_session_statement,
    ", s.auth_at, s.last_seen_at",
    "FROM sessions s JOIN users u ON u.id = s.user_id \
     WHERE s.sid_hash = $1 AND s.user_id = $2 AND s.epoch = $3 AND u.session_epoch = s.epoch \
     AND s.revoked_at IS NULL AND s.expires_at > $4 AND u.disabled_at IS NULL"
);
principal!(
    by_key_statement,
    ", k.id, k.permission, k.project_ids, k.last_used_at",
    "FROM api_keys k JOIN users u ON u.id = k.user_id \
     WHERE k.key_hash = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2) \
     AND u.disabled_at IS NULL"
);
principal!(
    by_holder_statement,
    "",
    "FROM users u WHERE u.id = $1 AND u.disabled_at IS NULL AND ($2 = CAST(0 AS bigint) OR EXISTS \
     (SELECT 1 FROM api_keys k WHERE k.id = $2 AND k.user_id = u.id AND k.revoked_at IS NULL \
     AND (k.expires_at IS NULL OR k.expires_at > $3)))"
);

/// Name and text of the statements for one engine, for the test that prepares
/// every statement.
pub(crate) fn statements(backend: Backend) -> [(&'static str, &'static str); 3] {
    [
        on(backend, &by_session_statement::SQLITE, &by_session_statement::POSTGRES),
        on(backend, &by_key_statement::SQLITE, &by_key_statement::POSTGRES),
        on(backend, &by_holder_statement::SQLITE, &by_holder_statement::POSTGRES),
    ]
    .map(|statement| (statement.name, statement.sql(backend)))
}

fn on(backend: Backend, sqlite: &'static Statement, postgres: &'static Statement) -> &'static Statement {
    match backend {
        Backend::Sqlite => sqlite,
        Backend::Postgres => postgres,
    }
}

fn ids(text: &str) -> Result<Vec<ProjectId>> {
    serde_json::from_str(text).map_err(|_| StoreError::Damaged("a list of projects is not one"))
}

fn account(row: &Row) -> Result<(AccountRow, crate::db::Reader<'_>)> {
    let mut r = row.reader();
    let account = AccountRow {
        user: UserId(r.int()?),
        username: r.text()?,
        role: Role::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown role"))?,
        epoch: r.int()?,
        all_projects: r.flag()?,
        projects: ids(&r.text()?)?,
    };
    Ok((account, r))
}

/// The account behind a session that is alive at `now`: not revoked, not
/// expired, of the account's present epoch, the account not disabled.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_session(
    session: &mut Session,
    sid_hash: [u8; 32],
    user: UserId,
    epoch: i64,
    now: Timestamp,
) -> Result<Option<SessionRow>> {
    let statement = on(session.backend(), &by_session_statement::SQLITE, &by_session_statement::POSTGRES);
    let Some(row) = session.first(statement, args![sid_hash, user, epoch, now]).await? else {
        return Ok(None);
    };
    let (account, mut r) = account(&row)?;
    Ok(Some(SessionRow { account, auth_at: r.time()?, last_seen_at: r.time()? }))
}

/// The account behind an API key that is alive at `now`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_key(session: &mut Session, key_hash: [u8; 32], now: Timestamp) -> Result<Option<KeyRow>> {
    let statement = on(session.backend(), &by_key_statement::SQLITE, &by_key_statement::POSTGRES);
    let Some(row) = session.first(statement, args![key_hash, now]).await? else {
        return Ok(None);
    };
    let (account, mut r) = account(&row)?;
    Ok(Some(KeyRow {
        account,
        key: ApiKeyId(r.int()?),
        permission: KeyPermission::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown permission"))?,
        key_projects: r.opt_text()?.as_deref().map(ids).transpose()?,
        last_used_at: r.opt_time()?,
    }))
}

/// The account a file link was made for, with the key it was asked for with;
/// none when the account is missing or disabled, or the key is not alive at
/// `now`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_holder(
    session: &mut Session,
    user: UserId,
    key: Option<ApiKeyId>,
    now: Timestamp,
) -> Result<Option<AccountRow>> {
    let statement = on(session.backend(), &by_holder_statement::SQLITE, &by_holder_statement::POSTGRES);
    // Ids begin with 1.
    let key = key.map_or(0, ApiKeyId::get);
    let Some(row) = session.first(statement, args![user, key, now]).await? else {
        return Ok(None);
    };
    Ok(Some(account(&row)?.0))
}
