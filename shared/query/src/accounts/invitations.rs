//! Invitations. One makes an account that nobody can sign in to yet, and a
//! token that sets its first password; whoever takes the invitation back
//! closes such an account again. Setting the password accepts it, which is
//! part of resetting passwords.

use std::collections::HashMap;

use callboard_auth::token::{self, TokenKind};
use callboard_auth::username::judge_username;
use callboard_auth::{Authorized, Role};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{InvitationId, UserId};
use callboard_domain::time::Timestamp;
use callboard_store::accounts::assignments;
use callboard_store::accounts::invitations::{self, InvitationRow, InvitedScope};
use callboard_store::accounts::tokens::{self, NewAccountToken, TokenPurpose};
use callboard_store::accounts::users::{self, Email, EmailSource, UserRow, email_key};
use callboard_store::{Session, boxed, jobs};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::editing::end_sessions;
use super::invite_mail::InviteMail;
use super::members::Reach;
use super::refusal::AccountRefusal;
use super::users::{NewUser, accepted, insert, locked};
use super::{AccountRule, Acting};
use crate::page::{COUNTED_TO, Slice, Total, fetch};
use crate::shapes::UserRef;
use crate::{Context, Entity, QueryError, Result};

/// An invitation.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Invitation {
    /// Invitation id.
    #[schema(example = 4)]
    pub id: i64,
    /// The account it is for.
    #[schema(example = 7)]
    pub user_id: i64,
    /// Where it was sent.
    #[schema(example = "ada@example.org")]
    pub email: String,
    /// The role it promises: `administrator`, `reporter` or `user`.
    #[schema(example = "reporter")]
    pub role: &'static str,
    /// Whether it promises all projects, later ones included.
    pub is_global: bool,
    /// The projects it promises one by one.
    pub project_ids: Vec<i64>,
    /// Who invited; null when that account is gone.
    pub invited_by: Option<UserRef>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When its link stops working.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
    /// When it was accepted.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub accepted_at: Option<Timestamp>,
    /// When it was taken back, or another one took its place.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Timestamp>,
}

impl Invitation {
    fn from_row(row: &InvitationRow, invited_by: Option<&UserRow>) -> Self {
        Self {
            id: row.id.get(),
            user_id: row.user.get(),
            email: row.email.clone(),
            role: row.role.as_str(),
            is_global: row.scope.is_global,
            project_ids: row.scope.project_ids.iter().map(|id| id.get()).collect(),
            invited_by: invited_by.map(UserRef::from_row),
            created_at: row.created_at,
            expires_at: row.expires_at,
            accepted_at: row.accepted_at,
            revoked_at: row.revoked_at,
        }
    }
}

/// Key of a page of invitations: when the last one was created, and its id.
pub type InvitationKey = (i64, i64);

/// Invitations, newest first; all of them, or those that were neither accepted
/// nor revoked.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    only_open: bool,
    after: Option<InvitationKey>,
    limit: usize,
) -> Result<Slice<Invitation, InvitationKey>> {
    let mut session = ctx.store.db().read().await?;
    let rows = invitations::list(&mut session, only_open, after, fetch(limit)).await?;
    let rows = Slice::cut(rows, limit, |row| (row.created_at.millis(), row.id.get()));
    let ids = rows.items.iter().filter_map(|row| row.invited_by).map(UserId::get).collect();
    let inviting = users::get_many(&mut session, ids).await?;
    let inviting: HashMap<UserId, &UserRow> = inviting.iter().map(|row| (row.id, row)).collect();
    Ok(rows.map(|row| Invitation::from_row(&row, row.invited_by.and_then(|id| inviting.get(&id).copied()))))
}

/// How many invitations were neither accepted nor revoked.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn count_open(ctx: &Context) -> Result<Total> {
    let mut session = ctx.store.db().read().await?;
    Ok(Total::of_counted(invitations::count_open(&mut session, COUNTED_TO).await?))
}

/// Somebody about to be invited. Name and address were judged.
#[derive(Debug, Clone)]
pub struct NewInvitation {
    /// Where the invitation goes; also the name to sign in with.
    pub email: String,
    /// Name to show.
    pub name: Option<String>,
    /// The role it promises.
    pub role: Role,
    /// The projects it promises.
    pub reach: Reach,
}

/// How the link of an invitation travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// By mail.
    Mail,
    /// Whoever invites passes it on.
    Link,
}

/// An invitation that was made or sent again.
#[derive(Debug)]
pub struct Invited {
    /// The invitation.
    pub invitation: Invitation,
    /// The link, when it does not travel by mail.
    pub accept_url: Option<String>,
}

