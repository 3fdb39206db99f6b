//! Diagnoses of single executions, and the commits and the execution that a diagnosis is based on.

use callboard_store::Backend;
use callboard_test_support::{Answer, Client, ModelServer, Play, Service, for_each_backend};
use reqwest::Method;
use serde_json::{Value, json};

use super::{UNTIL_QUEUED, cluster_of, configure, diagnose, diagnosed, good, refused, started};
use crate::builders::{attempt, run, with};
use crate::rows::{settled, texts};

async fn request(client: &Client, execution: i64, body: Value) -> Answer {
    let path = format!("/api/test-run-cases/{execution}/diagnose");
    client.post(&path, &body).await.expect("an answer")
}

/// Requests a diagnosis of an execution and waits for its end.
async fn diagnosed_execution(service: &Service, execution: i64, body: Value) -> Value {
    let working = async {
        tokio::time::sleep(UNTIL_QUEUED).await;
        settled(service).await;
    };
    let (answer, ()) =
        tokio::join!(request(service.client(), execution, with(json!({ "wait": 20 }), body)), working);
    let body = answer.json().expect("JSON");
    assert_eq!(answer.status.as_u16(), 200, "{body}");
    body
}

/// The newest execution of a cluster.
async fn execution_of(client: &Client, cluster: i64) -> i64 {
    let path = format!("/api/failure-clusters/{cluster}/occurrences");
    client.json(&path).await.expect("occurrences")["items"][0]["id"].as_i64().expect("an id")
}

