//! Proving that an e-mail address is the account's: a link goes to it, and
//! whoever opens the link reads its mail.

use callboard_auth::token::{self, TokenKind};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use callboard_store::accounts::tokens;
use callboard_store::accounts::users::{self, EmailSource, Saved};
use callboard_store::{Store, boxed, jobs};
use serde_json::Map;

use super::mails::VerifyMail;
use super::refusal::AccountRefusal;
use super::rule::AccountRule;
use super::sign_in::by_subject;
use super::visitor::Visitor;
use crate::Result;

/// An account's address that is not proven.
#[derive(Debug, Clone)]
pub struct Unproven {
    user: UserId,
    address: String,
}

impl Unproven {
    /// The address of an account; none when it is proven already.
    ///
    /// # Errors
    /// [`AccountRefusal::NoAddress`]; [`crate::QueryError::Store`] when the
    /// database does not answer.
    #[boxed]
    pub async fn load(store: &Store, user: UserId) -> Result<Option<Self>> {
        let found = users::get(&mut store.db().read().await?, user).await?;
        let email = found.and_then(|user| user.email).ok_or(AccountRefusal::NoAddress)?;
        Ok(email.verified_at.is_none().then_some(Self { user, address: email.address }))
    }

    /// Enqueues the mail with the link.
    ///
    /// # Errors
    /// [`crate::QueryError::Store`].
    #[boxed]
    pub async fn ask_for_mail(self, store: &Store, visitor: &Visitor, now: Timestamp) -> Result<()> {
        let key = format!("user:{}:verify:{}", self.user, now.millis());
        let payload = VerifyMail { user: self.user.get(), address: self.address };
        let mut session = store.db().begin().await?;
        jobs::enqueue(&mut session, &key, None, &payload, now).await?;
        let noted = visitor
            .note(&mut session, AuditAction::EmailVerificationRequested, Some(self.user), Map::new(), now)
            .await?;
        session.commit().await?;
        noted.committed();
        Ok(())
    }
}

/// Uses a mailed token: the address it was sent to is the account's, if it
/// still is.
///
/// # Errors
/// [`AccountRefusal::InvalidOrExpiredToken`]; [`AccountRule::EmailTaken`]
/// when another account has proven the address;
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn prove(store: &Store, text: &str, visitor: &Visitor, now: Timestamp) -> Result<()> {
    let Some((TokenKind::Verify, hash)) = token::read(text) else {
        return Err(AccountRefusal::InvalidOrExpiredToken.into());
    };
    let mut session = store.db().begin().await?;
    let used = tokens::use_for_proof(&mut session, hash, now).await?;
    let used = used.ok_or(AccountRefusal::InvalidOrExpiredToken)?;
    let locked = users::lock(&mut session, used.user).await?;
    let mut user =
        locked.filter(|user| user.disabled_at.is_none()).ok_or(AccountRefusal::InvalidOrExpiredToken)?;
    match &mut user.email {
        Some(email) if used.email.as_ref() == Some(&email.address) => {
            email.source = EmailSource::Verified;
            email.verified_at = Some(now);
        }
        _ => return Err(AccountRefusal::InvalidOrExpiredToken.into()),
    }
    user.updated_at = now;
    if users::save(&mut session, &user).await? != Saved::Done {
        return Err(AccountRule::EmailTaken.into());
    }
    let noted = by_subject(visitor, user.id)
        .note(&mut session, AuditAction::EmailVerified, Some(user.id), Map::new(), now)
        .await?;
    session.commit().await?;
    noted.committed();
    Ok(())
}
