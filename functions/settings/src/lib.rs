//! Function `settings`: what administrators configure and look after.
//!
//! Lives here: the audit log, tags, links, markers, deletions and storage. Must not live here: accounts, which the function
//! `users` serves; SQL.

mod answer;
mod audit;
mod body;
mod deletions;
mod links;
mod markers;
mod storage;
mod tags;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::ListAudit, audit::list)
        .on(RouteId::ListTags, tags::list)
        .on(RouteId::CreateTag, tags::create)
        .on(RouteId::EditTag, tags::edit)
        .on(RouteId::PutTag, tags::edit)
        .on(RouteId::DeleteTag, tags::delete)
        .on(RouteId::ListLinks, links::list)
        .on(RouteId::CreateLink, links::create)
        .on(RouteId::EditLink, links::edit)
        .on(RouteId::DeleteLink, links::delete)
        .on(RouteId::ListDeletions, deletions::list)
        .on(RouteId::GetDeletion, deletions::get)
        .on(RouteId::CleanUp, deletions::clean_up)
        .on(RouteId::CleanUpByQuery, deletions::clean_up_by_query)
        .on(RouteId::InstanceStats, storage::stats)
        .on(RouteId::InstanceStorage, storage::of_instance)
        .on(RouteId::ProjectStorage, storage::of_project)
        .on(RouteId::ListMarkers, markers::list)
        .on(RouteId::CreateMarker, markers::create)
        .on(RouteId::EditMarker, markers::edit)
        .on(RouteId::PutMarker, markers::edit)
        .on(RouteId::DeleteMarker, markers::delete)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(
            audit::list,
            tags::list,
            tags::create,
            tags::edit,
            tags::delete,
            links::list,
            links::create,
            links::edit,
            links::delete,
            deletions::list,
            deletions::get,
            deletions::clean_up,
            deletions::clean_up_by_query,
            storage::stats,
            storage::of_instance,
            storage::of_project,
            markers::list,
            markers::create,
            markers::edit,
            markers::delete
        ),
        tags((name = "settings", description = "What administrators configure and look after"))
    )]
    struct Document;
    Document::openapi()
}
