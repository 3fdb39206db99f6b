//! From a person at a provider to an account here: whose sign-in it is, and
//! linking and unlinking. Whether the provider's account may come in at all
//! was decided before (its allowlists are asked at every sign-in).

use callboard_auth::SessionProof;
use callboard_auth::cookies::CookieKind;
use callboard_auth::oauth::{Link, OauthRefusal, OauthTransaction, Profile, Provider};
use callboard_auth::username::{judge_username, username_key};
use callboard_domain::account::Role;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use callboard_store::accounts::tokens::{self, TokenPurpose};
use callboard_store::accounts::users::{self, Email, EmailSource, OauthLink, Saved, UserRow, email_key};
use callboard_store::accounts::{invitations, sessions, used_states};
use callboard_store::audit::Recorded;
use callboard_store::{Session, Store, StoreError, boxed};
use serde_json::{Map, Value, json};

use super::mails::{self, Notice};
use super::masking::{mask_name, masked_address_change};
use super::sign_in::{SignedIn, begin_session, by_subject, detail};
use super::visitor::Visitor;
use crate::{QueryError, Result};

/// A person first seen twice at the same time makes one account: who loses the race
/// finds it at the next attempt.
const ATTEMPTS: u32 = 3;

/// What somebody's arrival led to.
pub type Outcome<T> = std::result::Result<T, OauthRefusal>;

/// Somebody who comes from a provider.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The provider.
    pub provider: Provider,
    /// What it says about the person.
    pub profile: &'a Profile,
    /// The browser it happens in.
    pub visitor: &'a Visitor,
    /// Now.
    pub now: Timestamp,
}

/// An account with what was noted about it; none when somebody else wrote the
/// same account first and everything has to be looked at again.
type Step =
    std::result::Result<Option<std::result::Result<(UserRow, Vec<Recorded>), OauthRefusal>>, StoreError>;

/// Claims the right to end a sign-in that was begun: of any number of
/// callbacks with its state, one gets it.
///
/// # Errors
/// [`QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn claim_end(store: &Store, begun: &OauthTransaction, now: Timestamp) -> Result<bool> {
    let mut session = store.db().begin().await?;
    let is_first =
        used_states::claim(&mut session, begun.state_hash(), CookieKind::OAuth.expiry(now)).await?;
    session.commit().await?;
    Ok(is_first)
}

