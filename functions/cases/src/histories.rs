//! Tests that are the same under two paths: `/api/projects/{id}/joined-histories`.

use axum::Json;
use axum::extract::{FromRequestParts, RawPathParams, State};
use callboard_auth::RouteId;
use callboard_domain::ids::{HistoryJoinId, ProjectId};
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::histories::{self, JoinState, JoinedHistory};
use callboard_query::resolve;
use http::request::Parts;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

const STATUSES: [&str; 5] = ["proposed", "joined", "undone", "dismissed", "all"];
const DECISIONS: [&str; 3] = ["joined", "dismissed", "undone"];

callboard_query::vocabularies! {
    /// What became of two histories.
    HistoryStatusWord => STATUSES;
    /// What is decided about two histories.
    HistoryDecisionWord => DECISIONS;
}

/// Which pairs are shown.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Decided {
    /// `joined` includes those whose results are still being moved, `undone` likewise.
    #[param(value_type = Option<HistoryStatusWord>, example = "proposed", inline)]
    status: &'static str,
}

impl FromQuery for Decided {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let word = |word: &str| STATUSES.into_iter().find(|known| *known == word);
        Ok(Self { status: query.word("status", &STATUSES, word)?.unwrap_or("all") })
    }
}

impl Decided {
    fn states(&self) -> &'static [JoinState] {
        match self.status {
            "proposed" => &[JoinState::Proposed],
            "joined" => &[JoinState::Joining, JoinState::Joined],
            "undone" => &[JoinState::Undoing, JoinState::Undone],
            "dismissed" => &[JoinState::Dismissed],
            _ => &JoinState::ALL,
        }
    }
}

/// Tests that go on under the path of another, or may, the newest first. A test has two
/// paths when its runs were started from several folders.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/joined-histories", tag = "cases",
    operation_id = "joined_histories",
    params(("id" = i64, Path, description = "Project"), Decided, PageRequest),
    responses((status = 200, body = Page<JoinedHistory>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(decided): Query<Decided>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<JoinedHistory>>, ApiError> {
    let cursors = CursorScope::new(RouteId::JoinedHistories, &(id, &decided))?;
    let before = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    Ok(Json(cursors.page(histories::list(&ctx, project, decided.states(), before, page.rows()).await?)?))
}

/// The `{historyId}` of the path; `None` when it is no id. Who may not see the project is not told even that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfHistory(Option<HistoryJoinId>);

impl FromRequestParts<AppState> for OfHistory {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let Ok(params) = RawPathParams::from_request_parts(parts, state).await else { return Ok(Self(None)) };
        let text = params.iter().find(|(key, _)| *key == "historyId").map(|(_, value)| value);
        Ok(Self(text.and_then(HistoryJoinId::parse)))
    }
}

/// What is decided.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the body in the API document; it is read field by field")]
pub(crate) struct HistoryDecision {
    /// `joined`, `dismissed` or `undone`.
    #[schema(value_type = HistoryDecisionWord, example = "undone")]
    status: String,
}

/// A pair was decided about.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryWritten {
    /// Always true.
    success: bool,
    /// The pair now.
    history: JoinedHistory,
}

/// Makes two histories one (`joined`), leaves proposed ones two (`dismissed`), or makes joined
/// ones two again (`undone`). It holds for new results immediately; stored ones follow.
///
/// # Errors
/// 404 `project_not_found`, `history_join_not_found`; 409 `not_pending` when that is not possible any more.
#[utoipa::path(patch, path = "/api/projects/{id}/joined-histories/{historyId}", tag = "cases",
    operation_id = "decide_history",
    params(("id" = i64, Path, description = "Project"), ("historyId" = i64, Path, description = "Pair")),
    request_body = HistoryDecision,
    responses(
        (status = 200, body = HistoryWritten),
        (status = 409, description = "`not_pending`")
    ))]
pub(crate) async fn decide(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
    OfHistory(history): OfHistory,
    fields: Fields,
) -> Result<Json<HistoryWritten>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let history = history.ok_or_else(|| ApiError::not_found("history_join"))?;
    fields.require(&["status"])?;
    let wanted = fields.word("status", &DECISIONS, JoinState::parse)?;
    let wanted = wanted.ok_or_else(|| ApiError::missing_fields(&["status"]))?;
    let acting = visit.acting(&caller, state.now());
    let history = histories::decide(&ctx, acting, project, history, wanted).await?;
    Ok(Json(HistoryWritten { success: true, history }))
}
