//! JSON-RPC 2.0 as it arrives and as it leaves.
//!
//! Lives here: what a body is (one message or a batch), what a message is
//! (request, something to stay silent about, or refused), and the envelopes.
//! Ids are kept as they were written, so they are echoed digit for digit.

use std::collections::HashMap;

use callboard_domain::text::is_nested_deeper;
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::clean::quoted;

/// Most messages of one batch.
pub(crate) const MAX_BATCH: usize = 50;
/// Lists and objects inside each other; the parser's own bound is 128.
const MAX_DEPTH: usize = 100;

/// An error answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    code: i32,
    message: String,
    data: Option<Value>,
    status: StatusCode,
}

impl RpcError {
    fn new(code: i32, status: StatusCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, status }
    }

    /// The body is not JSON.
    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(-32700, StatusCode::BAD_REQUEST, message)
    }

    /// The JSON is no message that could be answered.
    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, StatusCode::BAD_REQUEST, message)
    }

    /// A message with an id that is no request.
    fn invalid_with_id(message: impl Into<String>) -> Self {
        Self::new(-32600, StatusCode::OK, message)
    }

    /// There is no such method.
    pub(crate) fn method_not_found(method: &str) -> Self {
        Self::new(-32601, StatusCode::OK, format!("Method not found: {}", quoted(method)))
    }

    /// The method cannot work with these parameters.
    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, StatusCode::OK, message)
    }

    /// The parameters lack what every request of the stateless era has.
    pub(crate) fn bad_params(message: impl Into<String>) -> Self {
        Self::new(-32602, StatusCode::BAD_REQUEST, message)
    }

    /// A header does not say what the body says.
    pub(crate) fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(-32020, StatusCode::BAD_REQUEST, message)
    }

    /// A version of the stateless era that this server does not speak.
    pub(crate) fn unsupported_version(requested: &str, supported: &[&str]) -> Self {
        let requested = quoted(requested);
        Self::new(-32022, StatusCode::BAD_REQUEST, format!("Unsupported protocol version: {requested}"))
            .with_data(json!({"supported": supported, "requested": requested}))
    }

    /// Whether it says that there is no such method.
    pub(crate) const fn is_unknown_method(&self) -> bool {
        self.code == -32601
    }

    /// The same, answered with another status.
    pub(crate) const fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The code on the wire.
    #[cfg(test)]
    pub(crate) const fn code(&self) -> i32 {
        self.code
    }

    /// There is no such resource.
    pub(crate) fn no_resource(message: impl Into<String>) -> Self {
        Self::new(-32002, StatusCode::OK, message)
    }

    /// Our fault, outside of a tool; the cause is in the log under the
    /// reference.
    pub(crate) fn internal(reference: &str) -> Self {
        let message =
            format!("Internal error (reference {reference}). Try again; quote the reference if it persists.");
        Self::new(-32603, StatusCode::OK, message)
    }

    /// Adds what programs need besides the sentence.
    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

/// A body of `POST /mcp`.
#[derive(Debug)]
pub(crate) enum Body<'a> {
    /// One message.
    One(Message<'a>),
    /// Several messages, answered in their order.
    Batch(Vec<Message<'a>>),
}

/// One message.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// Wants an answer.
    Request(Request<'a>),
    /// A notification or a response: nothing is answered.
    Silent,
    /// Answered with an error.
    Refused {
        /// The id to echo, when there is a usable one.
        id: Option<&'a RawValue>,
        /// Why.
        error: RpcError,
    },
}

/// A request.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// Its id as it was written.
    pub id: &'a RawValue,
    /// What is asked.
    pub method: String,
    /// Parameters; empty when there are none.
    pub params: Map<String, Value>,
}

impl<'a> Message<'a> {
    /// What is answered when it is not worked on, as the answers before it are
    /// too long already.
    pub(crate) fn left_out(self) -> Option<Reply<'a>> {
        match self {
            Self::Silent => None,
            Self::Refused { id, error } => Some(Reply { id, outcome: Err(error) }),
            Self::Request(Request { id, .. }) => {
                let error =
                    "The answers to this batch are too long together; send this message in another one.";
                Some(Reply { id: Some(id), outcome: Err(RpcError::invalid_with_id(error)) })
            }
        }
    }
}

impl Body<'_> {
    /// The messages.
    pub(crate) fn messages(&self) -> &[Message<'_>] {
        match self {
            Self::One(message) => std::slice::from_ref(message),
            Self::Batch(messages) => messages,
        }
    }
}

