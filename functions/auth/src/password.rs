//! New passwords: changed by somebody who is signed in, asked for and set by
//! somebody who is not.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::limits::CHANGE_PASSWORD;
use callboard_auth::{Denied, SessionProof};
use callboard_http::extract::{Caller, Fields, Visit};
use callboard_http::{ApiError, AppState};
use callboard_platform::hash_pool::Asker;
use callboard_query::accounts::mails;
use callboard_query::accounts::own::OwnAccount;
use callboard_query::accounts::passwords::{Changing, ResetToken};
use callboard_query::accounts::refusal::AccountRefusal;
use http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;

use crate::admission::{Counted, Forgot, Reset, SignInExists};
use crate::body::{ChangePasswordBody, ForgotPasswordBody, ResetPasswordBody, filled};
use crate::cookie;
use crate::remark::warnings;
use crate::session::{LoginAnswer, Success};

/// A password was set.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PasswordSet {
    /// Always true.
    success: bool,
    /// What should be said about the password, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<&'static str>,
}

/// Changes one's own password.
///
/// Every session of the account ends; the answer sets the cookie of a new
/// one. API keys go on. An account without a password takes a sign-in within
/// the last 15 minutes instead of `currentPassword`.
#[utoipa::path(post, path = "/api/auth/change-password", tag = "auth", request_body = ChangePasswordBody,
    responses(
        (status = 200, description = "Changed; sets the cookie of a new session", body = LoginAnswer),
        (status = 400, description = "`auth_disabled`, `missing_field`, `invalid_field`"),
        (status = 401, description = "`invalid_credentials`: `currentPassword` is wrong"),
        (status = 403, description = "`session_required`, `reauthentication_required`"),
        (status = 429, description = "`rate_limited`; `Retry-After` says when to come back"),
    ))]
pub(crate) async fn change(
    State(state): State<AppState>,
    _: SignInExists,
    caller: Caller,
    visit: Visit,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Response, ApiError> {
    let session = caller.session().ok_or(Denied::SessionRequired)?;
    let user = caller.user_id().ok_or(Denied::SessionRequired)?;
    let now = state.now();
    fields.require(&["newPassword"])?;
    let new = filled(&fields, "newPassword")?;
    let remark = judge(&state, "newPassword", &new)?;
    let changing = Changing::load(state.store(), user).await?;
    let hash = proven_hash(&state, &changing, session, &visit, &fields, new).await?;
    let signed_in = changing.store(state.store(), hash, &visit, now).await?;
    let cookie = cookie::session(&state, &headers, &signed_in.claims)?;
    let user = OwnAccount::from_row(&signed_in.user);
    Ok(cookie::with_cookies(Json(LoginAnswer { success: true, user, warnings: warnings(remark) }), [cookie]))
}

/// The hash of the new password, once the old one was right.
async fn proven_hash(
    state: &AppState,
    changing: &Changing,
    session: &SessionProof,
    visit: &Visit,
    fields: &Fields,
    new: String,
) -> Result<String, ApiError> {
    let work = changing.clone();
    if !changing.takes_current_password(session, state.now())? {
        let hash =
            state.passwords().run(Asker::known(visit.address), move || work.hash(None, &new)).await??;
        return Ok(hash.ok_or(AccountRefusal::WrongCurrentPassword)?);
    }
    let current = filled(fields, "currentPassword")?;
    let subject = changing.user().get().to_be_bytes();
    let ticket = state.limits().await?.admit(&[(CHANGE_PASSWORD, &subject)], state.now()).await?;
    match state.passwords().run(Asker::known(visit.address), move || work.hash(Some(&current), &new)).await {
        Ok(hash) => match hash? {
            Some(hash) => {
                ticket.succeeded(state.now()).await?;
                Ok(hash)
            }
            None => {
                ticket.failed(state.now()).await?;
                changing.note_failed(state.store(), visit, state.now()).await?;
                Err(AccountRefusal::WrongCurrentPassword.into())
            }
        },
        Err(busy) => {
            ticket.released(state.now()).await?;
            Err(busy.into())
        }
    }
}

fn judge(
    state: &AppState,
    field: &'static str,
    password: &str,
) -> Result<Option<callboard_auth::password::PasswordRemark>, ApiError> {
    let judged = state.config().password_rules.judge(password);
    judged.map_err(|refused| {
        // The rules speak of a password; here it has a name.
        let sentence = refused.to_string().replacen("password", field, 1);
        AccountRefusal::field(field, sentence).into()
    })
}

/// Asks for a mail with a link to set a new password.
///
/// The answer is the same whoever asks for whatever address.
#[utoipa::path(post, path = "/api/auth/forgot-password", tag = "auth", request_body = ForgotPasswordBody,
    responses(
        (status = 200, description = "If an account has this address, a mail is on its way", body = Success),
        (status = 400, description = "`auth_disabled`, `missing_field`, `invalid_field`"),
        (status = 429, description = "`rate_limited`; `Retry-After` says when to come back"),
    ))]
pub(crate) async fn forgot(
    State(state): State<AppState>,
    _: SignInExists,
    _: Counted<Forgot>,
    visit: Visit,
    fields: Fields,
) -> Result<Json<Success>, ApiError> {
    fields.require(&["email"])?;
    // Whatever it is, an empty text included, is answered alike.
    let address = fields.text("email")?.into_value().unwrap_or_default();
    mails::forgot(state.store(), address.trim(), &visit, state.now()).await?;
    Ok(Success::done())
}

/// Sets a password with the token of a mail: of a link for a new password, or
/// of an invitation. Every session of the account ends.
#[utoipa::path(post, path = "/api/auth/reset-password", tag = "auth", request_body = ResetPasswordBody,
    responses(
        (status = 200, description = "Set; sign in with it", body = PasswordSet),
        (status = 400, description = "`auth_disabled`, `missing_field`, `invalid_field`, `invalid_or_expired_token`"),
        (status = 429, description = "`rate_limited`; `Retry-After` says when to come back"),
    ))]
pub(crate) async fn reset(
    State(state): State<AppState>,
    _: SignInExists,
    _: Counted<Reset>,
    visit: Visit,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Response, ApiError> {
    fields.require(&["token", "password"])?;
    let (token, password) = (filled(&fields, "token")?, filled(&fields, "password")?);
    let remark = judge(&state, "password", &password)?;
    let token = ResetToken::read(state.store(), &token, state.now()).await?;
    let hash = state
        .passwords()
        .run(Asker::known(visit.address), move || callboard_auth::password::hash(&password))
        .await??;
    token.use_up(state.store(), hash, &visit, state.now()).await?;
    let answer = PasswordSet { success: true, warnings: warnings(remark) };
    Ok(cookie::with_cookies(Json(answer), [cookie::cleared(state.cookie_form(&headers))]))
}
