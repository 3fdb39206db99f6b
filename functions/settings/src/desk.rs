//! [`Desk`]: what the handlers of settings begin with.

use axum::extract::FromRequestParts;
use callboard_auth::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_http::extract::{Caller, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::accounts::Acting;
use callboard_query::{Context, resolve};
use http::request::Parts;

/// Who asks, and what questions are asked with.
pub(crate) struct Desk {
    pub(crate) ctx: Context,
    caller: Caller,
    visit: Visit,
    pub(crate) now: Timestamp,
}

impl Desk {
    /// The caller doing something now.
    pub(crate) fn acting(&self) -> Acting<'_> {
        self.visit.acting(&self.caller, self.now)
    }

    /// The project of an address, when it exists and is the caller's.
    ///
    /// # Errors
    /// 404 `project_not_found`, 403 `project_access_denied`.
    pub(crate) async fn project(&self, id: ProjectId) -> Result<Authorized<ProjectId>, ApiError> {
        Ok(resolve::project(&self.ctx, self.caller.scope(), id).await?)
    }
}

impl FromRequestParts<AppState> for Desk {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let site = Site::from_request_parts(parts, state).await?;
        Ok(Self {
            ctx: state.context(&site),
            caller: Caller::from_request_parts(parts, state).await?,
            visit: Visit::from_request_parts(parts, state).await?,
            now: state.now(),
        })
    }
}
