//! What running clients tell: events, and that they are still there.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::RunId;
use callboard_domain::ingest::{BodyError, Caps, EventsBody, StoredEvents, read_stored_events};
use callboard_domain::status::RunStatus;
use callboard_http::extract::{JsonBytes, JsonPayload, Path, Payload};
use callboard_http::ingest_warnings::{WarningView, warnings};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::evidence_loss;
use serde::Serialize;
use utoipa::ToSchema;

use crate::body;

/// What became of some events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventsAnswer {
    /// Always true.
    success: bool,
    /// Events that count, those that were known included.
    processed: usize,
    /// Attempts that nobody knew of.
    inserted: usize,
    /// Events that were left out; `warnings` says why.
    ignored: usize,
    /// What was read leniently, at most 20 entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    warnings: Option<Vec<WarningView>>,
}

/// Takes what happened to the tests of a run: tests and steps that began,
/// steps that ended, attempts that are over.
///
/// Sending the same events again changes nothing; a broken event costs only
/// itself.
#[utoipa::path(
    post,
    path = "/api/test-runs/{id}/events",
    tag = "live",
    params(("id" = i64, Path, description = "Run")),
    request_body(content = Object, description = "streamToken is required; testCases is a list of events",
        example = json!({ "streamToken": "<64 hex>", "testCases": [
            { "type": "begin", "title": "pays", "location": "tests/pay.spec.ts:9:5" },
            { "type": "complete", "title": "pays", "location": "tests/pay.spec.ts:9:5", "status": "passed", "duration": 812 },
        ] })),
    responses(
        (status = 200, body = EventsAnswer),
        (status = 409, description = "`run_finished`, `run_cancelled`")
    )
)]
pub(crate) async fn run_events(
    State(state): State<AppState>,
    site: Site,
    Path(run): Path<RunId>,
    body: JsonPayload,
) -> Result<Json<EventsAnswer>, ApiError> {
    let now = state.now();
    let caps = state.config().caps.clone();
    let (events, _reservation) = body.read(move |body| Events::parse(body, &caps)).await?;
    let ctx = state.context(&site);
    let taken = match events {
        Events::InMemory(body) => callboard_ingest::events(&ctx, run, *body, now).await?,
        Events::Stored(body) => callboard_ingest::stored_events(&ctx, run, *body, now).await?,
    };
    evidence_loss::report(&ctx, run, &taken.warnings, now).await?;
    Ok(Json(EventsAnswer {
        success: true,
        processed: taken.processed,
        inserted: taken.inserted,
        ignored: taken.ignored,
        warnings: warnings(&taken.warnings),
    }))
}

/// Events as they lie.
enum Events {
    InMemory(Box<EventsBody>),
    Stored(Box<StoredEvents>),
}

impl Events {
    fn parse(body: Payload, caps: &Caps) -> Result<Self, BodyError> {
        match body {
            Payload::Memory(bytes) => {
                EventsBody::parse(bytes, caps).map(|body| Self::InMemory(Box::new(body)))
            }
            Payload::File(file) => read_stored_events(file, caps).map(|body| Self::Stored(Box::new(body))),
        }
    }
}

/// Where a run stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HeartbeatAnswer {
    /// Always true.
    success: bool,
    /// Status of the run.
    #[schema(value_type = String, example = "running")]
    status: RunStatus,
}

/// A sign of life of a client that has nothing else to tell.
#[utoipa::path(
    post,
    path = "/api/test-runs/{id}/heartbeat",
    tag = "live",
    params(("id" = i64, Path, description = "Run")),
    request_body(content = Object, example = json!({ "streamToken": "<64 hex>" })),
    responses(
        (status = 200, body = HeartbeatAnswer),
        (status = 409, description = "`run_finished`, `run_cancelled`")
    )
)]
pub(crate) async fn run_heartbeat(
    State(state): State<AppState>,
    site: Site,
    Path(run): Path<RunId>,
    bytes: JsonBytes,
) -> Result<Json<HeartbeatAnswer>, ApiError> {
    let (token, _reservation) = bytes.read(|bytes| body::token_of(bytes, "streamToken")).await?;
    let status =
        callboard_ingest::heartbeat(&state.context(&site), run, token.as_deref(), state.now()).await?;
    Ok(Json(HeartbeatAnswer { success: true, status }))
}
