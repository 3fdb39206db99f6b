//! `/api/projects/{id}/commits`.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::ProjectId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{Page, PageRequest, PageSize};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::resolve;
use callboard_query::scm::{self, Aggregate, CommitsParams, PageToken, RepositoryCommit, is_branch, is_sha};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// Commits of a page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 100 };

/// Which commits to list.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Branch or commit; the project's default branch when it is not given.
    branch: Option<String>,
    /// Leaves out what this commit has, and adds what the range changed: 7 to 64 hexadecimal digits.
    base: Option<String>,
    /// Commits of a page, 1 to 100; larger numbers count as 100. A cursor keeps the size of its first page.
    #[param(required = false, default = 50, minimum = 1)]
    limit: u32,
    /// Where to continue: `nextCursor` of the page before, with the same branch and base.
    cursor: Option<String>,
}

impl FromQuery for ListParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let PageRequest { limit, cursor } = query.page(SIZE)?;
        let branch = query.exact("branch")?;
        if branch.as_deref().is_some_and(|name| !is_branch(name)) {
            return Err(ApiError::invalid_query(
                "branch",
                "branch must be a name that git allows for a branch.",
            ));
        }
        let base = query.exact("base")?;
        if base.as_deref().is_some_and(|sha| !is_sha(sha)) {
            return Err(ApiError::invalid_query(
                "base",
                "base must be a commit of 7 to 64 hexadecimal digits.",
            ));
        }
        Ok(Self { branch, base, limit, cursor })
    }
}

/// A page of commits.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommitPage {
    #[serde(flatten)]
    page: Page<RepositoryCommit>,
    /// Address of the repository.
    #[schema(example = "https://github.com/acme/shop")]
    repository_url: String,
    /// Branch that is listed; null is the repository's default branch.
    branch: Option<String>,
    /// What the range changed; null without `base`, after the first page, and where the provider does not count lines.
    aggregate: Option<Aggregate>,
}

/// Commits of the project's repository, newest first.
///
/// # Errors
/// 400 `invalid_query`, `invalid_cursor`; 404 `project_not_found`; 502
/// `upstream_failed`; 503 `not_configured`.
#[utoipa::path(get, path = "/api/projects/{id}/commits", tag = "scm", operation_id = "list_commits",
    params(("id" = i64, Path, description = "Project"), ListParams),
    responses(
        (status = 200, body = CommitPage),
        (status = 400, description = "`invalid_query`, `invalid_cursor`"),
        (status = 404, description = "`project_not_found`"),
        (status = 502, description = "`upstream_failed`: the request to the code host failed; `data` has `provider`, `status` and `retryAt`"),
        (status = 503, description = "`not_configured`: the project's `data.setting` is missing")
    ))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(params): Query<ListParams>,
) -> Result<Json<CommitPage>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let cursors = CursorScope::new(RouteId::ProjectCommits, &(id, &params.branch, &params.base))?;
    let after: Option<PageToken> = cursors.decode(params.cursor.as_deref())?;
    if after.as_ref().is_some_and(|token| !is_sha(&token.head)) {
        return Err(ApiError::invalid_cursor());
    }
    let wanted = CommitsParams { branch: params.branch, base: params.base, limit: params.limit, after };
    let found = scm::commits(&ctx, &state.source_control(), project, wanted, state.now()).await?;
    Ok(Json(CommitPage {
        page: cursors.page(found.commits)?,
        repository_url: found.repository_url,
        branch: found.branch,
        aggregate: found.aggregate,
    }))
}
