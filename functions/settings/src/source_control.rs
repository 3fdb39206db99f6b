//! `/api/settings/source-control`: the shared access token for code hosts.

use axum::Json;
use axum::extract::State;
use callboard_http::extract::Fields;
use callboard_http::{ApiError, AppState};
use callboard_query::scm::{self, AllowedRepository, SharedTokenEdit, StoredToken};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{GroupHistory, Written};
use crate::desk::Desk;

const KEYS: [&str; 2] = ["repositories", "token"];
const MAX_REPOSITORIES: usize = 200;
const MAX_ADDRESS_CHARS: usize = 2_048;
const MAX_TOKEN_CHARS: usize = 1_000;

/// The shared access token. Absent keys stay as they are, null takes back what was set.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what is read field by field")]
pub(crate) struct SourceControlBody {
    /// Repositories that the token serves, all at one host: addresses, or `https://github.com/acme/*` for all of an
    /// owner. An empty list deletes the token.
    #[schema(example = json!(["https://github.com/acme/*"]))]
    repositories: Option<Vec<String>>,
    /// Access token. It is sealed, sent to the host of `repositories` only, and never shown again.
    #[schema(format = Password)]
    token: Option<String>,
}

/// What holds.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceControlShown {
    /// Repositories that the token serves.
    #[schema(example = json!(["https://github.com/acme/*"]))]
    repositories: Vec<String>,
    /// Whether a token is stored.
    has_token: bool,
}

/// The shared access token, and when it was set.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourceControlAnswer {
    /// What holds.
    settings: SourceControlShown,
    #[serde(flatten)]
    history: GroupHistory,
}

impl From<StoredToken> for SourceControlAnswer {
    fn from(found: StoredToken) -> Self {
        let settings = SourceControlShown { repositories: found.repositories, has_token: found.has_token };
        Self { settings, history: GroupHistory::new(found.updated_at, found.updated_by) }
    }
}

/// The shared access token, without the token itself. Projects without a token of their own use it, as far as their
/// repository is on its list.
#[utoipa::path(get, path = "/api/settings/source-control", tag = "settings", operation_id = "source_control_settings",
    responses((status = 200, body = SourceControlAnswer)))]
pub(crate) async fn get(desk: Desk) -> Result<Json<SourceControlAnswer>, ApiError> {
    Ok(Json(scm::stored_token(&desk.ctx).await?.into()))
}

/// Changes the shared access token. A stored token belongs to the host of its list: another host takes another token.
///
/// # Errors
/// 400 `no_fields`, `missing_field`, `invalid_field`; 413 `too_many_items`; 503 `secret_key_not_configured`.
#[utoipa::path(method(patch, put), path = "/api/settings/source-control", tag = "settings",
    operation_id = "edit_source_control_settings", request_body = SourceControlBody,
    responses(
        (status = 200, body = Written<SourceControlAnswer>),
        (status = 400, description = "`no_fields`, `missing_field`, `invalid_field`"),
        (status = 413, description = "`too_many_items`: more than 200 repositories"),
        (status = 503, description = "`secret_key_not_configured`: a token cannot be stored")
    ))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    desk: Desk,
    fields: Fields,
) -> Result<Json<Written<SourceControlAnswer>>, ApiError> {
    fields.require_any(&KEYS)?;
    let repositories = fields.lines("repositories", MAX_REPOSITORIES, MAX_ADDRESS_CHARS)?;
    let entries = repositories.value().into_iter().flatten();
    for entry in entries {
        let read = AllowedRepository::parse(entry).map_err(|invalid| {
            ApiError::invalid_field("repositories", format!("In repositories, {invalid}."))
        })?;
        let is_open = read.origin().starts_with("https://") || state.config().egress_allow.opens(entry);
        if !is_open {
            let text = "repositories must begin with https, except at hosts that SERVICE_EGRESS_ALLOW names.";
            return Err(ApiError::invalid_field("repositories", text.to_owned()));
        }
    }
    let edit = SharedTokenEdit { repositories, token: fields.line("token", MAX_TOKEN_CHARS)? };
    scm::edit_shared_token(&desk.ctx, desk.acting(), state.stored_secrets(), edit).await?;
    Ok(Written::answer(scm::stored_token(&desk.ctx).await?))
}
