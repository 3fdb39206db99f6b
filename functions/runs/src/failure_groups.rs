//! `GET /api/test-runs/{id}/failure-groups`: the failures of a run by cause.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::RunId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Path, Query};
use callboard_http::page::PageRequest;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::clusters::{self, FailureGroup};
use callboard_query::resolve;
use serde::Serialize;
use utoipa::ToSchema;

/// A page of the failures of a run by cause.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GroupsAnswer {
    /// The groups.
    items: Vec<FailureGroup>,
    /// Pass it as `cursor` to read on; null after the last page.
    next_cursor: Option<String>,
    /// Failed tests of the run, timed out ones included: what `failedCount` adds up to over all groups.
    failed_tests: i64,
}

/// Failures of a run by cause, the largest group first; failures without a
/// cluster form the last group.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-runs/{id}/failure-groups", tag = "runs",
    params(("id" = i64, Path, description = "Run"), PageRequest),
    responses((status = 200, body = GroupsAnswer)))]
pub(crate) async fn of_run(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(page): Query<PageRequest>,
) -> Result<Json<GroupsAnswer>, ApiError> {
    let cursors = CursorScope::new(RouteId::FailureGroups, &id)?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    let found = clusters::failure_groups(&ctx, project, id, after, page.rows()).await?;
    let mut groups = cursors.page(found.groups)?;
    clusters::heal_groups(&ctx, project, &mut groups.items).await;
    Ok(Json(GroupsAnswer {
        items: groups.items,
        next_cursor: groups.next_cursor,
        failed_tests: found.failed_tests,
    }))
}
