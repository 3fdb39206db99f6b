//! Files that are planned by hash, sent one by one and committed.

mod deletion;
mod faults;
mod orders;
mod through_service;
mod to_bucket;

use callboard_test_support::{Answer, Client};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::builders::with;

/// SHA-256 of bytes in hex.
fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// A file as a plan names it.
fn planned(kind: &str, bytes: &[u8]) -> Value {
    json!({ "sha256": sha256(bytes), "size": bytes.len(), "kind": kind })
}

/// Who uploads, as the fields of a body say it, and to which run.
#[derive(Debug, Clone)]
struct Uploader {
    client: Client,
    fields: Value,
}

impl Uploader {
    /// With the account of the client.
    fn account(client: &Client, project: &str, run: Option<i64>) -> Self {
        let fields = match run {
            Some(run) => json!({ "projectName": project, "runId": run }),
            None => json!({ "projectName": project }),
        };
        Self { client: client.clone(), fields }
    }

    /// With a token of a run.
    fn token(client: &Client, run: i64, token: &str) -> Self {
        Self { client: client.clone(), fields: json!({ "runId": run, "streamToken": token }) }
    }

    async fn call(&self, call: &str, more: Value) -> Answer {
        let body = with(self.fields.clone(), more);
        self.client.post(&format!("/api/uploads/{call}"), &body).await.expect("an answer")
    }

    /// Plans files; what the answer says of each.
    async fn plan(&self, files: &[Value]) -> Vec<Value> {
        let answer = self.call("plan", json!({ "files": files })).await.success().expect("planned");
        answer["files"].as_array().expect("files").clone()
    }

    /// Plans one file that has to be sent; its ticket and address.
    async fn ticket(&self, kind: &str, bytes: &[u8]) -> Ticket {
        let answer = self.plan(&[planned(kind, bytes)]).await;
        assert_eq!(answer[0]["status"], "missing", "{answer:?}");
        let text = |name: &str| answer[0]["upload"][name].as_str().expect("text").to_owned();
        Ticket {
            ticket: text("ticket"),
            url: text("url"),
            kind: kind.to_owned(),
            sha256: sha256(bytes),
            client: self.client.clone(),
        }
    }

    /// Commits one item; what the answer says of it.
    async fn commit(&self, item: Value) -> Value {
        let answer = self.call("commit", json!({ "items": [item] })).await.success().expect("committed");
        answer["items"][0].clone()
    }
}

/// A ticket of a plan.
#[derive(Debug, Clone)]
struct Ticket {
    ticket: String,
    url: String,
    kind: String,
    sha256: String,
    client: Client,
}

impl Ticket {
    /// Sends bytes through the service.
    async fn put(&self, bytes: impl Into<reqwest::Body>) -> Answer {
        let path = format!("/api/uploads/{}", self.ticket);
        Answer::send(self.client.request(Method::PUT, &path).body(bytes)).await.expect("an answer")
    }

    /// Sends bytes to the bucket.
    async fn put_to_bucket(&self, bytes: &[u8]) -> Answer {
        let (origin, path) = self.url.split_at(self.url.match_indices('/').nth(2).expect("a path").0);
        let bucket = Client::new(origin.to_owned()).expect("a client");
        Answer::send(bucket.request(Method::PUT, path).body(bytes.to_vec())).await.expect("an answer")
    }

    /// The item that commits it without a link.
    fn item(&self) -> Value {
        json!({ "sha256": self.sha256, "kind": self.kind, "ticket": self.ticket })
    }

    /// The item that links it.
    fn linked(&self, link: Value) -> Value {
        with(self.item(), json!({ "link": link }))
    }
}

/// A link to an attempt of a test of [`crate::builders::attempt`].
fn link(kind: &str, title: &str, retry: u32) -> Value {
    json!({
        "type": kind,
        "testCase": { "title": title, "location": "tests/shop.spec.ts:7:5", "retries": retry, "suitePath": ["Shop"] },
        "name": "screenshot", "contentType": "text/plain", "originalName": "note.txt",
    })
}

/// The status and code of a refusal.
fn refusal(answer: &Answer) -> (u16, String) {
    let body = answer.json().unwrap_or_default();
    (answer.status.as_u16(), body["code"].as_str().unwrap_or_default().to_owned())
}

/// How many traces and other files the executions of a run have.
async fn counts(client: &Client, run: i64) -> (i64, i64) {
    let page = client.json(&format!("/api/test-runs/{run}/executions")).await.expect("a page");
    let mut counts = (0, 0);
    for execution in page["items"].as_array().expect("executions") {
        let detail = client.json(&format!("/api/test-run-cases/{}", execution["id"])).await.expect("a page");
        counts.0 += detail["counts"]["traces"].as_i64().expect("a count");
        counts.1 += detail["counts"]["attachments"].as_i64().expect("a count");
    }
    counts
}

/// The bytes of a file.
async fn read(client: &Client, committed: &Value) -> Vec<u8> {
    let answer = client.get(&format!("/api/files/{}", committed["fileId"])).await.expect("an answer");
    assert_eq!(answer.status.as_u16(), 200, "{committed}");
    answer.body.to_vec()
}
