//! Multipart forms, read as a stream: no Content-Length is needed, no part is
//! held in memory unless the handler asks for it, and every kind of broken
//! form ends in one error before the handler has committed anything.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use callboard_store::Reservation;
use futures::{Stream, StreamExt};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};

use super::body::{BodyError, BodyRules, CountedBody};
use super::payload::{Collector, Payload};
use crate::error::ApiError;

/// Most parts of one form.
const MAX_PARTS: usize = 20_000;
/// Most bytes of the headers of a part, and of what stands before the first
/// boundary. While they arrive they may seem longer by a piece.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// The parser buffers what it is given until it makes progress, so it is given
/// little at a time.
const PIECE_BYTES: usize = 64 * 1024;
const CODE: &str = "invalid_multipart";

/// A multipart form that is read part by part.
#[derive(Debug)]
pub struct Multipart {
    form: multer::Multipart<'static>,
    current: Option<multer::Field<'static>>,
    parts: usize,
    pending: Arc<AtomicUsize>,
    reservation: Reservation,
}

/// One part of a form. Its content is read with [`Part::chunk`] or as a whole;
/// what is not read is skipped by [`Multipart::next_part`].
#[derive(Debug)]
pub struct Part<'m> {
    form: &'m mut Multipart,
    name: String,
    file_name: Option<String>,
    content_type: Option<String>,
}

impl<S: Sync> FromRequest<S> for Multipart {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let content_type =
            parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let boundary = multer::parse_boundary(content_type).map_err(|error| match error {
            multer::Error::NoBoundary => ApiError::invalid_multipart("The content type names no boundary."),
            _ => ApiError::invalid_multipart("The body must be a form, sent as multipart/form-data."),
        })?;
        let (limit, held) = BodyRules::reserved(&parts.extensions)?;
        Ok(Self::new(CountedBody::new(body, limit), boundary, held))
    }
}

impl Multipart {
    fn new(body: CountedBody, boundary: String, reservation: Reservation) -> Self {
        let pending = Arc::new(AtomicUsize::new(0));
        let paced = Paced { body, pieces: VecDeque::new(), rest: false, pending: Arc::clone(&pending) };
        Self { form: multer::Multipart::new(paced, boundary), current: None, parts: 0, pending, reservation }
    }

    /// The next part; `None` after the closing boundary.
    ///
    /// # Errors
    /// 400 `invalid_multipart` for a broken or cut off form, 413 for one that
    /// is too large or has too many parts.
    pub async fn next_part(&mut self) -> Result<Option<Part<'_>>, ApiError> {
        while self.next_chunk().await?.is_some() {}
        self.current = None;
        let field = self.form.next_field().await;
        self.progress();
        let Some(field) = field.map_err(form_error)? else {
            return Ok(None);
        };
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(ApiError::too_many_items("parts", MAX_PARTS as u64));
        }
        let line = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 4;
        if field.headers().iter().map(line).sum::<usize>() > MAX_HEADER_BYTES {
            return Err(headers_too_long());
        }
        let name = field.name().unwrap_or_default().to_owned();
        let file_name = field.file_name().map(str::to_owned);
        let content_type =
            field.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        self.current = Some(field);
        Ok(Some(Part { form: self, name, file_name, content_type }))
    }

    /// What the parts that were read as a whole hold of the budget for bodies.
    #[must_use]
    pub fn into_reservation(self) -> Reservation {
        self.reservation
    }

    async fn next_chunk(&mut self) -> Result<Option<Bytes>, ApiError> {
        let Some(field) = self.current.as_mut() else {
            return Ok(None);
        };
        let chunk = field.chunk().await;
        self.progress();
        let chunk = chunk.map_err(form_error)?;
        if chunk.is_none() {
            self.current = None;
        }
        Ok(chunk)
    }

    fn progress(&self) {
        self.pending.store(0, Ordering::Relaxed);
    }
}