async fn executions_are_diagnosed(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = ModelServer::start().await.expect("a server");
    let (project, cluster) = cluster_of(client, "shop", "pays").await;
    let execution = execution_of(client, cluster).await;
    refused(&request(client, execution, json!({})).await, 503, "not_configured");
    let page = async || client.get(&format!("/test-run-cases/{execution}")).await.expect("a page").text();
    assert!(page().await.contains("No model is configured. The prompt works with any assistant."));
    configure(client, &host, "chat-completions").await;

    host.script([Play::Says(good().to_string())]);
    let found =
        diagnosed_execution(&service, execution, json!({ "additionalContext": "Since Monday." })).await;
    assert_eq!(
        (&found["status"], &found["scope"], &found["executionId"], &found["clusterId"], &found["version"]),
        (&json!("completed"), &json!("execution"), &json!(execution), &json!(null), &json!(1)),
        "{found}"
    );
    assert_eq!(found["patchValidation"]["status"], "applies", "{found}");
    let text = host.take_calls()[0].text();
    for part in [
        "test: tests/shop.spec.ts › pays",
        "waiting for getByTestId('pay')",
        "Since Monday.",
        "Affected tests",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    assert!(!text.contains("hunter2secret"), "{text}");

    // It is found at the execution, also below its run, and not at the cluster.
    let path = format!("/api/test-run-cases/{execution}");
    let below = format!("/api/test-runs/{}/cases/{execution}/diagnosis", execution >> 20);
    for path in [format!("{path}/diagnosis"), below] {
        assert_eq!(client.json(&path).await.expect("a diagnosis")["diagnosis"]["id"], found["id"], "{path}");
    }
    let versions = client.json(&format!("{path}/diagnoses")).await.expect("versions");
    assert_eq!(
        (versions["items"].as_array().map(Vec::len), &versions["nextCursor"]),
        (Some(1), &json!(null))
    );
    let of_cluster =
        client.json(&format!("/api/failure-clusters/{cluster}/diagnosis")).await.expect("an answer");
    assert_eq!(of_cluster, json!({ "diagnosis": null }));
    let shown = page().await;
    for part in ["The pay button lost its test id.", "Was it right?", "Diagnose again", "Hand to an agent"] {
        assert!(shown.contains(part), "{part} is missing");
    }

    // An answer is kept until somebody asks again, and rated as that of a cluster.
    let again = diagnosed_execution(&service, execution, json!({})).await;
    assert_eq!((&again["id"], host.take_calls().len()), (&found["id"], 0));
    let rate = format!("/api/failure-diagnoses/{}/feedback", found["id"]);
    let vote = json!({ "feedback": "up", "note": "It was." });
    let rated = client
        .send_json(Method::PATCH, &rate, &vote)
        .await
        .and_then(|answer| answer.success())
        .expect("rated");
    assert_eq!(rated["diagnosis"]["votes"], json!({ "up": 1, "down": 0, "mine": "up", "note": "It was." }));

    // The evidence without a model.
    let context = client.json(&format!("{path}/diagnosis-context?maxChars=8000")).await.expect("a context");
    assert_eq!(context["sections"][0]["id"], "execution", "{context}");
    assert!(context["tokenEstimate"].as_i64().is_some_and(|tokens| tokens <= 8000 * 2 / 7 + 1), "{context}");
    let prompt =
        client.get(&format!("{path}/diagnosis-context?format=prompt")).await.expect("a prompt").text();
    assert!(prompt.contains("suggestedFix") && prompt.contains("getByTestId('pay')"));

    // What did not fail has nothing to diagnose.
    let passed = run("shop", "passed", vec![attempt("opens", "passed", 0)]);
    let passed = client.post_json("/api/test-runs/submit", &passed).await.expect("stored");
    let passed = passed["runId"].as_i64().expect("an id") << 20 | 1;
    refused(&request(client, passed, json!({})).await, 409, "not_failed");

    // It goes with its run.
    let run = format!("/api/test-runs/{}", execution >> 20);
    client
        .send_json(Method::DELETE, &run, &json!({}))
        .await
        .and_then(|answer| answer.success())
        .expect("deleted");
    settled(&service).await;
    refused(&client.get(&format!("{path}/diagnosis")).await.expect("an answer"), 404, "execution_not_found");
    let left = format!("SELECT id FROM id_directory WHERE kind = 6 AND project_id = {project}");
    let left = texts(&service, &left.replace("SELECT id", "SELECT CAST(id AS TEXT)")).await;
    let rows = texts(&service, "SELECT CAST(id AS TEXT) FROM diagnoses WHERE execution_id > 0").await;
    let votes = texts(&service, "SELECT CAST(vote AS TEXT) FROM diagnosis_votes").await;
    assert_eq!((left.len(), rows.len(), votes.len()), (0, 0, 0));
}

#[tokio::test]
async fn one_execution_is_diagnosed_apart_from_its_cluster() {
    for_each_backend(executions_are_diagnosed).await;
}

async fn grounds_are_honoured(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = ModelServer::start().await.expect("a server");
    configure(client, &host, "messages").await;
    let commit = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567";
    let (_, cluster) = cluster_of(client, "shop", "pays").await;
    let first = execution_of(client, cluster).await;
    let noted = with(
        run("shop", "passed", vec![attempt("opens", "passed", 0)]),
        json!({ "commit": commit, "commitMessage": "Rename the button", "branch": "main" }),
    );
    client.post_json("/api/test-runs/submit", &noted).await.expect("stored");
    let (_, same) = cluster_of(client, "shop", "pays").await;
    assert_eq!(same, cluster, "another failure of the same cause");
    let (_, foreign) = cluster_of(client, "another", "pays").await;
    let foreign = execution_of(client, foreign).await;

    host.script([Play::Says(good().to_string()), Play::Says(good().to_string())]);
    let newest = diagnosed(&service, cluster, json!({})).await;
    assert_eq!((&newest["executionId"], &newest["baseCommit"]), (&json!(null), &json!(null)), "{newest}");
    let chosen = json!({ "executionId": first, "baseCommit": commit.to_uppercase(), "selectedCommitShas": [&commit[..8]] });
    let found = diagnosed(&service, cluster, chosen).await;
    assert_eq!(
        (&found["version"], &found["executionId"], &found["baseCommit"], &found["selectedCommitShas"]),
        (&json!(2), &json!(first), &json!(commit), &json!([&commit[..8]])),
        "{found}"
    );
    let calls = host.take_calls();
    assert_eq!(calls.len(), 2, "other grounds are another question");
    assert!(!calls[0].text().contains("Rename the button"));
    assert!(calls[1].text().contains("Rename the button"), "{}", calls[1].text());

    for (body, status, code) in [
        (json!({ "executionId": foreign }), 404, "execution_not_found"),
        (json!({ "executionId": 0 }), 400, "invalid_field"),
        (json!({ "baseCommit": "main" }), 400, "invalid_field"),
        (json!({ "selectedCommitShas": ["0a1b2c3d; rm"] }), 400, "invalid_field"),
    ] {
        refused(&diagnose(client, cluster, body).await, status, code);
    }
    assert!(host.take_calls().is_empty());
}

#[tokio::test]
async fn a_diagnosis_rests_on_what_the_request_chose() {
    for_each_backend(grounds_are_honoured).await;
}
