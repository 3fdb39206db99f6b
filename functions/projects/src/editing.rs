//! Creating and changing projects, for administrators.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_domain::ids::ProjectId;
use callboard_http::extract::{Caller, Fields, FromQuery, JsonBytes, Path, Query, QueryReader, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::deletions::{Effect, Receipt};
use callboard_query::shapes::Project;
use callboard_query::{deletions, project_editing, projects, resolve};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::body::{NewProjectBody, ProjectBody, new_project, project_edit};

/// A project was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProjectWritten {
    /// Always true.
    success: bool,
    /// The project now.
    project: Project,
}

/// Creates a project. Projects also appear with their first submission.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `tag_not_found`; 409
/// `name_taken`.
#[utoipa::path(post, path = "/api/projects", tag = "projects", request_body = NewProjectBody,
    responses(
        (status = 201, body = ProjectWritten),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`tag_not_found`"),
        (status = 409, description = "`name_taken`")
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    fields: Fields,
) -> Result<Response, ApiError> {
    let new = new_project(&fields)?;
    let ctx = state.context(&site);
    let acting = visit.acting(&caller, state.now());
    let id = project_editing::create(&ctx, acting, state.stored_secrets(), new).await?;
    let project = projects::get(&ctx, caller.scope().authorize(id)?).await?;
    Ok((StatusCode::CREATED, Json(ProjectWritten { success: true, project })).into_response())
}

/// Changes a project: what is absent stays, null clears.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`, `missing_field`; 404 `project_not_found`,
/// `tag_not_found`; 409 `name_taken`; 503 `secret_key_not_configured`.
#[utoipa::path(method(patch, put), path = "/api/projects/{id}", tag = "projects",
    params(("id" = i64, Path, description = "Project")), request_body = ProjectBody,
    responses(
        (status = 200, body = ProjectWritten),
        (status = 400, description = "`no_fields`, `invalid_field`, `missing_field`: the repository moves to another host without a token"),
        (status = 404, description = "`project_not_found`, `tag_not_found`"),
        (status = 409, description = "`name_taken`"),
        (status = 503, description = "`secret_key_not_configured`: a token is sent and SERVICE_SECRET_KEY is not set")
    ))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Json<ProjectWritten>, ApiError> {
    let wanted = project_edit(&fields, &state.config().egress_allow)?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    project_editing::edit(&ctx, acting, state.stored_secrets(), project, wanted).await?;
    Ok(Json(ProjectWritten { success: true, project: projects::get(&ctx, project).await? }))
}

/// What confirms that a project goes.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Confirm {
    /// The exact name of the project; it may be sent in the body instead.
    #[param(required = false)]
    confirm: Option<String>,
    /// `true` takes effect immediately, without the grace period; for personal data.
    #[param(required = false)]
    now: bool,
}

impl FromQuery for Confirm {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { confirm: query.exact("confirm")?, now: query.flag("now")?.unwrap_or_default() })
    }
}

/// The same, as a body.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct ConfirmBody {
    /// The exact name of the project.
    #[schema(example = "shop")]
    confirm: Option<String>,
    /// Takes effect immediately, without the grace period; for personal data.
    #[serde(default)]
    #[schema(required = false)]
    now: bool,
}

/// A project was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProjectDeleted {
    /// Always true.
    success: bool,
    /// What is freed, and how far that has come.
    receipt: Receipt,
}

/// Deletes a project with everything in it. It is hidden immediately, and its
/// name is free: the next run of that name makes a new project. Until
/// `restorableUntil` of the receipt an administrator can restore it
/// (`POST /api/deletions/{id}/restore`), under another name when its own is
/// taken; then its rows and files are freed. `now: true` skips that grace
/// period.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `project_not_found`.
#[utoipa::path(delete, path = "/api/projects/{id}", tag = "projects",
    params(("id" = i64, Path, description = "Project"), Confirm), request_body = ConfirmBody,
    responses(
        (status = 200, body = ProjectDeleted),
        (status = 400, description = "`missing_field`, `invalid_field`: `confirm` is not the project's name"),
        (status = 404, description = "`project_not_found`")
    ))]
pub(crate) async fn delete(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
    Query(asked): Query<Confirm>,
    JsonBytes { bytes: body, .. }: JsonBytes,
) -> Result<Json<ProjectDeleted>, ApiError> {
    let body = if body.is_empty() {
        ConfirmBody::default()
    } else {
        serde_json::from_slice(&body)
            .map_err(|error| ApiError::invalid_json(format!("The body cannot be read: {error}.")))?
    };
    let confirm = asked.confirm.or(body.confirm).ok_or_else(|| ApiError::missing_fields(&["confirm"]))?;
    let effect = Effect::from_choice(asked.now || body.now);
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    let receipt = deletions::delete_project(&ctx, acting, project, &confirm, effect).await?;
    Ok(Json(ProjectDeleted { success: true, receipt }))
}
