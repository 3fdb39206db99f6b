//! The first time that callers have to sign in, and ways back in.

use callboard_auth::token::NewToken;
use callboard_auth::username::{judge_username, username_key};
use callboard_domain::account::Role;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use callboard_store::accounts::assignments;
use callboard_store::accounts::tokens::TokenPurpose;
use callboard_store::accounts::users::{self, Saved, SetupState, UserRow};
use callboard_store::audit::{self, Actor, AuditEvent, Recorded};
use callboard_store::runs::tokens;
use callboard_store::{Session, Store, StoreError, boxed, instance};

use super::mails;
use super::refusal::AccountRefusal;
use super::sign_in::detail;
use super::visitor::Visitor;
use crate::{Entity, QueryError, Result};

/// The key under which an installation notes that this was done.
const CLAIM: &str = "auth_backfill";

/// The key under which a deployment notes whether callers have to sign in.
const MODE: &str = "auth_mode";

const fn mode(auth_enabled: bool) -> &'static str {
    if auth_enabled { "on" } else { "off" }
}

/// Notes whether callers have to sign in from now on. Run tokens that were
/// given out while nobody had to belong to nobody: they end with that time.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn deploy(store: &Store, auth_enabled: bool, now: Timestamp) -> Result<()> {
    let mut session = store.db().begin().await?;
    if instance::set(&mut session, MODE, mode(auth_enabled), now).await? {
        if auth_enabled {
            tokens::revoke_ownerless(&mut session, now).await?;
        }
        session.commit().await?;
    }
    Ok(())
}

/// Whether the last deployment noted something else about signing in than
/// this process is told: one of them is configured wrongly.
///
/// # Errors
/// [`StoreError`] when the database does not answer.
#[boxed]
pub async fn mode_differs(store: &Store, auth_enabled: bool) -> Result<bool, StoreError> {
    Ok(instance::value(store.db(), MODE).await?.is_some_and(|noted| noted != mode(auth_enabled)))
}

/// Gives every account that is no administrator's access to all projects,
/// once in the life of an installation: what people saw while nobody signed
/// in they see afterwards. Run tokens from then belong to nobody and end.
/// Tells whether this call did it.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn begin(store: &Store, now: Timestamp) -> Result<bool> {
    if instance::has(store.db(), CLAIM).await? {
        if mode_differs(store, true).await? {
            // Noted while nobody signed in, and not by this process.
            let mut session = store.db().begin().await?;
            tokens::revoke_ownerless(&mut session, now).await?;
            session.commit().await?;
        }
        return Ok(false);
    }
    let mut session = store.db().begin().await?;
    if !instance::claim(&mut session, CLAIM, now).await? {
        return Ok(false);
    }
    let accounts = assignments::make_all_global(&mut session, now).await?;
    tokens::revoke_ownerless(&mut session, now).await?;
    let event = AuditEvent {
        at: now,
        actor: Actor::default(),
        action: AuditAction::AssignmentsChanged,
        target: None,
        project: None,
        detail: detail("globalAccounts", accounts),
    };
    let noted = audit::record(&mut session, event).await?;
    session.commit().await?;
    noted.committed();
    Ok(true)
}

/// How far the database's clock is ahead of a moment here, milliseconds.
/// Sessions, keys and limits end by the clock of whoever asks.
///
/// # Errors
/// [`StoreError`] when the database does not answer.
#[boxed]
pub async fn clock_ahead_ms(store: &Store, now: Timestamp) -> Result<i64, StoreError> {
    Ok(instance::clock(store.db()).await?.millis() - now.millis())
}

/// Whether there are accounts and none of them is an administrator who can
/// sign in.
///
/// # Errors
/// [`QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn is_locked_out(store: &Store) -> Result<bool> {
    let mut session = store.db().read().await?;
    Ok(users::any(&mut session).await? && !users::has_administrator(&mut session).await?)
}

/// Makes an account an administrator's that can sign in, and a token to set
/// its password with. For whoever has the machine and no way in. When every
/// account is gone after the set-up, it creates one.
///
/// # Errors
/// [`QueryError::NotFound`] when there are accounts and none has the name;
/// [`QueryError::Account`] for a name no account can have;
/// [`QueryError::Store`].
#[boxed]
pub async fn grant_administrator(store: &Store, username: &str, now: Timestamp) -> Result<NewToken> {
    let mut session = store.db().begin().await?;
    let missing = || QueryError::not_found(Entity::User, username);
    let Some(found) = users::by_name(&mut session, &username_key(username)).await? else {
        if users::setup_state(&mut session).await? != SetupState::NoAccountLeft {
            return Err(missing());
        }
        let (user, noted) = create_administrator(&mut session, username, now).await?;
        session.commit().await?;
        noted.committed();
        return mails::mint(store, user, TokenPurpose::Reset, None, now).await;
    };
    let mut user = users::lock(&mut session, found.id).await?.ok_or_else(missing)?;
    user.role = Role::Administrator;
    user.disabled_at = None;
    user.session_epoch += 1;
    user.updated_at = now;
    users::save(&mut session, &user).await?;
    let noted = Visitor::default()
        .note(&mut session, AuditAction::UserChanged, Some(user.id), detail("by", "grant-administrator"), now)
        .await?;
    session.commit().await?;
    noted.committed();
    mails::mint(store, user.id, TokenPurpose::Reset, None, now).await
}

async fn create_administrator(
    session: &mut Session,
    username: &str,
    now: Timestamp,
) -> Result<(UserId, Recorded)> {
    judge_username(username).map_err(|refused| AccountRefusal::field("username", refused))?;
    let user = UserRow {
        id: users::new_id(session).await?,
        username: username.to_owned(),
        username_key: username_key(username),
        password: String::new(),
        role: Role::Administrator,
        name: None,
        email: None,
        avatar: None,
        oauth: None,
        session_epoch: 0,
        disabled_at: None,
        created_at: now,
        updated_at: now,
    };
    if users::insert(session, &user).await? != Saved::Done {
        return Err(AccountRefusal::SetupUnavailable.into());
    }
    let detail = detail("by", "grant-administrator");
    let noted =
        Visitor::default().note(session, AuditAction::UserCreated, Some(user.id), detail, now).await?;
    Ok((user.id, noted))
}
