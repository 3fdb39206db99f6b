//! `/api/unsubscribe`: what the header `List-Unsubscribe` of a mail leads to (RFC 8058).

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use callboard_http::extract::{Caller, FromQuery, Query, QueryReader, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::notifications;

use crate::answer::Done;

/// What a mail brought.
#[derive(Debug)]
pub(crate) struct Proof {
    token: String,
}

impl FromQuery for Proof {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { token: query.exact("token")?.unwrap_or_default() })
    }
}

/// Ends the mails of a channel, with the token of one of them and without signing in.
///
/// The channel is paused. A channel that sends to another address by now stays as it is.
///
/// # Errors
/// 400 `invalid_or_expired_token`.
#[utoipa::path(post, path = "/api/unsubscribe", tag = "settings", operation_id = "unsubscribe",
    params(("token" = String, Query, description = "The token of the mail")),
    responses((status = 200, body = Done), (status = 400, description = "`invalid_or_expired_token`")))]
pub(crate) async fn post(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Query(proof): Query<Proof>,
) -> Result<Json<Done>, ApiError> {
    let acting = visit.acting(&caller, state.now());
    let secrets = state.stored_secrets();
    notifications::unsubscribe(&state.context(&site), acting, secrets, &proof.token).await?;
    Ok(Done::answer())
}

/// Leads to the page that asks first: programs that look at the links of mails unsubscribe nobody.
#[utoipa::path(get, path = "/api/unsubscribe", tag = "settings", operation_id = "unsubscribe_link",
    params(("token" = String, Query, description = "The token of the mail")),
    responses((status = 303, description = "To the page")))]
pub(crate) async fn get(Query(proof): Query<Proof>) -> Response {
    // What stands in the address is no token of ours unless it has only these letters.
    let is_letter = |letter: &char| letter.is_ascii_alphanumeric() || "._-".contains(*letter);
    let token: String = proof.token.chars().filter(is_letter).take(MAX_TOKEN_CHARS).collect();
    Redirect::to(&format!("/unsubscribe#token={token}")).into_response()
}

/// Longer than the token of the longest address.
const MAX_TOKEN_CHARS: usize = 1_000;
