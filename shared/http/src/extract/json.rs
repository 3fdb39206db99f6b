//! JSON bodies: content type, gzip, size, UTF-8, and text that cannot be
//! stored made storable before any field is read.

use std::io::Write;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use callboard_domain::text::repair_json_text;
use callboard_store::Reservation;
use flate2::write::MultiGzDecoder;
use futures::StreamExt;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde::de::DeserializeOwned;

use super::body::{BodyRules, CountedBody};
use super::payload::{Collector, Payload, Received};
use crate::error::ApiError;

/// Code of a body whose bytes did not arrive.
const CODE: &str = "invalid_json";
/// Compressed bytes that are inflated at a time: they become a thousand times as
/// many at most.
const INFLATED_AT_A_TIME: usize = 1024;

/// The bytes of a JSON body: of an acceptable type, inflated, within the
/// route's limit. For readers that are more lenient than a type can be.
#[derive(Debug)]
pub struct JsonBytes {
    /// The body.
    pub bytes: Vec<u8>,
    /// What it holds of the budget for bodies.
    pub reservation: Reservation,
}

impl JsonBytes {
    /// What `read` makes of them; of many bytes off the async threads.
    ///
    /// # Errors
    /// 503 when there is no room for that, or those of `read`.
    pub async fn read<T, E>(
        self,
        read: impl FnOnce(Vec<u8>) -> Result<T, E> + Send + 'static,
    ) -> Result<(T, Reservation), ApiError>
    where
        T: Send + 'static,
        E: Into<ApiError> + Send + 'static,
    {
        let received = Received::from_payload(Payload::Memory(self.bytes), self.reservation);
        let read = move |payload: Payload| -> Result<T, ApiError> {
            read(payload.into_bytes().map_err(ApiError::internal)?).map_err(Into::into)
        };
        received.read(read).await
    }
}

impl<S: Sync> FromRequest<S> for JsonBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let (payload, reservation) = received(request, Collector::in_memory).await?.into_parts();
        Ok(Self { bytes: payload.into_bytes().map_err(ApiError::internal)?, reservation })
    }
}

/// A JSON body that may be too large for memory, of an acceptable type,
/// inflated, within the route's limit.
#[derive(Debug)]
pub struct JsonPayload(pub Received);

impl JsonPayload {
    /// As [`Received::read`].
    ///
    /// # Errors
    /// As there.
    pub async fn read<T, E>(
        self,
        read: impl FnOnce(Payload) -> Result<T, E> + Send + 'static,
    ) -> Result<(T, Reservation), ApiError>
    where
        T: Send + 'static,
        E: Into<ApiError> + Send + 'static,
    {
        self.0.read(read).await
    }
}

impl<S: Sync> FromRequest<S> for JsonPayload {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        received(request, Collector::spilling).await.map(Self)
    }
}

async fn received(
    request: Request,
    collector: impl FnOnce(&Reservation, u64) -> Collector,
) -> Result<Received, ApiError> {
    let (parts, body) = request.into_parts();
    check_content_type(&parts.headers)?;
    let encoding = Encoding::from_headers(&parts.headers)?;
    let (limit, mut held) = BodyRules::reserved(&parts.extensions)?;
    let mut collector = collector(&held, limit);
    match encoding {
        Encoding::Identity => whole(body, limit, &mut collector, &mut held).await?,
        Encoding::Gzip => inflated(body, limit, &mut collector, &mut held).await?,
    }
    Ok(Received::from_payload(collector.finish(&mut held).await?, held))
}

/// A JSON body as a `T`. Unknown keys are ignored; NUL and lone surrogate
/// escapes become U+FFFD before any field is read.
#[derive(Debug, Clone)]
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let JsonBytes { bytes, reservation: _reservation } = JsonBytes::from_request(request, state).await?;
        let text =
            repair_json_text(bytes).map_err(|_| ApiError::invalid_json("The body is not valid UTF-8."))?;
        serde_json::from_str(&text).map(Self).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => ApiError::invalid_body("", sentence(&error)),
            _ => ApiError::invalid_json(sentence(&error)),
        })
    }
}

fn sentence(error: &serde_json::Error) -> String {
    format!("The body cannot be read: {error}.")
}

enum Encoding {
    Identity,
    Gzip,
}

impl Encoding {
    fn from_headers(headers: &HeaderMap) -> Result<Self, ApiError> {
        match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes().to_ascii_lowercase()).as_deref() {
            None | Some(b"" | b"identity") => Ok(Self::Identity),
            Some(b"gzip" | b"x-gzip") => Ok(Self::Gzip),
            Some(_) => Err(ApiError::unsupported_media_type("plain or gzip-compressed JSON")),
        }
    }
}

/// `application/json`, anything `+json`, or no type at all.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let essence =
        value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence.is_empty() || essence == "application/json" || essence.ends_with("+json") {
        Ok(())
    } else {
        Err(ApiError::unsupported_media_type("application/json"))
    }
}

/// Only what has arrived is reserved: to announce a body costs nothing.
async fn whole(
    body: Body,
    limit: u64,
    collector: &mut Collector,
    held: &mut Reservation,
) -> Result<(), ApiError> {
    let mut body = CountedBody::new(body, limit);
    while let Some(piece) = body.next().await {
        collector.add(held, &piece.map_err(|error| error.into_api(CODE))?).await?;
    }
    Ok(())
}

/// What every gzip member begins with (RFC 1952, section 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// What is left of it after a gateway read the body as text.
const DAMAGED_MAGIC: [u8; 4] = [0x1f, 0xef, 0xbf, 0xbd];
/// For those whose gateway damages bodies.
const DAMAGED: &str = "The body was compressed, but something on the way read it as text. Send compressed bodies with \
                       Content-Type: application/vnd.callboard+json, or do not compress them.";

