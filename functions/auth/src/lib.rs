//! Function `auth`: signing in and out, the first administrator, passwords.
//!
//! With authentication off, clients that are configured with a name and a
//! password keep working: they are answered as the virtual administrator and
//! given a cookie that opens nothing.

mod admission;
mod body;
mod cookie;
mod email;
mod form;
mod oauth;
mod password;
mod remark;
mod session;
mod setup;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::Login, session::login)
        .on(RouteId::Logout, session::logout)
        .on(RouteId::Me, session::me)
        .on(RouteId::SetupStatus, setup::status)
        .on(RouteId::Setup, setup::create)
        .on(RouteId::ChangePassword, password::change)
        .on(RouteId::ForgotPassword, password::forgot)
        .on(RouteId::ResetPassword, password::reset)
        .on(RouteId::SendVerifyEmail, email::send)
        .on(RouteId::VerifyEmail, email::verify)
        .on(RouteId::OauthLogin, oauth::begin)
        .on(RouteId::OauthCallback, oauth::end)
        .on(RouteId::OauthUnlink, oauth::unlink)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(
            session::login,
            session::logout,
            session::me,
            setup::status,
            setup::create,
            password::change,
            password::forgot,
            password::reset,
            email::send,
            email::verify,
            oauth::begin,
            oauth::end,
            oauth::unlink,
        ),
        tags((name = "auth", description = "Signing in and out"))
    )]
    struct Document;
    Document::openapi()
}
