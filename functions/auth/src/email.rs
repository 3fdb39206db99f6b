//! Proving that an e-mail address is the account's.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use callboard_auth::Denied;
use callboard_auth::limits::VERIFY_MAIL;
use callboard_http::extract::{Caller, FromQuery, Query, QueryReader, Visit};
use callboard_http::{ApiError, AppState};
use callboard_platform::mail;
use callboard_query::accounts::addresses::{self, Unproven};
use callboard_query::accounts::refusal::AccountRefusal;
use http::header::ACCEPT;
use http::{HeaderMap, Method};
use serde::Serialize;
use utoipa::ToSchema;

use crate::admission::SignInExists;
use crate::session::Success;

/// Whether a mail is on its way.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VerifyMailAnswer {
    /// Always true.
    success: bool,
    /// True when the address was proven before; no mail is sent then.
    already_verified: bool,
}

/// Asks for a mail that proves the address of one's own account.
#[utoipa::path(post, path = "/api/auth/send-verify-email", tag = "auth",
    responses(
        (status = 200, body = VerifyMailAnswer),
        (status = 400, description = "`auth_disabled`"),
        (status = 409, description = "`no_email`"),
        (status = 403, description = "`session_required`"),
        (status = 429, description = "`rate_limited`; `Retry-After` says when to come back"),
        (status = 503, description = "`smtp_not_configured`"),
    ))]
pub(crate) async fn send(
    State(state): State<AppState>,
    _: SignInExists,
    caller: Caller,
    visit: Visit,
) -> Result<Json<VerifyMailAnswer>, ApiError> {
    let user = caller.user_id().ok_or(Denied::SessionRequired)?;
    let Some(unproven) = Unproven::load(state.store(), user).await? else {
        return Ok(Json(VerifyMailAnswer { success: true, already_verified: true }));
    };
    if !mail::is_configured(&*state.mail_config().await?) {
        return Err(AccountRefusal::SmtpNotConfigured.into());
    }
    state.limits().await?.check(VERIFY_MAIL, &user.get().to_be_bytes(), state.now()).await?;
    unproven.ask_for_mail(state.store(), &visit, state.now()).await?;
    Ok(Json(VerifyMailAnswer { success: true, already_verified: false }))
}

/// What the link of a mail carries.
pub(crate) struct Proof {
    token: String,
}

impl FromQuery for Proof {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { token: query.exact("token")?.unwrap_or_default() })
    }
}

/// Proves an address with the token of a mail.
///
/// A browser that opens this as a page is sent to the one that asks with a
/// script: programs that look at links in mails do not use tokens up.
#[utoipa::path(get, path = "/api/auth/verify-email", tag = "auth",
    params(("token" = String, Query, description = "The token of the mail")),
    responses(
        (status = 200, description = "The address is proven", body = Success),
        (status = 303, description = "To the page, for browsers"),
        (status = 400, description = "`auth_disabled`, `invalid_or_expired_token`"),
        (status = 409, description = "`email_taken`"),
    ))]
pub(crate) async fn verify(
    State(state): State<AppState>,
    _: SignInExists,
    visit: Visit,
    method: Method,
    headers: HeaderMap,
    Query(proof): Query<Proof>,
) -> Result<Response, ApiError> {
    // Whoever asks for the head alone only looks whether the link leads somewhere.
    if method == Method::HEAD {
        return Ok(Success::done().into_response());
    }
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if accept.contains("text/html") {
        // What stands in the address is no token of ours unless it has only these letters.
        let letters = proof.token.chars().filter(|char| char.is_ascii_alphanumeric() || *char == '_');
        let token: String = letters.take(64).collect();
        return Ok(Redirect::to(&format!("/verify#token={token}")).into_response());
    }
    addresses::prove(state.store(), &proof.token, &visit, state.now()).await?;
    Ok(Success::done().into_response())
}
