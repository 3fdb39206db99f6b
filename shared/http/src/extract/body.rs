//! Bodies, counted while they arrive. A false or missing `Content-Length`
//! changes nothing, and a client that stops sending, or sends next to nothing,
//! is not waited for.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use callboard_auth::Principal;
use callboard_auth::client_address::ClientAddress;
use callboard_store::memory_budget::Client;
use callboard_store::{MemoryBudget, Reservation};
use futures::{Stream, StreamExt};
use http::Extensions;
use tokio::time::{Instant, Sleep, sleep};

use super::caller::Caller;
use crate::error::ApiError;

/// How long a body is waited for until [`LEAST_BYTES`] of it have come.
const IDLE: Duration = Duration::from_secs(30);
/// Less than this counts as a pause: a body that trickles byte by byte would
/// hold its connection, and what the request has claimed, for hours.
const LEAST_BYTES: u64 = 1024;
/// How much of a body nobody wants is still read, so that the client gets to
/// read the answer instead of a reset connection.
const DISCARD_BYTES: u64 = 64 * 1024 * 1024;
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// What holds for the body of a request. Set by the checks before the handler.
#[derive(Debug, Clone)]
pub struct BodyRules {
    /// The largest body of this route in bytes, as the route table and the
    /// configuration say.
    pub limit: u64,
    /// Where its memory comes from.
    pub budget: MemoryBudget,
}

impl BodyRules {
    /// The limit of a request, and a reservation for its body. All bodies of an
    /// account share a part of the budget, and so do those of an address whose
    /// callers have no account; the part is smaller where they need one.
    pub(super) fn reserved(extensions: &Extensions) -> Result<(u64, Reservation), ApiError> {
        let rules = extensions.get::<Self>();
        let Self { limit, budget } =
            rules.ok_or_else(|| ApiError::internal("a handler was mounted around the route table"))?;
        let caller = extensions.get::<Caller>();
        let account = caller.and_then(|caller| caller.account());
        let client = match (account, extensions.get::<ClientAddress>()) {
            (Some(account), _) => Some(Client::account(account.user)),
            (None, Some(address)) => {
                let is_stranger = caller.is_some_and(|caller| *caller.principal() == Principal::Anonymous);
                let of = if is_stranger { Client::stranger } else { Client::address };
                Some(of(&address.subject()))
            }
            (None, None) => None,
        };
        let held = client.map_or_else(|| budget.reserve(), |client| budget.reserve_for(client));
        Ok((*limit, held))
    }
}

/// Why a body could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// More bytes than the route accepts.
    #[error("the body is larger than {0} bytes")]
    TooLarge(u64),
    /// Next to nothing came within 30 seconds of waiting.
    #[error("the body stopped arriving")]
    Idle,
    /// The connection ended first, or the framing is wrong.
    #[error("the body was cut off")]
    Broken(#[source] axum::Error),
}

impl BodyError {
    /// The answer, with the code of the form the body was read as.
    #[must_use]
    pub fn into_api(self, code: &'static str) -> ApiError {
        match self {
            Self::TooLarge(limit) => ApiError::body_too_large(limit),
            Self::Idle => ApiError::bad_request(code, "The body stopped arriving before it was complete."),
            Self::Broken(_) => {
                ApiError::bad_request(code, "The body was cut off before it was complete.").caused_by(self)
            }
        }
    }
}

/// A body as a stream of pieces, counted against a limit.
pub struct CountedBody {
    stream: Option<BodyDataStream>,
    limit: u64,
    seen: u64,
    patience: Duration,
    /// Ends the wait that is going on.
    idle: Pin<Box<Sleep>>,
    /// How far the body was when that wait began; `None` while nobody waits.
    /// Time the reader spends elsewhere is not the client's.
    waiting_since: Option<u64>,
}

impl std::fmt::Debug for CountedBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CountedBody({} of {} bytes)", self.seen, self.limit)
    }
}

impl CountedBody {
    /// Reads `body` up to `limit` bytes.
    #[must_use]
    pub fn new(body: Body, limit: u64) -> Self {
        Self::with_patience(body, limit, IDLE)
    }

    fn with_patience(body: Body, limit: u64, patience: Duration) -> Self {
        let stream = Some(body.into_data_stream());
        let idle = Box::pin(sleep(patience));
        Self { stream, limit, seen: 0, patience, idle, waiting_since: None }
    }

    fn end(&mut self, error: BodyError) -> Poll<Option<Result<Bytes, BodyError>>> {
        if !matches!(error, BodyError::TooLarge(_)) {
            // Nothing more will come of it.
            self.stream = None;
        }
        Poll::Ready(Some(Err(error)))
    }
}

