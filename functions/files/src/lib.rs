//! Function `files`: the bytes of attachments, traces and reports.
//!
//! Lives here: `/api/files/…` and `/f/<grant>/…`, the trace viewer beside them, byte ranges, names to save
//! under, and which bytes a browser may open where. Nothing that could run
//! script is ever opened on the dashboard's origin. Must not live here: how
//! bytes are found (that is the query layer), receiving them (`submit`).

mod answer;
mod disposition;
mod elsewhere;
mod granted;
mod opaque;
mod presentation;
mod range;
mod request;
mod stored;
mod viewer;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::GetFile, stored::file)
        .on(RouteId::GrantedFile, granted::file)
        .on(RouteId::ViewerAsset, viewer::file)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(stored::file, granted::file),
        tags((name = "files", description = "Attachments, traces and reports"))
    )]
    struct Document;
    Document::openapi()
}