/// Reads a body.
///
/// # Errors
/// A body that holds no message at all.
pub(crate) fn read(text: &str) -> Result<Body<'_>, RpcError> {
    if is_nested_deeper(text, MAX_DEPTH) {
        return Err(RpcError::parse(format!("Parse error: nested deeper than {MAX_DEPTH} levels.")));
    }
    let whole: &RawValue =
        serde_json::from_str(text).map_err(|error| RpcError::parse(format!("Parse error: {error}.")))?;
    if !whole.get().starts_with('[') {
        return Ok(Body::One(message(whole)));
    }
    let elements: Vec<&RawValue> = serde_json::from_str(whole.get())
        .map_err(|error| RpcError::parse(format!("Parse error: {error}.")))?;
    if elements.is_empty() || elements.len() > MAX_BATCH {
        let found = elements.len();
        return Err(RpcError::invalid_request(format!(
            "A batch holds 1 to {MAX_BATCH} messages, not {found}."
        )));
    }
    Ok(Body::Batch(elements.into_iter().map(message).collect()))
}

fn message(raw: &RawValue) -> Message<'_> {
    let refused = |id, error| Message::Refused { id, error };
    let Ok(fields) = serde_json::from_str::<HashMap<String, &RawValue>>(raw.get()) else {
        return refused(None, RpcError::invalid_request("A message is a JSON object."));
    };
    let method = fields.get("method").map(|method| serde_json::from_str::<String>(method.get()).ok());
    if method.is_none() && (fields.contains_key("result") || fields.contains_key("error")) {
        return Message::Silent;
    }
    let Some(id) = fields.get("id").copied() else {
        return match method {
            Some(Some(_)) => Message::Silent,
            _ => refused(None, RpcError::invalid_request("A request has an id and a method.")),
        };
    };
    let is_notification = method.iter().flatten().any(|method| method.starts_with("notifications/"));
    if id.get() == "null" && is_notification {
        return Message::Silent;
    }
    if !is_usable_id(id.get()) {
        return refused(None, RpcError::invalid_request("An id is a string or an integer."));
    }
    let is_version_2 = fields.get("jsonrpc").is_some_and(|version| version.get() == "\"2.0\"");
    let (true, Some(Some(method))) = (is_version_2, method) else {
        let error = RpcError::invalid_with_id("`jsonrpc` must be \"2.0\" and `method` a string.");
        return refused(Some(id), error);
    };
    match params(fields.get("params").copied()) {
        Ok(params) => Message::Request(Request { id, method, params }),
        Err(error) => refused(Some(id), error),
    }
}

/// A string, or digits with an optional sign.
fn is_usable_id(raw: &str) -> bool {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    raw.starts_with('"') || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn params(raw: Option<&RawValue>) -> Result<Map<String, Value>, RpcError> {
    let raw = raw.map_or("null", RawValue::get);
    match serde_json::from_str(raw) {
        Ok(Value::Null) => Ok(Map::new()),
        Ok(Value::Object(params)) => Ok(params),
        Ok(_) => Err(RpcError::invalid_params("`params` must be an object.")),
        Err(error) => Err(RpcError::invalid_params(format!("`params` cannot be read: {error}."))),
    }
}

/// What is answered to one message.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    /// The id to echo; null when there is none.
    pub id: Option<&'a RawValue>,
    /// The result, or why there is none.
    pub outcome: Result<Box<RawValue>, RpcError>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject<'a>>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
}

impl<'a> Reply<'a> {
    /// An error that answers no message in particular.
    pub(crate) const fn refusal(error: RpcError) -> Self {
        Self { id: None, outcome: Err(error) }
    }

    /// Length of the result; errors are short.
    pub(crate) fn bytes(&self) -> usize {
        self.outcome.as_ref().map_or(0, |result| result.get().len())
    }

    /// The HTTP status when this is the only answer.
    pub(crate) fn status(&self) -> StatusCode {
        self.outcome.as_ref().map_or_else(|error| error.status, |_| StatusCode::OK)
    }

    fn envelope(&'a self) -> Envelope<'a> {
        let error = self.outcome.as_ref().err().map(|error| ErrorObject {
            code: error.code,
            message: &error.message,
            data: error.data.as_ref(),
        });
        Envelope { jsonrpc: "2.0", id: self.id, result: self.outcome.as_deref().ok(), error }
    }
}

impl Serialize for Reply<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.envelope().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> String {
        match read(text) {
            Err(error) => format!("body {}", error.code),
            Ok(Body::Batch(messages)) => format!("batch of {}", messages.len()),
            Ok(Body::One(Message::Silent)) => "silent".to_owned(),
            Ok(Body::One(Message::Request(request))) => {
                format!("request {} {} {}", request.id, request.method, request.params.len())
            }
            Ok(Body::One(Message::Refused { id, error })) => {
                let id = id.map_or("null", RawValue::get);
                format!("refused {} {id} {}", error.status.as_u16(), error.code)
            }
        }
    }

