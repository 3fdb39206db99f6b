//! What the trace of an execution says. It is read where it lies, by the
//! stretches a question needs, and its hash is part of every `ETag`.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_domain::ids::ExecutionId;
use callboard_http::conditional::client_has;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::failures::{self, Dom, DomSnapshot, NetworkBody, TraceNetwork, TraceStacks};
use callboard_query::{Context, resolve};
use http::header::ETAG;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::IntoParams;

callboard_query::vocabularies! {
    /// How the page is shown.
    SourceWord => Dom::WORDS;
}

/// No execution has this many attempts.
const MAX_ATTEMPT: i64 = 1_000_000;
/// Changes when the same trace is told in another way.
const FORM: &str = "1";

/// Which attempt is asked for.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Attempt {
    /// Retry of the attempt; that of the attempt that failed when it is left out.
    attempt: Option<u32>,
}

impl FromQuery for Attempt {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let attempt = query.number("attempt", 0..=MAX_ATTEMPT)?;
        Ok(Self { attempt: attempt.and_then(|attempt| u32::try_from(attempt).ok()) })
    }
}

/// An execution and the state of it that the client has.
struct TraceTarget {
    ctx: Context,
    project: callboard_auth::scope::Authorized<callboard_domain::ids::ProjectId>,
    tag: Option<String>,
}

async fn asked(
    state: &AppState,
    site: &Site,
    caller: &Caller,
    id: ExecutionId,
    attempt: Option<u32>,
    what: &str,
) -> Result<TraceTarget, ApiError> {
    let ctx = state.context(site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    let tag = failures::trace_tag(&ctx, project, id, attempt).await?;
    // One trace may belong to several executions, and evidence may stand in for it.
    let tag = tag.map(|hash| format!("W/\"{hash}-{id}-{what}-{FORM}\""));
    Ok(TraceTarget { ctx, project, tag })
}

impl TraceTarget {
    fn unchanged(&self, headers: &HeaderMap) -> Option<Response> {
        let tag = self.tag.as_deref().filter(|tag| client_has(headers, tag))?;
        Some(self.tagged(StatusCode::NOT_MODIFIED.into_response(), Some(tag)))
    }

    fn answer(&self, value: &impl Serialize) -> Response {
        self.tagged(Json(value).into_response(), self.tag.as_deref())
    }

    fn tagged(&self, mut response: Response, tag: Option<&str>) -> Response {
        if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(tag).ok()) {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

/// The action that failed, its stack and the source around it.
///
/// # Errors
/// 400 `invalid_query`; 404 `execution_not_found`, 403
/// `project_access_denied`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}/trace-stacks", tag = "cases", operation_id = "trace_stacks",
    params(("id" = i64, Path, description = "Execution"), Attempt),
    responses(
        (status = 200, body = TraceStacks),
        (status = 304, description = "The client has this state"),
        (status = 400, description = "`invalid_query`")
    ))]
pub(crate) async fn stacks(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Query(wanted): Query<Attempt>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let asked = asked(&state, &site, &caller, id, wanted.attempt, "stacks").await?;
    if let Some(unchanged) = asked.unchanged(&headers) {
        return Ok(unchanged);
    }
    Ok(asked.answer(&failures::trace_stacks(&asked.ctx, asked.project, id, wanted.attempt).await?))
}

/// Requests and console lines that belong to a failure. Secrets are masked.
///
/// # Errors
/// 400 `invalid_query`; 404 `execution_not_found`, 403
/// `project_access_denied`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}/trace-network", tag = "cases", operation_id = "trace_network",
    params(("id" = i64, Path, description = "Execution"), Attempt),
    responses(
        (status = 200, body = TraceNetwork),
        (status = 304, description = "The client has this state"),
        (status = 400, description = "`invalid_query`")
    ))]
pub(crate) async fn network(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Query(wanted): Query<Attempt>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let asked = asked(&state, &site, &caller, id, wanted.attempt, "network").await?;
    if let Some(unchanged) = asked.unchanged(&headers) {
        return Ok(unchanged);
    }
    Ok(asked.answer(&failures::trace_network(&asked.ctx, asked.project, id, wanted.attempt).await?))
}

/// Which body is asked for.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WantedBody {
    /// The name `trace-network` gives it.
    #[param(example = "022d91f218046ab2e61cac1eb13d6a718f75df2b.json")]
    sha1: String,
    /// Retry of the attempt; that of the attempt that failed when it is left out.
    attempt: Option<u32>,
}

impl FromQuery for WantedBody {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let sha1 = query.text("sha1")?.filter(|sha1| !sha1.is_empty());
        let sha1 = sha1.ok_or_else(|| ApiError::invalid_query("sha1", "sha1 must name a body."))?;
        Ok(Self { sha1, attempt: Attempt::from_query(query)?.attempt })
    }
}

/// What was sent or received with a request: text with secrets masked, or a
/// `data:` address. At most 1 MiB.
///
/// # Errors
/// 400 `invalid_query`; 404 `execution_not_found`, 403
/// `project_access_denied`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}/trace-network-body", tag = "cases", operation_id = "trace_network_body",
    params(("id" = i64, Path, description = "Execution"), WantedBody),
    responses((status = 200, body = NetworkBody), (status = 400, description = "`invalid_query`")))]
pub(crate) async fn body(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Query(wanted): Query<WantedBody>,
) -> Result<Json<NetworkBody>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    Ok(Json(failures::network_body(&ctx, project, id, wanted.attempt, &wanted.sha1).await?))
}

/// How the page is shown.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WantedPage {
    /// `dom` for HTML, `aria` for the accessibility tree.
    #[param(required = false, value_type = SourceWord, example = "dom", inline)]
    source: Dom,
    /// Retry of the attempt; that of the attempt that failed when it is left out.
    attempt: Option<u32>,
}

impl FromQuery for WantedPage {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let source = query.word("source", Dom::WORDS, Dom::parse)?.unwrap_or_default();
        Ok(Self { source, attempt: Attempt::from_query(query)?.attempt })
    }
}

/// The page the failing action found: without scripts, handlers and secrets.
/// It comes from the application under test; show it in a sandbox only.
///
/// # Errors
/// 400 `invalid_query`; 404 `execution_not_found`, 403
/// `project_access_denied`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}/dom-snapshot", tag = "cases", operation_id = "dom_snapshot",
    params(("id" = i64, Path, description = "Execution"), WantedPage),
    responses(
        (status = 200, body = DomSnapshot),
        (status = 304, description = "The client has this state"),
        (status = 400, description = "`invalid_query`")
    ))]
pub(crate) async fn dom(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Query(wanted): Query<WantedPage>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let what = if wanted.source == Dom::Dom { "dom" } else { "aria" };
    let asked = asked(&state, &site, &caller, id, wanted.attempt, what).await?;
    if let Some(unchanged) = asked.unchanged(&headers) {
        return Ok(unchanged);
    }
    Ok(asked
        .answer(&failures::dom_snapshot(&asked.ctx, asked.project, id, wanted.attempt, wanted.source).await?))
}
