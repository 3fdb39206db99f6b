//! A model endpoint that speaks the chat completions API and the Anthropic
//! messages API, streamed or whole as it is asked. It checks keys, records requests, answers with a script, and
//! misbehaves on demand. `GET /calls` lists the requests and `PUT /script` sets what the model says next, for clients
//! in other languages.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The key that the endpoint accepts.
pub const MODEL_KEY: &str = "sk-a-very-secret-key-of-the-model";
/// The model that it knows.
pub const MODEL: &str = "test-model-1";
/// A cheaper one that it knows.
pub const SMALL_MODEL: &str = "test-model-small";

/// What the endpoint does with one request.
#[derive(Debug, Clone)]
pub enum Play {
    /// The model says a text.
    Says(String),
    /// The model says a text after a while.
    SaysAfter(Duration, String),
    /// The model says a text, and another one once [`ModelServer::release`] is called.
    SaysHeld(String, String),
    /// The model says a text whole, although it was asked for a stream.
    SaysWhole(String),
    /// A stream that stops after a text, as when the model server is killed.
    Breaks(String),
    /// A stream in which the endpoint reports an error after a text.
    FailsInStream(String),
    /// Refuses streams as endpoints do that do not know them.
    RefusesStreams,
    /// Refuses images as models do that cannot see.
    RefusesPictures,
    /// The model calls a tool that nobody offered.
    CallsTool,
    /// The answer ends before it is complete.
    StopsEarly,
    /// Answers with a status, headers and a body.
    Answers(u16, Vec<(&'static str, String)>, String),
    /// Answers with a body of this size, in bytes.
    Floods(usize),
    /// Refuses structured output as servers do that do not know it.
    RefusesSchemas,
}

/// A request that reached the endpoint.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// Path as it was sent.
    pub path: String,
    /// The key, whatever header it came in.
    pub key: Option<String>,
    /// The body.
    pub body: Value,
}

impl ModelCall {
    /// All texts of the conversation, instructions included.
    #[must_use]
    pub fn text(&self) -> String {
        let turns = self.body["messages"].as_array().cloned().unwrap_or_default();
        let texts = turns.iter().flat_map(|turn| match &turn["content"] {
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            content => content.as_str().into_iter().collect::<Vec<_>>(),
        });
        self.body["system"].as_str().into_iter().chain(texts).collect::<Vec<_>>().join("\n")
    }

    /// Media types and base64 of the images that came along.
    #[must_use]
    pub fn pictures(&self) -> Vec<(String, String)> {
        let turns = self.body["messages"].as_array().cloned().unwrap_or_default();
        let parts = turns.iter().filter_map(|turn| turn["content"].as_array()).flatten();
        let picture = |part: &Value| {
            let source = &part["source"];
            if let (Some(kind), Some(data)) = (source["media_type"].as_str(), source["data"].as_str()) {
                return Some((kind.to_owned(), data.to_owned()));
            }
            let url = part["image_url"]["url"].as_str()?.strip_prefix("data:")?;
            url.split_once(";base64,").map(|(kind, data)| (kind.to_owned(), data.to_owned()))
        };
        parts.filter_map(picture).collect()
    }

