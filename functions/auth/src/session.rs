//! Login, logout, and who the caller is.

use axum::Json;
use axum::extract::State;
use axum::response::{Redirect, Response};
use callboard_auth::password::{self, Verdict};
use callboard_auth::session_cookie::DeviceClaims;
use callboard_http::extract::{Caller, Visit, is_browser_form};
use callboard_http::{ApiError, AppState};
use callboard_platform::hash_pool::Asker;
use callboard_query::accounts::own::{self, OwnAccount};
use callboard_query::accounts::setup;
use callboard_query::accounts::sign_in::{self, Candidate, Checked};
use callboard_query::limits::{LimitError, LoginAttempt};
use http::{HeaderMap, HeaderValue};
use serde::Serialize;
use utoipa::ToSchema;

use crate::body::Credentials;
use crate::cookie;
use crate::form::{SIGN_IN, SignIn};

/// A session was started.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LoginAnswer {
    /// Always true.
    pub(crate) success: bool,
    /// Who is signed in.
    pub(crate) user: OwnAccount,
    /// What should be said about the password, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<&'static str>,
}

/// It is done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Success {
    /// Always true.
    pub(crate) success: bool,
}

impl Success {
    /// It is done.
    pub(crate) const fn done() -> Json<Self> {
        Json(Self { success: true })
    }
}

/// Who the caller is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MeAnswer {
    /// Whether the caller may do anything.
    authenticated: bool,
    /// Whether callers have to sign in at all.
    auth_enabled: bool,
    /// The caller.
    user: Option<OwnAccount>,
    /// Whether the first administrator is still to be created; said to callers who are not signed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    needs_setup: Option<bool>,
    /// Providers people can sign in at: `idp`, `codehost`.
    #[schema(example = json!(["idp"]))]
    providers: Vec<&'static str>,
}

/// Starts a session. With authentication off every name and password is
/// accepted and the cookie opens nothing.
///
/// A session that is presented ends. After too many failures of an account or
/// an address, right passwords are refused as well for a while. The form of a
/// browser without scripts (`application/x-www-form-urlencoded`) is answered
/// with the page to go on to.
#[utoipa::path(post, path = "/api/auth/login", tag = "auth", request_body = Credentials,
    responses(
        (status = 200, description = "Signed in; sets the session cookie", body = LoginAnswer),
        (status = 303, description = "To a page, for forms of browsers"),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 401, description = "`invalid_credentials`"),
        (status = 429, description = "`rate_limited`; `Retry-After` says when to come back"),
        (status = 503, description = "`busy`: too many sign-ins at once")
    ))]
pub(crate) async fn login(
    State(state): State<AppState>,
    visit: Visit,
    headers: HeaderMap,
    asked: SignIn,
) -> Result<Response, ApiError> {
    match asked {
        SignIn::Program(credentials) => {
            let (user, cookies) = enter(&state, &visit, &headers, credentials).await?;
            let answer = LoginAnswer { success: true, user, warnings: Vec::new() };
            Ok(cookie::with_cookies(Json(answer), cookies))
        }
        SignIn::Form(form) => {
            let entered = enter(&state, &visit, &headers, form.credentials()).await;
            Ok(form.answered(&state, &headers, entered.map(|(_, cookies)| cookies)))
        }
    }
}

/// Who signed in, and the cookies that keep it.
type Entered = (OwnAccount, Vec<HeaderValue>);

