//! Clusters that may be one, and what people say to it.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::{ClusterSuggestionId, ProjectId};
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::clusters::{self, MergeSuggestion, SuggestionStatus};
use callboard_query::resolve;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::edit::ClusterWritten;

const DECISIONS: [&str; 3] = ["pending", "approved", "rejected"];

callboard_query::vocabularies! {
    /// What was decided about a suggestion.
    DecisionWord => DECISIONS;
}

/// Which suggestions are shown.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Decided {
    /// `pending` (the default), `approved` or `rejected`.
    #[param(value_type = Option<DecisionWord>, example = "pending", inline)]
    status: &'static str,
}

impl FromQuery for Decided {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let status = query.word("status", &DECISIONS, SuggestionStatus::parse)?;
        Ok(Self { status: status.unwrap_or(SuggestionStatus::Pending).as_str() })
    }
}

/// Pairs of clusters that may be one, the newest first.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/cluster-merge-suggestions", tag = "clusters",
    operation_id = "merge_suggestions",
    params(("id" = i64, Path, description = "Project"), Decided, PageRequest),
    responses((status = 200, body = Page<MergeSuggestion>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(decided): Query<Decided>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<MergeSuggestion>>, ApiError> {
    let cursors = CursorScope::new(RouteId::MergeSuggestions, &(id, &decided))?;
    let before = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let status = SuggestionStatus::parse(decided.status).unwrap_or(SuggestionStatus::Pending);
    Ok(Json(cursors.page(clusters::suggestions(&ctx, project, status, before, page.rows()).await?)?))
}

/// Makes the newer cluster of a suggestion part of the older one, which is the
/// answer.
///
/// # Errors
/// 404 `suggestion_not_found`, 409 `not_pending`.
#[utoipa::path(post, path = "/api/cluster-merge-suggestions/{id}/approve", tag = "clusters",
    operation_id = "approve_merge",
    params(("id" = i64, Path, description = "Suggestion")),
    responses((status = 200, body = ClusterWritten)))]
pub(crate) async fn approve(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ClusterSuggestionId>,
) -> Result<Json<ClusterWritten>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::cluster_suggestion(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    Ok(ClusterWritten::answer(clusters::approve(&ctx, acting, project, id).await?))
}

/// A suggestion was decided.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuggestionWritten {
    /// Always true.
    success: bool,
    /// The suggestion now.
    suggestion: MergeSuggestion,
}

/// Keeps two clusters apart; they are not suggested again.
///
/// # Errors
/// 404 `suggestion_not_found`, 409 `not_pending`.
#[utoipa::path(post, path = "/api/cluster-merge-suggestions/{id}/reject", tag = "clusters",
    operation_id = "reject_merge",
    params(("id" = i64, Path, description = "Suggestion")),
    responses((status = 200, body = SuggestionWritten)))]
pub(crate) async fn reject(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ClusterSuggestionId>,
) -> Result<Json<SuggestionWritten>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::cluster_suggestion(&ctx, caller.scope(), id).await?;
    let suggestion = clusters::reject(&ctx, visit.acting(&caller, state.now()), project, id).await?;
    Ok(Json(SuggestionWritten { success: true, suggestion }))
}
