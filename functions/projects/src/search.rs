//! `GET /api/search`: finding anything by its words.

use axum::Json;
use axum::extract::State;
use callboard_http::extract::{Caller, FromQuery, Query, QueryReader};
use callboard_http::page::PageSize;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::search::{self, Group, SearchAnswer};
use utoipa::IntoParams;

callboard_query::vocabularies! {
    /// A kind of thing that is found.
    KindWord => Group::ALL.map(Group::as_str);
}

/// What is looked for.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// Words of names, titles, paths, labels and branches, the last of them perhaps only begun; an id; or the
    /// first seven or more digits of a commit. 2 to 200 characters.
    #[param(example = "checkout pay")]
    q: String,
    /// Comma list or repeated: projects, runs, cases, clusters; all when none is given.
    #[param(required = false, value_type = Vec<KindWord>, example = json!(["cases"]), inline)]
    kinds: Vec<Group>,
    /// Most of each kind, 1 to 20; larger numbers count as 20.
    #[param(required = false, default = 5, minimum = 1)]
    limit: u32,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        if query.single("q")?.is_none() {
            return Err(ApiError::invalid_query("q", "q must hold what to look for."));
        }
        Ok(Self {
            q: query.text("q")?.unwrap_or_default(),
            kinds: query.words("kinds", &Group::ALL.map(Group::as_str), Group::parse)?,
            limit: query.limit(PageSize { min: 1, default: 5, max: 20 })?,
        })
    }
}

/// Projects, runs, test cases and failure clusters of the caller's projects
/// that have all the words, the best first.
#[utoipa::path(get, path = "/api/search", tag = "projects", params(Params),
    responses((status = 200, body = SearchAnswer)))]
pub(crate) async fn everything(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<Params>,
) -> Result<Json<SearchAnswer>, ApiError> {
    let ctx = state.context(&site);
    let limit = asked.limit as usize;
    Ok(Json(search::search(&ctx, caller.scope(), &asked.q, &asked.kinds, limit, state.now()).await?))
}
