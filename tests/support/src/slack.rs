//! The Web API of Slack, as far as messages are written to it.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A message that was written.
#[derive(Debug, Clone)]
pub struct Posted {
    /// The header `Authorization`.
    pub authorization: String,
    /// The arguments.
    pub body: Value,
}

#[derive(Debug, Default)]
struct Inner {
    posted: Vec<Posted>,
    /// What is answered instead of accepting: a status, `Retry-After`, and an error.
    refuses: Option<(u16, Option<u64>, String)>,
}

/// A server that answers as `chat.postMessage` does.
#[derive(Debug, Clone)]
pub struct SlackServer {
    url: String,
    inner: Arc<Mutex<Inner>>,
}

impl SlackServer {
    /// Starts one.
    ///
    /// # Errors
    /// When no port can be opened.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/api", listener.local_addr()?);
        let server = Self { url, inner: Arc::default() };
        let router = Router::new().route("/api/chat.postMessage", post(take)).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(server)
    }

    /// Where its API is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Answers an error from now on, or accepts again.
    ///
    /// # Panics
    /// When another test thread panicked meanwhile.
    pub fn refuse(&self, answer: Option<(u16, Option<u64>, &str)>) {
        let answer = answer.map(|(status, after, error)| (status, after, error.to_owned()));
        self.inner.lock().expect("the state").refuses = answer;
    }

    /// What came since the last call, refused or not.
    ///
    /// # Panics
    /// When another test thread panicked meanwhile.
    #[must_use]
    pub fn take(&self) -> Vec<Posted> {
        std::mem::take(&mut self.inner.lock().expect("the state").posted)
    }
}

async fn take(
    State(server): State<SlackServer>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, HeaderMap, String) {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut inner = server.inner.lock().expect("the state");
    let mut answer_headers = HeaderMap::new();
    let parsed = serde_json::from_slice::<Value>(&body);
    // Other content types are read as a form, in which nothing of ours would be found.
    let is_json = text("content-type").starts_with("application/json");
    let Some(parsed) = parsed.ok().filter(|_| is_json) else {
        let refusal = json!({ "ok": false, "error": "invalid_arguments" });
        return (StatusCode::OK, answer_headers, refusal.to_string());
    };
    inner.posted.push(Posted { authorization: text("authorization").to_owned(), body: parsed });
    match &inner.refuses {
        None => {
            (StatusCode::OK, answer_headers, json!({ "ok": true, "ts": "1503435956.000247" }).to_string())
        }
        Some((status, after, error)) => {
            if let Some(seconds) = after {
                answer_headers.insert("retry-after", (*seconds).into());
            }
            let status = StatusCode::from_u16(*status).expect("a status");
            (status, answer_headers, json!({ "ok": false, "error": error }).to_string())
        }
    }
}
