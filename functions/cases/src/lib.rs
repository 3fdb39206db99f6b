//! Function `cases`: the test catalogue, one test across runs, one execution.
//!
//! Lives here: `/api/projects/{id}/test-cases`, `/api/test-cases`,
//! `/api/test-run-cases`. Must not live here: SQL, statistics, the bytes of
//! files (function `files`).

mod catalogue;
mod execution;
mod explain;
mod files;
mod healing;
mod histories;
mod history;
mod lane;
mod quarantine;
mod stability;
mod test_case;
mod trace;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::ProjectTestCases, catalogue::test_cases)
        .on(RouteId::GetTestCase, test_case::test_case)
        .on(RouteId::TestCaseHistory, history::history)
        .on(RouteId::TestCaseStability, stability::stability_trend)
        .on(RouteId::ListQuarantine, quarantine::list)
        .on(RouteId::SetAside, quarantine::set_aside)
        .on(RouteId::ReleaseAside, quarantine::release)
        .on(RouteId::QuarantinePlan, quarantine::plan)
        .on(RouteId::JoinedHistories, histories::list)
        .on(RouteId::DecideHistory, histories::decide)
        .on(RouteId::GetExecution, execution::execution)
        .on(RouteId::ExecutionTraces, files::traces)
        .on(RouteId::ExecutionFiles, files::files)
        .on(RouteId::ExplainExecution, explain::explanation)
        .on(RouteId::EnvironmentDiff, explain::environment)
        .on(RouteId::LocatorHealing, healing::healing)
        .on(RouteId::LocatorPick, healing::pick)
        .on(RouteId::TraceStacks, trace::stacks)
        .on(RouteId::TraceNetwork, trace::network)
        .on(RouteId::TraceNetworkBody, trace::body)
        .on(RouteId::DomSnapshot, trace::dom)
        .on(RouteId::RunExecution, execution::execution)
        .on(RouteId::RunExecutionTraces, files::traces)
        .on(RouteId::RunExecutionFiles, files::files)
        .on(RouteId::RunExecutionExplanation, explain::explanation)
        .on(RouteId::RunExecutionHealing, healing::healing)
        .on(RouteId::RunExecutionPick, healing::pick)
        .on(RouteId::RunExecutionStacks, trace::stacks)
        .on(RouteId::RunExecutionNetwork, trace::network)
        .on(RouteId::RunExecutionNetworkBody, trace::body)
        .on(RouteId::RunExecutionDom, trace::dom)
        .on(RouteId::RunExecutionEnvironment, explain::environment)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(
            catalogue::test_cases,
            test_case::test_case,
            history::history,
            stability::stability_trend,
            quarantine::list,
            quarantine::set_aside,
            quarantine::release,
            quarantine::plan,
            histories::list,
            histories::decide,
            execution::execution,
            files::traces,
            files::files,
            explain::explanation,
            explain::environment,
            healing::healing,
            healing::pick,
            trace::stacks,
            trace::network,
            trace::body,
            trace::dom
        ),
        tags((name = "cases", description = "Tests across runs, and their executions"))
    )]
    struct Document;
    Document::openapi()
}
