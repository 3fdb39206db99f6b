//! [`Caller`]: the one door into a handler. It exists only behind the checks
//! of the route table, so a handler that asks for it cannot be reached around
//! them.

use std::ops::Deref;

use axum::extract::FromRequestParts;
use callboard_auth::{Identity, RouteId};
use http::HeaderMap;
use http::request::Parts;

use crate::error::ApiError;
use crate::recognise;
use crate::state::AppState;

/// Who is calling, admitted to this route.
///
/// `caller.authorize(project)?` proves access to a project,
/// `caller.scope()` restricts lists.
#[derive(Debug, Clone)]
pub struct Caller(Identity);

impl Caller {
    pub(crate) const fn new(identity: Identity) -> Self {
        Self(identity)
    }
}

impl Caller {
    /// Recognises the caller of a request once more: an answer that lasts must
    /// not outlive the right to it.
    ///
    /// # Errors
    /// As for a new request.
    pub async fn again(state: &AppState, route: RouteId, headers: &HeaderMap) -> Result<Self, ApiError> {
        let route = route.route();
        let named = state.gate().effective_origin(headers);
        let recognised = recognise::caller(state, route, headers, named.as_ref(), None).await?;
        recognised.identity.admit(route)?;
        Ok(Self(recognised.identity))
    }
}

impl Caller {
    /// Requires an account of these roles where the body holds no token of a run.
    ///
    /// # Errors
    /// 401 and 403, as on a route that is open to accounts alone.
    pub async fn require_account(
        &self,
        state: &AppState,
        route: RouteId,
        headers: &HeaderMap,
    ) -> Result<(), ApiError> {
        let route = route.route();
        if self.0.role().is_none() {
            // Says why the credential did not count, if there was one.
            let named = state.gate().effective_origin(headers);
            recognise::account(state, route, headers, named.as_ref()).await?;
        }
        Ok(self.0.admit_account(route)?)
    }
}

impl Deref for Caller {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| ApiError::internal("a handler was mounted around the route table"))
    }
}
