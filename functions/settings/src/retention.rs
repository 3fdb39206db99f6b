//! How long things are kept: of the installation, and of one project.

use axum::Json;
use axum::response::Response;
use callboard_domain::ids::ProjectId;
use callboard_domain::retention::{Edit, Level, Policy, Preset};
use callboard_domain::time::Timestamp;
use callboard_http::ApiError;
use callboard_http::conditional::tagged_json;
use callboard_http::extract::{Fields, JsonBytes, Path};
use callboard_query::retention::{
    self, ChangePreview, InstanceRetention, PendingChange, ProjectRetention, Shortened,
};
use callboard_query::shapes::UserRef;
use http::HeaderMap;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::answer::Written;
use crate::desk::Desk;

/// Days by how the test ended; null: for ever.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read and written key by key")]
pub(crate) struct AgesBody {
    /// It passed on the first attempt, or did not run.
    #[schema(example = 30, minimum = 1, maximum = 36_500)]
    passed_days: Option<i64>,
    /// It passed after it had failed.
    #[schema(example = 90, minimum = 1, maximum = 36_500)]
    flaky_days: Option<i64>,
    /// It failed, timed out or was interrupted.
    #[schema(example = 180, minimum = 1, maximum = 36_500)]
    failed_days: Option<i64>,
}

/// Whole runs.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read and written key by key")]
pub(crate) struct RunsBody {
    /// Days after their start; null: for ever.
    #[schema(example = 365, minimum = 1, maximum = 36_500)]
    days: Option<i64>,
    /// So many of the newest runs of a project stay whatever their age.
    #[schema(example = 20, minimum = 0, maximum = 1000)]
    keep_last: Option<i64>,
    /// Days on branches that are neither the default one nor tracked; null: as the others.
    #[schema(example = 60, minimum = 1, maximum = 36_500)]
    untracked_branch_days: Option<i64>,
}

/// Files of tests, and reports.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read and written key by key")]
pub(crate) struct FilesBody {
    /// Traces.
    trace: Option<AgesBody>,
    /// Videos.
    video: Option<AgesBody>,
    /// Screenshots.
    screenshot: Option<AgesBody>,
    /// Other attachments.
    attachment: Option<AgesBody>,
    /// Reports of whole runs; null: for ever.
    #[schema(example = 90, minimum = 1, maximum = 36_500)]
    report_days: Option<i64>,
}

/// What is kept whatever its age. Pinned runs always are.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read and written key by key")]
pub(crate) struct KeepBody {
    /// The last green run of every tracked branch, in every environment.
    #[schema(example = true)]
    last_green: Option<bool>,
    /// The first failure of every cluster.
    #[schema(example = true)]
    first_failure: Option<bool>,
    /// So many of the newest failures of every open cluster.
    #[schema(example = 3, minimum = 0, maximum = 10)]
    cluster_samples: Option<i64>,
}

/// Numbers that outlive the runs they were counted from.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read and written key by key")]
pub(crate) struct RollupsBody {
    /// Days of numbers by the day; null: for ever.
    #[schema(example = 730, minimum = 1, maximum = 36_500)]
    daily_days: Option<i64>,
    /// Days after the last run of a branch that is not tracked until its own numbers go; null: for ever.
    #[schema(example = 30, minimum = 1, maximum = 36_500)]
    untracked_branch_days: Option<i64>,
}

/// How long everything is kept. Ages count from the start of the run, in whole
/// UTC days. Absent keys stay as they are.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what is read and written key by key")]
pub(crate) struct RetentionBody {
    /// In requests: a named policy, `lean`. Keys beside it win over it.
    #[schema(example = "lean")]
    preset: Option<String>,
    /// Whole runs.
    runs: Option<RunsBody>,
    /// What explains an attempt: steps, console, requests, sources.
    evidence: Option<AgesBody>,
    /// Files of tests, and reports.
    files: Option<FilesBody>,
    /// What is kept whatever its age.
    keep: Option<KeepBody>,
    /// Numbers that outlive the runs they were counted from.
    rollups: Option<RollupsBody>,
}

