//! `GET /api/test-runs/{id}/network-requests`: what the tests of a run called.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::RunId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::network::{self, NetworkRequests, RequestSort};
use callboard_query::resolve;
use serde::Serialize;
use utoipa::IntoParams;

const SORTS: [&str; 3] = ["errorRate", "avgDuration", "count"];

callboard_query::vocabularies! {
    /// An order of endpoints.
    SortWord => SORTS;
}

/// How the endpoints of a run are sorted.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RequestOrder {
    /// `errorRate` (least reliable first, the default), `avgDuration` (slowest first) or `count`.
    #[param(value_type = Option<SortWord>, example = "errorRate", inline)]
    sort: RequestSort,
}

impl FromQuery for RequestOrder {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let sort = query.word("sort", &SORTS, |word| match word {
            "errorRate" => Some(RequestSort::ErrorRate),
            "avgDuration" => Some(RequestSort::AvgDuration),
            "count" => Some(RequestSort::Count),
            _ => None,
        })?;
        Ok(Self { sort: sort.unwrap_or_default() })
    }
}

/// The endpoints that the tests of a run called: how often, how they answered
/// and how long they took. Counted are captured requests, which are the
/// failing ones of every attempt and its slowest others.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-runs/{id}/network-requests", tag = "runs",
    params(("id" = i64, Path, description = "Run"), RequestOrder, PageRequest),
    responses((status = 200, body = Page<NetworkRequests>)))]
pub(crate) async fn requests(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(order): Query<RequestOrder>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<NetworkRequests>>, ApiError> {
    let cursors = CursorScope::new(RouteId::RunNetwork, &(id, &order))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    let (found, _) = network::requests_of_run(&ctx, project, id, order.sort, after, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}
