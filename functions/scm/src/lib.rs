//! Function `scm`: what is read from the repositories of projects.
//!
//! Lives here: commits, diffs, suspects among them, and the test of a repository's settings. Must not
//! live here: those settings, which are the project's; clients of code hosts,
//! which are in `shared/integrations`.

mod branches;
mod cluster;
mod commits;
mod connection;
mod culprit;
mod diff;

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
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(commits::list, diff::get, cluster::commits, branches::list, culprit::get, culprit::find, connection::test),
        tags((name = "scm", description = "What is read from the repositories of projects"))
    )]
    struct Document;
    Document::openapi()
}
