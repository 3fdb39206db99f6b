//! User accounts. A change reads the row under lock, alters the value and
//! saves it whole, so every rule about an account is decided on one state.

use callboard_domain::account::Role;
pub use callboard_domain::account::email_key;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;

use crate::db::{Args, Filter, Row, Session, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, StoreError};

/// Where an account's e-mail address comes from. Only a trusted address
/// attracts a provider's sign-in, receives mail about the account and is
/// unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmailSource {
    /// An administrator entered it.
    Admin,
    /// The person proved it.
    Verified,
    /// A provider asserted that it is verified.
    Provider,
    /// The person entered it.
    Own,
    /// A provider named it without asserting that it is verified.
    Unverified,
}

impl EmailSource {
    const ALL: [Self; 5] = [Self::Admin, Self::Verified, Self::Provider, Self::Own, Self::Unverified];

    /// The spelling in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Verified => "verified",
            Self::Provider => "provider",
            Self::Own => "self",
            Self::Unverified => "unverified",
        }
    }

    /// Whether the address may be relied on.
    #[must_use]
    pub const fn is_trusted(self) -> bool {
        matches!(self, Self::Admin | Self::Verified | Self::Provider)
    }

    fn parse(text: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|source| source.as_str() == text);
        known.ok_or(StoreError::Damaged("an unknown source of an e-mail address"))
    }
}

/// An account's e-mail address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    /// As it is written to.
    pub address: String,
    /// Where it comes from.
    pub source: EmailSource,
    /// When the person or a provider proved it.
    pub verified_at: Option<Timestamp>,
}

/// A link to an account at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthLink {
    /// The provider, `idp` or `codehost`.
    pub provider: String,
    /// The account's id there.
    pub id: String,
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRow {
    /// Id.
    pub id: UserId,
    /// Name to sign in with.
    pub username: String,
    /// The name folded for comparison; unique.
    pub username_key: String,
    /// PHC string of the password; empty when there is none.
    pub password: String,
    /// Role.
    pub role: Role,
    /// Name to show.
    pub name: Option<String>,
    /// E-mail address.
    pub email: Option<Email>,
    /// Address of a picture.
    pub avatar: Option<String>,
    /// The provider account linked to it.
    pub oauth: Option<OauthLink>,
    /// Sessions of another epoch are dead.
    pub session_epoch: i64,
    /// When it was disabled.
    pub disabled_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl UserRow {
    /// Whether somebody can sign in to it, now or once it is enabled: it has
    /// a password or is linked to a provider.
    #[must_use]
    pub const fn is_claimed(&self) -> bool {
        !self.password.is_empty() || self.oauth.is_some()
    }
}

/// What a save can run into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// It is stored.
    Done,
    /// Another account has the name.
    NameTaken,
    /// Another account has the trusted address.
    EmailTaken,
    /// Another account is linked to that provider account.
    LinkTaken,
}

macro_rules! select_user {
    ($tail:literal) => {
        concat!(
            "SELECT u.id, u.username, u.username_key, u.password, u.role, u.name, u.email, u.email_source, \
             u.email_verified_at, u.avatar, u.oauth_provider, u.oauth_id, u.session_epoch, u.disabled_at, \
             u.created_at, u.updated_at FROM users u ",
            $tail
        )
    };
}

