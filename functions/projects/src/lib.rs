//! Function `projects`: projects, what is in them, and their runs.
//!
//! Lives here: `/api/projects` and below, apart from the test catalogue, which
//! the function `cases` serves. Must not live here: SQL, or what a filter means.

mod badge;
mod body;
mod editing;
mod facets;
mod lists;
mod project;
mod runs;
mod search;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::ListProjects, lists::projects)
        .on(RouteId::ProjectMenu, lists::menu)
        .on(RouteId::ProjectOverview, lists::overview)
        .on(RouteId::Search, search::everything)
        .on(RouteId::CreateProject, editing::create)
        .on(RouteId::EditProject, editing::edit)
        .on(RouteId::PutProject, editing::edit)
        .on(RouteId::DeleteProject, editing::delete)
        .on(RouteId::GetProject, project::project)
        .on(RouteId::ProjectRuns, runs::test_runs)
        .on(RouteId::ProjectLatestRun, runs::latest_run)
        .on(RouteId::ProjectFacets, facets::facets)
        .on(RouteId::ProjectBadge, badge::picture)
        .on(RouteId::ProjectBadgeWords, badge::words)
        .on(RouteId::CreateBadgeToken, badge::make_token)
        .on(RouteId::RevokeBadgeToken, badge::take_token)
        .on(RouteId::PublicBadge, badge::outside)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(
            lists::projects,
            lists::menu,
            lists::overview,
            search::everything,
            editing::create,
            editing::edit,
            editing::delete,
            project::project,
            runs::test_runs,
            runs::latest_run,
            facets::facets,
            badge::picture,
            badge::words,
            badge::make_token,
            badge::take_token,
            badge::outside
        ),
        tags((name = "projects", description = "Projects and what is in them"))
    )]
    struct Document;
    Document::openapi()
}
