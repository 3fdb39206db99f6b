//! Lost locators: what to use instead, and what a person chose.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::ExecutionId;
use callboard_domain::ingest::{AlternativeLocator, LocatorSnapshot, UsedLocator};
use callboard_http::extract::{Caller, Fields, Path, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_playwright::healing::rewrite::is_locator;
use callboard_query::failures::{self, AssociatedBy, LocatorHealing, LocatorPick};
use callboard_query::resolve;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Longest locator, in characters.
const MAX_LOCATOR_CHARS: usize = 1_000;

/// What to write instead of the locator that failed, with the edit of the
/// test. `source` is `none` when nothing is known, or when the locator is not
/// what failed.
///
/// # Errors
/// 404 `execution_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}/locator-healing", tag = "cases", operation_id = "locator_healing",
    params(("id" = i64, Path, description = "Execution")),
    responses((status = 200, body = LocatorHealing)))]
pub(crate) async fn healing(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
) -> Result<Json<LocatorHealing>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    Ok(Json(failures::locator_healing(&ctx, project, id).await?))
}

/// A chosen locator.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the body, which is read field by field")]
pub(crate) struct PickedBody {
    /// The locator, such as `getByRole('button', { name: 'Pay' })`.
    #[schema(example = "getByRole('button', { name: 'Pay' })")]
    locator: String,
    /// Its method.
    #[schema(example = "getByRole")]
    method: String,
    /// Its arguments.
    #[schema(value_type = Vec<Value>)]
    args: Vec<Value>,
    /// How well it will hold, 0 to 100.
    score: i64,
}

/// What was chosen, and for what.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body, which is read field by field")]
pub(crate) struct PickBody {
    /// The chosen locator.
    picked_locator: PickedBody,
    /// The locator that failed (`method`, `args`, `raw`); that of the execution when it is left out.
    #[schema(value_type = Option<Object>)]
    failing_locator: Option<Value>,
    /// The element as it was seen, as fixtures describe it.
    #[schema(value_type = Option<Object>)]
    element: Option<Value>,
}

/// A choice was noted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Picked {
    /// Always true.
    success: bool,
    /// Where it was noted; null when nothing says where the locator is used.
    associated_by: Option<AssociatedBy>,
}

/// Notes which locator a person chose instead of one that failed. It is
/// recommended from then on.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `execution_not_found`, 403
/// `project_access_denied`, `insufficient_role`.
#[utoipa::path(post, path = "/api/test-run-cases/{id}/locator-pick", tag = "cases", operation_id = "locator_pick",
    params(("id" = i64, Path, description = "Execution")), request_body = PickBody,
    responses(
        (status = 200, body = Picked),
        (status = 400, description = "`missing_field`, `invalid_field`")
    ))]
pub(crate) async fn pick(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ExecutionId>,
    fields: Fields,
) -> Result<Json<Picked>, ApiError> {
    let pick = read(&fields)?;
    let ctx = state.context(&site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    let associated_by =
        failures::locator_pick(&ctx, visit.acting(&caller, state.now()), project, id, pick).await?;
    Ok(Json(Picked { success: true, associated_by }))
}

fn read(fields: &Fields) -> Result<LocatorPick, ApiError> {
    fields.require(&["pickedLocator"])?;
    let invalid = |name: &str, what: &str| ApiError::invalid_field(name, format!("{name} must be {what}."));
    check_picked(fields)?;
    let picked: AlternativeLocator = part(fields, "pickedLocator")?.unwrap_or_default();
    let is_short = picked.locator.chars().count() <= MAX_LOCATOR_CHARS;
    if !is_short || !is_locator(&picked.locator) {
        return Err(invalid(
            "pickedLocator",
            "an object with a locator such as getByText('Pay') and nothing else",
        ));
    }
    let failing: Option<UsedLocator> = part(fields, "failingLocator")?;
    let element: Option<Map<String, Value>> = part(fields, "element")?;
    // The same bounds as for what fixtures send.
    let bounded = LocatorSnapshot {
        location: "picked".to_owned(),
        used: failing.clone().unwrap_or_default(),
        element,
        alternatives: vec![picked],
    }
    .bounded();
    let picked = bounded.alternatives.into_iter().next().unwrap_or_default();
    Ok(LocatorPick { picked, failing: failing.map(|_| bounded.used), element: bounded.element })
}

/// What fixtures send is read leniently; a person's tool is told what is wrong.
fn check_picked(fields: &Fields) -> Result<(), ApiError> {
    let Some(Value::Object(picked)) = fields.json("pickedLocator") else { return Ok(()) };
    let is_text =
        |value: &Value| value.as_str().is_some_and(|text| text.chars().count() <= MAX_LOCATOR_CHARS);
    let is_score = |value: &Value| value.as_i64().is_some_and(|score| (0..=100).contains(&score));
    let check = |name: &str, what: &str, is_right: &dyn Fn(&Value) -> bool| match picked.get(name) {
        Some(value) if !value.is_null() && !is_right(value) => {
            let field = format!("pickedLocator.{name}");
            Err(ApiError::invalid_field(&field, format!("{field} must be {what}.")))
        }
        _ => Ok(()),
    };
    check("method", "the name of a method, such as getByRole", &is_text)?;
    check("args", "a list", &Value::is_array)?;
    check("score", "a whole number from 0 to 100", &is_score)
}

fn part<T: DeserializeOwned>(fields: &Fields, name: &str) -> Result<Option<T>, ApiError> {
    fields.object(name)?;
    let read = |value: &Value| serde_json::from_value(value.clone());
    let invalid = |_| ApiError::invalid_field(name, format!("{name} does not have the form it should have."));
    fields.json(name).map(read).transpose().map_err(invalid)
}
