//! The tools that change something: what they change, what a repeated call
//! does, and what the audit log says afterwards.

use callboard_domain::account::{KeyPermission, Role};
use callboard_test_support::accounts::for_each_secured_service;
use callboard_test_support::{Client, Service};
use serde_json::{Value, json};

use super::agent::Agent;
use crate::builders::{attempt, run};

struct Scene {
    admin: Client,
    agent: Agent,
    reader: Agent,
    cluster: Value,
}

/// A red run with its cluster, an administrator who reads the audit log, an
/// agent that may write, and one whose key only reads.
async fn scene(service: &Service) -> Scene {
    let admin = service.account("admin", Role::Administrator).await.expect("a scene");
    let reporter = service.account("ada", Role::Reporter).await.expect("a scene");
    service.assign(reporter, None).await.expect("a scene");
    let agent = Agent::at(service.program_of(reporter, KeyPermission::Full).await.expect("a scene"), "/mcp");
    let reader = Agent::at(service.program_of(reporter, KeyPermission::Read).await.expect("a scene"), "/mcp");
    let red = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
    let stored = agent.0.post_json("/api/test-runs/submit", &red).await.expect("a scene");
    let run = agent.call("get_run", json!({"runId": stored["runId"]})).await.expect("a scene");
    let cluster = run["cases"][0]["clusterId"].clone();
    assert!(cluster.is_i64(), "{run}");
    Scene {
        admin: service.program_of(admin, KeyPermission::Full).await.expect("a scene"),
        agent,
        reader,
        cluster,
    }
}

impl Scene {
    async fn audited(&self) -> Vec<Value> {
        let log = self.admin.json("/api/audit?action=mcp").await.expect("an audit log");
        log["items"].as_array().expect("items").clone()
    }
}

#[tokio::test]
async fn a_status_is_set_once_and_noted_with_what_it_was() {
    for_each_secured_service(async |service| {
        let scene = scene(service).await;
        let set = |arguments: Value| {
            let mut all = arguments;
            all["clusterId"] = scene.cluster.clone();
            let agent = scene.agent.clone();
            async move { agent.call("set_cluster_status", all).await.unwrap() }
        };
        let first = set(json!({"status": "ignored", "note": "known"})).await;
        assert_eq!(
            first,
            json!({
                "ok": true, "clusterId": scene.cluster, "id": scene.cluster, "status": "ignored", "note": "known",
                "previousStatus": "open",
            })
        );
        let again = set(json!({"status": "IGNORED"})).await;
        assert_eq!((&again["ok"], &again["note"]), (&json!(true), &json!("known")), "a note left out is kept");
        assert_eq!(again["previousStatus"], "ignored");
        let cleared = set(json!({"status": "ignored", "note": ""})).await;
        assert_eq!(cleared.get("note"), None, "an empty one is cleared");

        let log = scene.audited().await;
        assert_eq!(log.len(), 2, "a call that changes nothing is not noted: {log:?}");
        let all = scene.admin.json("/api/audit?targetType=cluster").await.expect("an audit log");
        assert_eq!(all["items"].as_array(), Some(&log), "each is noted once");
        let page = scene.admin.get(&format!("/failure-clusters/{}", scene.cluster)).await.expect("a page");
        let page = page.text();
        let history = page.split(">History<").nth(1).unwrap_or_default();
        assert!(history.contains("Ignored") && history.contains("known"), "{page}");
        let entry = &log[1];
        assert_eq!((&entry["action"], &entry["targetId"]), (&json!("mcp.write"), &scene.cluster));
        assert_eq!(entry["actor"]["username"], "ada");
        assert!(entry["actor"]["keyId"].is_i64());
        assert_eq!(
            entry["detail"],
            json!({
                "tool": "set_cluster_status", "action": "cluster.changed",
                "before": {"status": "open", "note": null}, "after": {"status": "ignored", "note": "known"},
            })
        );
    })
    .await;
}

