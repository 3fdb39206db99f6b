//! Answers that arrive as server-sent events, or whole: what both protocols share.

use callboard_platform::egress::BodySink;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;

/// Bytes read of an answer that is not streamed.
pub(super) const MAX_ANSWER_BYTES: usize = 4_000_000;
/// Bytes read of a stream: each piece of text comes in an event of its own.
const MAX_STREAM_BYTES: usize = 32_000_000;

/// Reads the events of a protocol.
pub(super) trait EventReader: Send {
    /// The next event.
    fn event(&mut self, event: &Value);
}

/// Takes an answer: events go to the reader of the protocol, anything else is kept whole.
pub(super) struct Incoming<'r> {
    reader: &'r mut dyn EventReader,
    /// Status and headers, once the answer has begun.
    pub(super) head: Option<(StatusCode, HeaderMap)>,
    /// Whether events arrive.
    pub(super) is_stream: bool,
    /// The body that is no stream; of a stream, the line that is not complete.
    pub(super) body: Vec<u8>,
    /// Data of the event that is not complete.
    data: Vec<u8>,
}

impl<'r> Incoming<'r> {
    pub(super) fn new(reader: &'r mut dyn EventReader) -> Self {
        Self { reader, head: None, is_stream: false, body: Vec::new(), data: Vec::new() }
    }

    /// Bytes that are read of the answer.
    pub(super) const fn limit(&self) -> usize {
        if self.is_stream { MAX_STREAM_BYTES } else { MAX_ANSWER_BYTES }
    }

    fn line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            // `[DONE]` is no JSON, and ends nothing that has not ended.
            if let Ok(event) = serde_json::from_slice(&std::mem::take(&mut self.data)) {
                self.reader.event(&event);
            }
        } else if let Some(data) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
    }

    /// The stream has ended: some servers leave out the last blank line.
    pub(super) fn finish(&mut self) {
        if self.is_stream {
            let rest = std::mem::take(&mut self.body);
            self.line(&rest);
            self.line(b"");
        }
    }
}

impl BodySink for Incoming<'_> {
    fn begin(&mut self, status: StatusCode, headers: &HeaderMap) -> usize {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        self.is_stream =
            status.is_success() && kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream");
        self.head = Some((status, headers.clone()));
        self.limit()
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
        if !self.is_stream {
            return;
        }
        let received = std::mem::take(&mut self.body);
        let mut rest = received.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line(&rest[..end]);
            rest = &rest[end + 1..];
        }
        self.body = rest.to_vec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Seen(Vec<Value>);

    impl EventReader for Seen {
        fn event(&mut self, event: &Value) {
            self.0.push(event.clone());
        }
    }

    #[test]
    fn events_are_read_however_the_bytes_are_cut() {
        let stream = "event: a\r\ndata: {\"at\":\r\ndata: 1}\r\n\r\n: ping\n\ndata:{\"at\":\"\u{e4}\"}\n\ndata: [DONE]\n\ndata: {\"at\":3}";
        for size in 1..stream.len() {
            let mut seen = Seen(Vec::new());
            let mut incoming = Incoming::new(&mut seen);
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, http::HeaderValue::from_static("text/event-stream; charset=utf-8"));
            assert_eq!(incoming.begin(StatusCode::OK, &headers), MAX_STREAM_BYTES);
            stream.as_bytes().chunks(size).for_each(|bytes| incoming.receive(bytes));
            incoming.finish();
            let places: Vec<Value> = seen.0.iter().map(|event| event["at"].clone()).collect();
            assert_eq!(places, [Value::from(1), Value::from("\u{e4}"), Value::from(3)], "{size}");
        }
    }
}
