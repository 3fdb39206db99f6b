//! `/mcp` as HTTP: which request is a message, which a reader in a browser,
//! which a client that looks for a stream; content types and the headers that
//! let pages of allowed origins read the answers.

use axum::body::{Body, Bytes};
use axum::extract::{Extension, FromRequest, RawQuery, Request, State};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use callboard_auth::client_address::ClientAddress;
use callboard_auth::routes::BodyLimit;
use callboard_auth::{Denied, Origin, RouteId};
use callboard_domain::text::repair_json_text;
use callboard_http::extract::{Caller, JsonBytes};
use callboard_http::{ApiError, AppState, Site};
use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ALLOW, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderMap,
    HeaderName, HeaderValue, VARY, WWW_AUTHENTICATE,
};
use http::{Method, StatusCode};

use crate::context::{Context, Narrowing};
use crate::methods;
use crate::page::SetupPage;
use crate::rpc::{self, RpcError};
use crate::version;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Headers that only a client of the protocol sends with a GET.
const STREAM_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static(version::HEADER),
];
const NO_KEY: &str = "Bearer realm=\"callboard-mcp\"";
const INVALID_KEY: &str = "Bearer realm=\"callboard-mcp\", error=\"invalid_token\", \
    error_description=\"The API key is malformed, unknown, revoked or expired\"";
const SHARED_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, OPTIONS");
const SHARED_HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Type, Accept, Authorization, X-API-Key, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, \
     Last-Event-ID",
);
const SHARED_SECONDS: HeaderValue = HeaderValue::from_static("86400");

/// One JSON-RPC message, or up to 50 as a list.
///
/// Notifications and responses are answered 202 without a body. A failed tool
/// is a result with `isError`; `?toolsets=` and `?readonly=1` narrow what
/// `tools/list` shows.
#[utoipa::path(
    post,
    path = "/mcp",
    tag = "mcp",
    request_body(
        content = Object,
        description = "JSON-RPC 2.0",
        example = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "list_runs", "arguments": {"projectId": 3}}})
    ),
    responses(
        (status = 200, description = "JSON-RPC 2.0 answer, or a list of them", body = serde_json::Value),
        (status = 202, description = "There was nothing to answer"),
        (status = 400, description = "No JSON-RPC message; the body is a JSON-RPC error", body = Object)
    )
)]
pub(crate) async fn messages(
    State(state): State<AppState>,
    caller: Caller,
    site: Site,
    RawQuery(query): RawQuery,
    address: Option<Extension<ClientAddress>>,
    request: Request,
) -> Result<Response, ApiError> {
    let headers = request.headers().clone();
    let JsonBytes { bytes, reservation: _reservation } = JsonBytes::from_request(request, &state).await?;
    let mut narrowing = Narrowing::parse(query.as_deref().unwrap_or_default());
    narrowing.is_structured |= state.config().mcp_structured;
    let context =
        Context::new(state, site, (*caller).clone(), narrowing).calling_from(address.map(|Extension(it)| it));
    let answer = match repair_json_text(bytes) {
        Ok(text) => match rpc::read(&text) {
            Ok(body) => {
                admit_further(&context, body.messages().len()).await?;
                methods::answer(&context, body, &headers).await
            }
            Err(error) => methods::refused(error),
        },
        Err(_) => methods::refused(RpcError::parse("Parse error: the body is not UTF-8.")),
    };
    Ok(match answer.body {
        Some(body) => (answer.status, [(CONTENT_TYPE, JSON)], Bytes::from(body)).into_response(),
        None => answer.status.into_response(),
    })
}

/// Counts the messages of a batch besides the first, which was counted with
/// its request.
async fn admit_further(context: &Context, messages: usize) -> Result<(), ApiError> {
    match i64::try_from(messages).unwrap_or(i64::MAX) - 1 {
        ..=0 => Ok(()),
        more => context.state.admit_messages(context.identity(), context.address.as_ref(), more).await,
    }
}

/// `application/json` with any parameters, or no type at all.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return true };
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    essence.is_empty() || essence.eq_ignore_ascii_case(b"application/json")
}