#[tokio::test]
async fn a_base_commit_is_set_and_cleared() {
    for_each_secured_service(async |service| {
        let scene = scene(service).await;
        let set = async |commit: &str| {
            let arguments = json!({"clusterId": scene.cluster, "commit": commit});
            scene.agent.call("set_cluster_base_commit", arguments).await
        };
        assert_eq!(set("ABCDEF1").await.unwrap()["baseCommit"], "abcdef1");
        let shown = scene.agent.call("get_cluster", json!({"clusterId": scene.cluster})).await.unwrap();
        assert_eq!(shown["baseCommit"], "abcdef1");
        for wrong in ["abc", "abcdefg", "--upload-pack=x"] {
            assert!(set(wrong).await.unwrap_err().starts_with("`commit` must be "), "{wrong}");
        }
        assert_eq!(set("").await.unwrap().get("baseCommit"), None);
        assert_eq!(scene.audited().await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn what_only_reads_writes_nothing() {
    for_each_secured_service(async |service| {
        let scene = scene(service).await;
        let arguments = json!({"clusterId": scene.cluster, "status": "resolved"});
        let refused = scene.reader.call("set_cluster_status", arguments.clone()).await;
        assert_eq!(
            refused.unwrap_err(),
            "This API key only reads; its permission was narrowed when it was created. Call with a key whose permission \
             is full."
        );
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "set_cluster_status", "arguments": arguments},
        });
        let path = "/mcp?readonly=1";
        let answer = scene.agent.0.post_json(path, &message).await.unwrap();
        assert_eq!(answer["result"]["isError"], true);
        let shown = scene.agent.call("get_cluster", json!({"clusterId": scene.cluster})).await.unwrap();
        assert_eq!(shown["status"], "open");
        assert!(scene.audited().await.is_empty());
        let noted = scene.admin.json("/api/audit?action=access.refused").await.unwrap();
        let noted: Vec<_> = noted["items"].as_array().unwrap().iter().map(|entry| &entry["detail"]).collect();
        assert_eq!(noted, [&json!({ "route": "set_cluster_status", "code": "key_scope_denied" })]);
        // What could not be written is noted as well, what could not be read is not.
        let lost = json!({"clusterId": 999_999, "status": "resolved"});
        scene.agent.call("set_cluster_status", lost.clone()).await.unwrap_err();
        scene.agent.call("get_cluster", json!({"clusterId": 999_999})).await.unwrap_err();
        let noted = scene.admin.json("/api/audit?action=change.refused").await.unwrap();
        let noted: Vec<_> = noted["items"].as_array().unwrap().iter().map(|entry| &entry["detail"]["code"]).collect();
        assert_eq!(noted, ["cluster_not_found", "read_only"]);
    })
    .await;
}

#[tokio::test]
async fn where_no_model_is_configured_a_diagnosis_says_where_to() {
    for_each_secured_service(async |service| {
        let scene = scene(service).await;
        let of_cluster = json!({"clusterId": scene.cluster});
        let none = scene.agent.call("get_cluster_diagnosis", of_cluster.clone()).await.unwrap();
        assert_eq!((&none["clusterId"], &none["diagnosis"]), (&scene.cluster, &Value::Null));
        assert!(none.as_object().unwrap().contains_key("diagnosis"));
        let text = scene.agent.call("run_cluster_diagnosis", of_cluster).await.unwrap_err();
        assert!(text.contains("is not configured") && text.ends_with("/settings/diagnosis"), "{text}");
        for feedback in [json!("up"), json!(""), Value::Null] {
            let text = scene
                .agent
                .call("submit_diagnosis_feedback", json!({"clusterId": scene.cluster, "feedback": feedback}))
                .await
                .unwrap_err();
            assert!(text.contains("has no diagnosis"), "{text}");
        }
        let text =
            scene.agent.call("submit_diagnosis_feedback", json!({"feedback": "up"})).await.unwrap_err();
        assert!(text.starts_with("`diagnosisId` is required"), "{text}");
    })
    .await;
}