statements! {
    /// Whether there is an account at all.
    ANY = "SELECT EXISTS (SELECT 1 FROM users)";
    /// Whether there is an account, and whether the first administrator was ever made.
    SETUP_STATE = "SELECT EXISTS (SELECT 1 FROM users), \
                   EXISTS (SELECT 1 FROM instance_state WHERE key = 'setup_done')";
    /// The one first account: a row is returned to exactly one caller.
    CLAIM_SETUP = "INSERT INTO instance_state (key, value, updated_at) SELECT 'setup_done', '1', CAST($1 AS BIGINT) \
                   WHERE NOT EXISTS (SELECT 1 FROM users) ON CONFLICT (key) DO NOTHING";
    /// A new account.
    INSERT = "INSERT INTO users (id, username, username_key, password, role, name, email, email_source, trusted_email_key, \
              email_verified_at, avatar, oauth_provider, oauth_id, session_epoch, disabled_at, created_at, updated_at) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) ON CONFLICT DO NOTHING";
    /// All that can change of an account.
    UPDATE = "UPDATE users SET password = $2, role = $3, name = $4, email = $5, email_source = $6, trusted_email_key = $7, \
              email_verified_at = $8, avatar = $9, oauth_provider = $10, oauth_id = $11, session_epoch = $12, \
              disabled_at = $13, updated_at = $14 WHERE id = $1";
    /// One account.
    BY_ID = select_user!("WHERE u.id = $1");
    /// One account, held until the end of the transaction.
    LOCK = select_user!("WHERE u.id = $1 for_update()");
    /// The account of a folded name. ix: users_username
    BY_NAME = select_user!("WHERE u.username_key = $1");
    /// The account of a trusted address. ix: users_email
    BY_EMAIL = select_user!("WHERE u.trusted_email_key = $1 AND u.trusted_email_key IS NOT NULL");
    /// The account linked to a provider account. ix: users_oauth
    BY_OAUTH = select_user!("WHERE u.oauth_provider = $1 AND u.oauth_id = $2 AND u.oauth_id IS NOT NULL");
    /// Accounts by id.
    BY_IDS = select_user!("WHERE u.id in_ints($1)");
    /// Administrators who can sign in, held until the end of the transaction. ix: users_by_role
    LOCK_ADMINISTRATORS = "SELECT id FROM users WHERE role = 'administrator' AND disabled_at IS NULL \
              AND (password <> '' OR oauth_id IS NOT NULL) ORDER BY id for_update()";
    /// Whether an administrator can sign in. ix: users_by_role
    HAS_ADMINISTRATOR = "SELECT EXISTS (SELECT 1 FROM users WHERE role = 'administrator' AND disabled_at IS NULL \
              AND (password <> '' OR oauth_id IS NOT NULL))";
    /// The newest noted use of any session. ix: sessions_of_user
    LAST_SEEN = "SELECT user_id, MAX(last_seen_at) FROM sessions WHERE user_id in_ints($1) GROUP BY user_id";
    /// What an account leaves behind goes first.
    DELETE_SESSIONS = "DELETE FROM sessions WHERE user_id = $1";
    DELETE_KEYS = "DELETE FROM api_keys WHERE user_id = $1";
    DELETE_ASSIGNMENTS = "DELETE FROM project_assignments WHERE user_id = $1";
    DELETE_TOKENS = "DELETE FROM account_tokens WHERE user_id = $1";
    DELETE_INVITATIONS = "DELETE FROM invitations WHERE user_id = $1";
    /// The account itself.
    DELETE = "DELETE FROM users WHERE id = $1";
}

fn read(row: &Row) -> Result<UserRow> {
    let mut r = row.reader();
    let (id, username, username_key) = (UserId(r.int()?), r.text()?, r.text()?);
    let (password, role, name) = (r.text()?, r.text()?, r.opt_text()?);
    let (address, source, verified_at) = (r.opt_text()?, r.opt_text()?, r.opt_time()?);
    let email = match (address, source) {
        (Some(address), Some(source)) => {
            Some(Email { address, source: EmailSource::parse(&source)?, verified_at })
        }
        _ => None,
    };
    let avatar = r.opt_text()?;
    let oauth = match (r.opt_text()?, r.opt_text()?) {
        (Some(provider), Some(id)) => Some(OauthLink { provider, id }),
        _ => None,
    };
    Ok(UserRow {
        id,
        username,
        username_key,
        password,
        role: Role::parse(&role).ok_or(StoreError::Damaged("an unknown role"))?,
        name,
        email,
        avatar,
        oauth,
        session_epoch: r.int()?,
        disabled_at: r.opt_time()?,
        created_at: r.time()?,
        updated_at: r.time()?,
    })
}

fn trusted_key(email: Option<&Email>) -> Option<String> {
    email.filter(|email| email.source.is_trusted()).map(|email| email_key(&email.address))
}

/// Whether there is an account at all.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn any(session: &mut Session) -> Result<bool> {
    session.one(&ANY, args![]).await?.reader().flag()
}

/// Whether an administrator exists who can sign in.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn has_administrator(session: &mut Session) -> Result<bool> {
    session.one(&HAS_ADMINISTRATOR, args![]).await?.reader().flag()
}

/// How far the first set-up of an installation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupState {
    /// The first administrator is still to be made.
    Needed,
    /// There are accounts.
    Done,
    /// It was done once, and no account is left.
    NoAccountLeft,
}

