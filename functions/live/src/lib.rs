//! The function `live`: runs that are fed while they go on, and the streams of
//! those who watch.
//!
//! Lives here: reading the requests, telling clients what became of them,
//! carrying feeds over server-sent events. What a call does to a run is the
//! business of `callboard_ingest`, what a feed says of
//! `callboard_query::feeds`.

mod answer;
mod begin;
mod body;
mod case_files;
mod events;
mod finish;
mod start;
mod stream;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::SetupRun, start::setup_run)
        .on(RouteId::StartRun, start::start_run)
        .on(RouteId::BeginRun, begin::begin_run)
        .on(RouteId::RunEvents, events::run_events)
        .on(RouteId::RunHeartbeat, events::run_heartbeat)
        .on(RouteId::CaseFiles, case_files::case_files)
        .on(RouteId::FinishRun, finish::finish_run)
        .on(RouteId::RunStream, stream::run_stream)
        .on(RouteId::GlobalStream, stream::global_stream)
        .on(RouteId::NotificationStream, stream::notification_stream)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    use utoipa::OpenApi as _;

    #[derive(utoipa::OpenApi)]
    #[openapi(paths(
        start::setup_run,
        start::start_run,
        begin::begin_run,
        events::run_events,
        events::run_heartbeat,
        case_files::case_files,
        finish::finish_run,
        stream::run_stream,
        stream::global_stream,
        stream::notification_stream,
    ))]
    struct Document;
    Document::openapi()
}
