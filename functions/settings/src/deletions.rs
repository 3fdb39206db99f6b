//! `/api/deletions`: what became of what was deleted, and restoring it; and
//! cleaning up by hand.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::ids::{DeletionId, ProjectId};
use callboard_domain::time::Timestamp;
use callboard_http::conditional::tagged_json;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::deletions::{
    self, DeletedRuns, DeletionFilters, DeletionState, Effect, NamedRuns, Reason, Receipt, RenamedProject,
    Restored, RunsToDelete,
};
use callboard_query::resolve;
use http::HeaderMap;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::body::CleanupBody;

callboard_query::vocabularies! {
    /// How far a deletion is.
    StateWord => DeletionState::WORDS;
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Which receipts a list shows.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// `pending`, `freeing`, `complete`, `failed`, `restoring` or `restored`.
    #[param(value_type = Option<StateWord>, inline)]
    #[serde(serialize_with = "as_word")]
    state: Option<DeletionState>,
    /// Only in this project.
    #[param(value_type = Option<i64>)]
    project: Option<ProjectId>,
    /// A date or date-time.
    #[param(value_type = Option<String>)]
    from: Option<Timestamp>,
    /// A date or date-time; a date includes that UTC day.
    #[param(value_type = Option<String>)]
    to: Option<Timestamp>,
}

fn as_word<S: serde::Serializer>(state: &Option<DeletionState>, serializer: S) -> Result<S::Ok, S::Error> {
    state.map(DeletionState::as_str).serialize(serializer)
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let (from, to) = query.window()?;
        let state = query.word("state", DeletionState::WORDS, DeletionState::parse)?;
        Ok(Self { state, project: query.id("project")?, from, to })
    }
}

/// Receipts of deletions, newest first. They are kept for 400 days, also those
/// of a project that is gone.
///
/// # Errors
/// 404 `project_not_found` for a project that is neither there nor in a
/// receipt.
#[utoipa::path(get, path = "/api/deletions", tag = "settings", operation_id = "list_deletions",
    params(Params, PageRequest),
    responses((status = 200, body = Page<Receipt>), (status = 404, description = "`project_not_found`")))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    Query(asked): Query<Params>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Receipt>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListDeletions, &asked)?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let Params { state: wanted, project, from, to } = asked;
    let filters = DeletionFilters { state: wanted, project, from, to };
    Ok(Json(cursors.page(deletions::list(&state.context(&site), filters, after, page.rows()).await?)?))
}

/// One receipt.
///
/// # Errors
/// 404 `deletion_not_found`.
#[utoipa::path(get, path = "/api/deletions/{id}", tag = "settings", operation_id = "get_deletion",
    params(("id" = i64, Path, description = "Receipt")),
    responses(
        (status = 200, body = Receipt),
        (status = 304, description = "The client has this state"),
        (status = 404, description = "`deletion_not_found`")
    ))]
pub(crate) async fn get(
    State(state): State<AppState>,
    site: Site,
    Path(id): Path<DeletionId>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    tagged_json(&headers, &deletions::get(&state.context(&site), id).await?)
}

/// A deletion was restored.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletionRestored {
    /// Always true.
    success: bool,
    /// The receipt: `restored`, or `restoring` while large runs are still coming back.
    receipt: Receipt,
    /// The project, when its name was taken meanwhile and it has another one now.
    renamed: Option<RenamedProject>,
    /// What people should know.
    warnings: Vec<String>,
}

/// Restores the runs or the project of a deletion by a person, with their
/// tests, files and reports, until its grace period is over
/// (`restorableUntil`). Runs that were going on come back as cancelled.
///
/// # Errors
/// 404 `deletion_not_found`; 409 `not_restorable`.
#[utoipa::path(post, path = "/api/deletions/{id}/restore", tag = "settings", operation_id = "restore_deletion",
    params(("id" = i64, Path, description = "Receipt")),
    responses(
        (status = 200, body = DeletionRestored),
        (status = 404, description = "`deletion_not_found`"),
        (status = 409, description = "`not_restorable`: restored before, being restored, or the grace period is over")
    ))]
