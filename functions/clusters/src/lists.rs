//! Lists of clusters: of one project, and of all that the caller sees.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::failure::ErrorType;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::clusters::{
    self, Assignee, ClusterCounts, ClusterKey, ClusterQuery, ClusterSort, ClusterStatus,
};
use callboard_query::shapes::words::{ClusterStatusWord, ErrorTypeWord};
use callboard_query::shapes::{ClusterItem, ClusterWithProject};
use callboard_query::{Context, resolve};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

const SORTS: [&str; 3] = ["lastSeen", "occurrences", "id"];

callboard_query::vocabularies! {
    /// An order of clusters.
    SortWord => SORTS;
}

/// Whose clusters are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Whose {
    Mine,
    Nobodys,
    Of(UserId),
}

/// Which clusters a list shows, and in which order.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct ClusterFilters {
    /// Comma list or repeated: open, resolved, ignored.
    #[param(required = false, value_type = Vec<ClusterStatusWord>, example = json!(["open"]), inline)]
    status: Vec<&'static str>,
    /// Comma list or repeated: timeout, assertion, strict-mode, navigation, crash, unknown.
    #[param(required = false, value_type = Vec<ErrorTypeWord>, example = json!(["timeout"]), inline)]
    error_type: Vec<&'static str>,
    /// Id of an account, `me` or `none`.
    #[param(value_type = Option<String>, example = "me")]
    assignee: Option<Whose>,
    /// Whether they are put off at present.
    snoozed: Option<bool>,
    /// Date or date-time; only those seen then or later.
    #[param(value_type = Option<String>, example = "2026-01-01")]
    seen_from: Option<Timestamp>,
    /// Exact owner of a test that failed for them.
    owner: Option<String>,
    /// Words of signature or title; the beginning of a word is enough.
    q: Option<String>,
    /// `lastSeen` (the default), `occurrences` (most first) or `id` (newest first).
    #[param(value_type = Option<SortWord>, example = "lastSeen", inline)]
    sort: ClusterSort,
}

impl FromQuery for ClusterFilters {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let statuses = ClusterStatus::ALL.map(ClusterStatus::as_str);
        let types = ErrorType::ALL.map(ErrorType::as_str);
        let status = query.words("status", &statuses, ClusterStatus::parse)?;
        let error_type = query.words("errorType", &types, ErrorType::parse)?;
        let sort = query.word("sort", &SORTS, |word| match word {
            "lastSeen" => Some(ClusterSort::LastSeen),
            "occurrences" => Some(ClusterSort::Occurrences),
            "id" => Some(ClusterSort::Id),
            _ => None,
        })?;
        let assignee = match query.single("assignee")? {
            None => None,
            Some("me") => Some(Whose::Mine),
            Some("none") => Some(Whose::Nobodys),
            Some(id) => Some(UserId::parse(id).map(Whose::Of).ok_or_else(|| {
                let message = "assignee must be the id of an account, me or none.";
                ApiError::invalid_query("assignee", message.to_owned())
            })?),
        };
        Ok(Self {
            status: status.into_iter().map(ClusterStatus::as_str).collect(),
            error_type: error_type.into_iter().map(ErrorType::as_str).collect(),
            assignee,
            snoozed: query.flag("snoozed")?,
            seen_from: query.since("seenFrom")?,
            owner: query.exact("owner")?,
            q: query.text("q")?,
            sort: sort.unwrap_or_default(),
        })
    }
}

impl ClusterFilters {
    /// Fails when the account that is named is unknown to a caller who would
    /// know it.
    async fn check(&self, ctx: &Context, caller: &Caller) -> Result<(), ApiError> {
        if let Some(Whose::Of(user)) = self.assignee {
            resolve::account(ctx, caller, user).await?;
        }
        Ok(())
    }

    fn query(&self, caller: &Caller, projects: Vec<ProjectId>, after: Option<ClusterKey>) -> ClusterQuery {
        ClusterQuery {
            statuses: self.status.iter().filter_map(|word| ClusterStatus::parse(word)).collect(),
            error_types: self.error_type.iter().filter_map(|word| ErrorType::parse(word)).collect(),
            assignee: self.assignee.map(|whose| match whose {
                // Who has no account looks after nothing.
                Whose::Mine => Assignee::User(caller.user_id().unwrap_or(UserId(0))),
                Whose::Nobodys => Assignee::Nobody,
                Whose::Of(user) => Assignee::User(user),
            }),
            snoozed: self.snoozed,
            seen_from: self.seen_from,
            owner: self.owner.clone(),
            text: self.q.clone(),
            projects,
            sort: self.sort,
            after,
        }
    }
}

/// A page of the clusters of a project.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClustersOfProject {
    /// The clusters.
    items: Vec<ClusterItem>,
    /// Pass it as `cursor` to read on; null after the last page.
    next_cursor: Option<String>,
    /// How many clusters of the project there are, whatever the filters.
    counts: ClusterCounts,
}

/// Failure clusters of a project.
///
/// # Errors
/// 404 `project_not_found`, `user_not_found` (for administrators), 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/failure-clusters", tag = "clusters",
    operation_id = "list_project_clusters",
    params(("id" = i64, Path, description = "Project"), ClusterFilters, PageRequest),
    responses(
        (status = 200, body = ClustersOfProject),
        (status = 404, description = "`project_not_found`, `user_not_found`")
    ))]
pub(crate) async fn of_project(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(filters): Query<ClusterFilters>,
    Query(page): Query<PageRequest>,
) -> Result<Json<ClustersOfProject>, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectClusters, &(id, &filters))?;
    let query = filters.query(&caller, Vec::new(), cursors.decode(page.cursor.as_deref())?);
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    filters.check(&ctx, &caller).await?;
    let found = clusters::of_project(&ctx, project, &query, state.now(), page.rows()).await?;
    let counts = clusters::counts(&ctx, project).await?;
    let found = cursors.page(found)?;
    Ok(Json(ClustersOfProject { items: found.items, next_cursor: found.next_cursor, counts }))
}

/// Which projects a list is about.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Projects {
    /// Project, repeatable.
    #[param(required = false, value_type = Vec<i64>)]
    project: Vec<ProjectId>,
}

impl FromQuery for Projects {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { project: query.ids("project")? })
    }
}

/// Failure clusters of all projects of the caller.
#[utoipa::path(get, path = "/api/failure-clusters", tag = "clusters", operation_id = "list_clusters",
    params(ClusterFilters, Projects, PageRequest),
    responses(
        (status = 200, body = Page<ClusterWithProject>),
        (status = 403, description = "`project_access_denied`"),
        (status = 404, description = "`project_not_found`, `user_not_found`")
    ))]
pub(crate) async fn all(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(filters): Query<ClusterFilters>,
    Query(projects): Query<Projects>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<ClusterWithProject>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListClusters, &(&filters, &projects))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    for id in &projects.project {
        resolve::project(&ctx, caller.scope(), *id).await?;
    }
    filters.check(&ctx, &caller).await?;
    let query = filters.query(&caller, projects.project, after);
    let found = clusters::list(&ctx, caller.scope(), &query, state.now(), page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}
