//! New passwords: changed by somebody who is signed in, or set with what a
//! mail brought. Either ends every session of the account; who changes it
//! goes on in a new one.

use callboard_auth::keys::SealingFailed;
use callboard_auth::password::{self, Verdict};
use callboard_auth::token::{self, TokenKind};
use callboard_auth::{Denied, SessionProof};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use callboard_store::Store;
use callboard_store::accounts::tokens::{self, TokenPurpose};
use callboard_store::accounts::users::{self, EmailSource, Saved, UserRow};
use callboard_store::accounts::{invitations, sessions};
use callboard_store::boxed;
use serde_json::Map;

use super::mails::{self, Notice};
use super::refusal::AccountRefusal;
use super::sign_in::{SignedIn, begin_session, detail};
use super::visitor::Visitor;
use crate::Result;

/// A sign-in stands in for the old password for this long, milliseconds.
const RECENT_MS: i64 = 15 * 60 * 1000;

/// An account whose owner wants a new password.
#[derive(Debug, Clone)]
pub struct Changing {
    user: UserRow,
}

impl Changing {
    /// The caller's account.
    ///
    /// # Errors
    /// [`Denied::AuthenticationRequired`] when it is gone;
    /// [`crate::QueryError::Store`] when the database does not answer.
    #[boxed]
    pub async fn load(store: &Store, user: UserId) -> Result<Self> {
        let found = users::get(&mut store.db().read().await?, user).await?;
        Ok(Self { user: found.ok_or(Denied::AuthenticationRequired)? })
    }

    /// The account.
    #[must_use]
    pub const fn user(&self) -> UserId {
        self.user.id
    }

    /// Whether the old password has to be given. An account without one takes
    /// a recent sign-in instead.
    ///
    /// # Errors
    /// [`AccountRefusal::ReauthenticationRequired`].
    pub fn takes_current_password(
        &self,
        session: &SessionProof,
        now: Timestamp,
    ) -> Result<bool, AccountRefusal> {
        if !self.user.password.is_empty() {
            return Ok(true);
        }
        let is_recent = now.millis() - session.auth_at.millis() <= RECENT_MS;
        if is_recent { Ok(false) } else { Err(AccountRefusal::ReauthenticationRequired) }
    }

    /// The hash of a new password, when `current` is the old one. Without
    /// `current` (see [`Changing::takes_current_password`]) only the new one
    /// is hashed.
    ///
    /// # Errors
    /// [`SealingFailed`] when it cannot be hashed.
    pub fn hash(&self, current: Option<&str>, new: &str) -> Result<Option<String>, SealingFailed> {
        if let Some(current) = current
            && password::verify(current, Some(&self.user.password)) == Verdict::Wrong
        {
            return Ok(None);
        }
        password::hash(new).map(Some)
    }

    /// Notes that the present password was not the account's.
    ///
    /// # Errors
    /// [`crate::QueryError::Store`].
    #[boxed]
    pub async fn note_failed(&self, store: &Store, visitor: &Visitor, now: Timestamp) -> Result<()> {
        let mut session = store.db().begin().await?;
        let action = AuditAction::PasswordChangeFailed;
        let noted = visitor.note(&mut session, action, Some(self.user.id), Map::new(), now).await?;
        session.commit().await?;
        noted.committed();
        Ok(())
    }