/// Signs in with name and password.
async fn enter(
    state: &AppState,
    visit: &Visit,
    headers: &HeaderMap,
    Credentials { username, password }: Credentials,
) -> Result<Entered, ApiError> {
    let form = state.cookie_form(headers);
    if !state.auth_enabled() {
        return Ok((OwnAccount::virtual_administrator(), vec![cookie::inert(form)]));
    }
    let now = state.now();
    let candidate = Candidate::find(state.store(), &username).await?;
    let device = state.cookies().open::<DeviceClaims>(headers, form, now).map(|opened| opened.value);
    let known_device = candidate.user_id().and_then(|user| device.as_ref()?.session_for(user));
    let attempt = LoginAttempt {
        address: visit.address,
        account: &candidate.account_key,
        device: known_device.map(|device| device.as_slice()),
    };
    let ticket = match state.limits().await?.admit_login(attempt, now).await {
        Ok(ticket) => ticket,
        Err(error) => {
            if matches!(error, LimitError::Limited { .. }) {
                note_limited(state, &candidate, visit).await?;
            }
            return Err(error.into());
        }
    };
    let is_known_device = known_device.is_some();
    let asker = if is_known_device { Asker::known(visit.address) } else { Asker::stranger(visit.address) };
    let checked = match check(state, &candidate, asker, password).await {
        Ok(checked) => checked,
        Err(error) => {
            ticket.released(state.now()).await?;
            return Err(error);
        }
    };
    if matches!(checked, Checked::Right { .. }) {
        ticket.succeeded(state.now()).await?;
    } else {
        ticket.failed(state.now()).await?;
    }
    let signed_in = sign_in::finish(state.store(), candidate, checked, visit, now).await?;
    let mut cookies = vec![cookie::session(state, headers, &signed_in.claims)?];
    if !is_known_device {
        cookies.push(state.cookies().set(&DeviceClaims::start(signed_in.user.id, now)?, form)?);
    }
    Ok((OwnAccount::from_row(&signed_in.user), cookies))
}

/// Compares a password with the candidate's; many programs that sign in to one
/// account at the same time are one piece of work. A right one whose hash is
/// weaker than new ones is hashed anew.
async fn check(
    state: &AppState,
    candidate: &Candidate,
    asker: Asker,
    password: String,
) -> Result<Checked, ApiError> {
    let (name, stored) = (&candidate.account_key, candidate.password_hash().map(str::to_owned));
    match state.passwords().verify(asker, name, password.clone(), stored).await? {
        Verdict::Wrong => Ok(Checked::Wrong),
        Verdict::Right { needs_rehash: false } => Ok(Checked::Right { stronger: None }),
        Verdict::Right { needs_rehash: true } => {
            let hash = state.passwords().run(asker, move || password::hash(&password)).await??;
            Ok(Checked::Right { stronger: Some(hash) })
        }
    }
}

/// Refusals may come by the thousand; one entry for each window says enough.
async fn note_limited(state: &AppState, candidate: &Candidate, visit: &Visit) -> Result<(), ApiError> {
    let now = state.now();
    let subject = [visit.address.subject().as_slice(), candidate.account_key.as_bytes()].concat();
    match state.limits().await?.check(callboard_auth::limits::NOTED_REFUSAL, &subject, now).await {
        Ok(()) => Ok(sign_in::note_limited(state.store(), candidate, visit, now).await?),
        Err(LimitError::Limited { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Ends the session; without one it does nothing.
#[utoipa::path(post, path = "/api/auth/logout", tag = "auth",
    responses(
        (status = 200, body = Success),
        (status = 303, description = "To the sign-in, for forms of browsers"),
    ))]
pub(crate) async fn logout(
    State(state): State<AppState>,
    visit: Visit,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    sign_in::sign_out(state.store(), &visit, state.now()).await?;
    let cleared = [cookie::cleared(state.cookie_form(&headers))];
    if is_browser_form(&headers) {
        return Ok(cookie::with_cookies(Redirect::to(SIGN_IN), cleared));
    }
    Ok(cookie::with_cookies(Success::done(), cleared))
}

/// Who the caller is; never an error.
#[utoipa::path(get, path = "/api/auth/me", tag = "auth", responses((status = 200, body = MeAnswer)))]
pub(crate) async fn me(State(state): State<AppState>, caller: Caller) -> Result<Json<MeAnswer>, ApiError> {
    let user = own::load(state.store(), &caller).await?;
    let needs_setup = if user.is_none() { Some(setup::is_needed(state.store()).await?) } else { None };
    Ok(Json(MeAnswer {
        authenticated: user.is_some(),
        auth_enabled: state.auth_enabled(),
        user,
        needs_setup,
        providers: providers(&state),
    }))
}

/// Providers that are configured; none where nobody signs in.
fn providers(state: &AppState) -> Vec<&'static str> {
    if !state.auth_enabled() {
        return Vec::new();
    }
    state.config().oauth.configured().map(callboard_auth::oauth::Provider::as_str).collect()
}
