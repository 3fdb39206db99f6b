//! Accounts: listing, reading and creating them.

use std::collections::HashMap;

use callboard_auth::username::username_key;
use callboard_auth::{Authorized, Identity, Role};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use callboard_store::Session;
use callboard_store::accounts::assignments;
use callboard_store::accounts::users::{self, Email, EmailSource, Saved, UserFilter, UserRow};
use callboard_store::boxed;
use serde_json::json;

use super::members::Reach;
use super::{AccountRule, Acting};
use crate::page::{COUNTED_TO, Slice, Total, fetch};
use crate::shapes::User;
use crate::{Context, Entity, QueryError, Result};

/// Accounts fetched at a time while a text no index leads with is looked for,
/// and how often one request does so.
const RESIDUAL_STEP: usize = 500;
const RESIDUAL_STEPS: usize = 10;

/// Which accounts a list shows.
#[derive(Debug, Clone, Default)]
pub struct UserFilters {
    /// Part of the name to sign in with, the shown name or the address, in any case.
    pub contains: Option<String>,
    /// Only this role.
    pub role: Option<Role>,
    /// Only disabled ones, or only those that are not.
    pub disabled: Option<bool>,
}

/// Accounts by the folded name, which is also the key of a page. Who is no
/// administrator finds themselves only.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    caller: &Identity,
    filters: &UserFilters,
    after: Option<String>,
    limit: usize,
) -> Result<Slice<User, String>> {
    let Some(wanted) = seen(caller, filters) else { return Ok(Slice { items: Vec::new(), next: None }) };
    let mut session = ctx.store.db().read().await?;
    let rows = match &filters.contains {
        Some(text) => matching(&mut session, &wanted, text, after, limit).await?,
        None => page(&mut session, &wanted, after.as_deref(), limit).await?,
    };
    Ok(Slice { items: shown(&mut session, &rows.items).await?, next: rows.next })
}

/// How many accounts the list has; not known where it looks for a text.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn count(ctx: &Context, caller: &Identity, filters: &UserFilters) -> Result<Option<Total>> {
    let Some(wanted) = seen(caller, filters).filter(|_| filters.contains.is_none()) else { return Ok(None) };
    let mut session = ctx.store.db().read().await?;
    Ok(Some(Total::of_counted(users::count(&mut session, &wanted, COUNTED_TO).await?)))
}

/// The accounts of a list that the caller sees; `None` for none.
fn seen(caller: &Identity, filters: &UserFilters) -> Option<UserFilter> {
    let only = if caller.sees_accounts() { None } else { Some(caller.user_id()?) };
    Some(UserFilter { only, role: filters.role, disabled: filters.disabled, reaching: None })
}

async fn page(
    session: &mut Session,
    wanted: &UserFilter,
    after: Option<&str>,
    limit: usize,
) -> Result<Slice<UserRow, String>> {
    let rows = users::list(session, wanted, after, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row| row.username_key.clone()))
}

/// Text is compared here and not in SQL, whose engines disagree about the case
/// of letters beyond ASCII.
async fn matching(
    session: &mut Session,
    wanted: &UserFilter,
    text: &str,
    mut after: Option<String>,
    limit: usize,
) -> Result<Slice<UserRow, String>> {
    let text = text.to_lowercase();
    let holds = |field: Option<&str>| field.is_some_and(|field| field.to_lowercase().contains(&text));
    let mut found = Vec::new();
    for _ in 0..RESIDUAL_STEPS {
        let step = page(session, wanted, after.as_deref(), RESIDUAL_STEP).await?;
        found.extend(step.items.into_iter().filter(|row| {
            let address = row.email.as_ref().map(|email| email.address.as_str());
            holds(Some(&row.username)) || holds(row.name.as_deref()) || holds(address)
        }));
        if found.len() > limit {
            return Ok(Slice::cut(found, limit, |row| row.username_key.clone()));
        }
        after = step.next;
        if after.is_none() {
            break;
        }
    }
    Ok(Slice { items: found, next: after })
}

