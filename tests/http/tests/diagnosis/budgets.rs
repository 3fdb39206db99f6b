//! Budgets, and processes that die.

use std::time::Duration;

use callboard_domain::ids::DiagnosisId;
use callboard_query::diagnoses::{Diagnose, JobEnd, run};
use callboard_store::Backend;
use callboard_test_support::{ModelServer, Play, for_each_backend};
use serde_json::json;

use super::{cluster_of, configure, diagnose, diagnosed, edit, good, started};

async fn budgets_hold(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = ModelServer::start().await.expect("a server");
    configure(client, &host, "chat-completions").await;
    edit(client, json!({ "limits": { "callsPerDay": 3, "projectCallsPerDay": 1 } }))
        .await
        .success()
        .expect("saved");
    host.script((0..9).map(|_| Play::Says(good().to_string())));
    let (_, first) = cluster_of(client, "one", "pays").await;
    assert_eq!(diagnosed(&service, first, json!({})).await["status"], "completed");
    let over = diagnosed(&service, first, json!({ "force": true })).await;
    assert_eq!(over["errorCode"], "budget_exceeded", "{over}");
    assert!(
        over["error"].as_str().is_some_and(|text| text.starts_with("The project's budget of 1 requests")),
        "{over}"
    );
    // Many at once spend no more than there is.
    let mut clusters = Vec::new();
    for name in ["two", "three", "four", "five", "six"] {
        clusters.push(cluster_of(client, name, "pays").await.1);
    }
    let _ = host.take_calls();
    let ended =
        futures::future::join_all(clusters.iter().map(|cluster| diagnosed(&service, *cluster, json!({}))))
            .await;
    let completed = ended.iter().filter(|found| found["status"] == "completed").count();
    let exceeded = ended.iter().filter(|found| found["errorCode"] == "budget_exceeded").count();
    assert_eq!((completed, exceeded, host.take_calls().len()), (2, 3, 2), "{ended:?}");

    edit(client, json!({ "limits": { "callsPerDay": null, "tokensPerDay": 5_000 } }))
        .await
        .success()
        .expect("saved");
    let over = diagnosed(&service, clusters[4], json!({ "force": true })).await;
    let is_over = over["errorCode"] == "budget_exceeded";
    assert!(is_over && over["error"].as_str().is_some_and(|text| text.contains("tokens per day")), "{over}");
    let usage = client.json("/api/settings/ai/usage?days=1").await.expect("usage");
    assert_eq!(
        (&usage["totals"]["calls"], &usage["totals"]["inputTokens"], &usage["totals"]["outputTokens"]),
        (&json!(3), &json!(3600), &json!(1020)),
        "{usage}"
    );
}

#[tokio::test]
async fn nobody_spends_more_than_the_budget_of_a_day() {
    for_each_backend(budgets_hold).await;
}

async fn another_process_goes_on(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = ModelServer::start().await.expect("a server");
    configure(client, &host, "messages").await;
    let (project, cluster) = cluster_of(client, "shop", "pays").await;
    host.script([Play::SaysAfter(Duration::from_secs(600), String::new())]);
    let queued = diagnose(client, cluster, json!({})).await.json().expect("JSON");
    let job = Diagnose {
        project: callboard_domain::ids::ProjectId(project),
        diagnosis: DiagnosisId(queued["id"].as_i64().expect("an id")),
    };
    // The first worker is stuck with the model; a second one takes over, as after a lost lease.
    while host.take_calls().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let state = service.state();
    let (ctx, access) = (state.background(), state.model_access());
    host.script([Play::SaysAfter(Duration::from_secs(600), String::new())]);
    let stopped = run(&ctx, &access, &job, false, || true, || state.now()).await.expect("no fault");
    assert_eq!(stopped, JobEnd::Interrupted, "a process that stops leaves it to another one");
    host.script([Play::Says(good().to_string())]);
    let ended = run(&ctx, &access, &job, false, || false, || state.now()).await.expect("no fault");
    assert_eq!(ended, JobEnd::Done);
    let path = format!("/api/failure-clusters/{cluster}/diagnosis");
    let found = client.json(&path).await.expect("an answer");
    assert_eq!(
        (&found["diagnosis"]["status"], &found["diagnosis"]["version"]),
        (&json!("completed"), &json!(1)),
        "{found}"
    );
    // Once more changes nothing.
    assert_eq!(
        run(&ctx, &access, &job, false, || false, || state.now()).await.expect("no fault"),
        JobEnd::Done
    );
    assert_eq!(client.json(&path).await.expect("an answer"), found);
}

#[tokio::test]
async fn a_diagnosis_survives_the_process_that_made_it() {
    for_each_backend(another_process_goes_on).await;
}
