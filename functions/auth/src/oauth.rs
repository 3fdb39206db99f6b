//! Signing in at a provider, and linking an account there. Browsers come
//! here by navigation, so every outcome is an address to go to; what a
//! provider says is never part of one.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use callboard_auth::cookies::CookieKind;
use callboard_auth::keys::SealingFailed;
use callboard_auth::limits;
use callboard_auth::oauth::{Link, OauthRefusal, OauthTransaction, Provider};
use callboard_auth::session_cookie::SessionClaims;
use callboard_auth::{Denied, SessionProof};
use callboard_http::extract::{Caller, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_platform::oauth::{Dialogue, DialogueError};
use callboard_query::QueryError;
use callboard_query::accounts::own::OwnAccount;
use callboard_query::accounts::providers::{self, Arrival, UnlinkRefusal};
use callboard_query::accounts::refusal::AccountRefusal;
use callboard_query::limits::LimitError;
use http::header::{HeaderMap, HeaderValue, LOCATION, SET_COOKIE};
use http::{HeaderName, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::cookie;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Linking takes a sign-in that is at most this old, milliseconds.
const RECENT_MS: i64 = 15 * 60 * 1000;
const HOME: &str = "/";
const SIGN_IN: &str = "/login";
const ACCOUNT: &str = "/settings/account";

/// What a callback's address says; a parameter that is there twice is none.
struct Answer(Vec<(String, String)>);

impl Answer {
    fn read(query: Option<&str>) -> Self {
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.into_owned().collect())
    }

    fn one(&self, name: &str) -> Option<&str> {
        let mut values = self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let first = values.next().filter(|value| !value.is_empty())?;
        values.next().is_none().then_some(first)
    }
}

/// Why a dialogue with a browser ends early.
enum Ended {
    Refused(OauthRefusal),
    Failed(ApiError),
}

impl From<OauthRefusal> for Ended {
    fn from(refusal: OauthRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<ApiError> for Ended {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

impl From<QueryError> for Ended {
    fn from(error: QueryError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<SealingFailed> for Ended {
    fn from(error: SealingFailed) -> Self {
        Self::Failed(error.into())
    }
}

/// Begins to sign in at a provider, or with `link=1` to link an account there.
#[utoipa::path(get, path = "/api/auth/oauth/{provider}/login", tag = "auth",
    params(("provider" = String, Path, description = "`idp` or `codehost`"),
        ("link" = Option<String>, Query, description = "`1`: link an account to the one that is signed in")),
    responses((status = 302, description = "To the provider, or back to a page with `?error=<code>`"),
        (status = 429, description = "`rate_limited`")))]
pub(crate) async fn begin(
    State(state): State<AppState>,
    caller: Caller,
    visit: Visit,
    site: Site,
    Path(provider): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    state.limits().await?.check(limits::OAUTH_START, &visit.address.subject(), state.now()).await?;
    let is_link = Answer::read(query.as_deref()).one("link") == Some("1");
    let begun = begin_at(&state, &caller, &site, &provider, is_link, &headers).await;
    match begun {
        Ok((address, cookie)) => Ok(cookie::with_cookies(to(&address), [cookie])),
        Err(Ended::Refused(refusal)) => Ok(to(&explained(is_link, refusal))),
        Err(Ended::Failed(error)) => Err(error),
    }
}

async fn begin_at(
    state: &AppState,
    caller: &Caller,
    site: &Site,
    provider: &str,
    is_link: bool,
    headers: &HeaderMap,
) -> Result<(String, HeaderValue), Ended> {
    let provider = available(state, provider)?;
    let link = if is_link { Some(linking(state, caller.session(), caller, headers)?) } else { None };
    let dialogue = open(state, provider, site).await.map_err(|error| refused(provider, &error))?;
    let transaction = OauthTransaction::begin(provider, link, state.now())?;
    let cookie = state.cookies().set(&transaction, state.cookie_form(headers))?;
    Ok((dialogue.authorize_url(&transaction), cookie))
}

/// The provider of a name, where people can sign in at one.
fn available(state: &AppState, name: &str) -> Result<Provider, OauthRefusal> {
    if state.config().demo {
        return Err(OauthRefusal::DemoMode);
    }
    if !state.auth_enabled() {
        return Err(OauthRefusal::AuthDisabled);
    }
    Provider::parse(name).ok_or(OauthRefusal::InvalidProvider)
}

/// Who links: a person who signed in lately, from a page of ours.
fn linking(
    state: &AppState,
    session: Option<&SessionProof>,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Link, OauthRefusal> {
    let (Some(session), Some(user)) = (session, caller.user_id()) else {
        return Err(OauthRefusal::LinkRequiresLogin);
    };
    let from = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
    if from.is_some_and(|from| from != b"same-origin" && from != b"none") {
        return Err(OauthRefusal::InvalidState);
    }
    if state.now().millis() - session.auth_at.millis() > RECENT_MS {
        return Err(OauthRefusal::ReauthenticationRequired);
    }
    Ok(Link { user, sid_hash: session.sid_hash })
}

/// Ends what a provider was asked for: signs in, or links.
#[utoipa::path(get, path = "/api/auth/oauth/{provider}/callback", tag = "auth",
    params(("provider" = String, Path, description = "`idp` or `codehost`"),
        ("code" = Option<String>, Query, description = "What the provider gives for the person"),
        ("state" = Option<String>, Query, description = "What the sign-in was begun with")),
    responses((status = 302, description = "To the dashboard, or back to a page with `?error=<code>`")))]
pub(crate) async fn end(
    State(state): State<AppState>,
    caller: Caller,
    visit: Visit,
    site: Site,
    Path(provider): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let form = state.cookie_form(&headers);
    let opened = state.cookies().open::<OauthTransaction>(&headers, form, state.now());
    let begun = opened.map(|opened| opened.value);
    let is_link = begun.as_ref().is_some_and(|begun| begun.link().is_some());
    let answer = Answer::read(query.as_deref());
    let ended = Ending { state: &state, caller: &caller, visit: &visit, site: &site, headers: &headers }
        .run(&provider, begun, &answer)
        .await;
    let mut response = match ended {
        Ok((address, session)) => cookie::with_cookies(to(address), [session]),
        Err(Ended::Refused(refusal)) => {
            let is_noted = state.auth_enabled() && refusal != OauthRefusal::DemoMode;
            let noted = match Provider::parse(&provider).filter(|_| is_noted) {
                Some(provider) => note_refusal(&state, provider, refusal, &visit).await,
                None => Ok(()),
            };
            noted.map_or_else(IntoResponse::into_response, |()| to(&explained(is_link, refusal)))
        }
        Err(Ended::Failed(error)) => error.into_response(),
    };
    // Whatever came of it, it is over.
    response.headers_mut().append(SET_COOKIE, CookieKind::OAuth.clear(form));
    response
}

/// Leaves a refusal in the audit log, unless this address has left enough.
async fn note_refusal(
    state: &AppState,
    provider: Provider,
    refusal: OauthRefusal,
    visit: &Visit,
) -> Result<(), ApiError> {
    let now = state.now();
    match state.limits().await?.check(limits::NOTED_OAUTH, &visit.address.subject(), now).await {
        Ok(()) => Ok(providers::note_refusal(state.store(), provider, refusal, visit, now).await?),
        Err(LimitError::Limited { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

struct Ending<'r> {
    state: &'r AppState,
    caller: &'r Caller,
    visit: &'r Visit,
    site: &'r Site,
    headers: &'r HeaderMap,
}

impl Ending<'_> {
    /// The provider is asked only after everything that can be checked
    /// without it.
    async fn run(
        &self,
        provider: &str,
        begun: Option<OauthTransaction>,
        answer: &Answer,
    ) -> Result<(&'static str, HeaderValue), Ended> {
        let provider = available(self.state, provider)?;
        let begun = begun.ok_or(OauthRefusal::InvalidState)?;
        let is_ours = answer.one("state").is_some_and(|given| begun.is_state(given));
        if !is_ours || begun.provider() != provider {
            return Err(OauthRefusal::InvalidState.into());
        }
        let now = self.state.now();
        if !providers::claim_end(self.state.store(), &begun, now).await? {
            return Err(OauthRefusal::InvalidState.into());
        }
        if answer.one("error").is_some() {
            return Err(OauthRefusal::AccessDenied.into());
        }
        let code = answer.one("code").ok_or(OauthRefusal::MissingCode)?.to_owned();
        let dialogue =
            open(self.state, provider, self.site).await.map_err(|error| refused(provider, &error))?;
        if !dialogue.is_issuer(answer.one("iss")) {
            return Err(OauthRefusal::InvalidState.into());
        }
        let profile = dialogue.profile(code, &begun).await.map_err(|error| refused(provider, &error))?;
        let arrival = Arrival { provider, profile: &profile, visitor: self.visit, now };
        match begun.link() {
            None => {
                let signed_in = providers::sign_in(self.state.store(), arrival).await??;
                Ok((HOME, cookie::session(self.state, self.headers, &signed_in.claims)?))
            }
            Some(link) => {
                let session = self.caller.session().filter(|session| session.sid_hash == link.sid_hash);
                session.ok_or(OauthRefusal::LinkRequiresLogin)?;
                let user = providers::link(self.state.store(), link, arrival).await??;
                Ok(("/settings/account?linked=1", self.in_epoch(user.session_epoch)?))
            }
        }
    }

    fn in_epoch(&self, epoch: i64) -> Result<HeaderValue, ApiError> {
        in_epoch(self.state, self.headers, epoch)
    }
}

/// The cookie of the session that acts, carried into its account's new epoch.
fn in_epoch(state: &AppState, headers: &HeaderMap, epoch: i64) -> Result<HeaderValue, ApiError> {
    let opened = state.cookies().open::<SessionClaims>(headers, state.cookie_form(headers), state.now());
    let mut claims = opened.map(|opened| opened.value).ok_or(Denied::SessionRequired)?;
    claims.epoch = epoch;
    cookie::session(state, headers, &claims)
}

async fn open<'s>(
    state: &'s AppState,
    provider: Provider,
    site: &Site,
) -> Result<Dialogue<'s>, DialogueError> {
    let redirect = site.url(&format!("/api/auth/oauth/{}/callback", provider.as_str()));
    Dialogue::open(&state.config().oauth, provider, &redirect).await
}

/// What people are told of a failed dialogue; the log gets the cause.
fn refused(provider: Provider, error: &DialogueError) -> Ended {
    if !matches!(error, DialogueError::Refused(_)) {
        let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
        tracing::warn!(provider = provider.as_str(), %error, cause, "a sign-in at a provider failed");
    }
    error.refusal().into()
}

fn explained(is_link: bool, refusal: OauthRefusal) -> String {
    let page = if is_link { ACCOUNT } else { SIGN_IN };
    format!("{page}?error={}", refusal.code())
}

fn to(address: &str) -> Response {
    match HeaderValue::from_str(address) {
        Ok(address) => (StatusCode::FOUND, [(LOCATION, address)]).into_response(),
        Err(error) => ApiError::internal(error).into_response(),
    }
}

/// The account is not linked any more.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnlinkAnswer {
    /// Always true.
    success: bool,
    /// The account.
    user: OwnAccount,
}

/// Unlinks one's account from a provider; it takes a password to sign in
/// with afterwards.
#[utoipa::path(post, path = "/api/auth/oauth/{provider}/unlink", tag = "auth",
    params(("provider" = String, Path, description = "`idp` or `codehost`")),
    responses((status = 200, body = UnlinkAnswer),
        (status = 400, description = "`not_linked`, `password_required`, `auth_disabled`")))]
pub(crate) async fn unlink(
    State(state): State<AppState>,
    caller: Caller,
    visit: Visit,
    Path(provider): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !state.auth_enabled() {
        return Err(AccountRefusal::AuthDisabled.into());
    }
    let provider = Provider::parse(&provider).ok_or_else(|| ApiError::not_found("provider"))?;
    let (Some(session), Some(user)) = (caller.session(), caller.user_id()) else {
        return Err(Denied::SessionRequired.into());
    };
    let unlinked = providers::unlink(state.store(), user, session, provider, &visit, state.now()).await?;
    let user = unlinked.map_err(|refusal| match refusal {
        UnlinkRefusal::NotLinked => {
            ApiError::bad_request("not_linked", "Your account is not linked to this provider.")
        }
        UnlinkRefusal::PasswordRequired => ApiError::bad_request(
            "password_required",
            "Set a password first: without one you could not sign in any more.",
        ),
    })?;
    let cookie = in_epoch(&state, &headers, user.session_epoch)?;
    let answer = UnlinkAnswer { success: true, user: OwnAccount::from_row(&user) };
    Ok(cookie::with_cookies(Json(answer), [cookie]))
}
