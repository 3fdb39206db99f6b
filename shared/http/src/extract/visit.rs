//! [`Visit`]: where a request comes from, for sessions, limits and the audit
//! log.

use std::ops::Deref;

use axum::extract::FromRequestParts;
use callboard_auth::Identity;
use callboard_auth::client_address::ClientAddress;
use callboard_domain::time::Timestamp;
use callboard_query::accounts::Acting;
use callboard_query::accounts::visitor::Visitor;
use http::header::USER_AGENT;
use http::request::Parts;

use super::Caller;
use crate::error::ApiError;
use crate::state::AppState;

/// The browser or program a request comes from.
#[derive(Debug, Clone)]
pub struct Visit {
    /// As sessions and the audit log keep it.
    pub visitor: Visitor,
    /// The address that limits count.
    pub address: ClientAddress,
}

impl Visit {
    /// The caller of this request doing something now.
    #[must_use]
    pub fn acting<'r>(&self, caller: &'r Identity, now: Timestamp) -> Acting<'r> {
        Acting::directly(caller, self.visitor.address_hash, now)
    }
}

impl Deref for Visit {
    type Target = Visitor;

    fn deref(&self) -> &Visitor {
        &self.visitor
    }
}

impl FromRequestParts<AppState> for Visit {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let address = parts.extensions.get::<ClientAddress>().copied();
        let address =
            address.ok_or_else(|| ApiError::internal("a handler was mounted without the front door"))?;
        let user_agent =
            parts.headers.get(USER_AGENT).map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned());
        let visitor = Visitor {
            address_hash: Some(state.counter_names().await?.address(&address)),
            user_agent,
            ..Visitor::recognised(&caller)
        };
        Ok(Self { visitor, address })
    }
}
