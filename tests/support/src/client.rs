//! A small HTTP client for tests: it follows no redirects and decodes
//! nothing, so tests see the answer that was sent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE};
use reqwest::{Method, StatusCode};
use serde_json::Value;

/// A client of one service. Clones share their cookies, where they keep any.
#[derive(Debug, Clone)]
pub struct Client {
    base_url: String,
    http: reqwest::Client,
    headers: HeaderMap,
    cookies: Option<Arc<Mutex<BTreeMap<String, String>>>>,
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
        #[expect(clippy::disallowed_methods, reason = "tests ask the service itself")]
        let http =
            reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build()?;
        Ok(Self { base_url: base_url.into(), http, headers: HeaderMap::new(), cookies: None })
    }

    /// The address of the service, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The same client with a header on every request.
    ///
    /// # Errors
    /// When it is no header.
    pub fn with_header(&self, name: &str, value: &str) -> Result<Self> {
        let mut headers = self.headers.clone();
        headers.insert(name.parse::<HeaderName>()?, HeaderValue::from_str(value)?);
        Ok(Self { headers, ..self.clone() })
    }

    /// A client with cookies of its own: it keeps what the ways below are
    /// answered with, as browsers do.
    #[must_use]
    pub fn browser(&self) -> Self {
        Self { cookies: Some(Arc::default()), ..self.clone() }
    }

    fn jar(&self) -> Option<MutexGuard<'_, BTreeMap<String, String>>> {
        self.cookies.as_ref().map(|jar| jar.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The value of a cookie that is kept.
    #[must_use]
    pub fn cookie(&self, name: &str) -> Option<String> {
        self.jar()?.get(name).cloned()
    }

    /// Keeps a cookie as `Set-Cookie` writes it, or forgets it when its time
    /// is over.
    pub fn keep_cookie(&self, set: &str) {
        let Some(mut jar) = self.jar() else { return };
        let pair = set.split(';').next().unwrap_or_default();
        let Some((name, value)) = pair.split_once('=') else { return };
        if set.contains("Max-Age=0") {
            jar.remove(name);
        } else {
            jar.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Begins a request to a path of the service, for what the shorter ways
    /// below do not offer.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request =
            self.http.request(method, format!("{}{path}", self.base_url)).headers(self.headers.clone());
        let pairs: Vec<String> = self
            .jar()
            .iter()
            .flat_map(|jar| jar.iter().map(|(name, value)| format!("{name}={value}")))
            .collect();
        if pairs.is_empty() { request } else { request.header(COOKIE, pairs.join("; ")) }
    }

    /// Sends a request that [`Client::request`] began, and keeps the cookies
    /// of its answer.
    ///
    /// # Errors
    /// When no whole answer arrives.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Result<Answer> {
        let answer = Answer::send(request).await?;
        for set in answer.headers.get_all(SET_COOKIE) {
            self.keep_cookie(set.to_str()?);
        }
        Ok(answer)
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// When no whole answer arrives.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.send(self.request(Method::GET, path)).await
    }

    /// Sends a JSON body with any method.
    ///
    /// # Errors
    /// When no whole answer arrives.
    pub async fn send_json(&self, method: Method, path: &str, body: &Value) -> Result<Answer> {
        let request = self.request(method, path).header(CONTENT_TYPE, "application/json");
        self.send(request.body(body.to_string())).await
    }

    /// Sends a POST with a JSON body.
    ///
    /// # Errors
    /// When no whole answer arrives.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        self.send_json(Method::POST, path, body).await
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
    pub async fn send(request: reqwest::RequestBuilder) -> Result<Self> {
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Self { status, headers, body: response.bytes().await? })
    }

    /// A header as text; empty when it is missing.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Whether the service failed. What nobody configured is no failure.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        let is_missing = || self.json().is_ok_and(|body| body["code"] == "not_configured");
        self.status.is_server_error() && !is_missing()
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
        anyhow::ensure!(self.status.is_success(), "answered {}: {}", self.status, self.text());
        self.json()
    }
}