/// A key that the configuration of the service sets.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LockedKey {
    /// The path of the key.
    #[schema(example = "runs.days")]
    pub(crate) key: &'static str,
    /// The variable that sets it.
    #[schema(example = "SERVICE_RETENTION")]
    pub(crate) variable: &'static str,
}

/// A named policy.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PresetAnswer {
    /// Its name in requests.
    #[schema(example = "lean")]
    name: &'static str,
    /// What it sets; absent keys stay as they are.
    #[schema(value_type = RetentionBody)]
    settings: Value,
}

/// The policy of the installation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetentionAnswer {
    /// What is in force for projects that set nothing of their own.
    #[schema(value_type = RetentionBody)]
    settings: Policy,
    /// What is in force when nothing is set: everything is kept.
    #[schema(value_type = RetentionBody)]
    defaults: Policy,
    /// Named policies.
    presets: Vec<PresetAnswer>,
    /// A change that keeps less and is not in force yet; `DELETE /api/settings/retention/pending` undoes it.
    pending: Option<PendingChange>,
    /// The same, asked for by `SERVICE_RETENTION` at the last start.
    pending_environment: Option<PendingChange>,
    /// Keys that cannot be set here.
    locked: Vec<LockedKey>,
    /// When it was set last.
    #[schema(value_type = Option<String>, format = DateTime)]
    updated_at: Option<Timestamp>,
    /// By whom, as long as the account exists.
    updated_by: Option<UserRef>,
}

impl From<InstanceRetention> for RetentionAnswer {
    fn from(found: InstanceRetention) -> Self {
        let locked = found.locked.into_iter();
        let presets = Preset::ALL.into_iter();
        Self {
            settings: found.settings,
            defaults: found.defaults,
            presets: presets
                .map(|each| PresetAnswer { name: each.name(), settings: each.settings() })
                .collect(),
            pending: found.pending,
            pending_environment: found.pending_environment,
            locked: locked.map(|each| LockedKey { key: each.key, variable: each.variable }).collect(),
            updated_at: found.updated_at,
            updated_by: found.updated_by,
        }
    }
}

/// A policy was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Changed<T> {
    /// Always true.
    success: bool,
    /// The policy now.
    #[serde(flatten)]
    now: T,
    /// What the change deletes, and when; null when nothing is kept for less time.
    shortened: Option<Shortened>,
}

impl<T> Changed<T> {
    fn answer(now: impl Into<T>, shortened: Option<Shortened>) -> Json<Self> {
        Json(Self { success: true, now: now.into(), shortened })
    }
}

/// The policy of a project.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProjectRetentionAnswer {
    /// What is set for the project and in force; null where it does as the installation does.
    #[schema(value_type = RetentionBody)]
    settings: Value,
    /// What is in force.
    #[schema(value_type = RetentionBody)]
    effective: Policy,
    /// A change that keeps less and is not in force yet; `DELETE /api/projects/{id}/retention/pending` undoes it.
    pending: Option<PendingChange>,
    /// A change of the default or tracked branches: runs of branches that are no longer tracked are kept as before until
    /// then. Track the branches again to keep them.
    pending_branches: Option<PendingChange>,
    /// Paths of the keys that are not set for the project.
    #[schema(example = json!(["runs.days"]))]
    inherited_keys: Vec<&'static str>,
}

impl From<ProjectRetention> for ProjectRetentionAnswer {
    fn from(found: ProjectRetention) -> Self {
        let ProjectRetention { settings, effective, pending, pending_branches, .. } = found;
        let inherited_keys = settings.missing().collect();
        Self { settings: settings.nested(), inherited_keys, effective, pending, pending_branches }
    }
}

