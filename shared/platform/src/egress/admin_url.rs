//! Requests to hosts that an administrator entered together with a secret:
//! code hosts. They reach what [`UserUrl`] reaches, with two rules more,
//! because the secret goes along: https, unless the environment opens the host,
//! and redirects only on the same origin.

use std::sync::Arc;

use http::header::{HeaderMap, LOCATION};
use http::{Method, StatusCode};
use url::Url;

use super::targets::Allowed;
use super::user_url::{Answer, Lookup, UserUrl};
use super::{EgressError, TOTAL_TIMEOUT, read_body};

/// Redirects followed: a renamed repository takes one.
const MAX_REDIRECTS: usize = 3;

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

    async fn follow(
        &self,
        address: &str,
        headers: HeaderMap,
        max_bytes: usize,
    ) -> Result<Answer, EgressError> {
        let mut url = Url::parse(address).map_err(|_| EgressError::Refused)?;
        for _ in 0..=MAX_REDIRECTS {
            let is_opened = self.0.judge(&url)?;
            if url.scheme() != "https" && !is_opened {
                return Err(EgressError::Refused);
            }
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
