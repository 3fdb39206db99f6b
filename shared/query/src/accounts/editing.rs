//! Editing and deleting accounts. A change holds the account's row; whatever
//! could take the last administrator away holds the rows of all
//! administrators before it, so that of two such changes at the same time the second
//! one sees the first.

use callboard_auth::{Authorized, Denied, Role};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::UserId;
use callboard_store::Session;
use callboard_store::accounts::users::{self, Email, EmailSource, UserRow};
use callboard_store::accounts::{api_keys, sessions, tokens};
use serde_json::json;

use super::mails::{self, Notice};
use super::masking::masked_address_change;
use super::users::{accepted, locked, one};
use super::{AccountRule, Acting};
use crate::shapes::User;
use crate::{Change, Context, Result};

/// An edit of an account. Name and address were judged.
#[derive(Debug, Clone, Default)]
pub struct UserEdit {
    /// Name to show.
    pub name: Change<String>,
    /// E-mail address.
    pub email: Change<String>,
    /// Role; for administrators to change.
    pub role: Option<Role>,
    /// Whether it is kept out; for administrators to change.
    pub disabled: Option<bool>,
}

/// What an edit led to.
#[derive(Debug, Clone)]
pub struct Edited {
    /// The account now.
    pub user: User,
    /// The epoch that the caller's own session was carried into, while every
    /// other session of the account ended. Its cookie has to say so.
    pub own_session_moved_to: Option<i64>,
}

/// Edits an account. A change of the role, the address or whether it is
/// disabled ends its sessions. Changing one's own address takes a sign-in a
/// short while ago, or `verified`: the stored password that a given one was
/// found right for.
///
/// # Errors
/// [`crate::QueryError::Denied`] when others than administrators change role or
/// disabled, and for narrowed keys; [`crate::QueryError::NotFound`];
/// [`crate::QueryError::Rule`] for the rules about one's own account, the last
/// administrator and taken addresses.
pub async fn edit(
    ctx: &Context,
    acting: Acting<'_>,
    user: Authorized<UserId>,
    edit: UserEdit,
    verified: Option<String>,
) -> Result<Edited> {
    let powers_change = edit.role.is_some() || edit.disabled.is_some();
    if powers_change && !acting.caller.is_administrator() {
        return Err(Denied::InsufficientRole.into());
    }
    if !acting.is_own(user.get()) {
        acting.reaches_everything()?;
    }
    let mut session = ctx.store.db().begin().await?;
    let administrators =
        if powers_change { users::lock_administrators(&mut session).await? } else { Vec::new() };
    let before = locked(&mut session, user.get()).await?;
    let mut row = before.clone();
    let changed = apply(acting, &mut row, edit, verified.as_deref())?;
    if changed.takes_power() && !administrators.iter().any(|other| *other != row.id) {
        return Err(AccountRule::LastAdministrator.into());
    }
    if changed.names.is_empty() {
        return Ok(Edited { user: one(&mut session, &row).await?, own_session_moved_to: None });
    }
    row.updated_at = acting.now;
    let mut own_session_moved_to = None;
    if changed.ends_sessions {
        row.session_epoch += 1;
        own_session_moved_to = end_sessions(&mut session, acting, &row).await?.carried_into;
        // Links that were mailed to the old address, or while the account was enabled, open nothing.
        tokens::void_all(&mut session, row.id, acting.now).await?;
    }
    accepted(users::save(&mut session, &row).await?)?;
    if changed.names.contains(&"email") {
        mails::notify(&mut session, &before, Notice::EmailChanged, acting.now).await?;
    }
    let action = changed.action(&row);
    let mut detail = json!({ "changed": changed.names });
    if row.role != before.role {
        detail["role"] = json!({ "from": before.role.as_str(), "to": row.role.as_str() });
    }
    if changed.names.contains(&"email") {
        detail["email"] = masked_address_change(&before, &row);
    }
    let recorded = acting.record(&mut session, action, ("user", row.id.get()), None, detail).await?;
    let shown = one(&mut session, &row).await?;
    session.commit().await?;
    recorded.committed();
    Ok(Edited { user: shown, own_session_moved_to })
}

/// What an edit changes.
#[derive(Debug, Default)]
struct Changed {
    names: Vec<&'static str>,
    ends_sessions: bool,
    was_active_administrator: bool,
    is_active_administrator: bool,
}

impl Changed {
    const fn takes_power(&self) -> bool {
        self.was_active_administrator && !self.is_active_administrator
    }

