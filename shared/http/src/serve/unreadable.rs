//! Answers to requests that the HTTP library cannot read: an address of more
//! than 64 KiB, bytes that may not stand in a request line or a header, more
//! headers than it holds. The library answers them itself, with a status and
//! nothing else, before any service runs, and has no hook for it. So its answer
//! is recognised on its way to the socket and replaced by one of the service,
//! with the usual body and headers.
//!
//! Not to be had: the library accepts a bare LF for CRLF, and of a request with
//! both `Transfer-Encoding` and `Content-Length` it ignores the latter, as RFC
//! 9112 allows (section 6.3), and removes it before a service sees the request.
//! It has settings for neither. An unreadable request that comes in one packet
//! behind another one may still get the empty answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use callboard_auth::client_address::Peer;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::StatusCode;
use http::header::{CONNECTION, CONTENT_LENGTH};
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tower::ServiceExt as _;

use crate::error::ApiError;

/// The beginnings of the library's own answers.
const REFUSALS: [(&[u8], StatusCode); 3] = [
    (b"HTTP/1.1 400 Bad Request\r\n", StatusCode::BAD_REQUEST),
    (b"HTTP/1.1 414 URI Too Long\r\n", StatusCode::URI_TOO_LONG),
    (b"HTTP/1.1 431 Request Header Fields Too Large\r\n", StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
];
/// Longer than any of them.
const MAX_REFUSAL_BYTES: usize = 256;
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// How long, and how much of it, the rest of such a request is read, so that its
/// sender gets to read the answer instead of a reset connection.
const REST_TIME: Duration = Duration::from_secs(2);
const REST_BYTES: usize = 8 * 1024 * 1024;

/// Marks a request that stands for one that could not be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unreadable(StatusCode);

impl Unreadable {
    /// What its sender is told.
    pub(crate) fn error(self) -> ApiError {
        let (code, message) = match self.0 {
            StatusCode::URI_TOO_LONG => ("url_too_long", "The address is longer than 8 KiB."),
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
                ("headers_too_large", "The headers are longer than 32 KiB, or more than 100.")
            }
            _ => (
                "malformed_request",
                "The request is not valid HTTP: check its first line and headers for characters that must be encoded.",
            ),
        };
        ApiError::new(self.0, code, message)
    }
}

/// Where the exchange on a connection is.
#[derive(Debug, Clone, Default)]
pub(super) struct Exchange(Arc<AtomicU8>);

const IDLE: u8 = 0;
const ANSWERING: u8 = 1;
const ANSWERED: u8 = 2;

impl Exchange {
    /// A request has been read; nothing on the wire is the library's own until its
    /// answer has been sent.
    pub(super) fn begin(&self) {
        self.0.store(ANSWERING, Ordering::Release);
    }

    /// The answer, which ends the exchange.
    pub(super) fn ending_with(self, response: Response) -> Response {
        response.map(|body| Body::new(Answer { body, exchange: self }))
    }

    fn flushed(&self) {
        let _ = self.0.compare_exchange(ANSWERED, IDLE, Ordering::AcqRel, Ordering::Acquire);
    }

    fn is_idle(&self) -> bool {
        self.0.load(Ordering::Acquire) == IDLE
    }
}

/// The body of an answer.
struct Answer {
    body: Body,
    exchange: Exchange,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.exchange.0.store(ANSWERED, Ordering::Release);
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection on which unreadable requests get answers of the service.
pub(super) struct Answering<S> {
    stream: S,
    router: Router,
    peer: Peer,
    exchange: Exchange,
    state: State,
}

enum State {
    Passing,
    Preparing(BoxFuture<'static, Vec<u8>>),
    Writing { answer: Vec<u8>, written: usize },
    Refused { rest: usize, until: Option<Pin<Box<Sleep>>> },
}

impl<S> Answering<S> {
    pub(super) fn new(stream: S, router: Router, peer: Peer, exchange: Exchange) -> Self {
        Self { stream, router, peer, exchange, state: State::Passing }
    }

    /// The status of an answer that is the library's own.
    fn refusal(&self, bytes: &[u8]) -> Option<StatusCode> {
        if bytes.len() > MAX_REFUSAL_BYTES || !self.exchange.is_idle() || !bytes.ends_with(b"\r\n\r\n") {
            return None;
        }
        REFUSALS.iter().find(|(begin, _)| bytes.starts_with(begin)).map(|(_, status)| *status)
    }
}

/// The answer of the service, as it goes over the wire.
async fn answer(router: Router, peer: Peer, status: StatusCode) -> Vec<u8> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = http::Uri::from_static("/api/");
    request.extensions_mut().insert(peer);
    request.extensions_mut().insert(Unreadable(status));
    let response = match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, MAX_ANSWER_BYTES).await.unwrap_or_default();
    let mut answer = format!("HTTP/1.1 {}\r\n", parts.status).into_bytes();
    for (name, value) in
        parts.headers.iter().filter(|(name, _)| **name != CONTENT_LENGTH && **name != CONNECTION)
    {
        answer.extend_from_slice(name.as_str().as_bytes());
        answer.extend_from_slice(b": ");
        answer.extend_from_slice(value.as_bytes());
        answer.extend_from_slice(b"\r\n");
    }
    answer
        .extend_from_slice(format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len()).as_bytes());
    answer.extend_from_slice(&body);
    answer
}

impl<S: AsyncRead + Unpin> AsyncRead for Answering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Answering<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                State::Passing => match this.refusal(bytes) {
                    Some(status) => {
                        let answer = answer(this.router.clone(), this.peer, status);
                        this.state = State::Preparing(answer.boxed());
                    }
                    None => return Pin::new(&mut this.stream).poll_write(cx, bytes),
                },
                State::Preparing(answer) => {
                    let answer = ready!(answer.poll_unpin(cx));
                    this.state = State::Writing { answer, written: 0 };
                }
                State::Writing { answer, written } if *written < answer.len() => {
                    let length = ready!(Pin::new(&mut this.stream).poll_write(cx, &answer[*written..]))?;
                    if length == 0 {
                        return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                    }
                    *written += length;
                }
                State::Writing { .. } => {
                    this.state = State::Refused { rest: REST_BYTES, until: None };
                    return Poll::Ready(Ok(bytes.len()));
                }
                // Nothing follows an answer that ends the connection.
                State::Refused { .. } => return Poll::Ready(Ok(bytes.len())),
            }
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut filled = pieces.iter().filter(|piece| !piece.is_empty());
        match (filled.next(), filled.next()) {
            (Some(only), None) => self.poll_write(cx, only),
            _ => Pin::new(&mut self.stream).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.exchange.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let State::Refused { rest, until } = &mut this.state else {
            return Pin::new(&mut this.stream).poll_shutdown(cx);
        };
        if until.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        let until = until.get_or_insert_with(|| Box::pin(sleep(REST_TIME)));
        let mut piece = [0; 8 * 1024];
        loop {
            if until.as_mut().poll(cx).is_ready() || *rest == 0 {
                return Poll::Ready(Ok(()));
            }
            let mut into = ReadBuf::new(&mut piece);
            match ready!(Pin::new(&mut this.stream).poll_read(cx, &mut into)) {
                Ok(()) if !into.filled().is_empty() => *rest = rest.saturating_sub(into.filled().len()),
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}
