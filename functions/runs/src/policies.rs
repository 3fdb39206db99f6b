//! The policies by which the runs of a project are judged.

use axum::Json;
use axum::extract::State;
use callboard_domain::gate::Policy;
use callboard_domain::ids::{GatePolicyId, ProjectId};
use callboard_http::extract::{Caller, JsonBody, Path, Visit};
use callboard_http::page::Page;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::gates::{self, GatePolicy, PolicyEdit};
use callboard_query::resolve;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::gate::unusable;

/// Most characters of a name.
const NAME_CHARS: usize = 60;

/// A policy to store.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body in the OpenAPI document; it is read key by key")]
pub(crate) struct PolicyBody {
    /// Its name within the project, at most 60 characters.
    #[schema(example = "release")]
    name: Option<String>,
    /// Its rules, under the keys a gate takes.
    #[schema(value_type = Option<Object>, example = json!({ "maxFailed": 0 }))]
    policy: Option<Value>,
    /// Whether it is used when a gate names none.
    is_default: Option<bool>,
}

fn edit(body: &Map<String, Value>) -> Result<PolicyEdit, ApiError> {
    let name = match body.get("name") {
        None => None,
        Some(Value::String(name))
            if !name.trim().is_empty()
                && name.chars().count() <= NAME_CHARS
                && !name.chars().any(char::is_control) =>
        {
            Some(name.clone())
        }
        Some(_) => {
            return Err(ApiError::invalid_field(
                "name",
                "name must be text of 1 to 60 characters without control characters.",
            ));
        }
    };
    let policy = match body.get("policy") {
        None => None,
        Some(Value::Object(rules)) => Some(Policy::read(rules).map_err(|error| unusable(&error))?),
        Some(_) => return Err(ApiError::invalid_field("policy", "policy must be an object.")),
    };
    let is_default = match body.get("isDefault") {
        None => None,
        Some(Value::Bool(is_default)) => Some(*is_default),
        Some(_) => return Err(ApiError::invalid_field("isDefault", "isDefault must be true or false.")),
    };
    Ok(PolicyEdit { name, policy, is_default })
}

/// A policy that was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PolicyAnswer {
    /// Always true.
    success: bool,
    /// The policy.
    policy: GatePolicy,
}

/// That something was done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Done {
    /// Always true.
    success: bool,
}

/// The policies of a project by name; at most 200.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/gate-policies", tag = "runs",
    params(("id" = i64, Path, description = "Project")),
    responses((status = 200, body = Page<GatePolicy>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
) -> Result<Json<Page<GatePolicy>>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    Ok(Json(Page::whole(gates::policies(&ctx, project).await?)))
}

/// Stores a policy.
///
/// # Errors
/// 404 `project_not_found`, 400 `missing_field`, `invalid_field` or
/// `invalid_body` for rules that ask nothing, 409 `name_taken`.
#[utoipa::path(post, path = "/api/projects/{id}/gate-policies", tag = "runs",
    params(("id" = i64, Path, description = "Project")), request_body = PolicyBody,
    responses((status = 201, body = PolicyAnswer)))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<(StatusCode, Json<PolicyAnswer>), ApiError> {
    let PolicyEdit { name, policy, is_default } = edit(&body)?;
    let missing: Vec<&str> = [("name", name.is_none()), ("policy", policy.is_none())]
        .iter()
        .filter(|(_, none)| *none)
        .map(|(name, _)| *name)
        .collect();
    let (Some(name), Some(policy)) = (name, policy) else { return Err(ApiError::missing_fields(&missing)) };
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    let policy =
        gates::create_policy(&ctx, acting, project, name, &policy, is_default.unwrap_or_default()).await?;
    Ok((StatusCode::CREATED, Json(PolicyAnswer { success: true, policy })))
}

/// Changes a policy; what is not named stays.
///
/// # Errors
/// 404 `policy_not_found`, 400 `no_fields`, `invalid_field` or `invalid_body`
/// for rules that ask nothing, 409 `name_taken`.
#[utoipa::path(method(patch, put), path = "/api/gate-policies/{id}", tag = "runs",
    params(("id" = i64, Path, description = "Policy")), request_body = PolicyBody,
    responses((status = 200, body = PolicyAnswer)))]
pub(crate) async fn change(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<GatePolicyId>,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<Json<PolicyAnswer>, ApiError> {
    let edit = edit(&body)?;
    if edit.name.is_none() && edit.policy.is_none() && edit.is_default.is_none() {
        let message = "The body changes nothing; it may hold name, policy, isDefault.";
        return Err(ApiError::bad_request("no_fields", message));
    }
    let ctx = state.context(&site);
    let project = resolve::gate_policy(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    let policy = gates::edit_policy(&ctx, acting, project, id.get(), edit).await?;
    Ok(Json(PolicyAnswer { success: true, policy }))
}

/// Removes a policy; what gates said by it stays.
///
/// # Errors
/// 404 `policy_not_found`.
#[utoipa::path(delete, path = "/api/gate-policies/{id}", tag = "runs",
    params(("id" = i64, Path, description = "Policy")),
    responses((status = 200, body = Done)))]
pub(crate) async fn remove(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<GatePolicyId>,
) -> Result<Json<Done>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::gate_policy(&ctx, caller.scope(), id).await?;
    gates::delete_policy(&ctx, visit.acting(&caller, state.now()), project, id.get()).await?;
    Ok(Json(Done { success: true }))
}
