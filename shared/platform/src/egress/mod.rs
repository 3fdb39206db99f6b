//! Requests that leave this service. The one place where HTTP clients for them
//! are built, with limits on time and size: [`FixedHost`] for hosts that the
//! environment names, without redirects, so that no answer leads anywhere
//! else, [`UserUrl`] for addresses that callers name, and [`AdminUrl`] for hosts
//! that administrators enter together with a secret.

mod admin_url;
mod pagination;
mod targets;
mod user_url;

use std::time::Duration;

use futures::StreamExt;
use http::header::{ACCEPT, AUTHORIZATION, HeaderValue, USER_AGENT};
use serde_json::Value;

pub use admin_url::{AdminUrl, BodySink};
pub use pagination::{Next, next_page, page_of_relation};
pub use targets::Allowed;
pub use user_url::{Answer, Lookup, SystemLookup, UserUrl, reachable};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Answers we ask for are profiles and small lists.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
const OUR_NAME: HeaderValue = HeaderValue::from_static("callboard");

/// Why a request brought nothing. The text is for our log.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// It was not sent, or there was no answer in time.
    #[error("no answer: {0}")]
    Request(#[from] reqwest::Error),
    /// What was to be sent is not a request.
    #[error("not a request: {0}")]
    Invalid(#[from] http::Error),
    /// The answer is larger than we read.
    #[error("the answer is larger than what is read of it")]
    TooLarge,
    /// The address is not one that requests go to.
    #[error("this address is not reached from here")]
    Refused,
    /// The answer redirects to another host, or too often.
    #[error("the answer redirects elsewhere")]
    Redirected,
    /// There was no whole answer in time.
    #[error("no answer in time")]
    TooSlow,
    /// The answer has another status than success.
    #[error("answered {0}")]
    Status(http::StatusCode),
    /// The answer is not JSON.
    #[error("the answer is not JSON")]
    NotJson,
}

/// A client for hosts that the environment of this service names.
#[derive(Debug, Clone)]
pub struct FixedHost(reqwest::Client);

impl FixedHost {
    /// Builds the client.
    ///
    /// # Errors
    /// [`EgressError::Request`] when the system's certificates cannot be read.
    pub fn new() -> Result<Self, EgressError> {
        #[expect(clippy::disallowed_methods, reason = "whoever runs the service names these hosts")]
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TOTAL_TIMEOUT)
            .build()?;
        Ok(Self(client))
    }

    /// Sends a request and reads its answer whole.
    ///
    /// # Errors
    /// [`EgressError`], but for the status of the answer, which is the
    /// caller's to judge.
    pub async fn send(
        &self,
        mut request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, EgressError> {
        request.headers_mut().insert(USER_AGENT, OUR_NAME);
        let answer = self.0.execute(request.try_into()?).await?;
        let mut response = http::Response::builder().status(answer.status());
        if let Some(headers) = response.headers_mut() {
            headers.clone_from(answer.headers());
        }
        Ok(response.body(read_body(answer, MAX_ANSWER_BYTES, false).await?)?)
    }

    /// Asks for a JSON document, with an access token when there is one.
    ///
    /// # Errors
    /// [`EgressError`].
    pub async fn json(&self, address: &str, access_token: Option<&str>) -> Result<Value, EgressError> {
        Ok(self.json_page(address, access_token).await?.document)
    }

    /// Asks for one page of a list, and says where the next one is.
    ///
    /// # Errors
    /// [`EgressError`]; [`EgressError::Refused`] when the next page is on
    /// another origin, which must not receive the token.
    pub async fn json_page(
        &self,
        address: &str,
        access_token: Option<&str>,
    ) -> Result<JsonPage, EgressError> {
        let mut request = http::Request::get(address).header(ACCEPT, "application/json");
        if let Some(token) = access_token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(http::Error::from)?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let answer = self.send(request.body(Vec::new())?).await?;
        if !answer.status().is_success() {
            return Err(EgressError::Status(answer.status()));
        }
        let next = match next_page(answer.headers()) {
            Next::At(target) => Next::At(pagination::on_same_origin(address, &target)?),
            other => other,
        };
        let document = serde_json::from_slice(answer.body()).map_err(|_| EgressError::NotJson)?;
        Ok(JsonPage { document, next })
    }
}

/// One page of a list.
#[derive(Debug)]
pub struct JsonPage {
    /// Its content.
    pub document: Value,
    /// Where the next page is.
    pub next: Next,
}

/// Reads a body up to a number of bytes; what is longer is cut, or refused.
async fn read_body(answer: reqwest::Response, most: usize, may_cut: bool) -> Result<Vec<u8>, EgressError> {
    let mut body = Vec::new();
    let mut chunks = answer.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        let room = most - body.len();
        if chunk.len() > room {
            if !may_cut {
                return Err(EgressError::TooLarge);
            }
            body.extend_from_slice(&chunk[..room]);
            break;
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
