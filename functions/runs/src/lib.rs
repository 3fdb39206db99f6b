//! Function `runs`: runs across projects, one run, and what is in it.
//!
//! Lives here: the routes below `/api/test-runs` that people use. Must not live here:
//! SQL, what a filter means, or how runs come into being (functions `submit` and `live`).

mod cancel;
mod compare;
mod deletion;
mod edit;
mod executions;
mod export;
mod exports;
mod failure_groups;
mod gate;
mod insights;
mod lists;
mod network;
mod policies;
mod reports;
mod run;
mod summary;
mod views;

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
        .on(RouteId::DeleteRun, deletion::delete)
        .on(RouteId::BulkDeleteRuns, deletion::bulk_delete)
        .on(RouteId::CancelRun, cancel::cancel)
        .on(RouteId::EditRun, edit::edit)
        .on(RouteId::PutRun, edit::edit)
        .on(RouteId::PinRun, edit::pin)
        .on(RouteId::UnpinRun, edit::unpin)
        .on(RouteId::RunInsights, insights::of_run)
        .on(RouteId::FailureGroups, failure_groups::of_run)
        .on(RouteId::CompareRun, compare::compare)
        .on(RouteId::RegressionContext, views::regression_context)
        .on(RouteId::GateRun, gate::judge)
        .on(RouteId::GateResults, gate::results)
        .on(RouteId::ListGatePolicies, policies::list)
        .on(RouteId::CreateGatePolicy, policies::create)
        .on(RouteId::EditGatePolicy, policies::change)
        .on(RouteId::PutGatePolicy, policies::change)
        .on(RouteId::DeleteGatePolicy, policies::remove)
        .on(RouteId::ExportRun, export::export)
        .on(RouteId::CreateExport, exports::create)
        .on(RouteId::GetExport, exports::get)
        .on(RouteId::RunSpecs, views::specs)
        .on(RouteId::RunNetwork, network::requests)
        .on(RouteId::RunTimeline, views::timeline)
        .on(RouteId::RunRerun, views::rerun)
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
            deletion::delete,
            deletion::bulk_delete,
            edit::edit,
            edit::pin,
            edit::unpin,
            insights::of_run,
            failure_groups::of_run,
            compare::compare,
            views::regression_context,
            gate::judge,
            gate::results,
            policies::list,
            policies::create,
            policies::change,
            policies::remove,
            export::export,
            exports::create,
            exports::get,
            views::specs,
            network::requests,
            views::timeline,
            views::rerun,
            executions::executions,
            summary::summary,
            reports::reports
        ),
        tags((name = "runs", description = "Test runs and their executions"))
    )]
    struct Document;
    Document::openapi()
}