impl Part<'_> {
    /// The name of the field; empty when the part has none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file name the client gave: a label, never a path.
    #[must_use]
    pub fn file_name(&self) -> Option<&str> {
        self.file_name.as_deref()
    }

    /// The content type the client claims.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// The next piece of the content; `None` at its end.
    ///
    /// # Errors
    /// As [`Multipart::next_part`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ApiError> {
        self.form.next_chunk().await
    }

    /// The content as a stream of pieces.
    pub fn chunks(&mut self) -> impl Stream<Item = Result<Bytes, ApiError>> + Send + Unpin {
        Box::pin(futures::stream::try_unfold(self, |part| async move {
            Ok(part.chunk().await?.map(|chunk| (chunk, part)))
        }))
    }

    /// The whole content, in memory.
    ///
    /// # Errors
    /// 413 `body_too_large` above `limit` bytes, 503 when there is no room for
    /// it; as [`Multipart::next_part`].
    pub async fn bytes(&mut self, limit: u64) -> Result<Vec<u8>, ApiError> {
        let collector = Collector::in_memory(&self.form.reservation, limit);
        self.collect(collector).await?.into_bytes().map_err(ApiError::internal)
    }

    /// The whole content, which may be too large for memory.
    ///
    /// # Errors
    /// As [`Part::bytes`].
    pub async fn payload(&mut self, limit: u64) -> Result<Payload, ApiError> {
        let collector = Collector::spilling(&self.form.reservation, limit);
        self.collect(collector).await
    }

    async fn collect(&mut self, mut collector: Collector) -> Result<Payload, ApiError> {
        while let Some(chunk) = self.chunk().await? {
            collector.add(&mut self.form.reservation, &chunk).await?;
        }
        collector.finish(&mut self.form.reservation).await
    }

    /// The whole content as text.
    ///
    /// # Errors
    /// 400 `invalid_multipart` for what is not UTF-8; as [`Part::bytes`].
    pub async fn text(&mut self, limit: u64) -> Result<String, ApiError> {
        String::from_utf8(self.bytes(limit).await?).map_err(|_| {
            ApiError::invalid_multipart(format!("The field {:?} is not valid UTF-8.", self.name))
        })
    }
}

fn form_error(error: multer::Error) -> ApiError {
    match error {
        multer::Error::StreamReadFailed(cause) => match cause.downcast::<PacedError>() {
            Ok(paced) => match *paced {
                PacedError::Body(error) => error.into_api(CODE),
                PacedError::HeadersTooLong => headers_too_long(),
            },
            Err(cause) => ApiError::invalid_multipart("The form cannot be read.").caused_by(cause),
        },
        multer::Error::IncompleteStream
        | multer::Error::IncompleteFieldData { .. }
        | multer::Error::IncompleteHeaders => ApiError::invalid_multipart(
            "The form ends before its closing boundary, or its boundaries are wrong.",
        ),
        error => ApiError::invalid_multipart("The form cannot be read.").caused_by(error),
    }
}

fn headers_too_long() -> ApiError {
    ApiError::invalid_multipart("The headers of a part are longer than 16 KiB.")
}

#[derive(Debug, thiserror::Error)]
enum PacedError {
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error("part headers too long")]
    HeadersTooLong,
}

/// Gives the parser one small piece at a time and stops when it keeps asking
/// without getting anywhere. (The parser drains whatever is ready into its
/// buffer, so a fast sender would otherwise fill the memory.)
struct Paced {
    body: CountedBody,
    pieces: VecDeque<Bytes>,
    /// After a piece the parser gets to work before it is given another.
    rest: bool,
    pending: Arc<AtomicUsize>,
}

