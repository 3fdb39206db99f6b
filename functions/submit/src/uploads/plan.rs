//! Which files a client has to send, and where to.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::time::Timestamp;
use callboard_http::extract::{Caller, JsonBytes, Visit};
use callboard_http::{ApiError, AppState, Site, TellsSecret};
use callboard_ingest::{IssuedTicket, PlannedFile, PlannedUpload, UploadRules};
use http::HeaderMap;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::request::{Fields, Sent, kind, list, sha256, text};

/// How long tickets are valid that nobody was given, ms.
const PLAN_LIFE_MS: i64 = 15 * 60 * 1000;

/// What has to be sent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanAnswer {
    /// Always true.
    success: bool,
    /// The largest file that is taken, bytes.
    max_bytes: u64,
    /// When the first ticket of this answer expires.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// The files, in their order.
    files: Vec<PlannedView>,
}

/// What has to be done about a file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlannedView {
    /// SHA-256 as it was sent, in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sha256: Option<String>,
    /// Size as it was sent, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    size: Option<u64>,
    /// Kind as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    kind: Option<String>,
    /// `have`: commit it without sending it; `missing`: send it; `too_large` and `invalid`: leave it out.
    #[schema(example = "missing")]
    status: &'static str,
    /// How to send it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    upload: Option<UploadView>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    message: Option<String>,
}

/// A request that sends a file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadView {
    /// Names the file when it is committed. It is not shown again.
    ticket: String,
    /// Always `PUT`.
    method: &'static str,
    /// Where to; a path is one of this service.
    url: String,
    /// Headers to send; none so far.
    #[schema(value_type = Object)]
    headers: Fields,
    /// Whether the address is one of the bucket.
    direct: bool,
}

/// Says which files have to be sent, and gives each of those an address.
///
/// A file that the project has already is `have`. The others get a ticket for
/// 15 minutes, or an hour above 100 MiB. Send each with PUT to its `url`, then
/// commit it. Besides accounts that may send results, the client of a run may
/// call this with `runId` and its `streamToken`.
#[utoipa::path(
    post,
    path = "/api/uploads/plan",
    tag = "submit",
    request_body(
        content = Object,
        description = "projectName, or runId with streamToken; files: 1 to 500 of sha256, size, kind (trace, attachment, \
                       report, import), and name and contentType where they are known",
        example = json!({ "projectName": "shop", "runId": 41, "files": [{
            "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "size": 812_345,
            "kind": "trace", "name": "trace.zip"
        }] })
    ),
    responses(
        (status = 200, body = PlanAnswer),
        (status = 400, description = "`missing_field`, `invalid_run_id`, `invalid_project_name`"),
        (status = 404, description = "`run_not_found`"),
        (status = 409, description = "`run_finished`, `run_cancelled`: for a client of the run")
    )
)]
pub(crate) async fn plan_uploads(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    headers: HeaderMap,
    JsonBytes { bytes, .. }: JsonBytes,
) -> Result<Response, ApiError> {
    let (ctx, now) = (state.context(&site), state.now());
    let route = RouteId::PlanUploads;
    let sent =
        Sent { state: &state, ctx: &ctx, caller: &caller, visit: &visit, headers: &headers, route, now };
    let mut body = sent.body(bytes).await?;
    let files = std::mem::take(list(&mut body, "files")?);
    if files.is_empty() {
        return Err(ApiError::invalid_field("files", "files must name at least one file."));
    }
    let target = sent.target(&body).await?;
    let config = state.config();
    let rules = UploadRules { max_bytes: config.max_upload_bytes, is_direct: config.uploads_direct };
    let read: Vec<_> = files.iter().map(read).collect();
    let planned = read.iter().filter_map(|file| file.as_ref().ok().cloned()).collect();
    let mut planned = callboard_ingest::plan_uploads(&ctx, target, planned, rules, now).await?.into_iter();
    let mut expires_at = None::<Timestamp>;
    let mut views = Vec::with_capacity(files.len());
    for (file, read) in files.iter().zip(&read) {
        let mut view = PlannedView::from_file(file, read.as_ref().err().cloned());
        if let Some(upload) = read.is_ok().then(|| planned.next()).flatten() {
            match upload {
                PlannedUpload::Have => view.status = "have",
                PlannedUpload::TooLarge => view.status = "too_large",
                PlannedUpload::Missing(issued) => {
                    let until = issued.usable_until;
                    expires_at = Some(expires_at.map_or(until, |first| first.min(until)));
                    view.status = "missing";
                    view.upload = Some(UploadView::from_ticket(issued));
                }
            }
        }
        views.push(view);
    }
    Ok(TellsSecret.mark(Json(PlanAnswer {
        success: true,
        max_bytes: rules.max_bytes,
        expires_at: expires_at.unwrap_or(Timestamp(now.millis() + PLAN_LIFE_MS)),
        files: views,
    })))
}

fn read(file: &Value) -> Result<PlannedFile, String> {
    let fields = file.as_object().ok_or("A file must be an object with sha256, size and kind.")?;
    let size = size(fields).ok_or("size must be the size of the file in bytes, a whole number.")?;
    Ok(PlannedFile {
        sha256: sha256(fields)?,
        size,
        kind: kind(fields)?,
        name: text(fields, "name"),
        content_type: text(fields, "contentType"),
    })
}

fn size(fields: &Fields) -> Option<u64> {
    let size = match fields.get("size")? {
        Value::String(text) => text.trim().parse().ok()?,
        value => value.as_u64()?,
    };
    // Sizes are signed where they are stored.
    i64::try_from(size).ok().map(|_| size)
}

impl PlannedView {
    fn from_file(file: &Value, message: Option<String>) -> Self {
        let word = |name: &str| file.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            sha256: word("sha256").map(|hash| hash.trim().to_ascii_lowercase()),
            size: file.as_object().and_then(size),
            kind: word("kind"),
            status: "invalid",
            upload: None,
            message,
        }
    }
}

impl UploadView {
    fn from_ticket(IssuedTicket { ticket, direct_url, .. }: IssuedTicket) -> Self {
        let direct = direct_url.is_some();
        let url = direct_url.unwrap_or_else(|| format!("/api/uploads/{ticket}"));
        Self { ticket, method: "PUT", url, headers: Fields::new(), direct }
    }
}