    /// Whether the endpoint was to enforce a schema.
    #[must_use]
    pub fn has_schema(&self) -> bool {
        self.body["response_format"]["type"] == "json_schema" || self.body["tools"].is_array()
    }
}

#[derive(Debug, Default)]
struct Known {
    plays: VecDeque<Play>,
    calls: Vec<ModelCall>,
    held: Arc<Notify>,
}

/// A running endpoint. Dropping it stops it.
#[derive(Debug)]
pub struct ModelServer {
    host: String,
    known: Arc<Mutex<Known>>,
    serving: JoinHandle<()>,
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ModelServer {
    /// Starts an endpoint. Without a script the model says "ready".
    ///
    /// # Errors
    /// When there is no port.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let host = listener.local_addr()?.to_string();
        let known = Arc::new(Mutex::new(Known::default()));
        let router = Router::new().fallback(receive).with_state(Arc::clone(&known));
        let serving = tokio::spawn(async move {
            // It ends with the test.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { host, known, serving })
    }

    /// Host and port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The base address of a protocol.
    #[must_use]
    pub fn base(&self, protocol: &str) -> String {
        let path = if protocol == "messages" { "" } else { "/v1" };
        format!("http://{}{path}", self.host)
    }

    /// What the next requests are answered with, one after the other.
    pub fn script(&self, plays: impl IntoIterator<Item = Play>) {
        lock(&self.known).plays.extend(plays);
    }

    /// Forgets what the next requests were to be answered with.
    pub fn discard_script(&self) {
        lock(&self.known).plays.clear();
    }

    /// Lets a held answer go on.
    pub fn release(&self) {
        lock(&self.known).held.notify_one();
    }

    /// What was asked since the last call.
    #[must_use]
    pub fn take_calls(&self) -> Vec<ModelCall> {
        std::mem::take(&mut lock(&self.known).calls)
    }
}

async fn receive(
    State(known): State<Arc<Mutex<Known>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if uri.path() == "/calls" {
        let bodies: Vec<Value> =
            lock(&known).calls.iter().map(|call| json!({ "path": call.path, "body": call.body })).collect();
        return plain(200, "application/json", &Value::from(bodies).to_string());
    }
    if uri.path() == "/script" {
        // A text is said; null is a model that does not answer for ten minutes.
        let texts: Vec<Option<String>> = serde_json::from_slice(&body).unwrap_or_default();
        let never = || Play::SaysAfter(Duration::from_secs(600), String::new());
        lock(&known).plays.extend(texts.into_iter().map(|text| text.map_or_else(never, Play::Says)));
        return plain(200, "application/json", "{}");
    }
    let text = |name: &http::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_messages = uri.path() == "/v1/messages";
    if !is_messages && uri.path() != "/v1/chat/completions" {
        return plain(404, "text/html", "<h1>Not Found</h1>");
    }
    let api_key = headers.get("x-api-key").and_then(|value| value.to_str().ok());
    let bearer = text(&AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    // The vendor's client sends a bearer token since the API version 2026-10-21; both are accepted.
    let key = if is_messages { api_key.or(bearer) } else { bearer };
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return plain(400, "application/json", r#"{"error":{"message":"not JSON"}}"#);
    };
    let call = ModelCall { path: uri.path().to_owned(), key: key.map(str::to_owned), body: body.clone() };
    let (has_schema, has_pictures) = (call.has_schema(), !call.pictures().is_empty());
    lock(&known).calls.push(call);
    if key != Some(MODEL_KEY) {
        return plain(
            401,
            "application/json",
            &json!({ "type": "error", "error": { "type": "authentication_error", "message": format!("bad key {key:?}") } })
                .to_string(),
        );
    }
    if is_messages && text(&http::HeaderName::from_static("anthropic-version")).is_none() {
        return plain(
            400,
            "application/json",
            r#"{"type":"error","error":{"message":"anthropic-version is required"}}"#,
        );
    }
    if body["model"] != MODEL && body["model"] != SMALL_MODEL {
        return plain(
            404,
            "application/json",
            r#"{"type":"error","error":{"type":"not_found_error","message":"no such model"}}"#,
        );
    }
    let play = lock(&known).plays.pop_front().unwrap_or_else(|| Play::Says("ready".to_owned()));
    match play {
        Play::Says(text) => said(is_messages, &body, &text),
        Play::SaysAfter(wait, text) => {
            tokio::time::sleep(wait).await;
            said(is_messages, &body, &text)
        }
        Play::SaysHeld(first, second) => {
            let held = Arc::clone(&lock(&known).held);
            streamed(is_messages, &body, vec![(None, first), (Some(held), second)], End::Whole)
        }
        Play::SaysWhole(text) => whole(is_messages, &body, &text),
        Play::Breaks(text) => streamed(is_messages, &body, vec![(None, text)], End::Nothing),
        Play::FailsInStream(text) => streamed(is_messages, &body, vec![(None, text)], End::Error),
        Play::RefusesStreams if body["stream"] == true => {
            lock(&known).plays.push_front(Play::RefusesStreams);
            plain(400, "application/json", r#"{"error":{"message":"stream is not supported"}}"#)
        }
        Play::RefusesPictures if has_pictures => {
            lock(&known).plays.push_front(Play::RefusesPictures);
            plain(400, "application/json", r#"{"error":{"message":"image input is not supported"}}"#)
        }
        Play::CallsTool => called(is_messages),
        Play::StopsEarly => stopped(is_messages),
        Play::Answers(status, more, body) => {
            let mut response = plain(status, "text/html", &body);
            for (name, value) in more {
                if let Ok(value) = value.parse() {
                    response.headers_mut().insert(name, value);
                }
            }
            response
        }
        Play::Floods(bytes) => flood(bytes),
        Play::RefusesSchemas if has_schema => {
            lock(&known).plays.push_front(Play::RefusesSchemas);
            plain(400, "application/json", r#"{"error":{"message":"response_format is not supported"}}"#)
        }
        Play::RefusesSchemas | Play::RefusesStreams | Play::RefusesPictures => {
            let next = lock(&known).plays.pop_front();
            match next {
                Some(Play::Says(text)) => said(is_messages, &body, &text),
                _ => said(is_messages, &body, "ready"),
            }
        }
    }
}

fn plain(status: u16, kind: &'static str, body: &str) -> Response {
    let mut response = Response::new(Body::from(body.to_owned()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

/// A body of blanks.
fn flood(bytes: usize) -> Response {
    const CHUNK: &[u8] = &[b' '; 64 * 1024];
    let chunks = (0..bytes.div_ceil(CHUNK.len())).map(|_| Ok::<_, Infallible>(Bytes::from_static(CHUNK)));
    Response::new(Body::from_stream(futures::stream::iter(chunks)))
}

/// How a stream ends.
enum End {
    /// As the API says.
    Whole,
    /// Without a word.
    Nothing,
    /// With an error.
    Error,
}

/// The model's words, streamed when that is what was asked.
fn said(is_messages: bool, asked: &Value, text: &str) -> Response {
    if asked["stream"] != true {
        return whole(is_messages, asked, text);
    }
    let letters: Vec<char> = text.chars().collect();
    let pieces = letters.chunks(24).map(|piece| (None, piece.iter().collect())).collect();
    streamed(is_messages, asked, pieces, End::Whole)
}

/// Server-sent events in the form of the API. With a forced tool the words are its input, when they are JSON.
fn streamed(
    is_messages: bool,
    asked: &Value,
    pieces: Vec<(Option<Arc<Notify>>, String)>,
    end: End,
) -> Response {
    let tool = asked["tool_choice"]["name"].as_str();
    let begins_json = pieces.first().is_some_and(|(_, piece)| piece.trim_start().starts_with('{'));
    let tool = tool.filter(|_| begins_json);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let named = |event: &Value| {
        let name = event["type"].as_str().filter(|_| is_messages);
        let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {event}\n\n")
    };
    let chunk = |delta: Value, finish: Value| {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": MODEL,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish, "logprobs": null }],
        })
    };
    let piece = |text: &str| match (is_messages, tool) {
        (false, _) => chunk(json!({ "content": text }), Value::Null),
        (true, None) => {
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } })
        }
        (true, Some(_)) => {
            let delta = json!({ "type": "input_json_delta", "partial_json": text });
            json!({ "type": "content_block_delta", "index": 0, "delta": delta })
        }
    };
    if is_messages {
        let block = match tool {
            Some(tool) => json!({ "type": "tool_use", "id": "toolu_1", "name": tool, "input": {} }),
            None => json!({ "type": "text", "text": "" }),
        };
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 1200, "output_tokens": 1 },
        });
        before.push(json!({ "type": "message_start", "message": message }));
        before.push(json!({ "type": "content_block_start", "index": 0, "content_block": block }));
        before.push(json!({ "type": "ping" }));
        let reason = if tool.is_some() { "tool_use" } else { "end_turn" };
        after.push(json!({ "type": "content_block_stop", "index": 0 }));
        let delta = json!({ "stop_reason": reason, "stop_sequence": null });
        after.push(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 340 } }));
        after.push(json!({ "type": "message_stop" }));
    } else {
        before.push(chunk(json!({ "role": "assistant", "content": "" }), Value::Null));
        after.push(chunk(json!({}), "stop".into()));
        if asked["stream_options"]["include_usage"] == true {
            let usage = json!({ "prompt_tokens": 1200, "completion_tokens": 340, "total_tokens": 1540 });
            let mut last = chunk(json!({}), Value::Null);
            last["choices"] = json!([]);
            last["usage"] = usage;
            after.push(last);
        }
    }
    match end {
        End::Whole => {}
        End::Nothing => after.clear(),
        End::Error => {
            after = vec![
                json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
            ];
        }
    }
    let done = if is_messages || after.is_empty() { "" } else { "data: [DONE]\n\n" };
    let first: String = before.iter().map(&named).collect();
    let last = after.iter().map(&named).collect::<String>() + done;
    let middle: Vec<_> = pieces.into_iter().map(|(held, text)| (held, named(&piece(&text)))).collect();
    let events: Vec<_> = [(None, first)].into_iter().chain(middle).chain([(None, last)]).collect();
    let stream = futures::stream::unfold(events.into_iter(), |mut events| async move {
        let (held, text) = events.next()?;
        if let Some(held) = held {
            held.notified().await;
        }
        Some((Ok::<_, Infallible>(Bytes::from(text)), events))
    });
    let mut response = Response::new(Body::from_stream(stream));
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("text/event-stream"));
    response
}

