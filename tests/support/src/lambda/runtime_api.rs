//! The runtime API of the platform (version 2018-06-01): a function asks for
//! its next event and posts its answer, an error, or that it cannot start.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// What became of an event.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The function answered.
    Answered(Bytes),
    /// The function reported an error.
    Failed(String),
}

/// A running runtime API for one function instance.
#[derive(Debug)]
pub(super) struct RuntimeApi {
    address: String,
    events: mpsc::UnboundedSender<Event>,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct Event {
    payload: Vec<u8>,
    outcome: oneshot::Sender<Outcome>,
}

#[derive(Debug)]
struct Shared {
    events: tokio::sync::Mutex<mpsc::UnboundedReceiver<Event>>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    has_asked: bool,
    initialisation_error: Option<String>,
    delivered: u64,
    open: HashMap<String, oneshot::Sender<Outcome>>,
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RuntimeApi {
    /// Starts it on a free port.
    pub(super) async fn start() -> Result<Self> {
        let (events, waiting) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { events: tokio::sync::Mutex::new(waiting), seen: Mutex::default() });
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(initialisation_error))
            // Too large an answer has to arrive to be told from a broken one.
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let serving = tokio::spawn(async move {
            // Ends with the task.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, events, shared, serving })
    }

    /// Host and port, as `AWS_LAMBDA_RUNTIME_API` wants them.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Queues an event.
    pub(super) fn send(&self, payload: Vec<u8>) -> oneshot::Receiver<Outcome> {
        let (outcome, receiver) = oneshot::channel();
        // The receiver lives as long as `shared`.
        let _ = self.events.send(Event { payload, outcome });
        receiver
    }

    /// Whether the function has asked for an event, which ends its
    /// initialisation.
    pub(super) fn has_asked(&self) -> bool {
        self.shared.seen().has_asked
    }

    /// What the function said when it could not start.
    pub(super) fn initialisation_error(&self) -> Option<String> {
        self.shared.seen().initialisation_error.clone()
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn next(State(shared): State<Arc<Shared>>) -> Response {
    shared.seen().has_asked = true;
    let Some(event) = shared.events.lock().await.recv().await else {
        return StatusCode::GONE.into_response();
    };
    let deadline = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + Duration::from_secs(30);
    let mut seen = shared.seen();
    seen.delivered += 1;
    let id = format!("00000000-0000-4000-8000-{:012}", seen.delivered);
    seen.open.insert(id.clone(), event.outcome);
    (
        [
            ("content-type", "application/json".to_owned()),
            ("lambda-runtime-aws-request-id", id),
            ("lambda-runtime-deadline-ms", deadline.as_millis().to_string()),
            (
                "lambda-runtime-invoked-function-arn",
                "arn:aws:lambda:eu-central-1:123456789012:function:callboard".to_owned(),
            ),
            ("lambda-runtime-trace-id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0".to_owned()),
        ],
        Body::from(event.payload),
    )
        .into_response()
}

async fn response(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    // Gateways of this kind pass on whole answers only.
    if headers.get("lambda-runtime-function-response-mode").is_some_and(|mode| mode == "streaming") {
        return settle(
            &shared,
            &id,
            Outcome::Failed("a streamed answer, which the gateway cannot pass on".to_owned()),
        );
    }
    settle(&shared, &id, Outcome::Answered(body))
}

async fn error(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: String) -> StatusCode {
    settle(&shared, &id, Outcome::Failed(body))
}

fn settle(shared: &Shared, id: &str, outcome: Outcome) -> StatusCode {
    match shared.seen().open.remove(id) {
        Some(waiting) => {
            // Whoever asked may have lost patience.
            let _ = waiting.send(outcome);
            StatusCode::ACCEPTED
        }
        None => StatusCode::NOT_FOUND,
    }
}

async fn initialisation_error(State(shared): State<Arc<Shared>>, body: String) -> StatusCode {
    shared.seen().initialisation_error = Some(body);
    StatusCode::ACCEPTED
}
