//! Mails about accounts. Whether one is due is decided here and not where it
//! was asked for, so that asking tells nobody anything; tokens are made here,
//! so that none waits in the queue.
//!
//! A job that runs twice sends another mail with another token; the older
//! token opens nothing then.

use callboard_auth::limits::FORGOT_MAIL;
use callboard_domain::ids::{InvitationId, UserId};
use callboard_platform::mail::{self, About, Mail};
use callboard_query::accounts::invite_mail::{self, InviteMail};
use callboard_query::accounts::mails::{self, Notice, NoticeMail, ResetMail, VerifyMail};
use callboard_query::limits::LimitError;
use callboard_store::accounts::tokens::TokenPurpose;
use callboard_store::accounts::users::email_key;

use crate::job::{JobContext, JobError, Outcome};

/// Sends a link to set a new password, if an account may have one.
pub(crate) async fn send_reset(ctx: JobContext, job: ResetMail) -> Result<Outcome<ResetMail>, JobError> {
    let state = ctx.state();
    if !mail::is_configured(&*state.mail_config().await?) {
        return Ok(Outcome::Done);
    }
    let Some(user) = mails::recipient_of_reset(ctx.store(), &job.address, ctx.now()).await? else {
        return Ok(Outcome::Done);
    };
    let Some(email) = user.email else { return Ok(Outcome::Done) };
    // An attempt that has to be repeated is still one mail.
    if ctx.attempt() == 1 {
        let subject = email_key(&email.address);
        match state.limits().await?.check(FORGOT_MAIL, subject.as_bytes(), ctx.now()).await {
            Ok(()) => {}
            Err(LimitError::Limited { .. }) => return Ok(Outcome::Done),
            Err(LimitError::Store(error)) => return Err(error.into()),
        }
    }
    let address = Some(email.address.clone());
    let token = mails::mint(ctx.store(), user.id, TokenPurpose::Reset, address, ctx.now()).await?;
    let about = About::ResetPassword { username: user.username, token: token.text };
    sent(&ctx, email.address, about).await
}

/// Sends a link that proves an address, if it is still the account's.
pub(crate) async fn send_verify(ctx: JobContext, job: VerifyMail) -> Result<Outcome<VerifyMail>, JobError> {
    if !mail::is_configured(&*ctx.state().mail_config().await?) {
        return Ok(Outcome::Done);
    }
    let Some(user) = mails::account(ctx.store(), UserId(job.user)).await? else { return Ok(Outcome::Done) };
    let is_current =
        user.email.is_some_and(|email| email.address == job.address && email.verified_at.is_none());
    if !is_current {
        return Ok(Outcome::Done);
    }
    let address = Some(job.address.clone());
    let token = mails::mint(ctx.store(), user.id, TokenPurpose::Verify, address, ctx.now()).await?;
    let about = About::VerifyEmail { username: user.username, token: token.text };
    sent(&ctx, job.address, about).await
}

/// Sends the link of an invitation that is still open.
pub(crate) async fn send_invitation(
    ctx: JobContext,
    job: InviteMail,
) -> Result<Outcome<InviteMail>, JobError> {
    if !mail::is_configured(&*ctx.state().mail_config().await?) {
        return Ok(Outcome::Done);
    }
    let due = invite_mail::due_mail(ctx.store(), InvitationId(job.invitation)).await?;
    let Some(due) = due else { return Ok(Outcome::Done) };
    let address = Some(due.address.clone());
    let token = mails::mint(ctx.store(), due.user, TokenPurpose::Invite, address, ctx.now()).await?;
    let about = About::Invite { username: due.username, invited_by: due.invited_by, token: token.text };
    sent(&ctx, due.address, about).await
}

/// Tells somebody what happened to their account.
pub(crate) async fn send_notice(ctx: JobContext, job: NoticeMail) -> Result<Outcome<NoticeMail>, JobError> {
    if ctx.state().mail_config().await?.mail.is_none() {
        return Ok(Outcome::Done);
    }
    let Some(user) = mails::account(ctx.store(), UserId(job.user)).await? else { return Ok(Outcome::Done) };
    let username = user.username;
    let about = match job.notice {
        Notice::PasswordChanged | Notice::PasswordReset => {
            let keys = mails::live_keys(ctx.store(), user.id, ctx.now()).await?;
            let api_keys =
                keys.into_iter().map(|key| format!("{} ({}…)", key.name, key.key_prefix)).collect();
            About::PasswordChanged { username, api_keys }
        }
        Notice::EmailChanged => About::EmailChanged { username },
        Notice::ProviderLinked => {
            let Some(link) = user.oauth else { return Ok(Outcome::Done) };
            About::OauthLinked { username, provider: link.provider }
        }
        Notice::ProviderUnlinked => About::OauthUnlinked { username },
    };
    sent(&ctx, job.address, about).await
}

async fn sent<P>(ctx: &JobContext, to: String, about: About) -> Result<Outcome<P>, JobError> {
    let config = ctx.state().mail_config().await?;
    match mail::send(&config, &Mail { to, about }, ctx.key(), ctx.now()).await {
        Ok(()) => Ok(Outcome::Done),
        Err(error) if error.is_final() => Err(JobError::final_(error.to_string())),
        Err(error) => Err(error.into()),
    }
}