/// How far the first set-up has come.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn setup_state(session: &mut Session) -> Result<SetupState> {
    let row = session.one(&SETUP_STATE, args![]).await?;
    let mut row = row.reader();
    Ok(match (row.flag()?, row.flag()?) {
        (true, _) => SetupState::Done,
        (false, true) => SetupState::NoAccountLeft,
        (false, false) => SetupState::Needed,
    })
}

/// Claims the right to create the first account. Of any number of callers at
/// once exactly one gets true, and none once an account exists.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn claim_setup(session: &mut Session, now: Timestamp) -> Result<bool> {
    Ok(session.execute(&CLAIM_SETUP, args![now]).await? == 1)
}

/// Takes an id for a new account.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn new_id(session: &mut Session) -> Result<UserId> {
    ids::allocate_one(session, Kind::User).await.map(UserId)
}

/// Stores a new account.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn insert(session: &mut Session, user: &UserRow) -> Result<Saved> {
    let values = args![
        user.id,
        &user.username,
        &user.username_key,
        &user.password,
        user.role.as_str(),
        user.name.clone(),
        user.email.as_ref().map(|email| email.address.clone()),
        user.email.as_ref().map(|email| email.source.as_str()),
        trusted_key(user.email.as_ref()),
        user.email.as_ref().and_then(|email| email.verified_at),
        user.avatar.clone(),
        user.oauth.as_ref().map(|link| link.provider.clone()),
        user.oauth.as_ref().map(|link| link.id.clone()),
        user.session_epoch,
        user.disabled_at,
        user.created_at,
        user.updated_at,
    ];
    if session.execute(&INSERT, values).await? == 1 {
        return Ok(Saved::Done);
    }
    if by_name(session, &user.username_key).await?.is_some() {
        return Ok(Saved::NameTaken);
    }
    taken(session, user).await
}

/// Saves what can change of an account that was read with [`lock`].
///
/// # Errors
/// [`StoreError::Database`].
pub async fn save(session: &mut Session, user: &UserRow) -> Result<Saved> {
    // Asked before, because a refused statement ends a transaction on PostgreSQL.
    let conflict = taken(session, user).await?;
    if conflict != Saved::Done {
        return Ok(conflict);
    }
    let values = args![
        user.id,
        &user.password,
        user.role.as_str(),
        user.name.clone(),
        user.email.as_ref().map(|email| email.address.clone()),
        user.email.as_ref().map(|email| email.source.as_str()),
        trusted_key(user.email.as_ref()),
        user.email.as_ref().and_then(|email| email.verified_at),
        user.avatar.clone(),
        user.oauth.as_ref().map(|link| link.provider.clone()),
        user.oauth.as_ref().map(|link| link.id.clone()),
        user.session_epoch,
        user.disabled_at,
        user.updated_at,
    ];
    match session.execute(&UPDATE, values).await {
        Ok(_) => Ok(Saved::Done),
        // Two saves at the same moment; the caller's transaction is over.
        Err(error) if error.is_taken() => Ok(Saved::EmailTaken),
        Err(error) => Err(error),
    }
}

async fn taken(session: &mut Session, user: &UserRow) -> Result<Saved> {
    if let Some(link) = &user.oauth
        && by_oauth(session, &link.provider, &link.id).await?.is_some_and(|other| other.id != user.id)
    {
        return Ok(Saved::LinkTaken);
    }
    if let Some(key) = trusted_key(user.email.as_ref())
        && by_email(session, &key).await?.is_some_and(|other| other.id != user.id)
    {
        return Ok(Saved::EmailTaken);
    }
    Ok(Saved::Done)
}

async fn first(
    session: &mut Session,
    statement: &crate::db::Statement,
    values: Args,
) -> Result<Option<UserRow>> {
    session.first(statement, values).await?.as_ref().map(read).transpose()
}

/// One account.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, id: UserId) -> Result<Option<UserRow>> {
    first(session, &BY_ID, args![id]).await
}

/// One account, held until the end of the transaction.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock(session: &mut Session, id: UserId) -> Result<Option<UserRow>> {
    first(session, &LOCK, args![id]).await
}

/// The account of a folded name.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_name(session: &mut Session, username_key: &str) -> Result<Option<UserRow>> {
    first(session, &BY_NAME, args![username_key]).await
}

/// The account of a trusted address, given as [`email_key`].
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_email(session: &mut Session, email_key: &str) -> Result<Option<UserRow>> {
    first(session, &BY_EMAIL, args![email_key]).await
}

/// The account linked to a provider account.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_oauth(session: &mut Session, provider: &str, id: &str) -> Result<Option<UserRow>> {
    first(session, &BY_OAUTH, args![provider, id]).await
}