async fn shown(session: &mut Session, rows: &[UserRow]) -> Result<Vec<User>> {
    let ids: Vec<i64> = rows.iter().map(|row| row.id.get()).collect();
    let seen: HashMap<UserId, Timestamp> =
        users::last_seen(session, ids.clone()).await?.into_iter().collect();
    let global = assignments::global_among(session, ids).await?;
    let show = |row: &UserRow| {
        let is_global = row.role == Role::Administrator || global.contains(&row.id);
        User::new(row, is_global, seen.get(&row.id).copied())
    };
    Ok(rows.iter().map(show).collect())
}

pub(super) async fn one(session: &mut Session, row: &UserRow) -> Result<User> {
    let mut shown = shown(session, std::slice::from_ref(row)).await?;
    shown.pop().ok_or_else(|| QueryError::not_found(Entity::User, row.id))
}

/// One account.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn get(ctx: &Context, user: Authorized<UserId>) -> Result<User> {
    let mut session = ctx.store.db().read().await?;
    let row = required(&mut session, user.get()).await?;
    one(&mut session, &row).await
}

pub(super) async fn required(session: &mut Session, user: UserId) -> Result<UserRow> {
    users::get(session, user).await?.ok_or_else(|| QueryError::not_found(Entity::User, user))
}

pub(super) async fn locked(session: &mut Session, user: UserId) -> Result<UserRow> {
    users::lock(session, user).await?.ok_or_else(|| QueryError::not_found(Entity::User, user))
}

/// The stored form of an account's password, to check a given one against;
/// none for an account without a password.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn stored_password(ctx: &Context, user: Authorized<UserId>) -> Result<Option<String>> {
    let row = required(&mut ctx.store.db().read().await?, user.get()).await?;
    Ok(Some(row.password).filter(|stored| !stored.is_empty()))
}

/// An account about to be created. Name, address and password were judged.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// Name to sign in with.
    pub username: String,
    /// PHC string of the password; none for an account nobody signs in to with one.
    pub password: Option<String>,
    /// Role.
    pub role: Role,
    /// Name to show.
    pub name: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// What it reaches.
    pub reach: Reach,
}

/// Creates an account. The address counts as trusted, because an
/// administrator entered it.
///
/// # Errors
/// [`QueryError::Rule`] for a name or address that is taken,
/// [`QueryError::NotFound`] for an unknown project, [`QueryError::Field`] for
/// projects of an administrator, [`QueryError::Denied`] for a narrowed key.
pub async fn create(ctx: &Context, acting: Acting<'_>, new: NewUser) -> Result<User> {
    acting.reaches_everything()?;
    let mut session = ctx.store.db().begin().await?;
    let user = insert(&mut session, acting, new).await?;
    let recorded = acting
        .record(
            &mut session,
            AuditAction::UserCreated,
            ("user", user.id.get()),
            None,
            json!({ "username": user.username, "role": user.role.as_str() }),
        )
        .await?;
    let shown = one(&mut session, &user).await?;
    session.commit().await?;
    recorded.committed();
    Ok(shown)
}

/// Stores a new account with its assignments.
pub(super) async fn insert(session: &mut Session, acting: Acting<'_>, new: NewUser) -> Result<UserRow> {
    let now = acting.now;
    new.reach.check(session, new.role).await?;
    let user = UserRow {
        id: users::new_id(session).await?,
        username_key: username_key(&new.username),
        username: new.username,
        password: new.password.unwrap_or_default(),
        role: new.role,
        name: new.name,
        email: new.email.map(|address| Email { address, source: EmailSource::Admin, verified_at: None }),
        avatar: None,
        oauth: None,
        session_epoch: 1,
        disabled_at: None,
        created_at: now,
        updated_at: now,
    };
    accepted(users::insert(session, &user).await?)?;
    assignments::set_of_user(session, user.id, &new.reach.into(), acting.caller.user_id(), now).await?;
    Ok(user)
}

pub(super) fn accepted(saved: Saved) -> std::result::Result<(), AccountRule> {
    match saved {
        Saved::Done => Ok(()),
        Saved::NameTaken => Err(AccountRule::NameTaken),
        // Links to providers are not written here.
        Saved::EmailTaken | Saved::LinkTaken => Err(AccountRule::EmailTaken),
    }
}
