//! JSON bodies: content type, gzip, size, UTF-8, and text that cannot be
//! stored made storable before any field is read.

use std::io::Write;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use callboard_domain::text::repair_json_text;
use flate2::write::MultiGzDecoder;
use futures::StreamExt;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde::de::DeserializeOwned;

use super::body::{CountedBody, MaxBodyBytes};
use crate::error::ApiError;

/// Code of a body whose bytes did not arrive.
const CODE: &str = "invalid_json";
/// From this size on a body is read off the async threads: others wait for those.
const LARGE_BODY_BYTES: usize = 128 * 1024;
/// Most bytes allocated on the word of a Content-Length.
const TRUSTED_LENGTH: usize = 1024 * 1024;

/// The bytes of a JSON body: of an acceptable type, inflated, within the
/// route's limit. For readers that are more lenient than a type can be.
#[derive(Debug, Clone)]
pub struct JsonBytes(pub Vec<u8>);

impl JsonBytes {
    /// What `read` makes of them; of many bytes off the async threads.
    ///
    /// # Errors
    /// Those of `read`.
    pub async fn read<T, E>(
        self,
        read: impl FnOnce(Vec<u8>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        E: Into<ApiError> + Send + 'static,
    {
        let Self(bytes) = self;
        if bytes.len() < LARGE_BODY_BYTES {
            return read(bytes).map_err(Into::into);
        }
        let read = tokio::task::spawn_blocking(move || read(bytes));
        read.await.map_err(ApiError::internal)?.map_err(Into::into)
    }
}

impl<S: Sync> FromRequest<S> for JsonBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        check_content_type(&parts.headers)?;
        let encoding = Encoding::of(&parts.headers)?;
        let limit = parts
            .extensions
            .get::<MaxBodyBytes>()
            .ok_or_else(|| ApiError::internal("a handler was mounted around the route table"))?
            .0;
        match encoding {
            Encoding::Identity => whole(body, limit).await,
            Encoding::Gzip => inflated(body, limit).await,
        }
        .map(Self)
    }
}

/// A JSON body as a `T`. Unknown keys are ignored; NUL and lone surrogate
/// escapes become U+FFFD before any field is read.
#[derive(Debug, Clone)]
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let JsonBytes(bytes) = JsonBytes::from_request(request, state).await?;
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
    fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
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

async fn whole(body: Body, limit: u64) -> Result<Vec<u8>, ApiError> {
    use http_body::Body as _;
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(TRUSTED_LENGTH);
    let mut whole = Vec::with_capacity(announced.min(TRUSTED_LENGTH));
    let mut body = CountedBody::new(body, limit);
    while let Some(piece) = body.next().await {
        whole.extend_from_slice(&piece.map_err(|error| error.into_api(CODE))?);
    }
    Ok(whole)
}

async fn inflated(body: Body, limit: u64) -> Result<Vec<u8>, ApiError> {
    let mut decoder = MultiGzDecoder::new(Bounded { bytes: Vec::new(), limit });
    let mut body = CountedBody::new(body, limit);
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| error.into_api(CODE))?;
        decoder.write_all(&piece).map_err(|error| inflating_failed(&error, limit))?;
    }
    decoder.finish().map(|bounded| bounded.bytes).map_err(|error| inflating_failed(&error, limit))
}

fn inflating_failed(error: &std::io::Error, limit: u64) -> ApiError {
    if error.kind() == std::io::ErrorKind::FileTooLarge {
        ApiError::body_too_large(limit)
    } else {
        ApiError::invalid_json("The body is not valid gzip.")
    }
}

/// Takes inflated bytes up to a limit, so a small body cannot become a large
/// one.
struct Bounded {
    bytes: Vec<u8>,
    limit: u64,
}

impl Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        if (self.bytes.len() + piece.len()) as u64 > self.limit {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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
        request.extensions_mut().insert(MaxBodyBytes(LIMIT));
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
    async fn each_wrong_body_has_its_code() {
        assert_eq!(code(&[("content-type", "text/plain")], "{}").await, "unsupported_media_type");
        assert_eq!(code(&[("content-encoding", "br")], "{}").await, "unsupported_media_type");
        assert_eq!(code(&[], "{").await, "invalid_json");
        assert_eq!(code(&[], "").await, "invalid_json");
        assert_eq!(code(&[], vec![b'"', 0xff, b'"']).await, "invalid_json");
        assert_eq!(code(&[("content-encoding", "gzip")], "{}").await, "invalid_json");
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
