//! Diagnoses that nobody requested.

use callboard_store::Backend;
use callboard_test_support::{Client, ModelServer, Play, Service, for_each_backend};
use serde_json::{Value, json};

use super::{configure, diagnose, edit, good, started};
use crate::builders::{attempt, run, with};
use crate::rows::settled;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Stores a full run of `shop` with one failure per title, begun this many ms ago, and waits for all work it causes.
async fn fails(service: &Service, branch: &str, ago_ms: i64, titles: &[(&str, &str)]) {
    let cases = titles.iter().map(|(title, error)| {
        with(
            attempt(title, "failed", 0),
            json!({ "error": format!("Error: {error}\n    at tests/shop.spec.ts:9:3") }),
        )
    });
    let start = callboard_domain::time::Timestamp(service.state().now().millis() - ago_ms).to_iso();
    let submission = with(
        run("shop", "failed", cases.collect()),
        json!({
            "startTime": start, "branch": branch, "isFullRun": true,
            "metadata": { "scm": { "defaultBranch": "main" } },
        }),
    );
    service.client().post_json("/api/test-runs/submit", &submission).await.expect("stored");
    settled(service).await;
}

/// Statuses of the diagnoses of each cluster of `shop`, by the cluster's first line.
async fn diagnosed_clusters(client: &Client) -> Vec<(String, Vec<Value>)> {
    let projects = client.json("/api/projects").await.expect("projects");
    let path = format!("/api/projects/{}/failure-clusters", projects["items"][0]["id"]);
    let clusters = client.json(&path).await.expect("clusters");
    let mut found = Vec::new();
    for cluster in clusters["items"].as_array().expect("items") {
        let path = format!("/api/failure-clusters/{}/diagnoses", cluster["id"]);
        let versions = client.json(&path).await.expect("versions");
        let versions = versions["items"].as_array().expect("items");
        let statuses: Vec<Value> = versions.iter().map(|version| version["status"].clone()).collect();
        if !statuses.is_empty() {
            found.push((cluster["signature"].as_str().unwrap_or_default().to_owned(), statuses));
        }
    }
    found
}

async fn new_clusters_are_diagnosed(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = ModelServer::start().await.expect("a server");
    configure(client, &host, "chat-completions").await;
    fails(&service, "main", 0, &[("signs in", "the session is gone")]).await;
    assert_eq!(diagnosed_clusters(client).await, [], "it is off by default");

    let changed = edit(client, json!({ "autoDiagnose": true, "limits": { "autoDiagnoseMax": 1 } })).await;
    let saved = changed.json().expect("settings");
    assert_eq!(saved["settings"]["autoDiagnose"], true, "{saved}");
    assert_eq!(client.json("/api/ai/status").await.expect("status")["autoDiagnose"], true);

    host.script((0..5).map(|_| Play::Says(good().to_string())));
    fails(&service, "feature", 0, &[("searches", "no index was found")]).await;
    fails(&service, "main", 2 * DAY_MS, &[("exports", "the archive is empty")]).await;
    assert_eq!(diagnosed_clusters(client).await, [], "other branches and old runs are left alone");

    // Two new clusters and a known one: the new one that fails more often.
    let twice = "the basket lost an item";
    let failures = [
        ("signs in", "the session is gone"),
        ("pays", "the card was refused"),
        ("adds", twice),
        ("removes", twice),
    ];
    fails(&service, "main", 0, &failures).await;
    let found = diagnosed_clusters(client).await;
    assert!(
        matches!(found.as_slice(), [(signature, statuses)] if signature.contains("basket") && *statuses == ["completed"]),
        "{found:?}"
    );
    fails(&service, "main", 0, &failures).await;
    assert_eq!(diagnosed_clusters(client).await, found, "what is known is not diagnosed again");
    assert_eq!(host.take_calls().len(), 1);

    // Switched off, nothing is asked, also not when it was wanted before.
    edit(client, json!({ "enabled": false })).await.success().expect("saved");
    assert_eq!(client.json("/api/ai/status").await.expect("status")["autoDiagnose"], false);
    fails(&service, "main", 0, &[("ships", "no carrier answered")]).await;
    assert_eq!(diagnosed_clusters(client).await, found);
    let refused = diagnose(client, 1, json!({})).await;
    assert_eq!(refused.status.as_u16(), 503, "{:?}", refused.json());
}

#[tokio::test]
async fn new_clusters_of_a_default_branch_are_diagnosed_when_that_is_switched_on() {
    for_each_backend(new_clusters_are_diagnosed).await;
}
