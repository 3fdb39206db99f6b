//! The methods of the protocol: from a body to what is answered.
//!
//! A failed tool is a result that says so; a JSON-RPC error is kept for what
//! is no call of a tool at all. `initialize` is not required before anything.

use std::borrow::Cow;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use callboard_domain::bidi::visible;
use callboard_http::request_id;
use futures::StreamExt;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::clean::quoted;
use crate::context::Context;
use crate::error::ToolError;
use crate::images::Image;
use crate::instructions::INSTRUCTIONS;
use crate::rpc::{Body, Message, Reply, Request, RpcError};
use crate::tools::{self, TOOLS};
use crate::{completion, era, prompt, refused, version};

/// Messages of a batch that are worked on at a time.
const PARALLEL: usize = 4;
/// Answers of a batch, bytes, from which on no further message is worked on:
/// fifty times three images would be held in memory at the same time.
const MAX_BATCH_BYTES: usize = 16 << 20;
/// Names an unknown tool is compared with.
const SUGGESTIONS: usize = 3;
/// How alike a name must be to be suggested, 0 to 1.
const ALIKE: f64 = 0.6;
/// What a name without its verb counts when it is the same.
const OBJECT_SHARE: f64 = 0.97;
/// Words of `logging/setLevel`.
const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// A result, or why there is none.
pub(crate) type Outcome = Result<Box<RawValue>, RpcError>;

/// What goes over HTTP: a status, and a body unless there is nothing to say.
#[derive(Debug)]
pub(crate) struct Answer {
    /// HTTP status.
    pub status: StatusCode,
    /// JSON.
    pub body: Option<Vec<u8>>,
}

/// Answers the body of a POST.
pub(crate) async fn answer(context: &Context, body: Body<'_>, headers: &HeaderMap) -> Answer {
    let is_own_way = |message: &Message<'_>| match message {
        // A client that begins anew may still send the header of its last session.
        Message::Request(Request { method, params, .. }) => {
            method == "initialize" || era::is_chosen(method, params, headers)
        }
        _ => false,
    };
    if !body.messages().iter().any(is_own_way)
        && let Err(error) = version::check_header(headers)
    {
        let id = match &body {
            Body::One(Message::Request(request)) => Some(request.id),
            _ => None,
        };
        return single(&Reply { id, outcome: Err(error) });
    }
    match body {
        Body::One(message) => match reply(context, message, headers).await {
            None => Answer { status: StatusCode::ACCEPTED, body: None },
            Some(reply) => single(&reply),
        },
        Body::Batch(messages) => {
            let replies =
                in_order(messages, MAX_BATCH_BYTES, |message| reply(context, message, headers)).await;
            if replies.is_empty() {
                return Answer { status: StatusCode::ACCEPTED, body: None };
            }
            Answer { status: StatusCode::OK, body: written(&replies) }
        }
    }
}

/// Works on messages, some at a time, and answers them in their order. Once the
/// answers have so many bytes together, what is left is refused.
async fn in_order<'a, Work: Future<Output = Option<Reply<'a>>>>(
    messages: Vec<Message<'a>>,
    most_bytes: usize,
    work: impl Fn(Message<'a>) -> Work,
) -> Vec<Reply<'a>> {
    let (work, written) = (&work, &AtomicUsize::new(0));
    let mut all = Vec::with_capacity(messages.len());
    for message in messages {
        all.push(async move {
            if written.load(Ordering::Relaxed) >= most_bytes {
                return message.left_out();
            }
            let reply = work(message).await;
            written.fetch_add(reply.as_ref().map_or(0, Reply::bytes), Ordering::Relaxed);
            reply
        });
    }
    let replies: Vec<_> = futures::stream::iter(all).buffered(PARALLEL).collect().await;
    replies.into_iter().flatten().collect()
}

/// What is answered to a body that holds no message.
pub(crate) fn refused(error: RpcError) -> Answer {
    single(&Reply::refusal(error))
}

fn single(reply: &Reply<'_>) -> Answer {
    Answer { status: reply.status(), body: written(reply) }
}

/// Replies are made of texts and JSON that was read or written before, so
/// writing them cannot fail.
fn written(replies: &impl Serialize) -> Option<Vec<u8>> {
    serde_json::to_vec(replies).ok()
}

