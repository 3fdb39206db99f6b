//! `/api/users`: listing, reading, creating, editing, deleting accounts.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_auth::limits::CHANGE_PASSWORD;
use callboard_auth::password::{self, PasswordRemark, Verdict};
use callboard_auth::{Authorized, Role, RouteId};
use callboard_domain::ids::UserId;
use callboard_http::conditional::tagged_json;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Query, QueryReader, Visit};
use callboard_http::page::PageRequest;
use callboard_http::{ApiError, AppState, Site};
use callboard_platform::hash_pool::Asker;
use callboard_query::Context;
use callboard_query::accounts::Acting;
use callboard_query::accounts::editing::{self, UserEdit};
use callboard_query::accounts::members::Reach;
use callboard_query::accounts::refusal::AccountRefusal;
use callboard_query::accounts::users::{self, NewUser, UserFilters};
use callboard_query::shapes::User;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Done, moved_to};
use crate::body::{EditUserBody, NewUserBody};
use crate::subject::{Subject, acting};

const STATES: [&str; 2] = ["active", "disabled"];

callboard_query::vocabularies! {
    /// What an account may do.
    RoleWord => Role::ALL.map(Role::as_str);
    /// Whether an account may sign in.
    StateWord => STATES;
}

/// Which accounts a list shows.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filters {
    /// Part of the name to sign in with, the shown name or the address, in any case.
    q: Option<String>,
    /// `administrator`, `reporter` or `user`.
    #[param(value_type = Option<RoleWord>, inline)]
    #[serde(serialize_with = "as_word")]
    role: Option<Role>,
    /// `active` or `disabled`.
    #[param(rename = "state", value_type = Option<StateWord>, inline)]
    #[serde(rename = "state")]
    disabled: Option<bool>,
}

fn as_word<S: serde::Serializer>(role: &Option<Role>, serializer: S) -> Result<S::Ok, S::Error> {
    role.map(Role::as_str).serialize(serializer)
}

impl FromQuery for Filters {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let disabled = query.word("state", &STATES, |word| match word {
            "active" => Some(false),
            "disabled" => Some(true),
            _ => None,
        })?;
        let role = query.word("role", &Role::ALL.map(Role::as_str), Role::parse)?;
        Ok(Self { q: query.text("q")?, role, disabled })
    }
}

/// A page of accounts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UserPage {
    /// The rows.
    items: Vec<User>,
    /// Pass it as `cursor` to read on; null after the last page.
    next_cursor: Option<String>,
    /// Whether callers have to sign in at all.
    auth_enabled: bool,
}

/// Accounts by the name to sign in with. Who is no administrator finds
/// themselves only.
#[utoipa::path(get, path = "/api/users", tag = "users", params(Filters, PageRequest),
    responses((status = 200, body = UserPage)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(filters): Query<Filters>,
    Query(page): Query<PageRequest>,
) -> Result<Json<UserPage>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListUsers, &filters)?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let Filters { q, role, disabled } = filters;
    let wanted = UserFilters { contains: q, role, disabled };
    let found = users::list(&state.context(&site), &caller, &wanted, after, page.rows()).await?;
    let page = cursors.page(found)?;
    let auth_enabled = state.auth_enabled();
    Ok(Json(UserPage { items: page.items, next_cursor: page.next_cursor, auth_enabled }))
}

/// One account: one's own, also as `me`, or any for an administrator.
///
/// # Errors
/// 403 `insufficient_role`, 404 `user_not_found`.
#[utoipa::path(get, path = "/api/users/{id}", tag = "users",
    params(("id" = String, Path, description = "User, or `me`")),
    responses((status = 200, body = User), (status = 304, description = "The client has this state")))]
pub(crate) async fn get(
    State(state): State<AppState>,
    site: Site,
    Subject(user): Subject,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    tagged_json(&headers, &users::get(&state.context(&site), user).await?)
}

/// An account was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserAnswer {
    /// Always true.
    success: bool,
    /// The account now.
    user: User,
    /// What should be said about the password, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<&'static str>,
}

/// Creates an account. It reaches no project unless some are named.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `project_not_found`; 409
/// `name_taken`, `email_taken`.
#[utoipa::path(post, path = "/api/users", tag = "users", request_body = NewUserBody,
    responses(
        (status = 201, body = UserAnswer),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`project_not_found`"),
        (status = 409, description = "`name_taken`, `email_taken`")
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    fields: Fields,
) -> Result<(StatusCode, Json<UserAnswer>), ApiError> {
    let NewUserBody { username, password, role, name, email, is_global, project_ids } =
        NewUserBody::read(&fields)?;
    let (password, remark) = match password {
        Some(password) => hashed(&state, &visit, password).await?,
        None => (None, None),
    };
    let reach = Reach { is_global, projects: project_ids };
    let new = NewUser { username, password, role, name, email, reach };
    let user = users::create(&state.context(&site), acting(&state, &caller, &visit), new).await?;
    let warnings = remark.map(PasswordRemark::sentence).into_iter().collect();
    Ok((StatusCode::CREATED, Json(UserAnswer { success: true, user, warnings })))
}

