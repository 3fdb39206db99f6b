//! Commits, diffs, comments and statuses of a project's repository, at a code host that
//! speaks the APIs of all four providers about one real git repository.

mod branches;
mod caching;
mod clients;
mod commits;
mod culprits;
mod diffs;
mod failures;
mod feedback;
mod feedback_order;
mod feedback_places;
mod owner_pages;
mod owners;
mod published;
mod requests;
mod settings;
mod shared_token;
mod surfaces;
mod suspects;

use callboard_store::Backend;
use callboard_test_support::code_host::TOKEN;
use callboard_test_support::{Answer, Client, CodeHost, Dialect, Service, Settings, TestDatabase};
use reqwest::Method;
use serde_json::{Value, json};

const KEY: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00123456789abcdeffedcba9876543210";

fn with_key(more: &[(&str, &str)]) -> Settings {
    let settings = [("SERVICE_SECRET_KEY", KEY)].into_iter().chain(more.iter().copied());
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A service that may call this machine.
async fn started(backend: Backend) -> Service {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let settings = with_key(&[("SERVICE_EGRESS_ALLOW", "127.0.0.0/8"), ("SERVICE_RATE_LIMITS", "off")]);
    Service::over(database, &settings).await.expect("a service")
}

/// The path of a new project.
async fn project(client: &Client, name: &str) -> String {
    let created = client.post_json("/api/projects", &json!({ "name": name })).await.expect("a project");
    format!("/api/projects/{}", created["project"]["id"])
}

async fn edit(client: &Client, project: &str, body: Value) -> Answer {
    client.send_json(Method::PATCH, project, &body).await.expect("an answer")
}

/// The path of a new project with the repository of a code host.
async fn connected(client: &Client, host: &CodeHost, dialect: Dialect) -> String {
    let project = project(client, &format!("shop on {}", dialect.word())).await;
    let repository = json!({
        "repositoryUrl": host.address(dialect), "repositoryProvider": dialect.word(), "scmToken": TOKEN,
    });
    edit(client, &project, repository).await.success().expect("saved");
    project
}

/// A repository with a number of commits on its branch, newest first.
fn history(host: &CodeHost, commits: usize) -> Vec<String> {
    let commit = |number: usize| {
        let text = format!("{number}\n");
        host.commit(&format!("Change {number} 🚀\n\nBecause."), &[("count.txt", Some(text.as_bytes()))])
    };
    let mut hashes: Vec<String> = (1..=commits).map(|number| commit(number).expect("a commit")).collect();
    hashes.reverse();
    hashes
}

fn hashes(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap_or_else(|| panic!("{page}"));
    items.iter().map(|item| item["sha"].as_str().expect("a hash").to_owned()).collect()
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) -> Value {
    let body = answer.json().expect("an error");
    assert_eq!((answer.status.as_u16(), body["code"].as_str()), (status, Some(code)), "{body}");
    body
}

/// A text as a part of a query.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}