impl Stream for CountedBody {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.seen > self.limit {
            return Poll::Ready(None);
        }
        let Some(stream) = self.stream.as_mut() else {
            return Poll::Ready(None);
        };
        match stream.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(bytes))) => {
                self.seen += bytes.len() as u64;
                if self.seen > self.limit {
                    let limit = self.limit;
                    return self.end(BodyError::TooLarge(limit));
                }
                self.waiting_since = self.waiting_since.filter(|since| self.seen - since < LEAST_BYTES);
                Poll::Ready(Some(Ok(bytes)))
            }
            Poll::Ready(Some(Err(error))) => self.end(BodyError::Broken(error)),
            Poll::Ready(None) => {
                self.stream = None;
                Poll::Ready(None)
            }
            Poll::Pending => {
                if self.waiting_since.is_none() {
                    self.waiting_since = Some(self.seen);
                    let end = Instant::now() + self.patience;
                    self.idle.as_mut().reset(end);
                }
                ready!(self.idle.as_mut().poll(cx));
                self.end(BodyError::Idle)
            }
        }
    }
}

impl Drop for CountedBody {
    /// A handler that answers early leaves the rest here.
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            discard(stream);
        }
    }
}

/// Reads and forgets the rest of a body beside the answer, within bounds.
pub(crate) fn discard(mut stream: BodyDataStream) {
    use http_body::Body as _;
    if stream.is_end_stream() {
        return;
    }
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    runtime.spawn(async move {
        let rest = async {
            let mut seen = 0;
            while let Some(Ok(bytes)) = stream.next().await {
                seen += bytes.len() as u64;
                if seen > DISCARD_BYTES {
                    break;
                }
            }
        };
        // Whoever is still sending after this has the connection closed.
        let _ = tokio::time::timeout(DISCARD_TIME, rest).await;
    });
}

/// Reads a whole body of at most `limit` bytes.
///
/// # Errors
/// [`BodyError`].
pub async fn limited_bytes(body: Body, limit: u64) -> Result<Bytes, BodyError> {
    let mut body = CountedBody::new(body, limit);
    let Some(first) = body.next().await.transpose()? else {
        return Ok(Bytes::new());
    };
    let Some(second) = body.next().await.transpose()? else {
        return Ok(first);
    };
    let mut whole = BytesMut::with_capacity((first.len() + second.len()) * 2);
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&second);
    while let Some(piece) = body.next().await.transpose()? {
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunked(chunks: usize, size: usize) -> Body {
        let chunk = Bytes::from(vec![b'x'; size]);
        Body::from_stream(futures::stream::iter(
            (0..chunks).map(move |_| Ok::<_, std::io::Error>(chunk.clone())),
        ))
    }

    #[tokio::test]
    async fn a_body_of_exactly_the_limit_is_read_and_one_byte_more_is_not() {
        assert_eq!(limited_bytes(chunked(4, 25), 100).await.unwrap().len(), 100);
        assert!(matches!(limited_bytes(chunked(4, 25), 99).await, Err(BodyError::TooLarge(99))));
        assert!(limited_bytes(Body::empty(), 0).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_body_that_stops_arriving_is_given_up() {
        let stuck = futures::stream::once(async { Ok::<_, std::io::Error>(Bytes::from_static(b"{")) })
            .chain(futures::stream::pending());
        let body = Body::from_stream(stuck);
        let mut body = CountedBody::with_patience(body, 100, Duration::from_millis(5));
        assert!(body.next().await.is_some_and(|first| first.is_ok()));
        assert!(matches!(body.next().await, Some(Err(BodyError::Idle))));
        assert!(body.next().await.is_none());
    }

    /// Pieces of a body, each of which is waited for.
    fn dripping(pieces: usize, size: usize) -> Body {
        let piece = Bytes::from(vec![b'x'; size]);
        Body::from_stream(futures::stream::iter(0..pieces).then(move |_| {
            let piece = piece.clone();
            async move {
                tokio::task::yield_now().await;
                Ok::<_, std::io::Error>(piece)
            }
        }))
    }

    #[tokio::test]
    async fn a_body_that_trickles_is_given_up_and_a_slow_one_is_not() {
        let mut trickle = CountedBody::with_patience(dripping(usize::MAX, 0), 100, Duration::from_millis(5));
        let error = loop {
            match trickle.next().await {
                Some(Ok(_)) => {}
                other => break other,
            }
        };
        assert!(matches!(error, Some(Err(BodyError::Idle))));
        let least = usize::try_from(LEAST_BYTES).unwrap();
        assert_eq!(limited_bytes(dripping(50, least), u64::MAX).await.unwrap().len(), 50 * least);
    }

    #[tokio::test]
    async fn a_cut_connection_is_an_error_and_not_an_end() {
        let cut = futures::stream::iter([
            Ok(Bytes::from_static(b"half")),
            Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
        ]);
        let error = limited_bytes(Body::from_stream(cut), 100).await.unwrap_err();
        assert_eq!(error.into_api("invalid_json").code(), "invalid_json");
    }
}