async fn hashed(
    state: &AppState,
    visit: &Visit,
    password: String,
) -> Result<(Option<String>, Option<PasswordRemark>), ApiError> {
    let remark = state
        .config()
        .password_rules
        .judge(&password)
        .map_err(|refused| ApiError::invalid_field("password", refused.to_string()))?;
    let hash =
        state.passwords().run(Asker::known(visit.address), move || password::hash(&password)).await??;
    Ok((Some(hash), remark))
}

/// Edits an account: one's own, also as `me`, or any for an administrator.
///
/// Only administrators change `role` and `disabled`, and not their own. A
/// change of role or address, and disabling, end the sessions of the account;
/// the one that asked goes on.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`, `cannot_change_self`,
/// `password_required`; 401 `invalid_credentials` for a wrong
/// `currentPassword`; 403 `insufficient_role`; 404 `user_not_found`; 409
/// `last_administrator`, `email_taken`.
#[utoipa::path(method(patch, put), path = "/api/users/{id}", tag = "users",
    params(("id" = String, Path, description = "User, or `me`")), request_body = EditUserBody,
    responses(
        (status = 200, description = "Sets the session cookie anew where the caller's session goes on", body = UserAnswer),
        (status = 400, description = "`no_fields`, `invalid_field`, `cannot_change_self`, `password_required`"),
        (status = 401, description = "`invalid_credentials`: the current password is wrong"),
        (status = 409, description = "`last_administrator`, `email_taken`")
    ))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Subject(user): Subject,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Response, ApiError> {
    let EditUserBody { name, email, role, disabled, current_password } = EditUserBody::read(&fields)?;
    let acting = acting(&state, &caller, &visit);
    let ctx = state.context(&site);
    let takes_proof = acting.is_own(user.get()) && !email.is_keep();
    let verified = match current_password.filter(|_| takes_proof) {
        Some(given) => Some(verified(&state, &ctx, &visit, acting, user, given).await?),
        None => None,
    };
    let edit = UserEdit { name, email, role, disabled };
    let edited = editing::edit(&ctx, acting, user, edit, verified).await?;
    let answer = Json(UserAnswer { success: true, user: edited.user, warnings: Vec::new() });
    moved_to(&state, &headers, edited.own_session_moved_to, answer)
}

/// The stored password of an account, when `given` is it.
async fn verified(
    state: &AppState,
    ctx: &Context,
    visit: &Visit,
    acting: Acting<'_>,
    user: Authorized<UserId>,
    given: String,
) -> Result<String, ApiError> {
    // Guesses here and at a change of the password count together.
    let subject = user.get().get().to_be_bytes();
    let ticket = state.limits().await?.admit(&[(CHANGE_PASSWORD, &subject)], acting.now).await?;
    let stored = users::stored_password(ctx, user).await?;
    let work = move || (password::verify(&given, stored.as_deref()), stored);
    let checked = state.passwords().run(Asker::known(visit.address), work).await;
    match checked {
        Ok((Verdict::Right { .. }, Some(stored))) => {
            ticket.succeeded(acting.now).await?;
            Ok(stored)
        }
        Ok(_) => {
            ticket.failed(acting.now).await?;
            Err(AccountRefusal::WrongCurrentPassword.into())
        }
        Err(busy) => {
            ticket.released(acting.now).await?;
            Err(busy.into())
        }
    }
}

/// Deletes an account. Its sessions and keys open nothing from the next
/// request on.
///
/// # Errors
/// 400 `cannot_change_self`; 404 `user_not_found`; 409 `last_administrator`.
#[utoipa::path(delete, path = "/api/users/{id}", tag = "users",
    params(("id" = String, Path, description = "User")),
    responses(
        (status = 200, body = Done),
        (status = 400, description = "`cannot_change_self`"),
        (status = 409, description = "`last_administrator`")
    ))]
pub(crate) async fn delete(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Subject(user): Subject,
) -> Result<Response, ApiError> {
    editing::delete(&state.context(&site), acting(&state, &caller, &visit), user).await?;
    Ok(Done::answer().into_response())
}
