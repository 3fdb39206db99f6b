//! The files of an execution; their bytes are served by the function `files`.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::ExecutionId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::executions::FileKind;
use callboard_query::shapes::words::FileKindWord;
use callboard_query::shapes::{FileItem, TraceItem};
use callboard_query::{executions, resolve};
use serde::Serialize;
use utoipa::IntoParams;

/// Traces of an execution by attempt.
///
/// # Errors
/// 404 `execution_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}/traces", tag = "cases",
    params(("id" = i64, Path, description = "Execution")),
    responses((status = 200, body = Page<TraceItem>)))]
pub(crate) async fn traces(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
) -> Result<Json<Page<TraceItem>>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    Ok(Json(Page::whole(executions::traces(&ctx, project, id).await?)))
}

/// Which files are shown.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FileFilters {
    /// Comma list or repeated: trace, screenshot, video, attachment.
    #[param(required = false, value_type = Vec<FileKindWord>, example = json!(["screenshot", "video"]), inline)]
    kind: Vec<FileKind>,
}

impl FromQuery for FileFilters {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let kinds = FileKind::ALL.map(FileKind::as_str);
        Ok(Self { kind: query.words("kind", &kinds, FileKind::parse)? })
    }
}

/// Files of an execution by id.
///
/// # Errors
/// 404 `execution_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}/files", tag = "cases",
    params(("id" = i64, Path, description = "Execution"), FileFilters, PageRequest),
    responses((status = 200, body = Page<FileItem>)))]
pub(crate) async fn files(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Query(filters): Query<FileFilters>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<FileItem>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ExecutionFiles, &(id, &filters))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    let found = executions::files(&ctx, project, id, &filters.kind, after, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}