/// The model's words in the form of the API. With a forced tool the words are its
/// input, as the messages API answers.
fn whole(is_messages: bool, asked: &Value, text: &str) -> Response {
    let answer = if is_messages {
        let tool = asked["tool_choice"]["name"].as_str();
        let input: Option<Value> = tool.and(serde_json::from_str(text).ok());
        let content = match (tool, input) {
            (Some(tool), Some(input)) => {
                json!([{ "type": "tool_use", "id": "toolu_1", "name": tool, "input": input }])
            }
            _ => json!([{ "type": "text", "text": text, "citations": null }]),
        };
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": content,
            "stop_reason": if tool.is_some() { "tool_use" } else { "end_turn" }, "stop_sequence": null,
            "usage": { "input_tokens": 1200, "output_tokens": 340 },
        })
    } else {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1_760_000_000, "model": MODEL,
            "choices": [{
                "index": 0, "finish_reason": "stop", "logprobs": null,
                "message": { "role": "assistant", "content": text, "refusal": null },
            }],
            "usage": { "prompt_tokens": 1200, "completion_tokens": 340, "total_tokens": 1540 },
        })
    };
    plain(200, "application/json", &answer.to_string())
}

/// A tool that nobody offered.
fn called(is_messages: bool) -> Response {
    let answer = if is_messages {
        let call =
            json!({ "type": "tool_use", "id": "toolu_2", "name": "bash", "input": { "command": "id" } });
        json!({ "content": [call], "stop_reason": "tool_use", "usage": { "input_tokens": 1, "output_tokens": 1 } })
    } else {
        let call =
            json!({ "id": "call_1", "type": "function", "function": { "name": "bash", "arguments": "{}" } });
        json!({ "choices": [{ "finish_reason": "tool_calls", "message": { "content": null, "tool_calls": [call] } }] })
    };
    plain(200, "application/json", &answer.to_string())
}

/// An answer that reached its limit.
fn stopped(is_messages: bool) -> Response {
    let answer = if is_messages {
        json!({ "content": [{ "type": "text", "text": "{\"category\":" }], "stop_reason": "max_tokens" })
    } else {
        json!({ "choices": [{ "finish_reason": "length", "message": { "content": "{\"category\":" } }] })
    };
    plain(200, "application/json", &answer.to_string())
}

/// A redirect to another address.
#[must_use]
pub fn redirect_to(address: &str) -> Play {
    Play::Answers(307, vec![("location", address.to_owned())], String::new())
}
