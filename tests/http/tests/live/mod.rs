//! Runs that are fed while they go on.

mod configured;
mod counting;
mod ends;
mod files;
mod kept;
mod life;
mod published;
mod reruns;
mod retried;
mod shards;
mod streams;
mod survival;
mod together;
mod tokens;

use callboard_domain::time::Timestamp;
use callboard_ingest::WriteCoalescer;
use callboard_query::{Context, Links};
use callboard_store::feed::RunEvent;
use callboard_test_support::{Answer, Client, Service};
use serde_json::{Value, json};

use crate::builders::with;
pub(crate) use reruns::keep_reruns_apart;

/// A client of one slot of a run, as a reporter is one.
#[derive(Debug, Clone)]
pub(crate) struct Feeder {
    pub(crate) client: Client,
    pub(crate) run: i64,
    pub(crate) token: String,
}

/// Fields of a run that is fed.
pub(crate) fn fields(more: Value) -> Value {
    with(json!({ "projectName": "shop", "startTime": "2026-01-01T10:00:00.000Z" }), more)
}

/// Starts a run, or joins one.
pub(crate) async fn start(client: &Client, more: Value) -> Feeder {
    let answer = client.post_json("/api/test-runs/start", &fields(more)).await.expect("started");
    Feeder {
        client: client.clone(),
        run: answer["runId"].as_i64().expect("a run"),
        token: answer["streamToken"].as_str().expect("a token").to_owned(),
    }
}

impl Feeder {
    /// Sends a body with the token to a call of the run.
    pub(crate) async fn call(&self, call: &str, body: Value) -> Answer {
        let body = with(body, json!({ "streamToken": self.token }));
        self.client.post(&format!("/api/test-runs/{}/{call}", self.run), &body).await.expect("an answer")
    }

    /// Sends events that are taken.
    pub(crate) async fn events(&self, events: Vec<Value>) -> Value {
        self.call("events", json!({ "testCases": events })).await.success().expect("taken")
    }

    /// Sends results that are taken.
    pub(crate) async fn results(&self, cases: Vec<Value>) -> Value {
        self.events(cases.into_iter().map(complete).collect()).await
    }

    /// Says that it is done; answers the status of the run.
    pub(crate) async fn finish(&self, status: &str) -> String {
        self.finish_with(status, json!({})).await
    }

    /// Says that it is done, and more.
    pub(crate) async fn finish_with(&self, status: &str, more: Value) -> String {
        let body = with(json!({ "status": status, "duration": 5000 }), more);
        let answer = self.call("finish", body).await.success().expect("finished");
        answer["status"].as_str().expect("a status").to_owned()
    }

    /// The run as the API shows it.
    pub(crate) async fn shown(&self) -> Value {
        self.client.json(&format!("/api/test-runs/{}", self.run)).await.expect("the run")
    }
}

/// A result as an event.
pub(crate) fn complete(case: Value) -> Value {
    with(case, json!({ "type": "complete" }))
}

/// Some keys of a value, for one comparison.
pub(crate) fn picked<const N: usize>(value: &Value, keys: [&str; N]) -> [Value; N] {
    keys.map(|key| value[key].clone())
}

/// What questions are asked with behind the API.
pub(crate) fn context(service: &Service) -> Context {
    Context {
        store: service.state().store().clone(),
        links: Links::new(service.base_url()),
        patience: service.state().config().patience,
        retention: service.state().config().retention.clone(),
        retention_grace_ms: service.state().config().retention_grace_ms,
        deletion_grace_ms: service.state().config().deletion_grace_ms,
        requires_sign_in: service.state().auth_enabled(),
        write_coalescer: WriteCoalescer::default(),
    }
}

/// Some time from now.
pub(crate) fn later(service: &Service, ms: i64) -> Timestamp {
    Timestamp(service.state().now().millis() + ms)
}

/// Runs the sweep as if it were some time later.
pub(crate) async fn sweep(service: &Service, ms: i64) {
    let swept = callboard_ingest::sweep_stale_runs(&context(service), later(service, ms)).await;
    swept.expect("swept");
}

/// Types and statuses of the feed of all runs, oldest first.
pub(crate) async fn global_events(service: &Service) -> Vec<(String, i64, String)> {
    let mut session = service.state().store().db().read().await.expect("a connection");
    let events = callboard_store::feed::global(&mut session, 0, 1000).await.expect("events");
    let numbers: Vec<i64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..).take(numbers.len()).collect::<Vec<_>>(), "numbers have no gaps");
    events
        .into_iter()
        .map(|event| {
            let status = event.status.map_or("", callboard_domain::status::RunStatus::as_str);
            (event.kind, event.run.get(), status.to_owned())
        })
        .collect()
}

/// Types of the feed of a run, oldest first.
pub(crate) async fn run_events(service: &Service, run: i64) -> Vec<String> {
    run_feed(service, run).await.into_iter().map(|event| event.kind).collect()
}

/// The feed of a run, oldest first.
pub(crate) async fn run_feed(service: &Service, run: i64) -> Vec<RunEvent> {
    let mut session = service.state().store().db().read().await.expect("a connection");
    let run = callboard_domain::ids::RunId(run);
    let listed = callboard_store::ids::Listed::Run;
    let project = callboard_store::ids::project_of(&mut session, listed, run.get()).await.expect("a lookup");
    let project = project.expect("a project");
    let events =
        callboard_store::feed::of_run(&mut session, project, run, 0, 10_000).await.expect("events").events;
    let numbers: Vec<i64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..).take(numbers.len()).collect::<Vec<_>>(), "numbers have no gaps");
    events
}

/// How a call was answered: status and error code.
fn code(answer: &Answer) -> (u16, String) {
    let told: Value = answer.json().expect("json");
    (answer.status.as_u16(), told["code"].as_str().unwrap_or_default().to_owned())
}
