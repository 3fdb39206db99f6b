//! The HTTP surface that all functions share: state, errors, extractors,
//! cursors and pages, mounting, the front door, serving. Configuration, mail and
//! requests to other hosts are in `callboard-platform`.
//!
//! Lives here: what HTTP needs and no single function owns. Must not live
//! here: SQL, business rules, decisions about access (they are made by
//! `callboard-auth` and only enforced here).
//!
//! # How a function is written
//! A function crate is a router, handlers of a few lines and a five-line
//! `main`. A handler reads in this order: what, who may, errors; the OpenAPI
//! attribute; typed arguments; one or two questions; the answer.
//!
//! ```no_run
//! use axum::extract::State;
//! use axum::{Json, Router};
//! use callboard_auth::RouteId;
//! use callboard_domain::ids::{ProjectId, RunId};
//! use callboard_http::cursor::CursorScope;
//! use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
//! use callboard_http::page::{Page, PageRequest, PageSize};
//! use callboard_http::{ApiError, AppState, Routes};
//! use serde::Serialize;
//! use utoipa::{IntoParams, OpenApi, ToSchema};
//!
//! /// One run, as this answer shows it.
//! #[derive(Debug, Serialize, ToSchema)]
//! #[serde(rename_all = "camelCase")]
//! struct RunLine {
//!     /// The run.
//!     id: i64,
//! }
//!
//! /// What the list is filtered by. `Serialize` ties cursors to the filters.
//! #[derive(Debug, Serialize)]
//! struct Filters {
//!     branch: Vec<String>,
//!     #[serde(skip)]
//!     page: PageRequest,
//! }
//!
//! impl FromQuery for Filters {
//!     fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
//!         Ok(Self { branch: query.repeated("branch"), page: query.page(PageSize::LIST)? })
//!     }
//! }
//!
//! /// Runs of a project, newest first.
//! #[utoipa::path(get, path = "/api/projects/{id}/test-runs", tag = "projects",
//!     params(("id" = i64, Path, description = "Project")),
//!     responses((status = 200, body = Page<RunLine>)))]
//! async fn runs(
//!     State(state): State<AppState>,
//!     caller: Caller,
//!     Path(project): Path<ProjectId>,
//!     Query(filters): Query<Filters>,
//! ) -> Result<Json<Page<RunLine>>, ApiError> {
//!     let scope = CursorScope::new(RouteId::ProjectRuns, &filters)?;
//!     let after: Option<(i64, RunId)> = scope.decode(filters.page.cursor.as_deref())?;
//!     let project = caller.authorize(project)?;
//!     # let _ = (state.store(), after, project);
//!     let last = (1_767_261_600_000_i64, RunId(7));
//!     Ok(Json(Page::new(vec![RunLine { id: 7 }], Some(scope.encode(&last)?))))
//! }
//!
//! /// The routes of this function.
//! pub fn router(state: AppState) -> Router {
//!     Routes::new(state).on(RouteId::ProjectRuns, runs).into_router()
//! }
//!
//! /// Its part of the OpenAPI document.
//! pub fn openapi() -> utoipa::openapi::OpenApi {
//!     #[derive(OpenApi)]
//!     #[openapi(paths(runs))]
//!     struct Document;
//!     Document::openapi()
//! }
//! ```

pub mod auth_mode;
pub mod conditional;
pub mod cursor;
pub mod error;
pub mod extract;
mod front;
mod function;
mod gateway;
mod headers;
mod idempotency;
pub mod ingest_warnings;
pub mod lane;
pub mod lone;
pub mod openapi;
pub mod opened;
pub mod page;
mod precondition;
mod recognise;
mod refusals;
mod refused;
mod register;
pub mod request_id;
pub mod run_filters;
pub mod sandbox;
pub mod serve;
pub mod state;
mod stream_slots;
pub mod viewer;

pub use error::ApiError;
pub use front::front;
pub use function::{install_tls, serve_function, serve_invoked_function, serve_scheduled_function};
pub use idempotency::TellsSecret;
pub use register::{ForPrograms, Routes};
pub use sandbox::{Door, Sandbox, Site};
pub use state::{AppState, Clock};
pub use stream_slots::StreamSlot;
pub use viewer::Viewer;
