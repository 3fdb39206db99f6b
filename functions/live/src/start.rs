//! Opening a run: before its global set-up, or at its first test.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use callboard_domain::ingest::Need;
use callboard_http::extract::{Caller, JsonBytes, Visit};
use callboard_http::{ApiError, AppState, Site, TellsSecret};

use crate::answer::{SetupAnswer, StartAnswer};
use crate::body;

/// Registers a run before its global set-up.
///
/// The run is `initializing` until `begin` is called with the token of this
/// answer. A shard joins the run of its group when there is one.
#[utoipa::path(
    post,
    path = "/api/test-runs/setup",
    tag = "live",
    request_body(content = Object, description = "Fields of the run; projectName is required",
        example = json!({ "projectName": "shop", "instanceId": "0123456789abcdef", "shardIndex": 1, "shardTotal": 2 })),
    responses(
        (status = 200, body = SetupAnswer),
        (status = 400, description = "`invalid_shard`")
    )
)]
pub(crate) async fn setup_run(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    bytes: JsonBytes,
) -> Result<Response, ApiError> {
    let now = state.now();
    let ((fields, mut found), _reservation) = bytes.read(|bytes| body::fields(bytes, Need::Setup)).await?;
    fields.warn_of_start_ahead(now, &mut found);
    let ctx = state.context(&site);
    let name = fields.project_name.clone().unwrap_or_default();
    let description = fields.project_description.as_deref();
    let project =
        callboard_ingest::open_project(&ctx, caller.scope(), &name, description, visit.actor(), now).await?;
    let ticket = callboard_ingest::setup(&ctx, project, &fields, visit.actor(), now).await?;
    Ok(TellsSecret.mark(Json(SetupAnswer::new(ticket, &found, state.config()))))
}

/// Opens a run that results are sent to while it goes on.
///
/// The same start again (same `clientRunId`, or `instanceId` with `startTime`)
/// finds its run and is answered with a token of its own. A shard joins the
/// run of its group when there is one.
#[utoipa::path(
    post,
    path = "/api/test-runs/start",
    tag = "live",
    request_body(content = Object, description = "Fields of the run; projectName is required",
        example = json!({ "projectName": "shop", "startTime": "2026-01-01T10:00:00.000Z",
            "instanceId": "0123456789abcdef", "totalTests": 120, "shardIndex": 1, "shardTotal": 2 })),
    responses(
        (status = 200, body = StartAnswer),
        (status = 400, description = "`invalid_shard`")
    )
)]
pub(crate) async fn start_run(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    bytes: JsonBytes,
) -> Result<Response, ApiError> {
    let now = state.now();
    let ((fields, mut found), _reservation) = bytes.read(|bytes| body::fields(bytes, Need::Start)).await?;
    fields.warn_of_start_ahead(now, &mut found);
    let ctx = state.context(&site);
    let name = fields.project_name.clone().unwrap_or_default();
    let description = fields.project_description.as_deref();
    let project =
        callboard_ingest::open_project(&ctx, caller.scope(), &name, description, visit.actor(), now).await?;
    let ticket = callboard_ingest::start(&ctx, project, &fields, visit.actor(), now).await?;
    Ok(TellsSecret.mark(Json(StartAnswer::new(ticket, &found, state.config()))))
}
