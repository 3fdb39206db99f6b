//! Requests to hosts that an administrator entered together with a secret:
//! code hosts. They reach what [`UserUrl`] reaches, with two rules more,
//! because the secret goes along: https, unless the environment opens the host,
//! and redirects only on the same origin.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use http::header::{HeaderMap, LOCATION};
use http::{Method, StatusCode};
use url::Url;

use super::targets::Allowed;
use super::user_url::{Answer, Lookup, UserUrl};
use super::{EgressError, TOTAL_TIMEOUT, read_body};

/// Redirects followed: a renamed repository takes one.
const MAX_REDIRECTS: usize = 3;

/// Takes the body of an answer as it arrives.
pub trait BodySink: Send {
    /// The answer begins. Returns how many bytes of its body are read.
    fn begin(&mut self, status: StatusCode, headers: &HeaderMap) -> usize;

    /// The next bytes of the body.
    fn receive(&mut self, bytes: &[u8]);
}

/// A client for hosts that administrators entered.
#[derive(Debug, Clone)]
pub struct AdminUrl(UserUrl);

impl AdminUrl {
    /// A client that reaches the open internet, and what is allowed besides.
    #[must_use]
    pub fn new(allowed: Allowed) -> Self {
        Self(UserUrl::new(allowed))
    }

    /// The same with another way of looking names up.
    #[must_use]
    pub fn with_lookup(allowed: Allowed, lookup: Arc<dyn Lookup>) -> Self {
        Self(UserUrl::with_lookup(allowed, lookup))
    }

    /// Reads what lies at an address, whole, within 10 seconds. A redirect on
    /// the same origin is followed with the same headers.
    ///
    /// # Errors
    /// [`EgressError::Refused`] for an address that is not reached, or without
    /// https; [`EgressError::Redirected`] for a redirect to another origin;
    /// [`EgressError::TooLarge`] beyond `max_bytes`; other [`EgressError`]s when
    /// there is no answer.
    pub async fn get(
        &self,
        address: &str,
        headers: HeaderMap,
        max_bytes: usize,
    ) -> Result<Answer, EgressError> {
        let answer = self.follow(address, headers, max_bytes);
        tokio::time::timeout(TOTAL_TIMEOUT, answer).await.map_err(|_| EgressError::TooSlow)?
    }

    /// Sends a body to an address and passes the answer to a sink as it arrives, all within `timeout`. A
    /// redirect that keeps method and body (307, 308) is followed on the same origin; any other one is an error, because
    /// it would drop the body.
    ///
    /// # Errors
    /// As [`AdminUrl::get`].
    pub async fn post_into(
        &self,
        address: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        timeout: Duration,
        sink: &mut dyn BodySink,
    ) -> Result<(), EgressError> {
        let passed = async {
            let answer = self.respond(Method::POST, address, headers, body, timeout).await?;
            let mut left = sink.begin(answer.status(), answer.headers());
            let mut chunks = answer.bytes_stream();
            while let Some(chunk) = chunks.next().await {
                let chunk = chunk?;
                left = left.checked_sub(chunk.len()).ok_or(EgressError::TooLarge)?;
                sink.receive(&chunk);
            }
            Ok(())
        };
        tokio::time::timeout(timeout, passed).await.map_err(|_| EgressError::TooSlow)?
    }

    /// Sends a body with a method and reads the answer whole, within 10 seconds. Redirects are treated as by
    /// [`AdminUrl::post_into`].
    ///
    /// # Errors
    /// As [`AdminUrl::get`].
    pub async fn write(
        &self,
        method: Method,
        address: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        max_bytes: usize,
    ) -> Result<Answer, EgressError> {
        let written = async {
            let answer = self.respond(method, address, headers, body, TOTAL_TIMEOUT).await?;
            let (status, headers) = (answer.status(), answer.headers().clone());
            Ok(Answer { status, headers, body: read_body(answer, max_bytes, false).await? })
        };
        tokio::time::timeout(TOTAL_TIMEOUT, written).await.map_err(|_| EgressError::TooSlow)?
    }

    /// Sends a body and follows redirects on the same origin. The body of the answer is not read.
    async fn respond(
        &self,
        method: Method,
        address: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        timeout: Duration,
    ) -> Result<reqwest::Response, EgressError> {
        let mut url = Url::parse(address).map_err(|_| EgressError::Refused)?;
        for _ in 0..=MAX_REDIRECTS {
            self.require_safe(&url)?;
            let (headers, body) = (headers.clone(), body.clone());
            let answer = self.0.one_within(timeout, method.clone(), &url, headers, body).await?;
            let status = answer.status();
            if !status.is_redirection() {
                return Ok(answer);
            }
            let keeps_body =
                matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
            let place = answer.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            let next = place.filter(|_| keeps_body).and_then(|place| url.join(place).ok());
            url = next.filter(|next| next.origin() == url.origin()).ok_or(EgressError::Redirected)?;
        }
        Err(EgressError::Redirected)
    }

    /// A secret goes along: https, unless the environment opens the host.
    fn require_safe(&self, url: &Url) -> Result<(), EgressError> {
        let is_opened = self.0.judge(url)?;
        if url.scheme() == "https" || is_opened { Ok(()) } else { Err(EgressError::Refused) }
    }

    async fn follow(
        &self,
        address: &str,
        headers: HeaderMap,
        max_bytes: usize,
    ) -> Result<Answer, EgressError> {
        let mut url = Url::parse(address).map_err(|_| EgressError::Refused)?;
        for _ in 0..=MAX_REDIRECTS {
            self.require_safe(&url)?;
            let answer = self.0.one(Method::GET, &url, headers.clone(), Vec::new()).await?;
            let place = answer.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            let is_redirect = answer.status().is_redirection() && answer.status() != StatusCode::NOT_MODIFIED;
            let Some(place) = place.filter(|_| is_redirect) else {
                let (status, headers) = (answer.status(), answer.headers().clone());
                return Ok(Answer { status, headers, body: read_body(answer, max_bytes, false).await? });
            };
            let next = url.join(place).map_err(|_| EgressError::Redirected)?;
            if next.origin() != url.origin() {
                return Err(EgressError::Redirected);
            }
            url = next;
        }
        Err(EgressError::Redirected)
    }
}