/// How to connect, for people. A client that looks for a stream is told that
/// there is none, in the one way that does not make it try for ever.
pub(crate) async fn page(
    State(state): State<AppState>,
    site: Site,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let mut response = if wants_stream(&headers) {
        not_allowed("POST, OPTIONS")
    } else {
        let page = SetupPage {
            endpoint: site.url("/mcp"),
            key_required: state.auth_enabled(),
            is_demo: state.config().demo,
        };
        Html(page.html().map_err(ApiError::internal)?).into_response()
    };
    response.headers_mut().append(VARY, HeaderValue::from_name(ACCEPT));
    Ok(response)
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts = |kind: &str| {
        let values = headers.get_all(ACCEPT).iter();
        values.filter_map(|value| value.to_str().ok()).any(|value| value.to_ascii_lowercase().contains(kind))
    };
    STREAM_HEADERS.iter().any(|name| headers.contains_key(name))
        || (accepts("text/event-stream") && !accepts("text/html"))
}

/// OPTIONS for browsers that ask first; every other method does not exist.
pub(crate) async fn other_methods(
    State(state): State<AppState>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    if method != Method::OPTIONS {
        return not_allowed("GET, HEAD, POST, OPTIONS");
    }
    match state.gate().check_mcp_origin(&headers) {
        Ok(_) => {
            let shared = [
                (ACCESS_CONTROL_ALLOW_METHODS, SHARED_METHODS),
                (ACCESS_CONTROL_ALLOW_HEADERS, SHARED_HEADERS),
                (ACCESS_CONTROL_MAX_AGE, SHARED_SECONDS),
            ];
            (StatusCode::NO_CONTENT, shared).into_response()
        }
        Err(refusal) => ApiError::from(refusal).into_response(),
    }
}

fn not_allowed(methods: &'static str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

/// What is around the checks of the route table: the content type is judged
/// before the caller is, a refused caller is told how to come back, and the
/// page of an allowed origin may read the answer, refusals included.
/// Credentials of the browser are never shared.
pub(crate) async fn around(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let gate = state.gate();
    let origin = gate.check_mcp_origin(request.headers());
    let allowed = origin.as_ref().ok().cloned().flatten();
    let is_ours =
        origin.is_ok() && gate.check_host(gate.effective_origin(request.headers()).as_ref()).is_ok();
    let is_refused_by_type = request.method() == Method::POST
        && is_ours
        && !is_json(request.headers())
        && !declares_too_much(request.headers());
    let presented = Presented::from_headers(request.headers());
    let mut response = if is_refused_by_type {
        ApiError::unsupported_media_type("application/json").into_response()
    } else {
        next.run(request).await
    };
    if response.status() == StatusCode::UNAUTHORIZED {
        response = presented.challenge(response);
    }
    if let Some(value) = allowed.as_ref().and_then(header_value) {
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, value);
        response.headers_mut().append(VARY, HeaderValue::from_static("origin"));
    }
    response
}

fn declares_too_much(headers: &HeaderMap) -> bool {
    let BodyLimit::Fixed(limit) = RouteId::McpMessages.route().body_limit else { return false };
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    declared.is_some_and(|length| length > limit)
}

/// What a request presents to be recognised by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presented {
    Key,
    Cookies,
    Nothing,
}

impl Presented {
    fn from_headers(headers: &HeaderMap) -> Self {
        let has_key = headers.contains_key(AUTHORIZATION) || headers.contains_key("x-api-key");
        match (has_key, headers.contains_key(COOKIE)) {
            (true, _) => Self::Key,
            (false, true) => Self::Cookies,
            (false, false) => Self::Nothing,
        }
    }

    /// The refusal of this caller, with the challenge of this endpoint.
    fn challenge(self, refused: Response) -> Response {
        let (mut response, challenge) = match self {
            Self::Key => (refused, INVALID_KEY),
            Self::Nothing => (refused, NO_KEY),
            Self::Cookies => {
                let message = "The session of a browser is not accepted here. Send an API key, which the account \
                               page makes, as `Authorization: Bearer pd_…`.";
                let code = Denied::AuthenticationRequired.code();
                (ApiError::new(StatusCode::UNAUTHORIZED, code, message).into_response(), NO_KEY)
            }
        };
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        response
    }
}

fn header_value(origin: &Origin) -> Option<HeaderValue> {
    HeaderValue::from_str(&origin.to_string()).ok()
}