fn read(body: &Map<String, Value>, level: Level) -> Result<Edit, ApiError> {
    let edit = Edit::read(body, level);
    edit.map_err(|unusable| ApiError::invalid_field(&unusable.key, unusable.to_string()))
}

fn edit(fields: &Fields, level: Level) -> Result<Edit, ApiError> {
    fields.require_any(&["preset", "runs", "evidence", "files", "keep", "rollups"])?;
    let edit = read(fields.as_map(), level)?;
    if edit.is_empty() {
        let message = "The body names no key of a policy, such as runs.days or evidence.passedDays.";
        return Err(ApiError::bad_request("no_fields", message));
    }
    Ok(edit)
}

/// How long things are kept in projects that set nothing of their own.
#[utoipa::path(get, path = "/api/settings/retention", tag = "settings", operation_id = "instance_retention",
    responses((status = 200, body = RetentionAnswer), (status = 304, description = "The client has this state")))]
pub(crate) async fn of_instance(desk: Desk, headers: HeaderMap) -> Result<Response, ApiError> {
    let found = retention::of_instance(&desk.ctx).await?;
    tagged_json(&headers, &RetentionAnswer::from(found))
}

/// Changes how long data is kept. What is absent stays. Null for a number of
/// days is forever; for another key, or a whole group, the default. `preset`
/// chooses a named policy. What keeps more applies immediately. What keeps less
/// comes into force after a grace (`SERVICE_RETENTION_GRACE_HOURS`): `shortened`
/// says what it deletes and when, and until then it can be undone.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`; 409 `setting_locked`.
#[utoipa::path(method(patch, put), path = "/api/settings/retention", tag = "settings", operation_id = "edit_instance_retention",
    request_body = RetentionBody,
    responses(
        (status = 200, body = Changed<RetentionAnswer>),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 409, description = "`setting_locked`: `data.variable` sets the key")
    ))]
pub(crate) async fn edit_instance(
    desk: Desk,
    fields: Fields,
) -> Result<Json<Changed<RetentionAnswer>>, ApiError> {
    let edit = edit(&fields, Level::Instance)?;
    let shortened = retention::edit_instance(&desk.ctx, desk.acting(), &edit).await?;
    Ok(Changed::answer(retention::of_instance(&desk.ctx).await?, shortened))
}

/// Undoes a change of the installation's policy that is not in force yet.
///
/// # Errors
/// 409 `not_pending`; 409 `setting_locked` when `SERVICE_RETENTION` asks for the
/// change: it is undone there.
#[utoipa::path(delete, path = "/api/settings/retention/pending", tag = "settings", operation_id = "undo_instance_retention",
    responses(
        (status = 200, body = Written<RetentionAnswer>),
        (status = 409, description = "`not_pending`, `setting_locked`")
    ))]
pub(crate) async fn undo_instance(desk: Desk) -> Result<Json<Written<RetentionAnswer>>, ApiError> {
    retention::undo_instance(&desk.ctx, desk.acting()).await?;
    Ok(Written::answer(retention::of_instance(&desk.ctx).await?))
}

/// How long a project keeps things.
///
/// # Errors
/// 404 `project_not_found`.
#[utoipa::path(get, path = "/api/projects/{id}/retention", tag = "settings", operation_id = "project_retention",
    params(("id" = i64, Path, description = "Project")),
    responses(
        (status = 200, body = ProjectRetentionAnswer),
        (status = 304, description = "The client has this state"),
        (status = 404, description = "`project_not_found`")
    ))]
pub(crate) async fn of_project(
    desk: Desk,
    Path(id): Path<ProjectId>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let project = desk.project(id).await?;
    let found = retention::of_project(&desk.ctx, project).await?;
    tagged_json(&headers, &ProjectRetentionAnswer::from(found))
}

