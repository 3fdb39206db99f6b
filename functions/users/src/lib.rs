//! Function `users`: accounts as administrators and their owners manage them.
//!
//! Lives here: users, the projects they reach, API keys, sessions,
//! invitations. Must not live here: signing in and passwords, which the
//! function `auth` serves; rules about accounts, which are questions and
//! commands of `callboard-query`.

mod answer;
mod api_keys;
mod body;
mod invitations;
mod members;
mod sessions;
mod subject;
mod users;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::ListUsers, users::list)
        .on(RouteId::CreateUser, users::create)
        .on(RouteId::GetUser, users::get)
        .on(RouteId::EditUser, users::edit)
        .on(RouteId::PutUser, users::edit)
        .on(RouteId::DeleteUser, users::delete)
        .on(RouteId::UserProjects, members::of_user)
        .on(RouteId::SetUserProjects, members::set_of_user)
        .on(RouteId::ProjectMembers, members::of_project)
        .on(RouteId::SetProjectMembers, members::set_of_project)
        .on(RouteId::ListApiKeys, api_keys::list)
        .on(RouteId::CreateApiKey, api_keys::create)
        .on(RouteId::RevokeApiKey, api_keys::revoke)
        .on(RouteId::ListSessions, sessions::list)
        .on(RouteId::EndSession, sessions::end)
        .on(RouteId::SignOutUser, sessions::sign_out)
        .on(RouteId::ListInvitations, invitations::list)
        .on(RouteId::CreateInvitation, invitations::create)
        .on(RouteId::RevokeInvitation, invitations::revoke)
        .on(RouteId::ResendInvitation, invitations::resend)
        .on(RouteId::InviteUser, invitations::invite)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(
            users::list,
            users::create,
            users::get,
            users::edit,
            users::delete,
            members::of_user,
            members::set_of_user,
            members::of_project,
            members::set_of_project,
            api_keys::list,
            api_keys::create,
            api_keys::revoke,
            sessions::list,
            sessions::end,
            sessions::sign_out,
            invitations::list,
            invitations::create,
            invitations::revoke,
            invitations::resend,
            invitations::invite
        ),
        tags((name = "users", description = "Accounts and what they reach"))
    )]
    struct Document;
    Document::openapi()
}
