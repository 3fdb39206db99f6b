//! Function `clusters`: failure clusters, what they hold, what people do with them, and
//! diagnoses of clusters and executions.
//!
//! Lives here: reading the requests and carrying the answers. What a cluster
//! is and how it changes is the business of `callboard_query::clusters`; the
//! failures of one run by cluster are served by the function `runs`.

mod body;
mod cluster;
mod context;
mod diagnosis;
mod edit;
mod fix_plan;
mod lists;
mod reshape;
mod suggestions;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::ProjectClusters, lists::of_project)
        .on(RouteId::ListClusters, lists::all)
        .on(RouteId::BulkClusters, edit::bulk)
        .on(RouteId::GetCluster, cluster::get)
        .on(RouteId::EditCluster, edit::edit)
        .on(RouteId::PutCluster, edit::edit)
        .on(RouteId::ClusterOccurrences, cluster::occurrences)
        .on(RouteId::ClusterTestCases, cluster::test_cases)
        .on(RouteId::SetClusterStatus, edit::set_status)
        .on(RouteId::SetClusterBaseCommit, edit::set_base_commit)
        .on(RouteId::FixPlan, fix_plan::fix_plan)
        .on(RouteId::DiagnoseCluster, diagnosis::diagnose)
        .on(RouteId::ClusterDiagnosis, diagnosis::newest)
        .on(RouteId::ClusterDiagnoses, diagnosis::versions)
        .on(RouteId::ClusterContext, context::context)
        .on(RouteId::DiagnoseExecution, diagnosis::diagnose_execution)
        .on(RouteId::ExecutionDiagnosis, diagnosis::newest_of_execution)
        .on(RouteId::ExecutionDiagnoses, diagnosis::versions_of_execution)
        .on(RouteId::ExecutionContext, context::of_execution)
        .on(RouteId::DiagnoseRunExecution, diagnosis::diagnose_execution)
        .on(RouteId::RunExecutionDiagnosis, diagnosis::newest_of_execution)
        .on(RouteId::RunExecutionContext, context::of_execution)
        .on(RouteId::DiagnosisFeedback, diagnosis::feedback)
        .on(RouteId::CancelDiagnosis, diagnosis::cancel)
        .on(RouteId::MergeCluster, reshape::merge)
        .on(RouteId::ExtractCases, reshape::extract)
        .on(RouteId::MergeSuggestions, suggestions::list)
        .on(RouteId::ApproveSuggestion, suggestions::approve)
        .on(RouteId::RejectSuggestion, suggestions::reject)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(
            lists::of_project, lists::all, edit::bulk, cluster::get, edit::edit, cluster::occurrences,
            cluster::test_cases, fix_plan::fix_plan, edit::set_status, edit::set_base_commit, reshape::merge, reshape::extract,
            suggestions::list, suggestions::approve, suggestions::reject,
            diagnosis::diagnose, diagnosis::newest, diagnosis::versions, diagnosis::diagnose_execution,
            diagnosis::newest_of_execution, diagnosis::versions_of_execution, context::of_execution, diagnosis::feedback, diagnosis::cancel, context::context
        ),
        tags((name = "clusters", description = "Failures of one cause, and what became of them"))
    )]
    struct Document;
    Document::openapi()
}