    fn action(&self, row: &UserRow) -> AuditAction {
        if self.names.contains(&"disabled") {
            if row.disabled_at.is_some() { AuditAction::UserDisabled } else { AuditAction::UserEnabled }
        } else if self.names.as_slice() == ["email"] {
            AuditAction::EmailChanged
        } else {
            AuditAction::UserChanged
        }
    }
}

/// As the rows that `lock_administrators` holds.
fn is_active_administrator(row: &UserRow) -> bool {
    row.role == Role::Administrator && row.disabled_at.is_none() && row.is_claimed()
}

/// Applies an edit to the row it holds.
fn apply(
    acting: Acting<'_>,
    row: &mut UserRow,
    edit: UserEdit,
    verified: Option<&str>,
) -> std::result::Result<Changed, AccountRule> {
    let is_own = acting.is_own(row.id);
    let mut changed =
        Changed { was_active_administrator: is_active_administrator(row), ..Changed::default() };
    if let Some(role) = edit.role.filter(|role| *role != row.role) {
        row.role = role;
        changed.names.push("role");
        changed.ends_sessions = true;
    }
    if let Some(disabled) = edit.disabled.filter(|disabled| *disabled != row.disabled_at.is_some()) {
        row.disabled_at = disabled.then_some(acting.now);
        changed.names.push("disabled");
        changed.ends_sessions = true;
    }
    if is_own && !changed.names.is_empty() {
        return Err(AccountRule::CannotChangeSelf);
    }
    let present = row.email.as_ref().map(|email| email.address.clone());
    let address = edit.email.applied_to(present.clone());
    if address != present {
        let is_proven = if row.password.is_empty() {
            acting.signed_in_recently()
        } else {
            verified.is_some_and(|verified| verified == row.password)
        };
        if is_own && !is_proven {
            return Err(AccountRule::PasswordRequired);
        }
        // An address that its owner entered is not relied on before it is proven.
        let source = if is_own { EmailSource::Own } else { EmailSource::Admin };
        row.email = address.map(|address| Email { address, source, verified_at: None });
        changed.names.push("email");
        changed.ends_sessions = true;
    }
    let name = edit.name.applied_to(row.name.clone());
    if name != row.name {
        row.name = name;
        changed.names.push("name");
    }
    changed.is_active_administrator = is_active_administrator(row);
    Ok(changed)
}

/// What became of an account's sessions.
pub(super) struct EndedSessions {
    /// How many ended.
    pub(super) ended: u64,
    /// The epoch the caller's own session goes on in.
    pub(super) carried_into: Option<i64>,
}

/// Ends the sessions of an account whose epoch has just grown; the caller's
/// own session goes on in the new one.
pub(super) async fn end_sessions(
    session: &mut Session,
    acting: Acting<'_>,
    row: &UserRow,
) -> Result<EndedSessions> {
    let own = acting.caller.session().filter(|_| acting.is_own(row.id)).map(|own| own.sid_hash);
    let ended = sessions::revoke_all(session, row.id, own, acting.now).await?;
    if let Some(own) = own {
        sessions::move_to_epoch(session, own, row.session_epoch).await?;
    }
    Ok(EndedSessions { ended, carried_into: own.map(|_| row.session_epoch) })
}

/// Deletes an account with its sessions, keys, assignments and invitations.
/// Keys that others hold but that were created with one of its keys are
/// revoked.
///
/// # Errors
/// [`crate::QueryError::NotFound`]; [`crate::QueryError::Rule`] for one's own account and
/// the last administrator; [`crate::QueryError::Denied`] for a narrowed key.
pub async fn delete(ctx: &Context, acting: Acting<'_>, user: Authorized<UserId>) -> Result<()> {
    acting.reaches_everything()?;
    let user = user.get();
    let mut session = ctx.store.db().begin().await?;
    let administrators = users::lock_administrators(&mut session).await?;
    let row = locked(&mut session, user).await?;
    if acting.is_own(user) {
        return Err(AccountRule::CannotChangeSelf.into());
    }
    if is_active_administrator(&row) && !administrators.iter().any(|other| *other != user) {
        return Err(AccountRule::LastAdministrator.into());
    }
    api_keys::revoke_of_user(&mut session, user, acting.now).await?;
    users::delete(&mut session, user).await?;
    let detail = json!({ "username": row.username, "role": row.role.as_str() });
    let recorded =
        acting.record(&mut session, AuditAction::UserDeleted, ("user", user.get()), None, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}
