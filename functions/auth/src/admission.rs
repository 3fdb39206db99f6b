//! What stands before a handler here: that people sign in at all, and that
//! there were not too many calls. Both are asked before the body is read.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use callboard_auth::limits::{self, Window};
use callboard_http::extract::Visit;
use callboard_http::{ApiError, AppState};
use callboard_query::accounts::refusal::AccountRefusal;
use http::request::Parts;

/// Callers have to sign in; with authentication off the request is refused
/// with 400 `auth_disabled`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SignInExists;

impl FromRequestParts<AppState> for SignInExists {
    type Rejection = ApiError;

    async fn from_request_parts(_: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        if state.auth_enabled() { Ok(Self) } else { Err(AccountRefusal::AuthDisabled.into()) }
    }
}

/// A class of calls that is counted by address.
pub(crate) trait ByAddress {
    /// Its numbers.
    const WINDOW: Window;
}

/// Calls that create the first administrator.
pub(crate) struct Setup;
/// Calls that ask for a mail to set a new password.
pub(crate) struct Forgot;
/// Calls that set a password with a mailed token.
pub(crate) struct Reset;

impl ByAddress for Setup {
    const WINDOW: Window = limits::SETUP;
}
impl ByAddress for Forgot {
    const WINDOW: Window = limits::FORGOT;
}
impl ByAddress for Reset {
    const WINDOW: Window = limits::RESET;
}

/// A call that was counted and is not one too many.
pub(crate) struct Counted<C>(PhantomData<C>);

impl<C: ByAddress> FromRequestParts<AppState> for Counted<C> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let visit = Visit::from_request_parts(parts, state).await?;
        state.limits().await?.check(C::WINDOW, &visit.address.subject(), state.now()).await?;
        Ok(Self(PhantomData))
    }
}