/// A small body cannot become a large one: it is inflated little by little, and
/// the collector counts what comes out.
///
/// Some gateways inflate a body themselves and leave the header as it was, so a
/// body that does not begin as gzip is taken as it is.
async fn inflated(
    body: Body,
    limit: u64,
    collector: &mut Collector,
    held: &mut Reservation,
) -> Result<(), ApiError> {
    let invalid = |_| ApiError::invalid_json("The body is not valid gzip.");
    let mut decoder = MultiGzDecoder::new(Vec::new());
    let mut body = CountedBody::new(body, limit);
    let mut begin = Vec::new();
    while begin.len() < DAMAGED_MAGIC.len()
        && let Some(piece) = body.next().await
    {
        begin.extend_from_slice(&piece.map_err(|error| error.into_api(CODE))?);
    }
    if begin.starts_with(&DAMAGED_MAGIC) {
        return Err(ApiError::invalid_json(DAMAGED));
    }
    let is_gzip = begin.starts_with(&GZIP_MAGIC);
    let mut piece = Bytes::from(begin);
    loop {
        if is_gzip {
            for piece in piece.chunks(INFLATED_AT_A_TIME) {
                decoder.write_all(piece).map_err(invalid)?;
                collector.add(held, decoder.get_ref()).await?;
                decoder.get_mut().clear();
            }
        } else {
            collector.add(held, &piece).await?;
        }
        // Inflating is work: others have their turn in between.
        tokio::task::coop::consume_budget().await;
        match body.next().await {
            Some(next) => piece = next.map_err(|error| error.into_api(CODE))?,
            None => break,
        }
    }
    if !is_gzip {
        return Ok(());
    }
    let rest = decoder.finish().map_err(invalid)?;
    collector.add(held, &rest).await
}

#[cfg(test)]
mod tests {
    use callboard_store::MemoryBudget;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::{Value, json};

    use super::*;

    const LIMIT: u64 = 1000;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    async fn read(headers: &[(&str, &str)], body: impl Into<Body>) -> Result<Value, ApiError> {
        let mut request = Request::new(body.into());
        request.extensions_mut().insert(BodyRules { limit: LIMIT, budget: MemoryBudget::default() });
        for (name, value) in headers {
            let name: http::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        JsonBody::<Value>::from_request(request, &()).await.map(|body| body.0)
    }

    async fn code(headers: &[(&str, &str)], body: impl Into<Body>) -> String {
        read(headers, body).await.unwrap_err().code().to_owned()
    }

    #[tokio::test]
    async fn json_is_accepted_in_the_ways_clients_send_it() {
        let json = br#"{"a":1}"#.to_vec();
        for kind in [
            &[][..],
            &[("content-type", "application/json")],
            &[("content-type", "Application/JSON; charset=utf-8")],
            &[("content-type", "application/vnd.x+json")],
        ] {
            assert_eq!(read(kind, json.clone()).await.unwrap(), json!({"a": 1}));
        }
        // Some compress piece by piece, each of which is a member.
        for packed in [gzip(&json), [gzip(&json[..3]), gzip(&json[3..])].concat()] {
            assert_eq!(read(&[("content-encoding", "gzip")], packed).await.unwrap(), json!({"a": 1}));
        }
    }

    #[tokio::test]
    async fn compressed_bodies_survive_gateways_or_are_told_apart() {
        let header = &[("content-encoding", "gzip")];
        // Inflated on the way, with the header left as it was.
        assert_eq!(read(header, r#"{"a":1}"#).await.unwrap(), json!({"a": 1}));
        assert_eq!(read(header, "1").await.unwrap(), json!(1));
        let read_as_text = String::from_utf8_lossy(&gzip(br#"{"a":1}"#)).into_owned();
        let error = read(header, read_as_text).await.unwrap_err();
        assert!(error.message().contains("application/vnd.callboard+json"), "{error:?}");
    }

    #[tokio::test]
    async fn each_wrong_body_has_its_code() {
        assert_eq!(code(&[("content-type", "text/plain")], "{}").await, "unsupported_media_type");
        assert_eq!(code(&[("content-encoding", "br")], "{}").await, "unsupported_media_type");
        assert_eq!(code(&[], "{").await, "invalid_json");
        assert_eq!(code(&[], "").await, "invalid_json");
        assert_eq!(code(&[], vec![b'"', 0xff, b'"']).await, "invalid_json");
        assert_eq!(code(&[("content-encoding", "gzip")], "").await, "invalid_json");
        assert_eq!(code(&[("content-encoding", "gzip")], gzip(b"{}")[..9].to_vec()).await, "invalid_json");
        assert_eq!(code(&[], "[".repeat(400)).await, "invalid_json");
        assert_eq!(code(&[], format!("\"{}\"", "x".repeat(999))).await, "body_too_large");
    }

    #[tokio::test]
    async fn inflated_bytes_count() {
        let bomb = gzip(&vec![b' '; 10_000_000]);
        assert!(bomb.len() < 20_000);
        let small: Vec<u8> = gzip(&[b' '; 2000]);
        assert!((small.len() as u64) < LIMIT);
        assert_eq!(code(&[("content-encoding", "gzip")], small).await, "body_too_large");
    }

    #[tokio::test]
    async fn text_that_cannot_be_stored_is_made_storable() {
        let body = r#"{"title":"a\ud83db\u0000c \\u0000"}"#;
        assert_eq!(read(&[], body).await.unwrap()["title"], "a\u{fffd}b\u{fffd}c \\u0000");
    }
}
