//! What pages asked for and said around a failure, and what was answered.

use base64ct::{Base64, Encoding as _};
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::secrets::masked;
use callboard_domain::time::Timestamp;
use callboard_playwright::trace::{Body, ConsoleLine, Exchange, Header, resource_name};
use callboard_store::boxed;
use serde::Serialize;
use utoipa::ToSchema;

use super::{TraceStatus, failing_of, moment, open, rounded, warning_of};
use crate::{Context, Result};

/// Largest body that is answered, bytes.
const MAX_BODY_BYTES: u64 = 1 << 20;

/// A header.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TraceHeader {
    /// Name.
    pub name: String,
    /// Value; `***` when it may be a secret.
    pub value: String,
}

/// The content of a request or response.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceBody {
    /// Type it claims.
    pub content_type: String,
    /// Bytes, when known.
    pub size: Option<i64>,
    /// What to ask `trace-network-body` for.
    pub sha1: Option<String>,
}

impl TraceBody {
    fn from_body(body: &Body) -> Self {
        let name = body.entry.as_deref().and_then(|entry| entry.strip_prefix("resources/"));
        Self { content_type: body.content_type.clone(), size: body.size, sha1: name.map(str::to_owned) }
    }
}

/// A request in a trace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceRequest {
    /// Method.
    #[schema(example = "POST")]
    pub method: String,
    /// Address, secrets masked.
    pub url: String,
    /// Status; 0 without a response.
    pub status: i64,
    /// Reason phrase.
    pub status_text: String,
    /// Whether there was no answer, or one of 400 and above.
    pub failed: bool,
    /// Why there was no response.
    pub failure: Option<String>,
    /// Kind of resource.
    pub resource_type: Option<String>,
    /// When it began.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// How long it took, ms.
    pub duration: i64,
    /// Headers sent.
    pub request_headers: Vec<TraceHeader>,
    /// Headers received.
    pub response_headers: Vec<TraceHeader>,
    /// What was sent.
    pub request_body: Option<TraceBody>,
    /// What was received.
    pub response_body: Option<TraceBody>,
}

impl TraceRequest {
    fn from_exchange(exchange: &Exchange) -> Self {
        let headers = |headers: &[Header]| {
            headers
                .iter()
                .map(|header| TraceHeader { name: header.name.clone(), value: header.value.clone() })
                .collect()
        };
        Self {
            method: exchange.method.clone(),
            url: exchange.url.clone(),
            status: exchange.status,
            status_text: exchange.status_text.clone(),
            failed: exchange.has_failed(),
            failure: exchange.failure.clone(),
            resource_type: exchange.resource_type.clone(),
            started_at: moment(exchange.at),
            duration: rounded(exchange.duration),
            request_headers: headers(&exchange.request_headers),
            response_headers: headers(&exchange.response_headers),
            request_body: exchange.request_body.as_ref().map(TraceBody::from_body),
            response_body: exchange.response_body.as_ref().map(TraceBody::from_body),
        }
    }
}

/// A line of the console in a trace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceConsoleLine {
    /// `error`, `warning`, `log`, … or `pageerror`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Text, secrets masked.
    pub text: String,
    /// `url:line`.
    pub location: Option<String>,
    /// When.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Timestamp>,
}

impl TraceConsoleLine {
    fn from_line(line: &ConsoleLine) -> Self {
        Self {
            kind: line.kind.clone(),
            text: line.text.clone(),
            location: line.location.clone(),
            at: moment(line.at),
        }
    }
}

/// What pages asked for and said around a failure.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceNetwork {
    /// Whether the trace had an answer.
    pub status: TraceStatus,
    /// `newer-format` when the format is newer than any that was seen.
    pub warning: Option<&'static str>,
    /// Requests from a second before the failing action to its end, and those
    /// that broke at any time; all when nothing failed. At most 500.
    pub requests: Vec<TraceRequest>,
    /// Console lines of the same time, and uncaught errors of any time; at
    /// most 200.
    pub console: Vec<TraceConsoleLine>,
}

impl TraceNetwork {
    const fn without(status: TraceStatus) -> Self {
        Self { status, warning: None, requests: Vec::new(), console: Vec::new() }
    }
}

/// Requests and console lines that belong to a failure.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn trace_network(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: Option<u32>,
) -> Result<TraceNetwork> {
    let opened = match open(ctx, project, id, attempt).await? {
        Ok(opened) => opened,
        Err(status) => return Ok(TraceNetwork::without(status)),
    };
    let trace = match opened.parse(true, false).await? {
        Ok(trace) => trace,
        Err(status) => return Ok(TraceNetwork::without(status)),
    };
    let window = failing_of(&trace).map(|failing| failing.window());
    let requests: Vec<TraceRequest> =
        trace.relevant_exchanges(window).into_iter().map(TraceRequest::from_exchange).collect();
    let console: Vec<TraceConsoleLine> =
        trace.relevant_console(window).into_iter().map(TraceConsoleLine::from_line).collect();
    let is_empty = requests.is_empty() && console.is_empty();
    Ok(TraceNetwork {
        status: if is_empty { TraceStatus::NoData } else { TraceStatus::Ok },
        warning: warning_of(&trace),
        requests,
        console,
    })
}

/// The content of a request or response.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkBody {
    /// Whether the trace had an answer.
    pub status: TraceStatus,
    /// Type as the bytes look: `text/plain` for text, whatever it claimed.
    pub content_type: Option<String>,
    /// Bytes.
    pub size: Option<usize>,
    /// Text, secrets masked.
    pub content: Option<String>,
    /// Anything else, as a `data:` address.
    pub data_uri: Option<String>,
}

/// A body by the hash a request names; at most 1 MiB.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn network_body(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: Option<u32>,
    sha1: &str,
) -> Result<NetworkBody> {
    let without =
        |status| NetworkBody { status, content_type: None, size: None, content: None, data_uri: None };
    let opened = match open(ctx, project, id, attempt).await? {
        Ok(opened) => opened,
        Err(status) => return Ok(without(status)),
    };
    let Some(name) = resource_name(&opened.archive, sha1) else { return Ok(without(TraceStatus::NoData)) };
    let bytes = match opened.entry(&name, MAX_BODY_BYTES).await? {
        Ok(bytes) => bytes,
        Err(status) => return Ok(without(status)),
    };
    let size = Some(bytes.len());
    let recognised = infer::get(&bytes).map(|kind| kind.mime_type());
    Ok(match (String::from_utf8(bytes), recognised) {
        (Ok(text), None) => NetworkBody {
            status: TraceStatus::Ok,
            content_type: Some("text/plain".to_owned()),
            size,
            content: Some(masked(&text).into_owned()),
            data_uri: None,
        },
        (read, recognised) => {
            let bytes = read.map_or_else(std::string::FromUtf8Error::into_bytes, String::into_bytes);
            // Only what a browser shows without running it keeps its type.
            let is_image =
                recognised.is_some_and(|kind| kind.starts_with("image/") && kind != "image/svg+xml");
            let content_type = if is_image { recognised } else { None }.unwrap_or("application/octet-stream");
            NetworkBody {
                status: TraceStatus::Ok,
                content_type: Some(content_type.to_owned()),
                size,
                content: None,
                data_uri: Some(format!("data:{content_type};base64,{}", Base64::encode_string(&bytes))),
            }
        }
    })
}
