//! `GET /api/test-runs/{id}/compare`: a run beside another one.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::comparison::Change;
use callboard_domain::ids::RunId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::comparison::{self, Against, ChangeCounts, ComparedTest};
use callboard_query::resolve;
use callboard_query::shapes::RunBrief;
use callboard_query::shapes::words::ChangeWord;
use serde::Serialize;
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

/// What a run is compared with, and which changes are shown.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct Params {
    /// `baseline` (the green run before it, the default), `previous` (the run before it on its branch and in its
    /// environment), or the id of a run of the same project.
    #[param(value_type = Option<String>, example = "baseline")]
    with: Against,
    /// Comma list or repeated: newFailure, stillFailing, fixed, newFlaky, added, removed, slower, faster, unchanged.
    #[param(required = false, value_type = Vec<ChangeWord>, example = json!(["newFailure", "fixed"]), inline)]
    change: Vec<Change>,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let words = ["baseline", "previous", "the id of a run"];
        let with = query.word("with", &words, |word| match word {
            "baseline" => Some(Against::Baseline),
            "previous" => Some(Against::Previous),
            id => RunId::parse(id).map(Against::Run),
        })?;
        Ok(Self {
            with: with.unwrap_or(Against::Baseline),
            change: query.words("change", &Change::ALL.map(Change::as_str), Change::parse)?,
        })
    }
}

/// A run beside another one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Comparison {
    /// The run it is compared with.
    base: RunBrief,
    /// The run.
    head: RunBrief,
    /// How many tests fall into each class, whatever is filtered; null after the first page.
    counts: Option<ChangeCounts>,
    /// The tests: those of the run, then those that only the other one has.
    #[serde(flatten)]
    tests: Page<ComparedTest>,
}

/// A run beside another one, test by test, matched by test case and browser
/// project. A test is slower or faster from 20 % and 500 ms on. When only some
/// changes are asked for, a page may be short while there is a next one.
///
/// # Errors
/// 404 `run_not_found`, with `data.reason` `no_baseline` when there is nothing
/// to compare with; 403 `project_access_denied`; 400
/// `invalid_query` for runs of two projects.
#[utoipa::path(get, path = "/api/test-runs/{id}/compare", tag = "runs",
    params(("id" = i64, Path, description = "Run"), Params, PageRequest),
    responses((status = 200, body = Comparison)))]
pub(crate) async fn compare(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(asked): Query<Params>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Comparison>, ApiError> {
    let cursors = CursorScope::new(RouteId::CompareRun, &(id, &asked))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let is_first = after.is_none();
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    if let Against::Run(other) = asked.with {
        let owner = resolve::run(&ctx, caller.scope(), other).await?;
        if owner.get() != project.get() {
            return Err(ApiError::invalid_query("with", "with must be a run of the same project."));
        }
    }
    let found = comparison::compare(&ctx, project, id, asked.with, &asked.change, after, page.rows()).await?;
    let found = found.ok_or_else(|| nothing_to_compare(asked.with))?;
    Ok(Json(Comparison {
        base: found.base,
        head: found.head,
        counts: is_first.then_some(found.counts),
        tests: cursors.page(found.tests)?,
    }))
}

fn nothing_to_compare(with: Against) -> ApiError {
    let message = match with {
        Against::Previous => "There is no earlier run on this branch and in this environment.",
        _ => "There is no green run before this one to compare it with.",
    };
    ApiError::new(http::StatusCode::NOT_FOUND, "run_not_found", message)
        .with_data(json!({ "reason": "no_baseline" }))
}
