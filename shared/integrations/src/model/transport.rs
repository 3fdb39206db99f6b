//! One request to a model endpoint: credentials, limits, and what its failures
//! mean.

use std::time::Duration;

use callboard_domain::diagnosis::ModelProtocol;
use callboard_domain::time::Timestamp;
use callboard_platform::egress::{AdminUrl, EgressError};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use serde_json::Value;
use url::Url;

use super::error::ModelError;
use super::event_stream::{EventReader, Incoming};

/// The longest wait an endpoint is believed, ms.
const MAX_WAIT_MS: i64 = 24 * 60 * 60 * 1000;
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// A model endpoint with its key in clear text.
#[derive(Clone)]
pub struct ModelEndpoint {
    /// How it is spoken to.
    pub protocol: ModelProtocol,
    /// Where its API begins.
    pub base_url: String,
    /// Name of the model.
    pub model: String,
    /// Key; local servers have none.
    pub key: Option<String>,
    /// How long one request may take.
    pub timeout: Duration,
}

impl std::fmt::Debug for ModelEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { protocol, base_url, model, timeout, .. } = self;
        write!(f, "ModelEndpoint({protocol:?} {base_url} {model} {timeout:?})")
    }
}

/// The client of one endpoint.
pub(super) struct Transport {
    client: AdminUrl,
    endpoint: ModelEndpoint,
    now: Timestamp,
}

/// What came of a request.
pub(super) enum Received {
    /// The JSON of a success.
    Answer(Value),
    /// A success whose events went to the reader.
    Streamed,
    /// The request was refused, mostly for a feature the endpoint lacks.
    Refused(u16),
}

impl Transport {
    pub(super) const fn new(client: AdminUrl, endpoint: ModelEndpoint, now: Timestamp) -> Self {
        Self { client, endpoint, now }
    }

    /// Name of the model.
    pub(super) fn model(&self) -> &str {
        &self.endpoint.model
    }

    /// The host as sentences name it.
    pub(super) fn host(&self) -> String {
        let url = Url::parse(&self.endpoint.base_url).ok();
        url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_else(|| "the endpoint".to_owned())
    }

    /// Whether the endpoint is the vendor's own.
    pub(super) fn is_host(&self, host: &str) -> bool {
        self.host() == host
    }

    /// Sends JSON to a place below the base address. A base address that already
    /// ends with the beginning of `path` is taken as it is. Events of a streamed answer go to `reader` as they arrive.
    ///
    /// # Errors
    /// [`ModelError`]; refusals of the request itself are [`Received::Refused`].
    pub(super) async fn post(
        &self,
        path: &str,
        body: &Value,
        reader: &mut dyn EventReader,
    ) -> Result<Received, ModelError> {
        let base = self.endpoint.base_url.trim_end_matches('/');
        let path = match path.split_once('/') {
            Some((first, rest)) if base.ends_with(&format!("/{first}")) => rest,
            _ => path,
        };
        let (address, bytes) = (format!("{base}/{path}"), body.to_string().into_bytes());
        let timeout = self.endpoint.timeout;
        let mut incoming = Incoming::new(reader);
        let sent = self.client.post_into(&address, self.headers(body), bytes, timeout, &mut incoming).await;
        sent.map_err(|error| self.no_answer(&error, incoming.limit()))?;
        let (status, headers) = incoming.head.take().ok_or_else(|| self.unreadable())?;
        let host = self.host();
        Err(match status.as_u16() {
            200..=299 if incoming.is_stream => {
                incoming.finish();
                return Ok(Received::Streamed);
            }
            200..=299 => {
                let answer = serde_json::from_slice(&incoming.body).map_err(|_| self.unreadable())?;
                return Ok(Received::Answer(answer));
            }
            401 | 403 => ModelError::KeyRejected { host },
            404 => ModelError::ModelUnknown { host, model: self.endpoint.model.clone() },
            429 => ModelError::RateLimited { host, until: self.until(&headers) },
            408 | 504 => ModelError::TooSlow { host, seconds: self.endpoint.timeout.as_secs() },
            400 | 413 | 422 => return Ok(Received::Refused(status.as_u16())),
            status => ModelError::Failed { host, status },
        })
    }

    /// The endpoint reported an error in the middle of a stream.
    pub(super) fn failed(&self, status: u16) -> ModelError {
        ModelError::Failed { host: self.host(), status }
    }

    /// The request was refused in every form.
    pub(super) fn refused(&self, status: u16) -> ModelError {
        ModelError::RequestRefused { host: self.host(), status }
    }

    /// The answer is not what the API promises.
    pub(super) fn unreadable(&self) -> ModelError {
        ModelError::Unreadable { host: self.host() }
    }

    fn headers(&self, body: &Value) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted =
            if body["stream"] == true { "text/event-stream, application/json" } else { "application/json" };
        headers.insert(ACCEPT, HeaderValue::from_static(accepted));
        let (name, text) = match self.endpoint.protocol {
            ModelProtocol::ChatCompletions => {
                (AUTHORIZATION, self.endpoint.key.as_ref().map(|key| format!("Bearer {key}")))
            }
            ModelProtocol::Messages => {
                headers.insert(ANTHROPIC_VERSION, HeaderValue::from_static("2023-06-01"));
                (X_API_KEY, self.endpoint.key.clone())
            }
        };
        // A key that no header can hold is sent as none, and so rejected.
        if let Some(mut value) = text.and_then(|text| HeaderValue::from_str(&text).ok()) {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers
    }

    /// When requests are answered again: seconds, as all model APIs send them.
    fn until(&self, headers: &HeaderMap) -> Option<Timestamp> {
        let seconds: i64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
        let wait = seconds.checked_mul(1000)?.clamp(0, MAX_WAIT_MS);
        Some(Timestamp(self.now.millis().saturating_add(wait)))
    }

    fn no_answer(&self, error: &EgressError, limit_bytes: usize) -> ModelError {
        let host = self.host();
        let seconds = self.endpoint.timeout.as_secs();
        match error {
            EgressError::Refused => ModelError::AddressRefused { host },
            EgressError::Redirected => ModelError::Redirected { host },
            EgressError::TooLarge => ModelError::TooLarge { host, limit_bytes },
            EgressError::TooSlow => ModelError::TooSlow { host, seconds },
            EgressError::Request(error) if error.is_timeout() && !error.is_connect() => {
                ModelError::TooSlow { host, seconds }
            }
            _ => ModelError::Unreachable { host },
        }
    }
}

/// A count of tokens in an answer; 0 where there is none.
pub(super) fn tokens(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0).max(0)
}
