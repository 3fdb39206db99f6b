//! Files that were sent become files of a run.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ingest::{CaseRef, Warnings};
use callboard_domain::status::RunStatus;
use callboard_http::extract::{Caller, JsonBytes, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_ingest::{CommitItem, CommittedItem, UploadLink, UploadsComplete};
use callboard_store::upload_tickets::UploadKind;
use http::HeaderMap;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::request::{Fields, Sent, kind, list, sha256, text};
use crate::form::is_report_type;

/// What became of the files.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CommitAnswer {
    /// Always true.
    success: bool,
    /// The files, in their order.
    items: Vec<CommittedView>,
    /// Where the run stands, after `uploadsComplete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = String, example = "passed")]
    status: Option<RunStatus>,
}

/// What became of a file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommittedView {
    /// SHA-256 as it was sent, in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sha256: Option<String>,
    /// `stored`, `linked`, `duplicate`: done. `pending`, `case_not_found`: commit it again later. `not_uploaded`,
    /// `hash_mismatch`, `size_mismatch`: send it again. `invalid`: leave it out.
    #[schema(example = "linked")]
    status: &'static str,
    /// The file of the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    file_id: Option<i64>,
    /// The report of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    report_id: Option<i64>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    message: Option<String>,
}

/// Verifies files that were sent and links them to their run.
///
/// Each file is done or left as it was, and the answer says which; the same
/// commit may be sent again. `link` names an attempt of a test (`type` trace or
/// attachment, with `testCase`) or a report (`type` report, with `reportType`).
/// `uploadsComplete` ends the wait of the run for files of this client, unless
/// some are still being verified.
#[utoipa::path(
    post,
    path = "/api/uploads/commit",
    tag = "submit",
    request_body(
        content = Object,
        description = "projectName and runId, or runId with streamToken; items: at most 500 of sha256, kind, ticket and link; \
                       uploadsComplete, and with an account clientRunId of the client whose files are complete",
        example = json!({ "projectName": "shop", "runId": 41, "items": [{
            "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "kind": "trace",
            "ticket": "<64 hex>",
            "link": { "type": "trace", "testCase": { "title": "pays", "location": "tests/pay.spec.ts:9:5", "retries": 0 } }
        }], "uploadsComplete": true })
    ),
    responses(
        (status = 200, body = CommitAnswer),
        (status = 400, description = "`missing_field`, `invalid_run_id`, `invalid_project_name`"),
        (status = 404, description = "`run_not_found`"),
        (status = 409, description = "`run_finished`, `run_cancelled`: for a client of the run")
    )
)]
pub(crate) async fn commit_uploads(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    headers: HeaderMap,
    JsonBytes { bytes, .. }: JsonBytes,
) -> Result<Json<CommitAnswer>, ApiError> {
    let (ctx, now) = (state.context(&site), state.now());
    let route = RouteId::CommitUploads;
    let sent =
        Sent { state: &state, ctx: &ctx, caller: &caller, visit: &visit, headers: &headers, route, now };
    let mut body = sent.body(bytes).await?;
    let items = std::mem::take(list(&mut body, "items")?);
    let target = sent.target(&body).await?;
    let complete = match body.get("uploadsComplete").and_then(Value::as_bool) {
        Some(true) => {
            let named = text(&body, "clientRunId").zip(target.run());
            UploadsComplete::Yes(match (named, target.account_project()) {
                (Some((client, run)), Some(project)) => {
                    callboard_ingest::sender_of_files(&ctx, project, run, &client).await?
                }
                _ => None,
            })
        }
        _ => UploadsComplete::No,
    };
    let read: Vec<_> = items.iter().map(read).collect();
    let good = read.iter().filter_map(|item| item.as_ref().ok().cloned()).collect();
    let committed = callboard_ingest::commit_uploads(&ctx, target, good, complete, now).await?;
    let mut done = committed.items.into_iter();
    let views = items.iter().zip(read).map(|(item, read)| {
        let hash = item.get("sha256").and_then(Value::as_str).map(|hash| hash.trim().to_ascii_lowercase());
        let invalid = |message| CommittedView {
            sha256: hash.clone(),
            status: "invalid",
            file_id: None,
            report_id: None,
            message: Some(message),
        };
        match read {
            Err(message) => invalid(message),
            Ok(_) => match done.next() {
                Some(done) => CommittedView::new(hash, done),
                None => invalid("The file was not looked at.".to_owned()),
            },
        }
    });
    Ok(Json(CommitAnswer { success: true, items: views.collect(), status: committed.status }))
}

impl CommittedView {
    fn new(sha256: Option<String>, done: CommittedItem) -> Self {
        Self {
            sha256,
            status: done.status.as_str(),
            file_id: done.file.map(|id| id.get()),
            report_id: done.report.map(|id| id.get()),
            message: done.message,
        }
    }
}

fn read(item: &Value) -> Result<CommitItem, String> {
    let fields = item.as_object().ok_or("An item must be an object with sha256 and kind.")?;
    let kind = kind(fields)?;
    let link = match fields.get("link") {
        None | Some(Value::Null) => None,
        Some(Value::Object(link)) => Some(read_link(link, kind)?),
        Some(_) => return Err("link must be an object with a type.".to_owned()),
    };
    Ok(CommitItem { sha256: sha256(fields)?, kind, ticket: text(fields, "ticket"), link })
}

fn read_link(link: &Fields, kind: UploadKind) -> Result<UploadLink, String> {
    let link_type = link.get("type").and_then(Value::as_str).unwrap_or_default();
    match (link_type, kind) {
        ("trace", UploadKind::Trace) | ("attachment", UploadKind::Attachment) => {
            let case = link.get("testCase").and_then(Value::as_object).cloned();
            let case = case.ok_or("link.testCase must be an object with title and location.")?;
            // What is read leniently of it was told when its results came.
            let case = CaseRef::parse(case, &mut Warnings::default())
                .map_err(|error| format!("link.testCase: {error}"))?;
            Ok(UploadLink::Attempt {
                case,
                name: text(link, "name"),
                content_type: text(link, "contentType"),
                original_name: text(link, "originalName"),
            })
        }
        ("report", UploadKind::Report) => {
            let report_type = text(link, "reportType").unwrap_or_default();
            if !is_report_type(&report_type) {
                return Err("link.reportType must be at most 40 of A-Z, a-z, 0-9, - and _.".to_owned());
            }
            Ok(UploadLink::Report { report_type, label: text(link, "label") })
        }
        ("trace" | "attachment" | "report", _) => {
            Err(format!("link.type must be the kind of the file, which is {}.", kind.as_str()))
        }
        _ => Err("link.type must be trace, attachment or report.".to_owned()),
    }
}