    #[test]
    fn every_shape_of_a_message_has_its_answer() {
        let table = [
            ("", "body -32700"),
            ("{", "body -32700"),
            ("{\"id\":1,}", "body -32700"),
            ("[1,", "body -32700"),
            ("nothing", "body -32700"),
            ("null", "refused 400 null -32600"),
            ("7", "refused 400 null -32600"),
            ("\"ping\"", "refused 400 null -32600"),
            ("{}", "refused 400 null -32600"),
            (r#"{"jsonrpc":"2.0"}"#, "refused 400 null -32600"),
            (r#"{"jsonrpc":"2.0","method":7}"#, "refused 400 null -32600"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping 0"),
            (r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, "request 0 ping 0"),
            (r#"{"jsonrpc":"2.0","id":-4,"method":"ping"}"#, "request -4 ping 0"),
            (r#"{"jsonrpc":"2.0","id":"","method":"ping"}"#, "request \"\" ping 0"),
            (r#"{"jsonrpc":"2.0","id":"\u00e4","method":"ping"}"#, r#"request "\u00e4" ping 0"#),
            (r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}"#, "request 9007199254740993 ping 0"),
            (
                r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}"#,
                "request 123456789012345678901234567890 ping 0",
            ),
            (r#"{"id":1,"method":"ping"}"#, "refused 200 1 -32600"),
            (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, "refused 200 \"a\" -32600"),
            (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, "refused 200 1 -32600"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "refused 200 1 -32600"),
            (r#"{"jsonrpc":"2.0","id":1,"method":{}}"#, "refused 200 1 -32600"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "refused 400 null -32600"),
            (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, "refused 400 null -32600"),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "refused 400 null -32600"),
            (r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, "refused 400 null -32600"),
            (r#"{"jsonrpc":"2.0","id":1e3,"method":"ping"}"#, "refused 400 null -32600"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "refused 400 null -32600"),
            (r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#, "refused 400 null -32600"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}"#, "silent"),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "silent"),
            (r#"{"jsonrpc":"2.0","method":"no/such/method","params":[]}"#, "silent"),
            (r#"{"method":"tools/list"}"#, "silent"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "silent"),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#, "silent"),
            (r#"{"result":null}"#, "silent"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#, "request 1 x 0"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{}}"#, "request 1 x 0"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1}}"#, "request 1 x 1"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#, "refused 200 1 -32602"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":3}"#, "refused 200 1 -32602"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1e999}}"#, "refused 200 1 -32602"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
                "request 1 x 1",
            ),
            ("[]", "body -32600"),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},[],7]"#, "batch of 3"),
        ];
        for (text, expected) in table {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn a_batch_has_at_most_fifty_messages() {
        let batch = |count: usize| format!("[{}]", vec![r#"{"method":"x"}"#; count].join(","));
        assert_eq!(kind(&batch(50)), "batch of 50");
        assert_eq!(kind(&batch(51)), "body -32600");
    }

    #[test]
    fn a_batch_element_that_is_an_array_is_refused_alone() {
        let Ok(Body::Batch(messages)) = read(r#"[[], {"method":"x"}]"#) else { panic!("no batch") };
        assert!(matches!(&messages[0], Message::Refused { id: None, error } if error.code == -32600));
        assert!(matches!(messages[1], Message::Silent));
    }

    #[test]
    fn depth_is_bounded_before_anything_is_built() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(kind(&deep), "body -32700");
    }

    #[test]
    fn replies_have_a_result_or_an_error() {
        let id: Box<RawValue> = serde_json::from_str("9007199254740993").unwrap();
        let reply = Reply { id: Some(&id), outcome: Ok(serde_json::from_str("{}").unwrap()) };
        assert_eq!(
            serde_json::to_string(&reply).unwrap(),
            r#"{"jsonrpc":"2.0","id":9007199254740993,"result":{}}"#
        );
        let reply = Reply::refusal(RpcError::method_not_found("a\nb").with_data(Value::Null));
        assert_eq!(
            serde_json::to_string(&reply).unwrap(),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found: a b","data":null}}"#
        );
    }
}
