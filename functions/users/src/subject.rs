//! The account in the path, and who acts on it.

use axum::extract::{FromRequestParts, RawPathParams};
use callboard_auth::Authorized;
use callboard_domain::ids::{ApiKeyId, UserId};
use callboard_http::extract::{Caller, EntityId, Visit};
use callboard_http::{ApiError, AppState};
use callboard_query::accounts::Acting;
use callboard_query::accounts::sessions::SessionName;
use http::request::Parts;

/// The word for one's own account in the path.
const ME: &str = "me";

/// The account of `{id}`, which the caller may act on: their own, also as
/// `me`, or any for an administrator. Whether it exists is not told to others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject(pub(crate) Authorized<UserId>);

impl FromRequestParts<AppState> for Subject {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let text = param(parts, state, "id").await.ok_or_else(UserId::invalid)?;
        let user = if text == ME {
            // With authentication off nobody has an account.
            caller.user_id().ok_or_else(|| ApiError::not_found(UserId::ENTITY))?
        } else {
            UserId::parse_id(&text).ok_or_else(UserId::invalid)?
        };
        Ok(Self(caller.authorize_account(user)?))
    }
}

/// The `{keyId}` of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key(pub(crate) ApiKeyId);

impl FromRequestParts<AppState> for Key {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let text = param(parts, state, "keyId").await.ok_or_else(ApiKeyId::invalid)?;
        ApiKeyId::parse_id(&text).map(Self).ok_or_else(ApiKeyId::invalid)
    }
}

/// The `{sessionId}` of the path.
#[derive(Debug, Clone)]
pub(crate) struct Session(pub(crate) SessionName);

impl FromRequestParts<AppState> for Session {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let text = param(parts, state, "sessionId").await;
        text.and_then(|text| SessionName::parse(&text)).map(Self).ok_or_else(|| {
            ApiError::bad_request(
                "invalid_session_id",
                "The session id must be one that the list of sessions shows.",
            )
        })
    }
}

async fn param(parts: &mut Parts, state: &AppState, name: &str) -> Option<String> {
    let params = RawPathParams::from_request_parts(parts, state).await.ok()?;
    params.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

/// Somebody acting at this moment.
pub(crate) fn acting<'r>(state: &AppState, caller: &'r Caller, visit: &Visit) -> Acting<'r> {
    Acting::directly(caller, visit.address_hash, state.now())
}
