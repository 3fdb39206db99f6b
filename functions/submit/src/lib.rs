//! The function `submit`: a run sent as a batch, and the files of a run.
//!
//! Lives here: reading the request, telling the client what became of it. What
//! is stored and how is the business of `callboard_ingest`.

mod answer;
mod form;
mod submit;
mod traces;
mod upload;
mod uploads;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::SubmitRun, submit::submit_run)
        .on(RouteId::UploadRun, upload::upload_run)
        .on(RouteId::CheckTraces, traces::check_traces)
        .on(RouteId::PlanUploads, uploads::plan::plan_uploads)
        .on(RouteId::ReceiveUpload, uploads::receive::receive_upload)
        .on(RouteId::CommitUploads, uploads::commit::commit_uploads)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    use utoipa::OpenApi as _;

    #[derive(utoipa::OpenApi)]
    #[openapi(paths(
        submit::submit_run,
        upload::upload_run,
        traces::check_traces,
        uploads::plan::plan_uploads,
        uploads::receive::receive_upload,
        uploads::commit::commit_uploads
    ))]
    struct Document;
    Document::openapi()
}