/// The account of a person at a provider, in this order: the account linked
/// to that person; the account with the same trusted address, which is linked
/// then; a new account that may do nothing yet.
///
/// # Errors
/// [`QueryError::Store`] when the database does not answer.
pub async fn sign_in(store: &Store, arrival: Arrival<'_>) -> Result<Outcome<SignedIn>> {
    for _ in 0..ATTEMPTS {
        let mut session = store.db().begin().await?;
        match resolve(&mut session, arrival).await {
            Ok(Some(Ok((user, noted)))) => {
                let method = arrival.provider.as_str();
                let claims = begin_session(&mut session, &user, method, arrival.visitor, arrival.now).await?;
                match session.commit().await {
                    Ok(()) => {
                        noted.into_iter().for_each(Recorded::committed);
                        return Ok(Ok(SignedIn { user, claims }));
                    }
                    Err(error) if error.is_taken() || error.is_conflict() => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(Some(Err(refusal))) => return Ok(Err(refusal)),
            // Somebody else wrote the same account first.
            Ok(None) => {}
            Err(error) if error.is_taken() || error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(QueryError::Store(StoreError::Damaged("a provider account is linked to no user")))
}

async fn resolve(session: &mut Session, arrival: Arrival<'_>) -> Step {
    let Arrival { provider, profile, .. } = arrival;
    if !users::any(session).await? {
        return Ok(Some(Err(OauthRefusal::SetupRequired)));
    }
    if let Some(known) = users::by_oauth(session, provider.as_str(), &profile.id).await? {
        return returning(session, known.id, arrival).await;
    }
    if let Some(address) = profile.verified_email()
        && let Some(found) = users::by_email(session, &email_key(address)).await?
    {
        return adopt(session, found.id, arrival).await;
    }
    create(session, arrival).await
}

async fn returning(session: &mut Session, user: UserId, arrival: Arrival<'_>) -> Step {
    let Some(mut user) = users::lock(session, user).await? else { return Ok(None) };
    if user.disabled_at.is_some() {
        return Ok(Some(Err(OauthRefusal::AccessDenied)));
    }
    let before = user.clone();
    refresh(session, &mut user, arrival).await?;
    let mut noted = vec![note(session, AuditAction::OauthSucceeded, &user, arrival).await?];
    if user != before {
        user.updated_at = arrival.now;
        let refreshed = Refreshed::between(&before, &user);
        if refreshed.address {
            // As for every change of address: other sessions end, and mailed links open nothing.
            user.session_epoch += 1;
            sessions::revoke_all(session, user.id, None, arrival.now).await?;
            tokens::void_all(session, user.id, arrival.now).await?;
        }
        if users::save(session, &user).await? != Saved::Done {
            return Ok(None);
        }
        if refreshed.address {
            mails::notify(session, &before, Notice::EmailChanged, arrival.now).await?;
        }
        if let Some((action, mut changes)) = refreshed.audit(&before, &user) {
            changes.extend(detail("provider", arrival.provider.as_str()));
            let visitor = by_subject(arrival.visitor, user.id);
            noted.push(visitor.note(session, action, Some(user.id), changes, arrival.now).await?);
        }
    }
    Ok(Some(Ok((user, noted))))
}

/// What the provider's profile changed of an account.
#[derive(Debug, Clone, Copy)]
struct Refreshed {
    name: bool,
    address: bool,
    avatar: bool,
}

impl Refreshed {
    fn between(before: &UserRow, after: &UserRow) -> Self {
        Self {
            name: before.name != after.name,
            address: address_key(before) != address_key(after),
            avatar: before.avatar != after.avatar,
        }
    }

    /// The audit entry, with old and new values masked; none when only how the
    /// address was proven changed.
    fn audit(self, before: &UserRow, after: &UserRow) -> Option<(AuditAction, Map<String, Value>)> {
        let fields = [("name", self.name), ("email", self.address), ("avatar", self.avatar)];
        let names: Vec<&str> =
            fields.iter().filter(|(_, is_changed)| *is_changed).map(|(name, _)| *name).collect();
        let action = match names.as_slice() {
            [] => return None,
            ["email"] => AuditAction::EmailChanged,
            _ => AuditAction::UserChanged,
        };
        let mut detail = detail("changed", names);
        if self.name {
            let masked = |user: &UserRow| user.name.as_deref().map(mask_name);
            detail.insert("name".to_owned(), json!({ "from": masked(before), "to": masked(after) }));
        }
        if self.address {
            detail.insert("email".to_owned(), masked_address_change(before, after));
        }
        Some((action, detail))
    }
}

fn address_key(user: &UserRow) -> Option<String> {
    user.email.as_ref().map(|email| email_key(&email.address))
}

async fn adopt(session: &mut Session, user: UserId, arrival: Arrival<'_>) -> Step {
    let Some(user) = users::lock(session, user).await? else { return Ok(None) };
    if user.disabled_at.is_some() {
        return Ok(Some(Err(OauthRefusal::AccessDenied)));
    }
    if user.oauth.is_some() {
        return Ok(Some(Err(OauthRefusal::AccountExists)));
    }
    // Signing in at a provider is a way to accept an invitation: it ends it, and too late is too late.
    let invited_until = invitations::open_until(session, user.id).await?;
    if invited_until.is_some_and(|until| until <= arrival.now) {
        return Ok(Some(Err(OauthRefusal::AccessDenied)));
    }
    let accepts = invited_until.is_some() && invitations::accept_of(session, user.id, arrival.now).await?;
    let mut step = attach(session, user, arrival).await?;
    if accepts && let Some(Ok((user, noted))) = &mut step {
        noted.push(note(session, AuditAction::InvitationAccepted, user, arrival).await?);
    }
    Ok(step)
}

/// Links an account to a provider. Name and address stay: whoever holds a
/// session could otherwise take the account over with *forgot password*. The
/// provider's avatar fills an empty one. Mailed links to set a password expire.
async fn attach(session: &mut Session, mut user: UserRow, arrival: Arrival<'_>) -> Step {
    user.oauth =
        Some(OauthLink { provider: arrival.provider.as_str().to_owned(), id: arrival.profile.id.clone() });
    user.session_epoch += 1;
    user.updated_at = arrival.now;
    if user.avatar.is_none() {
        user.avatar.clone_from(&arrival.profile.avatar);
    }
    Ok(match users::save(session, &user).await? {
        Saved::Done => {
            for purpose in [TokenPurpose::Reset, TokenPurpose::Invite] {
                tokens::void(session, user.id, purpose, arrival.now).await?;
            }
            mails::notify(session, &user, Notice::ProviderLinked, arrival.now).await?;
            let noted = note(session, AuditAction::OauthLinked, &user, arrival).await?;
            Some(Ok((user, vec![noted])))
        }
        Saved::LinkTaken => Some(Err(OauthRefusal::AlreadyLinked)),
        Saved::NameTaken | Saved::EmailTaken => None,
    })
}

async fn create(session: &mut Session, arrival: Arrival<'_>) -> Step {
    let Arrival { provider, profile, now, .. } = arrival;
    let username = free_name(session, provider, profile).await?;
    let source = if profile.email_verified { EmailSource::Provider } else { EmailSource::Unverified };
    let user = UserRow {
        id: users::new_id(session).await?,
        username_key: username_key(&username),
        username,
        password: String::new(),
        role: Role::User,
        name: profile.name.clone(),
        email: profile.email.clone().map(|address| Email {
            address,
            source,
            verified_at: profile.email_verified.then_some(now),
        }),
        avatar: profile.avatar.clone(),
        oauth: Some(OauthLink { provider: provider.as_str().to_owned(), id: profile.id.clone() }),
        session_epoch: 0,
        disabled_at: None,
        created_at: now,
        updated_at: now,
    };
    if users::insert(session, &user).await? != Saved::Done {
        return Ok(None);
    }
    let noted = vec![
        note(session, AuditAction::UserCreated, &user, arrival).await?,
        note(session, AuditAction::OauthSucceeded, &user, arrival).await?,
    ];
    Ok(Some(Ok((user, noted))))
}

/// The address, where it can be a name and is free; else the provider's name
/// and the id there, which nobody else has.
async fn free_name(
    session: &mut Session,
    provider: Provider,
    profile: &Profile,
) -> std::result::Result<String, StoreError> {
    if let Some(address) = &profile.email
        && judge_username(address).is_ok()
        && users::by_name(session, &username_key(address)).await?.is_none()
    {
        return Ok(address.clone());
    }
    let plain = format!("{}-{}", provider.as_str(), profile.id);
    if judge_username(&plain).is_ok() {
        return Ok(plain);
    }
    Ok(format!("{}-{}", provider.as_str(), profile.id_fingerprint()))
}

/// Takes over what the provider says about a person. An address that another
/// account holds is left out; the sign-in succeeds all the same.
async fn refresh(
    session: &mut Session,
    user: &mut UserRow,
    arrival: Arrival<'_>,
) -> std::result::Result<(), StoreError> {
    let profile = arrival.profile;
    if profile.name.is_some() {
        user.name.clone_from(&profile.name);
    }
    if profile.avatar.is_some() {
        user.avatar.clone_from(&profile.avatar);
    }
    let Some(address) = profile.verified_email() else { return Ok(()) };
    let holder = users::by_email(session, &email_key(address)).await?;
    if holder.is_none_or(|holder| holder.id == user.id) {
        let unchanged = user
            .email
            .as_ref()
            .filter(|email| email_key(&email.address) == email_key(address) && email.source.is_trusted());
        let verified_at = unchanged.and_then(|email| email.verified_at).or(Some(arrival.now));
        user.email = Some(Email { address: address.to_owned(), source: EmailSource::Provider, verified_at });
    }
    Ok(())
}

/// Links a person at a provider to the account whose session asked for it.
/// That session goes on, the account's others end.
///
/// # Errors
/// [`QueryError::Store`] when the database does not answer.
pub async fn link(store: &Store, link: Link, arrival: Arrival<'_>) -> Result<Outcome<UserRow>> {
    let mut session = store.db().begin().await?;
    let Some(user) = users::lock(&mut session, link.user).await? else {
        return Ok(Err(OauthRefusal::LinkRequiresLogin));
    };
    let holder = users::by_oauth(&mut session, arrival.provider.as_str(), &arrival.profile.id).await?;
    if holder.is_some() || user.oauth.is_some() {
        return Ok(Err(OauthRefusal::AlreadyLinked));
    }
    match attach(&mut session, user, arrival).await {
        Ok(Some(Ok((user, noted)))) => {
            sessions::move_to_epoch(&mut session, link.sid_hash, user.session_epoch).await?;
            session.commit().await?;
            noted.into_iter().for_each(Recorded::committed);
            Ok(Ok(user))
        }
        Ok(Some(Err(refusal))) => Ok(Err(refusal)),
        Ok(None) => Ok(Err(OauthRefusal::AccountExists)),
        Err(error) if error.is_taken() => Ok(Err(OauthRefusal::AlreadyLinked)),
        Err(error) => Err(error.into()),
    }
}

/// Why an account cannot be unlinked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnlinkRefusal {
    /// It is not linked to this provider.
    NotLinked,
    /// Without a password nobody could sign in to it any more.
    PasswordRequired,
}

/// Unlinks an account from a provider. Its other sessions end; `session` is
/// the one that acts and goes on.
///
/// # Errors
/// [`QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn unlink(
    store: &Store,
    user: UserId,
    acting: &SessionProof,
    provider: Provider,
    visitor: &Visitor,
    now: Timestamp,
) -> Result<std::result::Result<UserRow, UnlinkRefusal>> {
    let mut session = store.db().begin().await?;
    let found = users::lock(&mut session, user).await?;
    let linked =
        found.filter(|user| user.oauth.as_ref().is_some_and(|link| link.provider == provider.as_str()));
    let Some(mut user) = linked else { return Ok(Err(UnlinkRefusal::NotLinked)) };
    if user.password.is_empty() {
        return Ok(Err(UnlinkRefusal::PasswordRequired));
    }
    user.oauth = None;
    user.session_epoch += 1;
    user.updated_at = now;
    users::save(&mut session, &user).await?;
    sessions::move_to_epoch(&mut session, acting.sid_hash, user.session_epoch).await?;
    mails::notify(&mut session, &user, Notice::ProviderUnlinked, now).await?;
    let detail = detail("provider", provider.as_str());
    let noted = visitor.note(&mut session, AuditAction::OauthUnlinked, Some(user.id), detail, now).await?;
    session.commit().await?;
    noted.committed();
    Ok(Ok(user))
}

/// Notes that somebody who came from a provider was turned away.
///
/// # Errors
/// [`QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn note_refusal(
    store: &Store,
    provider: Provider,
    refusal: OauthRefusal,
    visitor: &Visitor,
    now: Timestamp,
) -> Result<()> {
    let mut detail = detail("provider", provider.as_str());
    detail.insert("reason".to_owned(), refusal.code().into());
    let mut session = store.db().begin().await?;
    let noted = visitor.note(&mut session, AuditAction::OauthRefused, visitor.user, detail, now).await?;
    session.commit().await?;
    noted.committed();
    Ok(())
}

async fn note(
    session: &mut Session,
    action: AuditAction,
    user: &UserRow,
    arrival: Arrival<'_>,
) -> std::result::Result<Recorded, StoreError> {
    let detail = detail("provider", arrival.provider.as_str());
    by_subject(arrival.visitor, user.id).note(session, action, Some(user.id), detail, arrival.now).await
}