async fn reply<'a>(context: &Context, message: Message<'a>, headers: &HeaderMap) -> Option<Reply<'a>> {
    match message {
        Message::Silent => None,
        Message::Refused { id, error } => Some(Reply { id, outcome: Err(error) }),
        Message::Request(Request { id, method, params }) => {
            let outcome = if era::is_chosen(&method, &params, headers) {
                call_stateless(context, &method, params, headers).await
            } else {
                call(context, &method, params).await
            };
            Some(Reply { id: Some(id), outcome })
        }
    }
}

async fn call_stateless(
    context: &Context,
    method: &str,
    params: Map<String, Value>,
    headers: &HeaderMap,
) -> Outcome {
    era::check(method, &params, headers)?;
    let outcome = match method {
        "server/discover" => era::discover(),
        method if era::is_gone(method) => Err(RpcError::method_not_found(method)),
        method => call(context, method, params).await,
    };
    match outcome {
        Ok(result) => era::completed(method, &result),
        Err(error) if error.is_unknown_method() => Err(error.with_status(StatusCode::NOT_FOUND)),
        Err(error) => Err(error),
    }
}

async fn call(context: &Context, method: &str, mut params: Map<String, Value>) -> Outcome {
    match method {
        "initialize" => initialize(&params),
        "ping" => raw(&json!({})),
        "logging/setLevel" => set_level(&params),
        "tools/list" => list_tools(context, &params),
        "tools/call" => call_tool(context, &mut params).await,
        "prompts/list" => raw(&prompt::list()),
        "prompts/get" => raw(&prompt::get(context, &params).await?),
        "resources/list" => raw(&json!({"resources": []})),
        "resources/templates/list" => raw(&json!({"resourceTemplates": []})),
        "resources/read" => Err(RpcError::no_resource("Resource not found: this server has none.")),
        "completion/complete" => raw(&completion::complete(context, &params).await?),
        method if method.starts_with("notifications/") => raw(&json!({})),
        unknown => Err(RpcError::method_not_found(unknown)),
    }
}

/// A result as it is written.
pub(crate) fn raw(value: &(impl Serialize + ?Sized)) -> Outcome {
    let result = to_raw_value(value).map_err(|error| fault("result", &error))?;
    // Of all results at this one place: the marks need no escape in JSON.
    match visible(result.get()) {
        Cow::Borrowed(_) => Ok(result),
        Cow::Owned(shown) => RawValue::from_string(shown).map_err(|error| fault("result", &error)),
    }
}

/// Our fault outside of a tool: logged, and answered with the reference.
pub(crate) fn fault(what: &str, cause: &dyn std::error::Error) -> RpcError {
    let reference = request_id::current();
    tracing::error!(request = reference, what, %cause, "MCP method failed");
    RpcError::internal(&reference)
}

fn initialize(params: &Map<String, Value>) -> Outcome {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    raw(&json!({
        "protocolVersion": version::negotiate(asked),
        "capabilities": capabilities(),
        "serverInfo": server_info(),
        "instructions": *INSTRUCTIONS,
    }))
}

/// What this server can do.
pub(crate) fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": false},
        "prompts": {"listChanged": false},
        "resources": {},
        "completions": {},
    })
}

/// What this server is.
pub(crate) fn server_info() -> Value {
    json!({"name": "callboard", "title": "Callboard", "version": env!("CARGO_PKG_VERSION")})
}

/// Nothing is ever logged to a client, so a known level is all there is to it.
fn set_level(params: &Map<String, Value>) -> Outcome {
    match params.get("level").and_then(Value::as_str) {
        Some(level) if LOG_LEVELS.contains(&level) => raw(&json!({})),
        _ => Err(RpcError::invalid_params(format!("`level` is one of {}.", LOG_LEVELS.join(", ")))),
    }
}

/// The list is the same for every caller, so it is written once.
static WHOLE_LIST: LazyLock<Outcome> = LazyLock::new(|| raw(&json!({"tools": *ENTRIES})));
/// Its entries, in the order of [`TOOLS`].
static ENTRIES: LazyLock<Vec<Value>> = LazyLock::new(|| TOOLS.iter().map(|tool| tool.listed()).collect());
/// The same with the shapes of results.
static ENTRIES_WITH_OUTPUT: LazyLock<Vec<Value>> =
    LazyLock::new(|| TOOLS.iter().map(|tool| tool.listed_with_output()).collect());

