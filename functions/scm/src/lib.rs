//! Function `scm`: what is read from the repositories of projects, and what runs say there.
//!
//! Lives here: commits, diffs, suspects among them, the test of a repository's settings, and comments and statuses
//! with their settings. Must not
//! live here: address and token of a repository, which are the project's; clients of code hosts,
//! which are in `shared/integrations`.

mod branches;
mod cluster;
mod commits;
mod connection;
mod culprit;
mod diff;
mod feedback;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::ProjectCommits, commits::list)
        .on(RouteId::CommitDiff, diff::get)
        .on(RouteId::ClusterCommits, cluster::commits)
        .on(RouteId::ClusterBranches, branches::list)
        .on(RouteId::RunCulprit, culprit::get)
        .on(RouteId::FindCulprit, culprit::find)
        .on(RouteId::TestRepository, connection::test)
        .on(RouteId::ProjectFeedback, feedback::of_project)
        .on(RouteId::EditProjectFeedback, feedback::edit_project)
        .on(RouteId::FeedbackLog, feedback::log)
        .on(RouteId::RunFeedback, feedback::of_run)
        .on(RouteId::PostRunFeedback, feedback::repost)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(
            commits::list, diff::get, cluster::commits, branches::list, culprit::get, culprit::find, connection::test,
            feedback::of_project, feedback::edit_project, feedback::log, feedback::of_run, feedback::repost
        ),
        tags((name = "scm", description = "What is read from the repositories of projects, and what runs say there"))
    )]
    struct Document;
    Document::openapi()
}
