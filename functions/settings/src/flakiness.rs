//! By what tests are judged: in the installation, and in one project.

use axum::Json;
use axum::response::Response;
use callboard_domain::flakiness::{FLAKINESS_KEYS, FlakinessOverrides, FlakinessSettings};
use callboard_domain::ids::ProjectId;
use callboard_http::ApiError;
use callboard_http::conditional::tagged_json;
use callboard_http::extract::{Fields, Path};
use callboard_query::flakiness::settings::{self as of_projects, ProjectFlakiness};
use callboard_query::settings::OfInstance;
use http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{GroupHistory, Written, refused};
use crate::desk::Desk;
use crate::group;

/// By what tests are judged. Absent keys stay as they are, null takes back
/// what was set.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read and written key by key")]
pub(crate) struct FlakinessBody {
    /// Decided runs a test needs before it is called flaky or proposed for quarantine.
    #[schema(example = 1, minimum = 1, maximum = 200)]
    min_runs: Option<i64>,
    /// Least flaky score of a test that is proposed for quarantine.
    #[schema(example = 40, minimum = 0, maximum = 100)]
    quarantine_score: Option<i64>,
    /// Least time such a test has wasted in its newest fifty runs, ms.
    #[schema(example = 120_000, minimum = 0, maximum = 2_592_000_000_i64)]
    quarantine_waste_ms: Option<i64>,
    /// Fewest clean runs before a release from quarantine is proposed.
    #[schema(example = 10, minimum = 1, maximum = 200)]
    release_after_passes: Option<i64>,
    /// Share of failed tests from which a run says nothing about its tests; runs that end from now on.
    #[schema(example = 0.8, minimum = 0.1, maximum = 1)]
    mass_failure_rate: Option<f64>,
}

/// By what tests are judged in projects that set nothing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FlakinessAnswer {
    /// What holds.
    #[schema(value_type = FlakinessBody)]
    settings: FlakinessOverrides,
    /// What would hold if nothing was set.
    #[schema(value_type = FlakinessBody)]
    defaults: FlakinessOverrides,
    #[serde(flatten)]
    history: GroupHistory,
}

impl From<OfInstance<FlakinessOverrides>> for FlakinessAnswer {
    fn from(found: OfInstance<FlakinessOverrides>) -> Self {
        let defaults = FlakinessSettings::default();
        Self {
            settings: FlakinessOverrides::all_of(&found.set.over(&defaults)),
            defaults: FlakinessOverrides::all_of(&defaults),
            history: GroupHistory::new(found.updated_at, found.updated_by),
        }
    }
}

/// By what the tests of a project are judged.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProjectFlakinessAnswer {
    /// What is set for the project; null where it does as the installation does.
    #[schema(value_type = FlakinessBody)]
    settings: FlakinessOverrides,
    /// What holds.
    #[schema(value_type = FlakinessBody)]
    effective: FlakinessOverrides,
    /// Keys that are not set for the project.
    #[schema(example = json!(["minRuns"]))]
    inherited_keys: Vec<&'static str>,
}

impl From<ProjectFlakiness> for ProjectFlakinessAnswer {
    fn from(ProjectFlakiness { settings, effective }: ProjectFlakiness) -> Self {
        let is_set = [
            settings.min_runs.is_some(),
            settings.quarantine_score.is_some(),
            settings.quarantine_waste_ms.is_some(),
            settings.release_after_passes.is_some(),
            settings.mass_failure_rate.is_some(),
        ];
        let inherited = FLAKINESS_KEYS.into_iter().zip(is_set).filter(|(_, is_set)| !is_set);
        Self {
            settings,
            effective: FlakinessOverrides::all_of(&effective),
            inherited_keys: inherited.map(|(key, _)| key).collect(),
        }
    }
}

/// By what tests are judged in projects that set nothing of their own.
#[utoipa::path(get, path = "/api/settings/flakiness", tag = "settings", operation_id = "instance_flakiness",
    responses((status = 200, body = FlakinessAnswer), (status = 304, description = "The client has this state")))]
pub(crate) async fn of_instance(desk: Desk, headers: HeaderMap) -> Result<Response, ApiError> {
    group::get::<FlakinessOverrides, FlakinessAnswer>(&desk, &headers).await
}

/// Changes by what tests are judged. What is absent stays, null is the default.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`.
#[utoipa::path(method(patch, put), path = "/api/settings/flakiness", tag = "settings", operation_id = "edit_instance_flakiness",
    request_body = FlakinessBody,
    responses(
        (status = 200, body = Written<FlakinessAnswer>),
        (status = 400, description = "`no_fields`, `invalid_field`")
    ))]
pub(crate) async fn edit_instance(
    desk: Desk,
    fields: Fields,
) -> Result<Json<Written<FlakinessAnswer>>, ApiError> {
    group::edit::<FlakinessOverrides, FlakinessAnswer>(&desk, &fields, &FLAKINESS_KEYS).await
}

/// By what the tests of a project are judged.
///
/// # Errors
/// 404 `project_not_found`.
#[utoipa::path(get, path = "/api/projects/{id}/flakiness", tag = "settings", operation_id = "project_flakiness",
    params(("id" = i64, Path, description = "Project")),
    responses(
        (status = 200, body = ProjectFlakinessAnswer),
        (status = 304, description = "The client has this state"),
        (status = 404, description = "`project_not_found`")
    ))]
pub(crate) async fn of_project(
    desk: Desk,
    Path(id): Path<ProjectId>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let project = desk.project(id).await?;
    let found = of_projects::of_project(&desk.ctx, project).await?;
    tagged_json(&headers, &ProjectFlakinessAnswer::from(found))
}

/// Changes by what the tests of a project are judged. What is absent stays,
/// null takes back what was set for the project.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`; 404 `project_not_found`.
#[utoipa::path(method(patch, put), path = "/api/projects/{id}/flakiness", tag = "settings", operation_id = "edit_project_flakiness",
    params(("id" = i64, Path, description = "Project")), request_body = FlakinessBody,
    responses(
        (status = 200, body = Written<ProjectFlakinessAnswer>),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`project_not_found`")
    ))]
pub(crate) async fn edit_project(
    desk: Desk,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Json<Written<ProjectFlakinessAnswer>>, ApiError> {
    fields.require_any(&FLAKINESS_KEYS)?;
    let project = desk.project(id).await?;
    of_projects::edit_project(&desk.ctx, desk.acting(), project, fields.as_map()).await?.map_err(refused)?;
    Ok(Written::answer(of_projects::of_project(&desk.ctx, project).await?))
}
