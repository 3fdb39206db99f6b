//! A run seen from other sides: by file, by time, as what to run again, and as
//! what changed since it was green.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_auth::RouteId;
use callboard_domain::ids::RunId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{Page, PageRequest, PageSize};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::resolve;
use callboard_query::run_views::{
    self, RegressionContext, Rerun, RerunSelect, SpecItem, SpecSort, TimelineItem,
};
use http::header::CONTENT_TYPE;
use serde::Serialize;
use utoipa::IntoParams;

const FORMATS: [&str; 2] = ["json", "args"];
const SELECTS: [&str; 4] = ["failed", "flaky", "new", "notrun"];
const SPEC_SORTS: [&str; 3] = ["failed", "duration", "file"];

callboard_query::vocabularies! {
    /// The form of the answer.
    FormatWord => FORMATS;
    /// Which tests are to run again.
    SelectWord => SELECTS;
    /// An order of the files of a run.
    SpecSortWord => SPEC_SORTS;
}

/// The largest worker number a filter takes.
const MAX_WORKER: i64 = 1_000_000;

/// What changed since the run was green: the commits in between and what the
/// two runs told differently about themselves. The green run is the one that
/// insights, comparison and gate measure against.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-runs/{id}/regression-context", tag = "runs",
    params(("id" = i64, Path, description = "Run")),
    responses((status = 200, body = RegressionContext)))]
pub(crate) async fn regression_context(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
) -> Result<Json<RegressionContext>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    Ok(Json(run_views::regression_context(&ctx, project, id).await?))
}

/// How the files of a run are sorted.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SpecOrder {
    /// `failed` (most failed tests first, the default), `duration` (longest first) or `file`.
    #[param(value_type = Option<SpecSortWord>, example = "failed", inline)]
    sort: SpecSort,
}

impl FromQuery for SpecOrder {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let sort = query.word("sort", &SPEC_SORTS, |word| match word {
            "failed" => Some(SpecSort::Failed),
            "duration" => Some(SpecSort::Duration),
            "file" => Some(SpecSort::File),
            _ => None,
        })?;
        Ok(Self { sort: sort.unwrap_or_default() })
    }
}

/// The files of a run with what their tests add up to.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-runs/{id}/specs", tag = "runs",
    params(("id" = i64, Path, description = "Run"), SpecOrder, PageRequest),
    responses((status = 200, body = Page<SpecItem>)))]
pub(crate) async fn specs(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(order): Query<SpecOrder>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<SpecItem>>, ApiError> {
    let cursors = CursorScope::new(RouteId::RunSpecs, &(id, &order))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    Ok(Json(cursors.page(run_views::specs(&ctx, project, id, order.sort, after, page.rows()).await?)?))
}

/// Whose time line is shown.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TimelineFilter {
    /// Only this worker.
    #[param(minimum = 0, maximum = 1000000)]
    worker: Option<i64>,
}

impl FromQuery for TimelineFilter {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { worker: query.number("worker", 0..=MAX_WORKER)? })
    }
}

/// What ran when, by worker and start. Tests that do not say when and where
/// they ran are left out.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-runs/{id}/timeline", tag = "runs",
    params(("id" = i64, Path, description = "Run"), TimelineFilter, PageRequest),
    responses((status = 200, body = Page<TimelineItem>)))]
pub(crate) async fn timeline(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(filter): Query<TimelineFilter>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<TimelineItem>>, ApiError> {
    let cursors = CursorScope::new(RouteId::RunTimeline, &(id, &filter))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    let found = run_views::timeline(&ctx, project, id, filter.worker, after, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}

/// Which tests are to run again, and in which form.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RerunAsked {
    /// `failed` (the default), `flaky`, `new` (passed before and fail now) or `notrun` (interrupted or never started).
    #[param(value_type = Option<SelectWord>, example = "failed", inline)]
    select: RerunSelect,
    /// `json` (the default), or `args`: the arguments alone, quoted for a shell.
    #[param(value_type = Option<FormatWord>, example = "json", inline)]
    format: RerunFormat,
    /// Most tests, 1 to 2000; larger numbers count as 2000.
    #[param(required = false, default = 2000, minimum = 1)]
    limit: u32,
}

/// The form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RerunFormat {
    /// The tests and the command.
    #[default]
    Json,
    /// Arguments alone.
    Args,
}

impl FromQuery for RerunAsked {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let select = query.word("select", &SELECTS, |word| match word {
            "failed" => Some(RerunSelect::Failed),
            "flaky" => Some(RerunSelect::Flaky),
            "new" => Some(RerunSelect::New),
            "notrun" => Some(RerunSelect::NotRun),
            _ => None,
        })?;
        let format = query.word("format", &FORMATS, |word| match word {
            "json" => Some(RerunFormat::Json),
            "args" => Some(RerunFormat::Args),
            _ => None,
        })?;
        Ok(Self {
            select: select.unwrap_or_default(),
            format: format.unwrap_or_default(),
            limit: query.limit(PageSize { min: 1, default: 2000, max: 2000 })?,
        })
    }
}

/// Tests of a run that are to run again, with the command that selects them.
/// As `args` the answer is text for a shell: `npx playwright test` and what
/// `xargs` makes of it.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-runs/{id}/rerun", tag = "runs",
    params(("id" = i64, Path, description = "Run"), RerunAsked),
    responses((status = 200, content((Rerun = "application/json"), (String = "text/plain")))))]
pub(crate) async fn rerun(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(asked): Query<RerunAsked>,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    let (rerun, arguments) = run_views::rerun(&ctx, project, id, asked.select, asked.limit as usize).await?;
    Ok(match asked.format {
        RerunFormat::Json => Json(rerun).into_response(),
        RerunFormat::Args => ([(CONTENT_TYPE, "text/plain; charset=utf-8")], arguments).into_response(),
    })
}