    /// Stores the new password. Every session ends; the one that is answered
    /// is new.
    ///
    /// # Errors
    /// [`Denied::AuthenticationRequired`] when the account was changed
    /// meanwhile, which ends its sessions; [`crate::QueryError::Store`].
    #[boxed]
    pub async fn store(
        self,
        store: &Store,
        password_hash: String,
        visitor: &Visitor,
        now: Timestamp,
    ) -> Result<SignedIn> {
        let mut session = store.db().begin().await?;
        let locked = users::lock(&mut session, self.user.id).await?;
        let unchanged =
            |user: &UserRow| user.session_epoch == self.user.session_epoch && user.disabled_at.is_none();
        let mut user = locked.filter(unchanged).ok_or(Denied::AuthenticationRequired)?;
        set(&mut user, password_hash, now);
        users::save(&mut session, &user).await?;
        sessions::revoke_all(&mut session, user.id, None, now).await?;
        tokens::void(&mut session, user.id, TokenPurpose::Reset, now).await?;
        let claims = begin_session(&mut session, &user, "password", visitor, now).await?;
        mails::notify(&mut session, &user, Notice::PasswordChanged, now).await?;
        let noted =
            visitor.note(&mut session, AuditAction::PasswordChanged, Some(user.id), Map::new(), now).await?;
        session.commit().await?;
        noted.committed();
        Ok(SignedIn { user, claims })
    }
}

fn set(user: &mut UserRow, password_hash: String, now: Timestamp) {
    user.password = password_hash;
    user.session_epoch += 1;
    user.updated_at = now;
}

/// A mailed token that may set a password.
#[derive(Debug, Clone, Copy)]
pub struct ResetToken([u8; 32]);

impl ResetToken {
    /// Reads a token and asks whether it would open something, before
    /// anything is hashed for it. Using it decides.
    ///
    /// # Errors
    /// [`AccountRefusal::InvalidOrExpiredToken`];
    /// [`crate::QueryError::Store`] when the database does not answer.
    #[boxed]
    pub async fn read(store: &Store, text: &str, now: Timestamp) -> Result<Self> {
        let Some((TokenKind::Reset | TokenKind::Invite, hash)) = token::read(text) else {
            return Err(AccountRefusal::InvalidOrExpiredToken.into());
        };
        if tokens::sets_password(&mut store.db().read().await?, hash, now).await? {
            Ok(Self(hash))
        } else {
            Err(AccountRefusal::InvalidOrExpiredToken.into())
        }
    }

    /// Uses the token: the password is set and every session ends. Of any
    /// number of uses at the same time one succeeds.
    ///
    /// # Errors
    /// [`AccountRefusal::InvalidOrExpiredToken`];
    /// [`crate::QueryError::Store`].
    #[boxed]
    pub async fn use_up(
        self,
        store: &Store,
        password_hash: String,
        visitor: &Visitor,
        now: Timestamp,
    ) -> Result<()> {
        let mut session = store.db().begin().await?;
        let used = tokens::use_for_password(&mut session, self.0, now).await?;
        let used = used.ok_or(AccountRefusal::InvalidOrExpiredToken)?;
        let locked = users::lock(&mut session, used.user).await?;
        let mut user =
            locked.filter(|user| user.disabled_at.is_none()).ok_or(AccountRefusal::InvalidOrExpiredToken)?;
        set(&mut user, password_hash, now);
        prove_address(&mut user, used.email.as_deref(), now);
        if users::save(&mut session, &user).await? != Saved::Done {
            return Err(AccountRefusal::InvalidOrExpiredToken.into());
        }
        sessions::revoke_all(&mut session, user.id, None, now).await?;
        tokens::void_all(&mut session, user.id, now).await?;
        let action = match used.purpose {
            TokenPurpose::Invite => {
                invitations::accept_of(&mut session, user.id, now).await?;
                AuditAction::InvitationAccepted
            }
            TokenPurpose::Reset | TokenPurpose::Verify => {
                mails::notify(&mut session, &user, Notice::PasswordReset, now).await?;
                AuditAction::PasswordReset
            }
        };
        let noted = visitor
            .note(&mut session, action, Some(user.id), detail("by", used.purpose.as_str()), now)
            .await?;
        session.commit().await?;
        noted.committed();
        Ok(())
    }
}

/// Who could use the link reads the mail of the address it went to.
fn prove_address(user: &mut UserRow, sent_to: Option<&str>, now: Timestamp) {
    if let Some(email) = &mut user.email
        && email.source.is_trusted()
        && sent_to == Some(email.address.as_str())
        && email.verified_at.is_none()
    {
        email.source = EmailSource::Verified;
        email.verified_at = Some(now);
    }
}
