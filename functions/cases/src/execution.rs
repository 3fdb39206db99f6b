//! `GET /api/test-run-cases/{id}`: one execution with its evidence.

use axum::extract::State;
use axum::response::Response;
use callboard_domain::ids::ExecutionId;
use callboard_http::conditional::tagged_json;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::executions::{self, Part, Parts, WantedAttempt};
use callboard_query::resolve;
use callboard_query::shapes::ExecutionDetail;
use http::HeaderMap;
use utoipa::IntoParams;

callboard_query::vocabularies! {
    /// A part of the evidence.
    IncludedWord => included_words();
}

/// No execution has this many attempts or repetitions.
const MAX_INDEX: i64 = 1_000_000;

/// How much of the evidence is shown, and of which attempt.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// Comma list or repeated: steps, console, network, webVitals, aria, source, pageState; `all` (the default) or
    /// `none`, with which the error is cut to its first line.
    #[param(required = false, value_type = Vec<IncludedWord>, example = json!(["steps", "console"]), inline)]
    include: Parts,
    /// Retry of the attempt; the deciding attempt when neither this nor `repetition` is given.
    attempt: Option<u32>,
    /// Repetition (`--repeat-each`) of the attempt.
    repetition: Option<u32>,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self {
            include: included(query)?,
            attempt: index(query, "attempt")?,
            repetition: index(query, "repetition")?,
        })
    }
}

/// What `include` may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    All,
    None,
    Part(Part),
}

impl Word {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "all" => Some(Self::All),
            "none" => Some(Self::None),
            part => Part::parse(part).map(Self::Part),
        }
    }

    fn part(&self) -> Option<Part> {
        if let Self::Part(part) = self { Some(*part) } else { None }
    }
}

fn included_words() -> Vec<&'static str> {
    ["all", "none"].into_iter().chain(Part::ALL.map(Part::as_str)).collect()
}

fn included(query: &QueryReader) -> Result<Parts, ApiError> {
    Ok(match query.words("include", &included_words(), Word::parse)?.as_slice() {
        [] => Parts::All,
        [Word::None] => Parts::None,
        asked if asked.contains(&Word::None) => {
            return Err(ApiError::invalid_query("include", "include=none stands alone."));
        }
        asked if asked.contains(&Word::All) => Parts::All,
        asked => Parts::Only(asked.iter().filter_map(Word::part).collect()),
    })
}

fn index(query: &QueryReader, name: &str) -> Result<Option<u32>, ApiError> {
    Ok(query.number(name, 0..=MAX_INDEX)?.and_then(|number| u32::try_from(number).ok()))
}

/// One execution with its attempts, files and evidence.
///
/// # Errors
/// 404 `execution_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}", tag = "cases",
    params(("id" = i64, Path, description = "Execution"), Params),
    responses((status = 200, body = ExecutionDetail), (status = 304, description = "The client has this state")))]
pub(crate) async fn execution(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Query(asked): Query<Params>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    let wanted = WantedAttempt { retry: asked.attempt, repetition: asked.repetition };
    tagged_json(&headers, &executions::detail(&ctx, project, id, &asked.include, wanted).await?)
}
