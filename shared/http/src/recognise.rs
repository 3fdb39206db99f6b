//! Recognising the caller of a request to a route: what was presented, what
//! the store knows about it, and what the answer has to carry back.

use callboard_auth::client_address::ClientAddress;
use callboard_auth::cookies::CookieForm;
use callboard_auth::credentials::{self, Presented};
use callboard_auth::routes::{Access, Route};
use callboard_auth::session_cookie::SessionClaims;
use callboard_auth::{Denied, Identity, Origin, Scheme, api_key, limits};
use callboard_query::accounts::recognise;
use http::header::{HeaderMap, HeaderValue};

use crate::error::ApiError;
use crate::state::AppState;

/// The caller of a request.
#[derive(Debug)]
pub(crate) struct Recognised {
    /// Who.
    pub(crate) identity: Identity,
    /// The session's cookie sealed anew, when an older secret had sealed it.
    pub(crate) renewed: Option<HeaderValue>,
}

impl Recognised {
    fn as_is(identity: Identity) -> Self {
        Self { identity, renewed: None }
    }
}

/// Recognises the caller. A credential that opens nothing is refused, except
/// on public routes, where it does not count.
pub(crate) async fn caller(
    state: &AppState,
    route: &Route,
    headers: &HeaderMap,
    named: Option<&Origin>,
    address: Option<&ClientAddress>,
) -> Result<Recognised, ApiError> {
    let is_lenient = matches!(
        route.access,
        Access::Public | Access::RunToken | Access::Ticket | Access::BodyTokenOrRoles(_)
    );
    by_credential(state, route, headers, named, address, is_lenient).await
}

/// [`caller`] where no other secret was sent: a credential that opens nothing is refused.
pub(crate) async fn account(
    state: &AppState,
    route: &Route,
    headers: &HeaderMap,
    named: Option<&Origin>,
) -> Result<Recognised, ApiError> {
    by_credential(state, route, headers, named, None, false).await
}

async fn by_credential(
    state: &AppState,
    route: &Route,
    headers: &HeaderMap,
    named: Option<&Origin>,
    address: Option<&ClientAddress>,
    is_lenient: bool,
) -> Result<Recognised, ApiError> {
    if !state.auth_enabled() {
        return Ok(Recognised::as_is(Identity::auth_off()));
    }
    state.begin_authentication().await?;
    let presented = match credentials::presented(route, headers) {
        Ok(presented) => presented,
        Err(_) if is_lenient => Presented::Nothing,
        Err(ambiguous) => return Err(ApiError::bad_request("invalid_header", ambiguous.to_string())),
    };
    match presented {
        Presented::Nothing => Ok(Recognised::as_is(Identity::anonymous())),
        Presented::Cookies => by_cookie(state, headers, cookie_form(state, named)).await,
        Presented::Key(text) => match by_key(state, &text, address).await? {
            Some(identity) => Ok(Recognised::as_is(identity)),
            None if is_lenient => Ok(Recognised::as_is(Identity::anonymous())),
            None => Err(failed_key(state, address).await),
        },
    }
}

/// How cookies are named and marked on the connection of this request.
pub(crate) fn cookie_form(state: &AppState, named: Option<&Origin>) -> CookieForm {
    state.config().cookie_secure.form(named.map_or(Scheme::Http, Origin::scheme))
}

async fn by_key(
    state: &AppState,
    text: &str,
    address: Option<&ClientAddress>,
) -> Result<Option<Identity>, ApiError> {
    let Some(hash) = api_key::hash_of(text) else { return Ok(None) };
    let address = match address {
        Some(address) => Some(state.counter_names().await?.address(address).to_vec()),
        None => None,
    };
    Ok(recognise::by_key(state.store(), hash, address, state.now()).await?)
}

/// Wrong keys are counted by address; a right one is never refused for them.
async fn failed_key(state: &AppState, address: Option<&ClientAddress>) -> ApiError {
    let Some(address) = address else { return Denied::InvalidApiKey.into() };
    let counted = async {
        let limits = state.limits().await?;
        Ok(limits.check(limits::KEY_FAILURE, &address.subject(), state.now()).await?)
    };
    counted.await.err().unwrap_or_else(|| Denied::InvalidApiKey.into())
}

async fn by_cookie(state: &AppState, headers: &HeaderMap, form: CookieForm) -> Result<Recognised, ApiError> {
    let now = state.now();
    let Some(opened) = state.cookies().open::<SessionClaims>(headers, form, now) else {
        return Ok(Recognised::as_is(Identity::anonymous()));
    };
    let Some(identity) = recognise::by_session(state.store(), &opened.value, now).await? else {
        return Ok(Recognised::as_is(Identity::anonymous()));
    };
    let renewed = opened
        .by_old_key
        .then(|| state.cookies().set(&opened.value, form))
        .transpose()
        .map_err(ApiError::internal)?;
    Ok(Recognised { identity, renewed })
}
