//! Invitations.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_auth::limits::INVITE;
use callboard_domain::ids::InvitationId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, Path, Query, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site, TellsSecret};
use callboard_platform::mail;
use callboard_query::accounts::invitations::{self, Delivery, Invitation, Invited, NewInvitation};
use callboard_query::accounts::members::Reach;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Done;
use crate::body::NewInvitationBody;
use crate::subject::{Subject, acting};

/// Invitations, newest first.
#[utoipa::path(get, path = "/api/invitations", tag = "users", params(PageRequest),
    responses((status = 200, body = Page<Invitation>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Invitation>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListInvitations, &())?;
    let after = cursors.decode(page.cursor.as_deref())?;
    Ok(Json(cursors.page(invitations::list(&state.context(&site), false, after, page.rows()).await?)?))
}

/// Somebody was invited.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InvitationAnswer {
    /// Always true.
    success: bool,
    /// The invitation.
    invitation: Invitation,
    /// The link to pass on; null when it is on its way by mail.
    accept_url: Option<String>,
}

fn answer(status: StatusCode, invited: Invited) -> Response {
    let Invited { invitation, accept_url } = invited;
    TellsSecret.mark((status, Json(InvitationAnswer { success: true, invitation, accept_url })))
}

/// Counts an invitation, and tells how it travels.
async fn admitted(state: &AppState, caller: &Caller) -> Result<Delivery, ApiError> {
    state
        .limits()
        .await?
        .check(
            INVITE,
            caller.user_id().map_or_else(|| caller.credential(), |user| user.to_string()).as_bytes(),
            state.now(),
        )
        .await?;
    Ok(if mail::is_configured(&*state.mail_config().await?) { Delivery::Mail } else { Delivery::Link })
}

/// Invites somebody: makes an account that they choose the password of, within
/// 72 hours.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `project_not_found`; 409
/// `email_taken`, `name_taken`; 429 `rate_limited`.
#[utoipa::path(post, path = "/api/invitations", tag = "users", request_body = NewInvitationBody,
    responses(
        (status = 201, body = InvitationAnswer),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`project_not_found`"),
        (status = 409, description = "`email_taken`, `name_taken`")
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    fields: Fields,
) -> Result<Response, ApiError> {
    let NewInvitationBody { email, role, name, is_global, project_ids } = NewInvitationBody::read(&fields)?;
    let new = NewInvitation { email, name, role, reach: Reach { is_global, projects: project_ids } };
    let delivery = admitted(&state, &caller).await?;
    let acting = acting(&state, &caller, &visit);
    let invited = invitations::create(&state.context(&site), acting, new, delivery).await?;
    Ok(answer(StatusCode::CREATED, invited))
}

/// Takes an invitation back. Its link opens nothing any more, and an account
/// that nobody can sign in to is disabled.
///
/// # Errors
/// 404 `invitation_not_found`; 409 `not_pending`.
#[utoipa::path(delete, path = "/api/invitations/{id}", tag = "users",
    params(("id" = i64, Path, description = "Invitation")),
    responses((status = 200, body = Done), (status = 409, description = "`not_pending`")))]
pub(crate) async fn revoke(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<InvitationId>,
) -> Result<Json<Done>, ApiError> {
    invitations::revoke(&state.context(&site), acting(&state, &caller, &visit), id).await?;
    Ok(Done::answer())
}

/// Sends an invitation again, with a new link for another 72 hours.
///
/// # Errors
/// 404 `invitation_not_found`; 409 `not_pending`, `no_email`; 429
/// `rate_limited`.
#[utoipa::path(post, path = "/api/invitations/{id}/resend", tag = "users",
    params(("id" = i64, Path, description = "Invitation")),
    responses((status = 200, body = InvitationAnswer), (status = 409, description = "`not_pending`, `no_email`")))]
pub(crate) async fn resend(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<InvitationId>,
) -> Result<Response, ApiError> {
    let delivery = admitted(&state, &caller).await?;
    let acting = acting(&state, &caller, &visit);
    Ok(answer(StatusCode::OK, invitations::resend(&state.context(&site), acting, id, delivery).await?))
}

/// Invites the person of an account that exists: with the link they choose a
/// new password.
///
/// # Errors
/// 404 `user_not_found`; 409 `no_email`, `not_pending`; 429 `rate_limited`.
#[utoipa::path(post, path = "/api/users/{id}/invite", tag = "users",
    params(("id" = String, Path, description = "User")),
    responses((status = 200, body = InvitationAnswer), (status = 409, description = "`no_email`, `not_pending`")))]
pub(crate) async fn invite(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Subject(user): Subject,
) -> Result<Response, ApiError> {
    let delivery = admitted(&state, &caller).await?;
    let acting = acting(&state, &caller, &visit);
    Ok(answer(StatusCode::OK, invitations::invite(&state.context(&site), acting, user, delivery).await?))
}
