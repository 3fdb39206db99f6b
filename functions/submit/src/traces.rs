//! Which traces a client need not send.

use std::collections::HashSet;

use axum::Json;
use axum::extract::State;
use callboard_domain::ingest::parse_object;
use callboard_http::extract::{Caller, JsonBytes};
use callboard_http::{ApiError, AppState, Site};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// Most hashes of one call.
const MAX_HASHES: usize = 10_000;

/// Hashes sorted by whether their traces are stored; others are in neither.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TracesAnswer {
    /// Always true.
    success: bool,
    /// Stored, so their hash is enough.
    existing: Vec<String>,
    /// To be sent.
    missing: Vec<String>,
}

/// Tells which traces of a list are stored in a project.
///
/// Hashes are SHA-256 in hex. Nothing is stored in a project that does not
/// exist, or that the caller has no access to.
#[utoipa::path(
    post,
    path = "/api/traces/check",
    tag = "submit",
    request_body(
        content = Object,
        description = "projectName, and hashes: a list of at most 10,000",
        example = json!({ "projectName": "shop", "hashes": [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        ] })
    ),
    responses((status = 200, body = TracesAnswer))
)]
pub(crate) async fn check_traces(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    JsonBytes { bytes: body, .. }: JsonBytes,
) -> Result<Json<TracesAnswer>, ApiError> {
    let body = parse_object(body)?;
    let (project, hashes) = (body.get("projectName").and_then(Value::as_str), body.get("hashes"));
    let (Some(project), Some(Value::Array(hashes))) = (project, hashes) else {
        let missing: Vec<&str> = [("projectName", project.is_none()), ("hashes", hashes.is_none())]
            .into_iter()
            .filter_map(|(name, is_missing)| is_missing.then_some(name))
            .collect();
        return Err(match missing.as_slice() {
            [] => ApiError::invalid_field("hashes", "hashes must be a list."),
            missing => ApiError::missing_fields(missing),
        });
    };
    if hashes.len() > MAX_HASHES {
        return Err(ApiError::too_many_items("hashes", MAX_HASHES as u64));
    }
    let wanted: Vec<[u8; 32]> = hashes.iter().filter_map(read_hash).collect();
    let stored =
        callboard_ingest::stored_traces(&state.context(&site), caller.scope(), project.trim(), &wanted)
            .await?;
    let stored: HashSet<[u8; 32]> = stored.into_iter().collect();
    let mut named = HashSet::new();
    let (existing, missing): (Vec<_>, Vec<_>) =
        wanted.into_iter().filter(|hash| named.insert(*hash)).partition(|hash| stored.contains(hash));
    let shown = |hashes: Vec<[u8; 32]>| hashes.into_iter().map(hex::encode).collect();
    Ok(Json(TracesAnswer { success: true, existing: shown(existing), missing: shown(missing) }))
}

fn read_hash(value: &Value) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    hex::decode_to_slice(value.as_str()?, &mut hash).ok()?;
    Some(hash)
}