/// Changes how long a project keeps data. What is absent stays, null takes back
/// what was set for the project. What keeps less comes into force after a grace,
/// as for the installation.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`; 404 `project_not_found`.
#[utoipa::path(method(patch, put), path = "/api/projects/{id}/retention", tag = "settings", operation_id = "edit_project_retention",
    params(("id" = i64, Path, description = "Project")), request_body = RetentionBody,
    responses(
        (status = 200, body = Changed<ProjectRetentionAnswer>),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`project_not_found`")
    ))]
pub(crate) async fn edit_project(
    desk: Desk,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Json<Changed<ProjectRetentionAnswer>>, ApiError> {
    let edit = edit(&fields, Level::Project)?;
    let project = desk.project(id).await?;
    let shortened = retention::edit_project(&desk.ctx, desk.acting(), project, &edit).await?;
    Ok(Changed::answer(retention::of_project(&desk.ctx, project).await?, shortened))
}

/// Undoes a change of a project's policy that is not in force yet.
///
/// # Errors
/// 404 `project_not_found`; 409 `not_pending`.
#[utoipa::path(delete, path = "/api/projects/{id}/retention/pending", tag = "settings", operation_id = "undo_project_retention",
    params(("id" = i64, Path, description = "Project")),
    responses(
        (status = 200, body = Written<ProjectRetentionAnswer>),
        (status = 404, description = "`project_not_found`"),
        (status = 409, description = "`not_pending`")
    ))]
pub(crate) async fn undo_project(
    desk: Desk,
    Path(id): Path<ProjectId>,
) -> Result<Json<Written<ProjectRetentionAnswer>>, ApiError> {
    let project = desk.project(id).await?;
    retention::undo_project(&desk.ctx, desk.acting(), project).await?;
    Ok(Written::answer(retention::of_project(&desk.ctx, project).await?))
}

/// The edit a preview is asked for; none for the policy in force.
fn tried(body: &[u8], level: Level) -> Result<Option<Edit>, ApiError> {
    if body.is_empty() {
        return Ok(None);
    }
    let body: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid_json(format!("The body cannot be read: {error}.")))?;
    Ok(Some(read(&body, level)?))
}

/// What a change of a project's policy deletes: keys of the body replace those
/// that are set. Without a body, what its policy has to delete now. Nothing is
/// changed. Counting takes two seconds at most; `partial` says when that was not
/// enough.
///
/// # Errors
/// 400 `invalid_field`; 404 `project_not_found`.
#[utoipa::path(post, path = "/api/projects/{id}/retention/preview", tag = "settings", operation_id = "preview_retention",
    params(("id" = i64, Path, description = "Project")), request_body = RetentionBody,
    responses(
        (status = 200, body = ChangePreview),
        (status = 400, description = "`invalid_field`"),
        (status = 404, description = "`project_not_found`")
    ))]
pub(crate) async fn preview_project(
    desk: Desk,
    Path(id): Path<ProjectId>,
    JsonBytes { bytes: body, .. }: JsonBytes,
) -> Result<Json<ChangePreview>, ApiError> {
    let tried = tried(&body, Level::Project)?;
    let project = desk.project(id).await?;
    Ok(Json(retention::preview_project(&desk.ctx, project, tried.as_ref(), desk.now).await?))
}

/// What a change of the installation's policy deletes in all projects; as for
/// one project.
///
/// # Errors
/// 400 `invalid_field`.
#[utoipa::path(post, path = "/api/settings/retention/preview", tag = "settings", operation_id = "preview_instance_retention",
    request_body = RetentionBody,
    responses((status = 200, body = ChangePreview), (status = 400, description = "`invalid_field`")))]
pub(crate) async fn preview_instance(
    desk: Desk,
    JsonBytes { bytes: body, .. }: JsonBytes,
) -> Result<Json<ChangePreview>, ApiError> {
    let tried = tried(&body, Level::Instance)?;
    Ok(Json(retention::preview_instance(&desk.ctx, tried.as_ref(), desk.now).await?))
}