/// Invites somebody who has no account, or one that nobody ever signed in to
/// and that waits for no answer.
///
/// # Errors
/// [`QueryError::Rule`] for an address or a name that is taken,
/// [`QueryError::Account`] for an address that cannot be a name,
/// [`QueryError::NotFound`] for an unknown project, [`QueryError::Field`] for
/// projects of an administrator, [`QueryError::Denied`] for a narrowed key.
pub async fn create(
    ctx: &Context,
    acting: Acting<'_>,
    new: NewInvitation,
    delivery: Delivery,
) -> Result<Invited> {
    acting.reaches_everything()?;
    let mut session = ctx.store.db().begin().await?;
    let present = users::by_email(&mut session, &email_key(&new.email)).await?;
    let scope = InvitedScope {
        is_global: new.reach.is_global,
        project_ids: new.reach.projects.iter().copied().collect(),
    };
    let user = match present {
        Some(present) => again(&mut session, acting, present.id, new).await?,
        None => first(&mut session, acting, new).await?,
    };
    finish(ctx, session, acting, &user, scope, delivery).await
}

/// The account of somebody who has none.
async fn first(session: &mut Session, acting: Acting<'_>, new: NewInvitation) -> Result<UserRow> {
    judge_username(&new.email)
        .map_err(|refused| AccountRefusal::field("email", format!("As the {refused}")))?;
    let NewInvitation { email, name, role, reach } = new;
    let user = NewUser { username: email.clone(), password: None, role, name, email: Some(email), reach };
    insert(session, acting, user).await
}

/// An account that was never used, for whom it is meant for now.
async fn again(
    session: &mut Session,
    acting: Acting<'_>,
    user: UserId,
    new: NewInvitation,
) -> Result<UserRow> {
    let mut row = locked(session, user).await?;
    let is_waiting = row.disabled_at.is_none() && invitations::open_until(session, row.id).await?.is_some();
    if row.is_claimed() {
        return Err(AccountRule::EmailTaken.into());
    }
    if is_waiting {
        return Err(AccountRule::InvitationOpen.into());
    }
    new.reach.check(session, new.role).await?;
    row.role = new.role;
    row.name = new.name.or(row.name);
    row.email = Some(Email { address: new.email, source: EmailSource::Admin, verified_at: None });
    row.disabled_at = None;
    row.updated_at = acting.now;
    accepted(users::save(session, &row).await?)?;
    assignments::set_of_user(session, row.id, &new.reach.into(), acting.caller.user_id(), acting.now).await?;
    Ok(row)
}

/// Invites the person of an account that exists: with the link they set a new
/// password.
///
/// # Errors
/// [`QueryError::NotFound`]; [`QueryError::Rule`] for an account without an
/// address that can be relied on and for a disabled one; [`QueryError::Denied`]
/// for a narrowed key.
pub async fn invite(
    ctx: &Context,
    acting: Acting<'_>,
    user: Authorized<UserId>,
    delivery: Delivery,
) -> Result<Invited> {
    acting.reaches_everything()?;
    let mut session = ctx.store.db().begin().await?;
    let row = locked(&mut session, user.get()).await?;
    if row.disabled_at.is_some() {
        return Err(AccountRule::Disabled.into());
    }
    let assigned = assignments::of_user(&mut session, row.id).await?;
    let scope =
        InvitedScope { is_global: assigned.is_global, project_ids: assigned.projects.into_iter().collect() };
    finish(ctx, session, acting, &row, scope, delivery).await
}

/// The address an account is written to.
fn trusted_address(row: &UserRow) -> Result<String, AccountRule> {
    let email = row.email.as_ref().filter(|email| email.source.is_trusted());
    email.map(|email| email.address.clone()).ok_or(AccountRule::NoEmail)
}

/// Stores the invitation and its token, and ends the transaction.
async fn finish(
    ctx: &Context,
    mut session: Session,
    acting: Acting<'_>,
    user: &UserRow,
    scope: InvitedScope,
    delivery: Delivery,
) -> Result<Invited> {
    let invitation = InvitationRow {
        id: invitations::new_id(&mut session).await?,
        user: user.id,
        email: trusted_address(user)?,
        role: user.role,
        scope,
        invited_by: acting.caller.user_id(),
        created_at: acting.now,
        expires_at: expiry(acting.now),
        accepted_at: None,
        revoked_at: None,
    };
    invitations::insert(&mut session, &invitation).await?;
    sent(ctx, session, acting, (AuditAction::InvitationCreated, delivery), invitation).await
}

