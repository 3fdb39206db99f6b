//! Function `runs`: runs across projects, one run, and what is in it.
//!
//! Lives here: the routes below `/api/test-runs` that people use. Must not live here:
//! SQL, what a filter means, or how runs come into being (functions `submit` and `live`).

mod cancel;
mod executions;
mod lists;
mod reports;
mod run;
mod summary;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::ListRuns, lists::test_runs)
        .on(RouteId::RecentRuns, lists::recent)
        .on(RouteId::GetRun, run::test_run)
        .on(RouteId::CancelRun, cancel::cancel)
        .on(RouteId::RunExecutions, executions::executions)
        .on(RouteId::RunSummary, summary::summary)
        .on(RouteId::RunReports, reports::reports)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(
            lists::test_runs,
            lists::recent,
            run::test_run,
            cancel::cancel,
            executions::executions,
            summary::summary,
            reports::reports
        ),
        tags((name = "runs", description = "Test runs and their executions"))
    )]
    struct Document;
    Document::openapi()
}
