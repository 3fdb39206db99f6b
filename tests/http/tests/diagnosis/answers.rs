//! Good answers: what is sent, what is stored, and who sees it where.

use callboard_store::Backend;
use callboard_test_support::{ModelServer, Play, for_each_backend};
use reqwest::Method;
use serde_json::{Value, json};

use super::{INJECTION, PROTOCOLS, cluster_of, configure, diagnose, diagnosed, good, refused, started};
use crate::mcp::Agent;

async fn cluster_is_diagnosed(backend: Backend) {
    for protocol in PROTOCOLS {
        let service = started(backend).await;
        let client = service.client();
        let host = ModelServer::start().await.expect("a server");
        configure(client, &host, protocol).await;
        cluster_of(client, "another", "a secret of another project").await;
        let (project, cluster) = cluster_of(client, "shop", INJECTION).await;
        let instructions = json!({ "diagnosisInstructions": "The shop is rebuilt at night." });
        client
            .send_json(Method::PATCH, &format!("/api/projects/{project}"), &instructions)
            .await
            .and_then(|answer| answer.success())
            .expect("saved");
        host.script([Play::Says(good().to_string())]);
        let found = diagnosed(&service, cluster, json!({})).await;
        assert_eq!(
            (
                &found["status"],
                &found["category"],
                &found["confidence"],
                &found["confidenceScore"],
                &found["version"]
            ),
            (&json!("completed"), &json!("test-bug"), &json!("high"), &json!(90), &json!(1)),
            "{found}"
        );
        assert_eq!(found["patchValidation"]["status"], "applies", "{found}");
        let events = "SELECT data FROM domain_events WHERE data LIKE '%diagnosis.completed%'";
        assert_eq!(crate::rows::texts(&service, events).await.len(), 1, "subscribers hear of it once");
        assert_eq!((&found["inputTokens"], &found["outputTokens"]), (&json!(1200), &json!(340)));
        assert!(!found.to_string().contains("evil.example"), "links are dropped: {found}");

        let calls = host.take_calls();
        assert_eq!((calls.len(), calls[0].has_schema()), (1, true));
        let text = calls[0].text();
        for part in [
            "waiting for getByTestId('pay')",
            "button \"Pay now\"",
            "click pay",
            INJECTION,
            "rebuilt at night",
        ] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
        for secret in ["hunter2secret", "a secret of another project"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        // What the test wrote stands between fences, what an administrator wrote before them.
        let (orders, evidence) = text.split_once("Untrusted test output below.").expect("evidence");
        assert!(!orders.contains(INJECTION) && orders.contains("rebuilt at night"));
        assert!(!evidence.contains("rebuilt at night"));

        // The same answer, without paying again.
        let again = diagnosed(&service, cluster, json!({})).await;
        assert_eq!(again["id"], found["id"]);
        let noted = json!({ "additionalContext": "Since Monday." });
        host.script([Play::Says(good().to_string())]);
        let second = diagnosed(&service, cluster, noted.clone()).await;
        assert_eq!((&second["version"], &second["status"]), (&json!(2), &json!("completed")), "{second}");
        let calls = host.take_calls();
        assert_eq!(calls.len(), 1, "another question is another answer");
        assert!(calls[0].text().contains("Since Monday."));
        let third = diagnosed(&service, cluster, noted).await;
        assert_eq!((&third["version"], &third["summary"]), (&json!(3), &found["summary"]), "{third}");
        assert_eq!((&third["inputTokens"], host.take_calls().len()), (&json!(0), 0));
        host.script([Play::Says(good().to_string())]);
        diagnosed(&service, cluster, json!({ "force": true })).await;
        assert_eq!(host.take_calls().len(), 1);
        let versions = client
            .json(&format!("/api/failure-clusters/{cluster}/diagnoses?limit=3"))
            .await
            .expect("versions");
        let numbers: Vec<i64> = versions["items"]
            .as_array()
            .expect("items")
            .iter()
            .filter_map(|one| one["version"].as_i64())
            .collect();
        assert_eq!(numbers, [4, 3, 2]);
        let rest = client
            .json(&format!(
                "/api/failure-clusters/{cluster}/diagnoses?limit=3&cursor={}",
                versions["nextCursor"].as_str().expect("more")
            ))
            .await
            .expect("versions");
        assert_eq!(rest["items"][0]["version"], 1);
    }
}

#[tokio::test]
async fn a_cluster_is_diagnosed_from_its_own_evidence_over_both_protocols() {
    for_each_backend(cluster_is_diagnosed).await;
}

async fn surfaces_agree(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = ModelServer::start().await.expect("a server");
    configure(client, &host, "messages").await;
    let (_, cluster) = cluster_of(client, "shop", "pays").await;
    let agent = Agent::at(client.clone(), "/mcp");
    host.script([Play::Says(good().to_string())]);
    let run =
        agent.call("run_cluster_diagnosis", json!({ "clusterId": cluster })).await.expect("a diagnosis");
    assert_eq!((&run["status"], &run["category"]), (&json!("completed"), &json!("test-bug")), "{run}");
    assert!(run["suggestedFix"]["patch"].as_str().is_some_and(|patch| patch.contains("getByRole")), "{run}");
    let whole =
        agent.call("get_cluster_diagnosis", json!({ "clusterId": cluster })).await.expect("a diagnosis");
    assert_eq!(whole["diagnosis"]["diagnosisId"], run["diagnosisId"]);
    assert_eq!(whole["diagnosis"]["evidence"][0]["section"], "sampleError");
    let shown = agent.call("get_cluster", json!({ "clusterId": cluster })).await.expect("a cluster");
    assert_eq!(shown["diagnosis"]["diagnosisId"], run["diagnosisId"]);
    let plan = agent.call("get_fix_plan", json!({ "clusterId": cluster })).await.expect("a plan");
    assert_eq!(plan["diagnosis"]["patchValidation"]["status"], "applies", "{plan}");
    let context =
        agent.call("get_cluster_context", json!({ "clusterId": cluster })).await.expect("a context");
    assert_eq!(context["diagnosis"]["category"], "test-bug");
    let rated = json!({ "clusterId": cluster, "feedback": "down", "note": "It is the app." });
    let rated = agent.call("submit_diagnosis_feedback", rated).await.expect("rated");
    assert_eq!((&rated["feedback"], &rated["note"]), (&json!("down"), &json!("It is the app.")));

    let path = format!("/api/failure-diagnoses/{}/feedback", run["diagnosisId"]);
    let vote = async |body: Value| client.send_json(Method::PATCH, &path, &body).await.expect("an answer");
    let up = vote(json!({ "feedback": "up" })).await.success().expect("rated");
    assert_eq!(up["diagnosis"]["votes"], json!({ "up": 1, "down": 0, "mine": "up", "note": null }));
    let none = vote(json!({ "feedback": null })).await.success().expect("rated");
    assert_eq!(none["diagnosis"]["votes"], json!({ "up": 0, "down": 0, "mine": null, "note": null }));
    refused(&vote(json!({ "feedback": "great" })).await, 400, "invalid_field");
    let detail = client.json(&format!("/api/failure-clusters/{cluster}")).await.expect("a cluster");
    assert_eq!(detail["diagnosis"]["id"], run["diagnosisId"]);
    let plan = client.json(&format!("/api/failure-clusters/{cluster}/fix-plan")).await.expect("a plan");
    assert_eq!(plan["diagnosis"]["category"], "test-bug");

    let page =
        client.get(&format!("/failure-clusters/{cluster}?tab=diagnosis")).await.expect("a page").text();
    for part in [
        "Without a model",
        "Test bug",
        "The pay button lost its test id.",
        "What would be sent",
        "Copy as prompt",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(page.find("Without a model") < page.find("Test bug"), "the verdict without a model comes first");
    let actions: Vec<Value> =
        client.json("/api/audit?action=diagnosis.requested").await.expect("entries")["items"]
            .as_array()
            .cloned()
            .unwrap_or_default();
    assert_eq!(actions.len(), 0, "an agent's request is a write of its tool");
    let writes = client.json("/api/audit?action=mcp.write").await.expect("entries");
    assert_eq!(writes["items"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn rest_tools_and_pages_show_the_same_diagnosis() {
    for_each_backend(surfaces_agree).await;
}

async fn one_at_a_time(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = ModelServer::start().await.expect("a server");
    configure(client, &host, "chat-completions").await;
    let (_, cluster) = cluster_of(client, "shop", "pays").await;
    host.script([Play::SaysAfter(std::time::Duration::from_secs(60), good().to_string())]);
    let all = futures::future::join_all((0..6).map(|_| diagnose(client, cluster, json!({})))).await;
    let ids: Vec<Value> = all
        .iter()
        .map(|answer| {
            assert_eq!(answer.status.as_u16(), 202);
            answer.json().expect("JSON")["id"].clone()
        })
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    while host.take_calls().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let page =
        client.get(&format!("/failure-clusters/{cluster}?tab=diagnosis")).await.expect("a page").text();
    assert!(page.contains("Diagnosis running"), "{page}");

    let cancelled = client
        .post(&format!("/api/failure-diagnoses/{}/cancel", ids[0]), &json!({}))
        .await
        .and_then(|answer| answer.success())
        .expect("cancelled");
    assert_eq!(
        (&cancelled["diagnosis"]["status"], &cancelled["diagnosis"]["errorCode"]),
        (&json!("failed"), &json!("cancelled"))
    );
    let again = client
        .post(&format!("/api/failure-diagnoses/{}/cancel", ids[0]), &json!({}))
        .await
        .expect("an answer");
    refused(&again, 409, "not_pending");
    host.script([Play::Says(good().to_string())]);
    // The model is still busy with the abandoned request, and the next one does not wait for it.
    let next = diagnosed(&service, cluster, json!({})).await;
    assert_eq!((&next["version"], &next["status"]), (&json!(2), &json!("completed")), "{next}");
}

#[tokio::test]
async fn a_cluster_has_one_diagnosis_at_a_time_which_can_be_cancelled() {
    for_each_backend(one_at_a_time).await;
}