fn list_tools(context: &Context, params: &Map<String, Value>) -> Outcome {
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(RpcError::invalid_params("Invalid cursor: the list of tools is one page."));
    }
    let narrowing = &context.narrowing;
    if narrowing.is_whole() && !narrowing.is_structured {
        return WHOLE_LIST.clone();
    }
    let entries = if narrowing.is_structured { &*ENTRIES_WITH_OUTPUT } else { &*ENTRIES };
    let listed: Vec<&Value> =
        TOOLS.iter().zip(entries).filter(|(tool, _)| narrowing.lists(tool)).map(|(_, entry)| entry).collect();
    raw(&json!({"tools": listed}))
}

async fn call_tool(context: &Context, params: &mut Map<String, Value>) -> Outcome {
    let Some(Value::String(name)) = params.get("name") else {
        return Err(RpcError::invalid_params(
            "`name` is required: the name of a tool, as tools/list gives it.",
        ));
    };
    let Some(tool) = tools::find(name) else {
        let unknown = RpcError::invalid_params(format!("Unknown tool: {}", quoted(name)));
        return Err(unknown.with_data(json!({"suggestions": suggestions(name)})));
    };
    let result = match tool.run(context, params.remove("arguments")).await {
        Ok(answered) => {
            let mut content = vec![json!({"type": "text", "text": answered.text})];
            content.extend(answered.images.iter().map(Image::block));
            let mut result = json!({"content": content});
            if context.narrowing.is_structured {
                result["structuredContent"] = answered.json;
            }
            result
        }
        Err(error) => {
            refused::note(context, tool, &error).await;
            let text = format!("Error: {}", sentence(tool.name, &error));
            json!({"content": [{"type": "text", "text": text}], "isError": true})
        }
    };
    raw(&result)
}

/// What the caller reads. Causes of faults go to the log, under a reference.
pub(crate) fn sentence(tool: &str, error: &ToolError) -> String {
    let ToolError::Fault(cause) = error else { return error.to_string() };
    let reference = request_id::current();
    tracing::error!(request = reference, tool, %cause, "MCP tool failed");
    format!(
        "Internal error in {tool} (reference {reference}). Try again; quote the reference if it persists."
    )
}

/// Tools with a name like this one, the most alike first. What is asked for
/// counts nearly as much as the whole: `get_runs` means `list_runs`.
fn suggestions(name: &str) -> Vec<&'static str> {
    let name = name.to_lowercase();
    let object = |name: &str| name.split_once('_').map_or(name.to_owned(), |(_, object)| object.to_owned());
    let alike = |tool: &str| {
        strsim::jaro_winkler(&name, tool)
            .max(OBJECT_SHARE * strsim::jaro_winkler(&object(&name), &object(tool)))
    };
    let mut near: Vec<(f64, &str)> =
        TOOLS.iter().map(|tool| (alike(tool.name), tool.name)).filter(|(alike, _)| *alike >= ALIKE).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc;

    #[tokio::test]
    async fn a_batch_with_long_answers_is_not_worked_on_to_its_end() {
        let mut batch: Vec<Value> =
            (0..12).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).collect();
        batch.push(json!({"jsonrpc": "2.0", "method": "notifications/x"}));
        let text = json!(batch).to_string();
        let Ok(Body::Batch(messages)) = rpc::read(&text) else { panic!("no batch") };
        let worked_on = &AtomicUsize::new(0);
        let replies = in_order(messages, 500, |message| async move {
            let Message::Request(Request { id, .. }) = message else { return None };
            worked_on.fetch_add(1, Ordering::Relaxed);
            Some(Reply { id: Some(id), outcome: raw(&"x".repeat(98)) })
        })
        .await;
        assert_eq!(replies.len(), 12);
        assert_eq!(worked_on.load(Ordering::Relaxed), 5);
        let refused = serde_json::to_value(&replies[11]).unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(11), &json!(-32600)));
    }
}
