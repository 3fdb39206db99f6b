//! Deleting runs, for administrators.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_http::extract::{Caller, Fields, FromQuery, JsonBytes, Path, Query, QueryReader, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::deletions::{
    self, DeletedRuns, Effect, HIDDEN_AT_ONCE, NamedRuns, Reason, Receipt, RunsToDelete,
};
use callboard_query::resolve;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

const STATUSES: [&str; 8] =
    ["initializing", "running", "finalizing", "passed", "failed", "timedout", "interrupted", "cancelled"];

/// How a run is deleted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteParams {
    /// `true` deletes a pinned run as well.
    #[param(required = false)]
    force: bool,
    /// `true` takes effect immediately, without the grace period; for personal data.
    #[param(required = false)]
    now: bool,
}

impl FromQuery for DeleteParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self {
            force: query.flag("force")?.unwrap_or_default(),
            now: query.flag("now")?.unwrap_or_default(),
        })
    }
}

/// The same, as a body.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct DeleteBody {
    /// Deletes a pinned run as well.
    #[serde(default)]
    #[schema(required = false)]
    force: bool,
    /// Takes effect immediately, without the grace period; for personal data.
    #[serde(default)]
    #[schema(required = false)]
    now: bool,
}

/// A run was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunDeleted {
    /// Always true.
    success: bool,
    /// What is freed, and how far that has come.
    receipt: Receipt,
}

/// Deletes a run with its tests, files and reports. It is hidden immediately,
/// also from clients that still feed it, and statistics no longer count it.
/// Until `restorableUntil` of the receipt an administrator can restore it
/// (`POST /api/deletions/{id}/restore`); then its rows and files are freed.
/// `now=true` skips that grace period.
///
/// # Errors
/// 404 `run_not_found`; 409 `in_use` for a pinned run without `force`.
#[utoipa::path(delete, path = "/api/test-runs/{id}", tag = "runs", operation_id = "delete_run",
    params(("id" = i64, Path, description = "Run"), DeleteParams), request_body = Option<DeleteBody>,
    responses(
        (status = 200, body = RunDeleted),
        (status = 404, description = "`run_not_found`"),
        (status = 409, description = "`in_use`: the run is pinned")
    ))]
pub(crate) async fn delete(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<RunId>,
    Query(params): Query<DeleteParams>,
    JsonBytes { bytes: body, .. }: JsonBytes,
) -> Result<Json<RunDeleted>, ApiError> {
    let body = if body.is_empty() {
        DeleteBody::default()
    } else {
        serde_json::from_slice(&body)
            .map_err(|error| ApiError::invalid_json(format!("The body cannot be read: {error}.")))?
    };
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    let (force, effect) = (params.force || body.force, Effect::from_choice(params.now || body.now));
    let receipt = deletions::delete_run(&ctx, acting, project, id, force, effect).await?;
    Ok(Json(RunDeleted { success: true, receipt }))
}

/// Which runs go: `ids`, or a `filter`.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body; its fields are read one by one")]
pub(crate) struct BulkDeleteBody {
    /// At most 200 runs.
    ids: Option<Vec<i64>>,
    /// What they have in common.
    filter: Option<BulkFilter>,
    /// Only says how many match.
    dry_run: Option<bool>,
    /// Takes effect immediately, without the grace period; for personal data.
    now: Option<bool>,
}

/// Runs of a project that began before a moment.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the body; its fields are read one by one")]
pub(crate) struct BulkFilter {
    /// Project.
    project: i64,
    /// Only on this branch.
    branch: Option<String>,
    /// Only in this environment.
    environment: Option<String>,
    /// Only with this status.
    status: Option<String>,
    /// Only those that began before.
    #[schema(value_type = String, format = DateTime)]
    before: Timestamp,
}

fn named(fields: &Fields) -> Result<NamedRuns, ApiError> {
    let ids = fields.ids::<RunId>("ids", HIDDEN_AT_ONCE)?.into_value();
    let filter = fields.object("filter")?.into_value();
    match (ids, filter) {
        (Some(ids), None) => Ok(NamedRuns::Ids(ids)),
        (None, Some(filter)) => matching(&filter).map(NamedRuns::Matching),
        (None, None) => Err(ApiError::missing_fields(&["ids", "filter"])),
        (Some(_), Some(_)) => {
            Err(ApiError::invalid_field("filter", "Name runs by ids or by filter, not by both."))
        }
    }
}

fn matching(filter: &Fields) -> Result<RunsToDelete, ApiError> {
    filter.require(&["project", "before"])?;
    let status = filter.word("status", &STATUSES, RunStatus::parse)?;
    let before = filter.moment("before")?.into_value();
    Ok(RunsToDelete {
        project: filter.id::<ProjectId>("project")?.into_value(),
        branch: filter.line("branch", 500)?.into_value(),
        environment: filter.line("environment", 100)?.into_value(),
        statuses: status.map(|status| vec![status.as_str().to_owned()]),
        before: before.ok_or_else(|| ApiError::missing_fields(&["before"]))?,
    })
}

/// Runs were deleted, or would be.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunsDeleted {
    /// Always true.
    success: bool,
    /// What is freed; null when nothing matched, and for a dry run.
    receipt: Option<Receipt>,
    /// Runs that go; counted up to 100,000.
    matched: i64,
    /// What was left out.
    data: LeftOut,
}

/// Runs that were named and stay.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeftOut {
    /// Pinned runs.
    skipped: Vec<i64>,
}

/// Deletes several runs, restorable as a single one is. Pinned runs stay.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `run_not_found`,
/// `project_not_found`; 413 `too_many_items`.
#[utoipa::path(post, path = "/api/test-runs/bulk-delete", tag = "runs", operation_id = "bulk_delete_runs",
    request_body = BulkDeleteBody,
    responses(
        (status = 200, body = RunsDeleted),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`run_not_found`, `project_not_found`"),
        (status = 413, description = "`too_many_items`")
    ))]
pub(crate) async fn bulk_delete(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    fields: Fields,
) -> Result<Json<RunsDeleted>, ApiError> {
    let named = named(&fields)?;
    let dry_run = fields.flag("dryRun")?.unwrap_or_default();
    let effect = Effect::from_choice(fields.flag("now")?.unwrap_or_default());
    let ctx = state.context(&site);
    if let NamedRuns::Matching(RunsToDelete { project: Some(project), .. }) = &named {
        resolve::project(&ctx, caller.scope(), *project).await?;
    }
    let acting = visit.acting(&caller, state.now());
    let reason = Reason::User;
    let DeletedRuns { receipt, matched, skipped } =
        deletions::delete_runs(&ctx, acting, caller.scope(), named, reason, effect, dry_run).await?;
    Ok(Json(RunsDeleted { success: true, receipt, matched, data: LeftOut { skipped } }))
}
