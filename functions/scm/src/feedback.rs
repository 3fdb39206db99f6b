//! Comments on requests and statuses of commits: settings of a project, its log, and those of a run.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::feedback::{FEEDBACK_KEYS, FeedbackState};
use callboard_domain::ids::{ProjectId, RunId};
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::feedback::{self, FeedbackEntry, FeedbackItem, ProjectFeedback};
use callboard_query::resolve;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// Whether the runs of a project say something at its code host. Absent keys stay as they are, null takes back what was
/// set.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read key by key")]
pub(crate) struct FeedbackSettingsBody {
    /// Whether they comment on the open request of their commit or branch.
    comment: Option<bool>,
    /// Whether they set a status of their commit.
    status: Option<bool>,
    /// Name of the status, at most 80 characters.
    #[schema(example = "callboard/shop")]
    status_context: Option<String>,
}

/// Whether the runs of a project say something at its code host.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FeedbackSettingsAnswer {
    /// Whether they comment on the open request of their commit or branch.
    comment: bool,
    /// Whether they set a status of their commit.
    status: bool,
    /// Name of the status.
    #[schema(example = "callboard/shop")]
    status_context: String,
    /// Name of the status when none is set.
    #[schema(example = "callboard/shop")]
    default_status_context: String,
}

impl From<ProjectFeedback> for FeedbackSettingsAnswer {
    fn from(found: ProjectFeedback) -> Self {
        Self {
            comment: found.settings.comment.unwrap_or_default(),
            status: found.settings.status.unwrap_or_default(),
            status_context: found.settings.status_context.unwrap_or_else(|| found.default_context.clone()),
            default_status_context: found.default_context,
        }
    }
}

/// The settings were saved.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeedbackSaved {
    /// Always true.
    success: bool,
    /// The settings now.
    #[serde(flatten)]
    settings: FeedbackSettingsAnswer,
}

/// Comment and status of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunFeedbackAnswer {
    /// At most one of each kind; none while nothing was wanted.
    items: Vec<FeedbackItem>,
}

/// Comment and status are posted again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FeedbackQueued {
    /// Always true.
    success: bool,
    /// The job that posts them.
    job_id: i64,
}

/// Whether the runs of a project comment on requests and set statuses.
///
/// # Errors
/// 404 `project_not_found`.
#[utoipa::path(get, path = "/api/projects/{id}/repository/feedback", tag = "scm", operation_id = "project_feedback",
    params(("id" = i64, Path, description = "Project")),
    responses(
        (status = 200, body = FeedbackSettingsAnswer),
        (status = 404, description = "`project_not_found`")
    ))]
pub(crate) async fn of_project(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
) -> Result<Json<FeedbackSettingsAnswer>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    Ok(Json(feedback::of_project(&ctx, project).await?.into()))
}

/// Changes whether the runs of a project comment on requests and set statuses. Runs that have ended say nothing later;
/// post them again for that.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`; 404 `project_not_found`.
#[utoipa::path(patch, path = "/api/projects/{id}/repository/feedback", tag = "scm",
    operation_id = "edit_project_feedback",
    params(("id" = i64, Path, description = "Project")), request_body = FeedbackSettingsBody,
    responses(
        (status = 200, body = FeedbackSaved),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`project_not_found`")
    ))]
pub(crate) async fn edit_project(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Json<FeedbackSaved>, ApiError> {
    fields.require_any(&FEEDBACK_KEYS)?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    feedback::edit_project(&ctx, acting, project, fields.as_map())
        .await?
        .map_err(|unusable| ApiError::invalid_field(unusable.key, unusable.to_string()))?;
    Ok(Json(FeedbackSaved { success: true, settings: feedback::of_project(&ctx, project).await?.into() }))
}

/// Which entries of the log are listed.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogParams {
    /// `pending`, `sent`, `failed` or `skipped`.
    #[param(value_type = Option<String>)]
    state: Option<FeedbackState>,
}

impl FromQuery for LogParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { state: query.word("state", FeedbackState::WORDS, FeedbackState::parse)? })
    }
}

/// Every call about comments and statuses of a project with its answer, newest first, of the last 30 days.
///
/// # Errors
/// 400 `invalid_query`, `invalid_cursor`; 404 `project_not_found`.
#[utoipa::path(get, path = "/api/projects/{id}/repository/feedback/log", tag = "scm", operation_id = "feedback_log",
    params(("id" = i64, Path, description = "Project"), LogParams, PageRequest),
    responses(
        (status = 200, body = Page<FeedbackEntry>),
        (status = 400, description = "`invalid_query`, `invalid_cursor`"),
        (status = 404, description = "`project_not_found`")
    ))]
pub(crate) async fn log(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(params): Query<LogParams>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<FeedbackEntry>>, ApiError> {
    let cursors = CursorScope::new(RouteId::FeedbackLog, &(id, &params))?;
    let before = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let found = feedback::feedback_log(&ctx, project, params.state, before, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}

/// What a run says at its code host.
///
/// # Errors
/// 404 `run_not_found`.
#[utoipa::path(get, path = "/api/test-runs/{id}/feedback", tag = "scm", operation_id = "run_feedback",
    params(("id" = i64, Path, description = "Run")),
    responses(
        (status = 200, body = RunFeedbackAnswer),
        (status = 404, description = "`run_not_found`")
    ))]
pub(crate) async fn of_run(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
) -> Result<Json<RunFeedbackAnswer>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    Ok(Json(RunFeedbackAnswer { items: feedback::of_run(&ctx, project, id).await? }))
}

/// Posts comment and status of a run again, as far as its project has them on. A job does it.
///
/// # Errors
/// 404 `run_not_found`; 409 `run_not_finished`; 503 `not_configured` while both are off.
#[utoipa::path(post, path = "/api/test-runs/{id}/feedback", tag = "scm", operation_id = "post_run_feedback",
    params(("id" = i64, Path, description = "Run")),
    responses(
        (status = 200, body = FeedbackQueued),
        (status = 404, description = "`run_not_found`"),
        (status = 409, description = "`run_not_finished`"),
        (status = 503, description = "`not_configured`: comments and statuses are off in the project's settings")
    ))]
pub(crate) async fn repost(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<RunId>,
) -> Result<Json<FeedbackQueued>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    let job_id = feedback::repost(&ctx, acting, project, id).await?;
    Ok(Json(FeedbackQueued { success: true, job_id }))
}
