//! `/api/projects/{id}/commits/{sha}/diff`.

use axum::Json;
use axum::extract::{RawPathParams, State};
use callboard_auth::RouteId;
use callboard_domain::ids::ProjectId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::Page;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::resolve;
use callboard_query::scm::{self, DiffFile, DiffParams, RepositoryCommit, is_sha};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// Characters of a patch.
const PATCH_CHARS: usize = 30_000;
/// Bytes of the files of a page.
const PAGE_BYTES: usize = 500_000;

/// Which part of a diff to show.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FilesParams {
    /// Only this file, by its path.
    file: Option<String>,
    /// Where to continue: `nextCursor` of the page before, with the same file.
    cursor: Option<String>,
}

impl FromQuery for FilesParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { file: query.exact("file")?, cursor: query.exact("cursor")? })
    }
}

/// A page of the files that a commit changed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommitDiff {
    /// The commit.
    commit: RepositoryCommit,
    #[serde(flatten)]
    page: Page<DiffFile>,
    /// Files of the page that have changed lines and no patch here: they are too large, or the provider leaves it out.
    patches_omitted: usize,
    /// Whether the commit changed more files than the provider lists: about 3,000.
    files_cut: bool,
}

/// Files that a commit changed against its first parent, at most 30 a page.
///
/// # Errors
/// 400 `invalid_query`, `invalid_cursor`; 404 `project_not_found`; 502
/// `upstream_failed`; 503 `not_configured`.
#[utoipa::path(get, path = "/api/projects/{id}/commits/{sha}/diff", tag = "scm", operation_id = "get_commit_diff",
    params(("id" = i64, Path, description = "Project"),
        ("sha" = String, Path, description = "Commit, 7 to 64 hexadecimal digits"), FilesParams),
    responses(
        (status = 200, body = CommitDiff),
        (status = 400, description = "`invalid_query`, `invalid_cursor`"),
        (status = 404, description = "`project_not_found`"),
        (status = 502, description = "`upstream_failed`: the request to the code host failed; `data` has `provider`, `status` and `retryAt`"),
        (status = 503, description = "`not_configured`: the project's `data.setting` is missing")
    ))]
pub(crate) async fn get(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    path: RawPathParams,
    Query(params): Query<FilesParams>,
) -> Result<Json<CommitDiff>, ApiError> {
    let sha = path.iter().find(|(name, _)| *name == "sha").map(|(_, sha)| sha.to_ascii_lowercase());
    let sha = sha.filter(|sha| is_sha(sha)).ok_or_else(|| {
        ApiError::invalid_query("sha", "The commit in the path must have 7 to 64 hexadecimal digits.")
    })?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let cursors = CursorScope::new(RouteId::CommitDiff, &(id, &sha, &params.file))?;
    let after: Option<usize> = cursors.decode(params.cursor.as_deref())?;
    let wanted =
        DiffParams { sha, file: params.file, after, patch_chars: PATCH_CHARS, page_bytes: PAGE_BYTES };
    let found = scm::commit_diff(&ctx, &state.source_control(), project, &wanted, state.now()).await?;
    Ok(Json(CommitDiff {
        commit: found.commit,
        page: cursors.page(found.files)?,
        patches_omitted: found.patches_omitted,
        files_cut: found.is_cut,
    }))
}