impl Stream for Paced {
    type Item = Result<Bytes, PacedError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.rest) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.pieces.is_empty() {
            match self.body.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(mut bytes))) => {
                    while bytes.len() > PIECE_BYTES {
                        let piece = bytes.split_to(PIECE_BYTES);
                        self.pieces.push_back(piece);
                    }
                    self.pieces.push_back(bytes);
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        if self.pending.load(Ordering::Relaxed) > MAX_HEADER_BYTES + PIECE_BYTES {
            return Poll::Ready(Some(Err(PacedError::HeadersTooLong)));
        }
        let piece = self.pieces.pop_front();
        self.rest = true;
        self.pending.fetch_add(piece.as_ref().map_or(0, Bytes::len), Ordering::Relaxed);
        Poll::Ready(piece.map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use callboard_store::MemoryBudget;
    use proptest::prelude::*;

    use super::*;

    const BOUNDARY: &str = "x-boundary";
    const LIMIT: u64 = 1 << 20;

    fn form(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (name, content) in parts {
            body.extend(
                format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n").bytes(),
            );
            body.extend(*content);
            body.extend(b"\r\n");
        }
        body.extend(format!("--{BOUNDARY}--\r\n").bytes());
        body
    }

    fn open(body: &[u8], chunk: usize, limit: u64) -> Multipart {
        let chunks: Vec<_> =
            body.chunks(chunk).map(|bytes| Ok::<_, std::io::Error>(Bytes::copy_from_slice(bytes))).collect();
        let body = Body::from_stream(futures::stream::iter(chunks));
        Multipart::new(CountedBody::new(body, limit), BOUNDARY.to_owned(), MemoryBudget::default().reserve())
    }

    async fn read_all(mut form: Multipart) -> Result<Vec<(String, Vec<u8>)>, ApiError> {
        let mut parts = Vec::new();
        while let Some(mut part) = form.next_part().await? {
            let content = part.bytes(LIMIT).await?;
            parts.push((part.name().to_owned(), content));
        }
        Ok(parts)
    }

    proptest! {
        #[test]
        fn parts_arrive_whole_however_the_body_is_cut_into_chunks(
            contents in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..400), 0..6),
            chunk in 1_usize..300,
        ) {
            let names: Vec<String> = (0..contents.len()).map(|index| format!("part{index}")).collect();
            let parts: Vec<(&str, &[u8])> =
                names.iter().map(String::as_str).zip(contents.iter().map(Vec::as_slice)).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let read = runtime.block_on(async { read_all(open(&form(&parts), chunk, LIMIT)).await }).unwrap();
            let expected: Vec<(String, Vec<u8>)> = names.iter().cloned().zip(contents.iter().cloned()).collect();
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn a_form_cut_off_anywhere_is_an_error(end in 0_usize..200) {
            let whole = form(&[("a", b"0123456789"), ("b", &[b'x'; 80])]);
            let end = end.min(whole.len() - 5);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let error = runtime.block_on(async { read_all(open(&whole[..end], 7, LIMIT)).await }).unwrap_err();
            prop_assert_eq!(error.code(), "invalid_multipart");
        }
    }

    #[tokio::test]
    async fn parts_that_are_not_read_are_skipped() {
        let big = vec![b'x'; 500_000];
        let mut form = open(&form(&[("big", &big), ("small", b"1")]), 100_000, LIMIT);
        assert_eq!(form.next_part().await.unwrap().unwrap().name(), "big");
        let mut part = form.next_part().await.unwrap().unwrap();
        assert_eq!(
            (part.name().to_owned(), part.text(10).await.unwrap()),
            ("small".to_owned(), "1".to_owned())
        );
        assert!(form.next_part().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn the_size_is_counted_while_streaming() {
        let body = form(&[("a", &[b'x'; 1000])]);
        let limit = body.len() as u64;
        assert!(read_all(open(&body, 100, limit)).await.is_ok());
        assert_eq!(read_all(open(&body, 100, limit - 1)).await.unwrap_err().code(), "body_too_large");
        let mut form = open(&body, 100, limit);
        let mut part = form.next_part().await.unwrap().unwrap();
        assert_eq!(part.text(999).await.unwrap_err().code(), "body_too_large");
    }

    #[tokio::test]
    async fn endless_headers_and_preambles_are_refused_before_they_fill_the_memory() {
        let endless = [format!("--{BOUNDARY}\r\nX-Long: ").into_bytes(), vec![b'a'; 900_000]].concat();
        let whole = |length: usize| {
            let name = "Content-Disposition: form-data; name=\"a\"\r\nX-Long: ";
            let filled = length - (name.len() + 2);
            format!("--{BOUNDARY}\r\n{name}{}\r\n\r\nx\r\n--{BOUNDARY}--\r\n", "a".repeat(filled))
                .into_bytes()
        };
        for body in [endless, vec![b'p'; 900_000], whole(MAX_HEADER_BYTES + 1)] {
            let error = read_all(open(&body, 4096, LIMIT)).await.unwrap_err();
            assert_eq!(error.message(), "The headers of a part are longer than 16 KiB.");
        }
        assert!(read_all(open(&whole(MAX_HEADER_BYTES), 4096, LIMIT)).await.is_ok());
    }

    #[tokio::test]
    async fn too_many_parts_are_refused() {
        let parts = vec![("p", &b""[..]); MAX_PARTS + 1];
        let error = read_all(open(&form(&parts), 60_000, 1 << 30)).await.unwrap_err();
        assert_eq!(error.code(), "too_many_items");
    }
}