pub(crate) async fn restore(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<DeletionId>,
) -> Result<Json<DeletionRestored>, ApiError> {
    let acting = visit.acting(&caller, state.now());
    let Restored { receipt, renamed } = deletions::restore(&state.context(&site), acting, id).await?;
    let warning = |renamed: &RenamedProject| {
        format!("The name {} is taken, so the project is now called {}.", renamed.from, renamed.to)
    };
    let warnings = renamed.iter().map(warning).collect();
    Ok(Json(DeletionRestored { success: true, receipt, renamed, warnings }))
}

/// What a clean-up does, or would do.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CleanupAnswer {
    /// The receipt; null when nothing is to be done.
    receipt: Option<Receipt>,
    /// Runs that go, or would go; counted up to 100,000.
    matched: i64,
}

/// Deletes runs that began long ago. Pinned runs stay, and so do the numbers
/// the runs counted for. An administrator can restore them until
/// `restorableUntil` of the receipt; `now: true` skips that grace period.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `project_not_found`.
#[utoipa::path(post, path = "/api/admin/cleanup", tag = "settings", operation_id = "clean_up",
    request_body = CleanupBody,
    responses(
        (status = 200, body = CleanupAnswer),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`project_not_found`")
    ))]
pub(crate) async fn clean_up(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    fields: Fields,
) -> Result<Json<CleanupAnswer>, ApiError> {
    let body = CleanupBody::read(&fields)?;
    clean(&state, &site, &caller, &visit, &body).await
}

/// How long ago, for scripts that send no body.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct OlderThan {
    /// Days, at least 1.
    #[param(minimum = 1, maximum = 36500)]
    older_than_days: i64,
    /// Only in this project.
    #[param(value_type = Option<i64>)]
    project_id: Option<ProjectId>,
    /// Only says how many match.
    #[param(required = false, default = false)]
    dry_run: bool,
    /// Takes effect immediately, without the grace period.
    #[param(required = false, default = false)]
    now: bool,
}

impl FromQuery for OlderThan {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let days = query.number("olderThanDays", 1..=36_500)?;
        Ok(Self {
            older_than_days: days
                .ok_or_else(|| ApiError::invalid_query("olderThanDays", "olderThanDays is required."))?,
            project_id: query.id("projectId")?,
            dry_run: query.flag("dryRun")?.unwrap_or(false),
            now: query.flag("now")?.unwrap_or(false),
        })
    }
}

/// Deletes runs that began long ago, as `POST` does.
///
/// # Errors
/// 400 `invalid_query`; 404 `project_not_found`.
#[utoipa::path(delete, path = "/api/admin/cleanup", tag = "settings", operation_id = "clean_up_by_query",
    params(OlderThan),
    responses((status = 200, body = CleanupAnswer), (status = 404, description = "`project_not_found`")))]
pub(crate) async fn clean_up_by_query(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Query(asked): Query<OlderThan>,
) -> Result<Json<CleanupAnswer>, ApiError> {
    let OlderThan { older_than_days, project_id, dry_run, now } = asked;
    let body = CleanupBody { older_than_days, project_id, dry_run, now };
    clean(&state, &site, &caller, &visit, &body).await
}

async fn clean(
    state: &AppState,
    site: &Site,
    caller: &Caller,
    visit: &Visit,
    body: &CleanupBody,
) -> Result<Json<CleanupAnswer>, ApiError> {
    let ctx = state.context(site);
    if let Some(project) = body.project_id {
        resolve::project(&ctx, caller.scope(), project).await?;
    }
    let wanted = RunsToDelete {
        project: body.project_id,
        branch: None,
        environment: None,
        statuses: None,
        before: Timestamp(state.now().millis() - body.older_than_days * DAY_MS),
    };
    let acting = visit.acting(caller, state.now());
    let named = NamedRuns::Matching(wanted);
    let (reason, effect) = (Reason::Purge, Effect::from_choice(body.now));
    let DeletedRuns { receipt, matched, .. } =
        deletions::delete_runs(&ctx, acting, caller.scope(), named, reason, effect, body.dry_run).await?;
    Ok(Json(CleanupAnswer { receipt, matched }))
}
