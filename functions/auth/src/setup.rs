//! The first administrator.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::password;
use callboard_http::extract::{Fields, Visit};
use callboard_http::{ApiError, AppState};
use callboard_platform::hash_pool::Asker;
use callboard_query::accounts::own::OwnAccount;
use callboard_query::accounts::refusal::AccountRefusal;
use callboard_query::accounts::setup::{self, FirstAdministrator};
use http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;

use crate::admission::{Counted, Setup, SignInExists};
use crate::body::SetupBody;
use crate::cookie;
use crate::remark::warnings;
use crate::session::LoginAnswer;

/// Whether the first administrator is still to be created.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetupStatus {
    /// True until the first administrator was created, where callers have to sign in.
    needs_setup: bool,
}

/// Whether the first administrator is still to be created.
#[utoipa::path(get, path = "/api/auth/setup", tag = "auth", responses((status = 200, body = SetupStatus)))]
pub(crate) async fn status(State(state): State<AppState>) -> Result<Json<SetupStatus>, ApiError> {
    let needs_setup = state.auth_enabled() && setup::is_needed(state.store()).await?;
    Ok(Json(SetupStatus { needs_setup }))
}

/// Creates the first administrator and signs them in.
///
/// Works once in the life of an installation, and only while there is no
/// account. Of several calls at the same time one succeeds. When every account
/// is gone, `callboard grant-administrator` creates one.
#[utoipa::path(post, path = "/api/auth/setup", tag = "auth", request_body = SetupBody,
    responses(
        (status = 200, description = "Created and signed in; sets the session cookie", body = LoginAnswer),
        (status = 400, description = "`setup_unavailable`, `auth_disabled`, `missing_field`, `invalid_field`"),
        (status = 429, description = "`rate_limited`; `Retry-After` says when to come back"),
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    _: SignInExists,
    _: Counted<Setup>,
    visit: Visit,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Response, ApiError> {
    let SetupBody { username, password, name } = SetupBody::read(&fields)?;
    let first = FirstAdministrator { username, name };
    let remark = first.judge(&password, &state.config().password_rules)?;
    // Asked before the work of hashing; the claim decides.
    if !setup::is_needed(state.store()).await? {
        return Err(AccountRefusal::SetupUnavailable.into());
    }
    let hash =
        state.passwords().run(Asker::stranger(visit.address), move || password::hash(&password)).await??;
    let signed_in = setup::create(state.store(), &first, hash, &visit, state.now()).await?;
    let cookie = cookie::session(&state, &headers, &signed_in.claims)?;
    let user = OwnAccount::from_row(&signed_in.user);
    Ok(cookie::with_cookies(Json(LoginAnswer { success: true, user, warnings: warnings(remark) }), [cookie]))
}
