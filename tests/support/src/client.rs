//! A small HTTP client for tests: it follows no redirects and decodes
//! nothing, so tests see the answer that was sent.

use anyhow::{Context, Result};
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, StatusCode};
use serde_json::Value;

/// A client of one service.
#[derive(Debug, Clone)]
pub struct Client {
    base_url: String,
    http: reqwest::Client,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, as sent.
    pub body: Bytes,
}

impl Client {
    /// A client of the service at an address such as `http://127.0.0.1:3000`.
    ///
    /// # Errors
    /// When the TLS provider cannot be set up.
    pub fn new(base_url: impl Into<String>) -> Result<Self> {
        callboard_http::install_tls();
        let http =
            reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build()?;
        Ok(Self { base_url: base_url.into(), http })
    }

    /// The address of the service, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Begins a request to a path of the service, for what the shorter ways
    /// below do not offer.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base_url))
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// When no whole answer arrives.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        Answer::of(self.request(Method::GET, path)).await
    }

    /// Sends a POST with a JSON body.
    ///
    /// # Errors
    /// When no whole answer arrives.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        let request = self.request(Method::POST, path).header(CONTENT_TYPE, "application/json");
        Answer::of(request.body(body.to_string())).await
    }

    /// The JSON of a GET that has to succeed.
    ///
    /// # Errors
    /// When the answer is not 200 with JSON; the body is in the message.
    pub async fn json(&self, path: &str) -> Result<Value> {
        self.get(path).await?.success().with_context(|| format!("GET {path}"))
    }

    /// The JSON of a POST that has to succeed.
    ///
    /// # Errors
    /// When the answer is not 200 with JSON; the body is in the message.
    pub async fn post_json(&self, path: &str, body: &Value) -> Result<Value> {
        self.post(path, body).await?.success().with_context(|| format!("POST {path}"))
    }
}

impl Answer {
    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// When no whole answer arrives.
    pub async fn of(request: reqwest::RequestBuilder) -> Result<Self> {
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Self { status, headers, body: response.bytes().await? })
    }

    /// A header as text; empty when it is missing.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// When it is not; the body is in the message.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("not JSON: {}", self.text()))
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The JSON body of an answer 200.
    ///
    /// # Errors
    /// When the status is another one; the body is in the message.
    pub fn success(&self) -> Result<Value> {
        anyhow::ensure!(self.status == StatusCode::OK, "answered {}: {}", self.status, self.text());
        self.json()
    }
}