const fn expiry(now: Timestamp) -> Timestamp {
    Timestamp(now.millis() + TokenPurpose::Invite.lifetime_ms())
}

/// Makes the token of an invitation or has it mailed, notes what was done and
/// commits. What was sent before opens nothing any more.
async fn sent(
    ctx: &Context,
    mut session: Session,
    acting: Acting<'_>,
    (action, delivery): (AuditAction, Delivery),
    invitation: InvitationRow,
) -> Result<Invited> {
    let accept_url = match delivery {
        Delivery::Link => {
            let minted = token::mint(TokenKind::Invite)?;
            let new = NewAccountToken {
                hash: minted.hash,
                user: invitation.user,
                purpose: TokenPurpose::Invite,
                email: Some(invitation.email.clone()),
                created_at: acting.now,
            };
            tokens::insert(&mut session, &new).await?;
            Some(ctx.links.set_password(&minted.text))
        }
        Delivery::Mail => {
            tokens::void(&mut session, invitation.user, TokenPurpose::Invite, acting.now).await?;
            let key = format!("invitation:{}:{}", invitation.id, acting.now.millis());
            let payload = InviteMail { invitation: invitation.id.get() };
            jobs::enqueue(&mut session, &key, None, &payload, acting.now).await?;
            None
        }
    };
    let target = ("invitation", invitation.id.get());
    let detail = json!({ "user": invitation.user.get(), "role": invitation.role.as_str() });
    let recorded = acting.record(&mut session, action, target, None, detail).await?;
    let inviting = match invitation.invited_by {
        Some(user) => users::get(&mut session, user).await?,
        None => None,
    };
    session.commit().await?;
    recorded.committed();
    Ok(Invited { invitation: Invitation::from_row(&invitation, inviting.as_ref()), accept_url })
}

/// The account of an invitation and the invitation, both held.
async fn held(session: &mut Session, id: InvitationId) -> Result<(UserRow, InvitationRow)> {
    let missing = || QueryError::not_found(Entity::Invitation, id);
    let found = invitations::get(session, id).await?.ok_or_else(missing)?;
    let user = users::lock(session, found.user).await?.ok_or_else(missing)?;
    let invitation = invitations::lock(session, id).await?.ok_or_else(missing)?;
    Ok((user, invitation))
}

/// Sends an open invitation again, to the address its account has now: the
/// link before opens nothing any more, the new one lasts 72 hours.
///
/// # Errors
/// [`QueryError::NotFound`]; [`QueryError::Rule`] when it is not open, its
/// account is disabled or has no address that can be relied on;
/// [`QueryError::Denied`] for a narrowed key.
pub async fn resend(
    ctx: &Context,
    acting: Acting<'_>,
    id: InvitationId,
    delivery: Delivery,
) -> Result<Invited> {
    acting.reaches_everything()?;
    let mut session = ctx.store.db().begin().await?;
    let (user, mut invitation) = held(&mut session, id).await?;
    if !invitation.is_open() {
        return Err(AccountRule::NotPending.into());
    }
    if user.disabled_at.is_some() {
        return Err(AccountRule::Disabled.into());
    }
    invitation.email = trusted_address(&user)?;
    invitation.expires_at = expiry(acting.now);
    invitations::renew(&mut session, id, &invitation.email, invitation.expires_at).await?;
    sent(ctx, session, acting, (AuditAction::InvitationResent, delivery), invitation).await
}

/// Takes an open invitation back. An account that nobody can sign in to is
/// disabled, so that a provider's sign-in does not open it either.
///
/// # Errors
/// [`QueryError::NotFound`]; [`QueryError::Rule`] when it is not open;
/// [`QueryError::Denied`] for a narrowed key.
pub async fn revoke(ctx: &Context, acting: Acting<'_>, id: InvitationId) -> Result<()> {
    acting.reaches_everything()?;
    let mut session = ctx.store.db().begin().await?;
    let (mut user, invitation) = held(&mut session, id).await?;
    if !invitation.is_open() {
        return Err(AccountRule::NotPending.into());
    }
    invitations::revoke(&mut session, id, acting.now).await?;
    tokens::void(&mut session, user.id, TokenPurpose::Invite, acting.now).await?;
    if !user.is_claimed() && user.disabled_at.is_none() {
        user.disabled_at = Some(acting.now);
        user.session_epoch += 1;
        user.updated_at = acting.now;
        end_sessions(&mut session, acting, &user).await?;
        accepted(users::save(&mut session, &user).await?)?;
    }
    let target = ("invitation", id.get());
    let detail = json!({ "user": user.id.get() });
    let recorded = acting.record(&mut session, AuditAction::InvitationRevoked, target, None, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}