/// Several accounts, in no particular order; missing ones are left out.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get_many(session: &mut Session, ids: Vec<i64>) -> Result<Vec<UserRow>> {
    session.all(&BY_IDS, args![ids]).await?.iter().map(read).collect()
}

/// The administrators who can sign in, held until the end of the
/// transaction: whoever deletes, demotes or disables one asks this first, so
/// that one always remains.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock_administrators(session: &mut Session) -> Result<Vec<UserId>> {
    let rows = session.all(&LOCK_ADMINISTRATORS, args![]).await?;
    rows.iter().map(|row| row.reader().int().map(UserId)).collect()
}

/// Removes an account with its sessions, keys, assignments, tokens and channels.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn delete(session: &mut Session, id: UserId) -> Result<()> {
    for statement in
        [&DELETE_SESSIONS, &DELETE_KEYS, &DELETE_ASSIGNMENTS, &DELETE_TOKENS, &DELETE_INVITATIONS, &DELETE]
    {
        session.execute(statement, args![id]).await?;
    }
    crate::notifications::channels::delete_of_user(session, id).await
}

/// Which accounts a list shows.
#[derive(Debug, Clone, Default)]
pub struct UserFilter {
    /// Only this account.
    pub only: Option<UserId>,
    /// Only those who reach this project: by an assignment, or as administrators.
    pub reaching: Option<ProjectId>,
    /// Only this role.
    pub role: Option<Role>,
    /// Only disabled ones, or only those that are not.
    pub disabled: Option<bool>,
}

/// A page of accounts by folded name. ix: users_username
///
/// # Errors
/// [`StoreError::Database`].
pub async fn list(
    session: &mut Session,
    wanted: &UserFilter,
    after: Option<&str>,
    limit: i64,
) -> Result<Vec<UserRow>> {
    session.list(list_filter(session.backend(), wanted, after, limit)).await?.iter().map(read).collect()
}

fn list_filter(backend: crate::Backend, wanted: &UserFilter, after: Option<&str>, limit: i64) -> Filter {
    conditions(Filter::new(backend, select_user!("WHERE 1 = 1"), Args::new()), wanted)
        .and_if("u.username_key > ?", after)
        .end("ORDER BY u.username_key LIMIT ?", args![limit])
}

/// How many accounts there are, up to `most`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn count(session: &mut Session, wanted: &UserFilter, most: i64) -> Result<i64> {
    session.count(counting(session.backend(), wanted, most)).await
}

fn counting(backend: crate::Backend, wanted: &UserFilter, most: i64) -> Filter {
    let base = "SELECT COUNT(*) FROM (SELECT 1 FROM users u WHERE 1 = 1";
    conditions(Filter::new(backend, base, Args::new()), wanted).end("LIMIT ?) counted", args![most])
}

fn conditions(filter: Filter, wanted: &UserFilter) -> Filter {
    let filter =
        filter.and_if("u.id = ?", wanted.only).and_if("u.role = ?", wanted.role.map(Role::as_str)).and_if(
            "(u.role = 'administrator' OR EXISTS (SELECT 1 FROM project_assignments a WHERE a.user_id = u.id \
             AND (a.project_id IS NULL OR a.project_id = ?)))",
            wanted.reaching,
        );
    match wanted.disabled {
        Some(true) => filter.and("u.disabled_at IS NOT NULL", args![]),
        Some(false) => filter.and("u.disabled_at IS NULL", args![]),
        None => filter,
    }
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: crate::Backend) -> Vec<Filter> {
    let all = UserFilter {
        only: Some(UserId(1)),
        reaching: Some(ProjectId(1)),
        role: Some(Role::User),
        disabled: Some(true),
    };
    let enabled = UserFilter { disabled: Some(false), ..UserFilter::default() };
    vec![
        list_filter(backend, &UserFilter::default(), None, 1),
        list_filter(backend, &enabled, None, 1),
        list_filter(backend, &all, Some(""), 1),
        counting(backend, &UserFilter::default(), 1),
        counting(backend, &all, 1),
    ]
}

/// The newest noted use of any session of some accounts.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn last_seen(session: &mut Session, ids: Vec<i64>) -> Result<Vec<(UserId, Timestamp)>> {
    let rows = session.all(&LAST_SEEN, args![ids]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((UserId(r.int()?), r.time()?))
        })
        .collect()
}
