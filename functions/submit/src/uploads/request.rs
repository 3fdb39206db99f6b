//! What the bodies of plans and commits have in common: who sends them, and the
//! fields that name a file.

use callboard_auth::RouteId;
use callboard_domain::ids::RunId;
use callboard_domain::ingest::{parse_object, project_name};
use callboard_domain::text::clean;
use callboard_domain::time::Timestamp;
use callboard_http::extract::{Caller, Visit};
use callboard_http::{ApiError, AppState};
use callboard_ingest::UploadTarget;
use callboard_query::Context;
use callboard_store::upload_tickets::UploadKind;
use http::HeaderMap;
use serde_json::{Map, Value};

/// Most files of one call.
pub(super) const MAX_FILES: usize = 500;
/// Longest name or type of a file, in characters.
pub(super) const MAX_NAME_CHARS: usize = 500;

/// A JSON object.
pub(super) type Fields = Map<String, Value>;

/// Who sends a plan or a commit.
pub(super) struct Sent<'s> {
    pub(super) state: &'s AppState,
    pub(super) ctx: &'s Context,
    pub(super) caller: &'s Caller,
    pub(super) visit: &'s Visit,
    pub(super) headers: &'s HeaderMap,
    pub(super) route: RouteId,
    pub(super) now: Timestamp,
}

impl Sent<'_> {
    /// The body of a sender who may send one: with a token of a run, or by its role.
    pub(super) async fn body(&self, bytes: Vec<u8>) -> Result<Fields, ApiError> {
        let body = parse_object(bytes);
        if !body.as_ref().is_ok_and(|body| token_of(body).is_some()) {
            self.caller.require_account(self.state, self.route, self.headers).await?;
        }
        Ok(body?)
    }

    /// What the sender may upload to: with a token its run, else a project that
    /// is in reach of the account.
    pub(super) async fn target(&self, body: &Fields) -> Result<UploadTarget, ApiError> {
        let Self { ctx, caller, now, .. } = *self;
        let run = run_of(body)?;
        if let Some(token) = token_of(body) {
            let run = run.ok_or_else(|| ApiError::missing_fields(&["runId"]))?;
            return Ok(callboard_ingest::upload_target_of_client(ctx, run, token, now).await?);
        }
        let name = match body.get("projectName") {
            None | Some(Value::Null) => return Err(ApiError::missing_fields(&["projectName"])),
            Some(Value::String(name)) => project_name(name)?,
            Some(_) => return Err(ApiError::invalid_field("projectName", "projectName must be text.")),
        };
        if let Some(run) = run {
            let (project, _) = callboard_query::runs::run_to_attach_to(ctx, caller.scope(), run).await?;
            return Ok(UploadTarget::of_account(project, Some(run)));
        }
        let actor = self.visit.actor();
        let project = callboard_ingest::open_project(ctx, caller.scope(), &name, None, actor, now).await?;
        Ok(UploadTarget::of_account(project, None))
    }
}

fn token_of(body: &Fields) -> Option<&str> {
    body.get("streamToken").and_then(Value::as_str).filter(|token| !token.is_empty())
}

fn run_of(body: &Fields) -> Result<Option<RunId>, ApiError> {
    let text = match body.get("runId") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    match RunId::parse(text.trim()) {
        Some(run) => Ok(Some(run)),
        None => Err(ApiError::bad_request("invalid_run_id", "runId must be the number of a run, e.g. 41.")),
    }
}

/// The list under a name, of so many entries at most.
pub(super) fn list<'b>(body: &'b mut Fields, name: &'static str) -> Result<&'b mut Vec<Value>, ApiError> {
    match body.get_mut(name) {
        None | Some(Value::Null) => Err(ApiError::missing_fields(&[name])),
        Some(Value::Array(list)) if list.len() > MAX_FILES => {
            Err(ApiError::too_many_items(name, MAX_FILES as u64))
        }
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(ApiError::invalid_field(name, format!("{name} must be a list."))),
    }
}

/// A SHA-256 in hex, of any case.
pub(super) fn sha256(fields: &Fields) -> Result<[u8; 32], String> {
    let told = fields.get("sha256").and_then(Value::as_str);
    let mut hash = [0; 32];
    match told.map(|text| hex::decode_to_slice(text.trim(), &mut hash)) {
        Some(Ok(())) => Ok(hash),
        _ => Err("sha256 must be the SHA-256 of the file as 64 hex digits.".to_owned()),
    }
}

/// What a file is for.
pub(super) fn kind(fields: &Fields) -> Result<UploadKind, String> {
    let words = || UploadKind::ALL.map(UploadKind::as_str).join(", ");
    let told = fields.get("kind").and_then(Value::as_str);
    told.and_then(UploadKind::parse).ok_or_else(|| format!("kind must be one of {}.", words()))
}

/// A text field, shortened; `None` when there is nothing in it.
pub(super) fn text(fields: &Fields, name: &str) -> Option<String> {
    let told = fields.get(name).and_then(Value::as_str).map(clean)?;
    let told: String = told.trim().chars().take(MAX_NAME_CHARS).collect();
    (!told.is_empty()).then_some(told)
}
