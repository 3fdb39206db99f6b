//! One cluster, its occurrences and its tests.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::ids::ClusterId;
use callboard_domain::time::Timestamp;
use callboard_http::conditional::tagged_json;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::clusters::{self, OccurrenceQuery};
use callboard_query::resolve;
use callboard_query::shapes::{ClusterDetail, ClusterTestCase, ExecutionWithRun};
use http::HeaderMap;
use serde::Serialize;
use utoipa::IntoParams;

/// One failure cluster. The id of one that was made part of another leads
/// there.
///
/// # Errors
/// 404 `cluster_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/failure-clusters/{id}", tag = "clusters", operation_id = "get_cluster",
    params(("id" = i64, Path, description = "Cluster")),
    responses(
        (status = 200, body = ClusterDetail),
        (status = 304, description = "The client has this state"),
        (status = 404, description = "`cluster_not_found`")
    ))]
pub(crate) async fn get(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ClusterId>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    tagged_json(&headers, &clusters::detail(&ctx, project, id).await?)
}

/// Which occurrences are shown.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct OccurrenceFilters {
    /// Exact, repeatable; an empty value stands for runs without a branch.
    #[param(required = false)]
    branch: Vec<String>,
    /// Exact, repeatable; an empty value stands for runs without an environment.
    #[param(required = false)]
    environment: Vec<String>,
    /// Date or date-time; only runs started then or later.
    #[param(value_type = Option<String>, example = "2026-01-01")]
    from: Option<Timestamp>,
    /// Date or date-time; only runs started then or earlier. A date includes its UTC day.
    #[param(value_type = Option<String>, example = "2026-01-31")]
    to: Option<Timestamp>,
}

impl FromQuery for OccurrenceFilters {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let (from, to) = query.window()?;
        Ok(Self { branch: query.repeated("branch"), environment: query.repeated("environment"), from, to })
    }
}

/// Executions that failed for the cause of a cluster, newest first, with their
/// runs.
///
/// # Errors
/// 404 `cluster_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/failure-clusters/{id}/occurrences", tag = "clusters",
    operation_id = "list_cluster_occurrences",
    params(("id" = i64, Path, description = "Cluster"), OccurrenceFilters, PageRequest),
    responses((status = 200, body = Page<ExecutionWithRun>), (status = 404, description = "`cluster_not_found`")))]
pub(crate) async fn occurrences(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ClusterId>,
    Query(filters): Query<OccurrenceFilters>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<ExecutionWithRun>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ClusterOccurrences, &(id, &filters))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    let query = OccurrenceQuery {
        branches: filters.branch,
        environments: filters.environment,
        from: filters.from,
        to: filters.to,
        after,
    };
    Ok(Json(cursors.page(clusters::occurrences(&ctx, project, id, &query, page.rows()).await?)?))
}

/// Tests that failed for the cause of a cluster, by id.
///
/// # Errors
/// 404 `cluster_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/failure-clusters/{id}/test-cases", tag = "clusters",
    operation_id = "list_cluster_test_cases",
    params(("id" = i64, Path, description = "Cluster"), PageRequest),
    responses((status = 200, body = Page<ClusterTestCase>), (status = 404, description = "`cluster_not_found`")))]
pub(crate) async fn test_cases(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ClusterId>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<ClusterTestCase>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ClusterTestCases, &id)?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    Ok(Json(cursors.page(clusters::test_cases(&ctx, project, id, after, page.rows()).await?)?))
}
