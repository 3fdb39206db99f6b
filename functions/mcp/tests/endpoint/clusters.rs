//! Failure clusters through the tools: what they show, and what they change.

use serde_json::{Value, json};

use crate::support::{Service, run, test};

/// A failing click on a button.
fn click(title: &str, button: &str) -> Value {
    let mut case = test(title, "failed");
    let log = format!("Call log:\n  - waiting for getByTestId('{button}')");
    case["error"] = json!(format!("TimeoutError: locator.click: Timeout 500ms exceeded.\n{log}"));
    case
}

async fn call(service: &Service, tool: &str, arguments: Value) -> Value {
    service.call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}"))
}

#[tokio::test]
async fn failures_of_one_cause_are_found_from_run_project_and_test() {
    let service = Service::start().await;
    let cases =
        [click("pays", "pay"), click("pays twice", "pay"), click("looks", "menu"), test("ships", "passed")];
    let stored = service.submit(run("shop", 10, &cases)).await;
    let (run, project) = (stored.run.get(), stored.project.get());

    let groups = call(&service, "get_failure_groups", json!({ "id": run })).await;
    assert_eq!((&groups["failedTests"], &groups["nextCursor"]), (&json!(3), &Value::Null));
    let first = &groups["items"][0];
    assert_eq!(
        (&first["count"], &first["isNew"], first.get("workerCorrelated")),
        (&json!(2), &json!(true), None)
    );
    assert_eq!(first["cases"].as_array().unwrap().len(), 2);
    let cluster = first["clusterId"].clone();

    let (mut ids, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..2 {
        let page = json!({ "projectId": project, "status": "OPEN", "pageSize": 1, "cursor": cursor });
        let page = call(&service, "list_clusters", page).await;
        ids.push(page["items"][0]["id"].as_i64().unwrap());
        cursor = page["nextCursor"].clone();
    }
    assert!(ids[0] > ids[1] && cursor.is_null(), "the newest first: {ids:?}");
    assert!(ids.contains(&cluster.as_i64().unwrap()));
    let top = call(&service, "list_open_clusters", json!({})).await;
    assert_eq!((&top["items"][0]["clusterId"], &top["items"][0]["projectName"]), (&cluster, &json!("shop")));

    let shown = call(&service, "get_cluster", json!({ "clusterId": cluster })).await;
    assert_eq!(shown["selector"], "testid=pay");
    assert_eq!((&shown["errorType"], &shown["affectedTests"]), (&json!("timeout"), &json!(2)));
    assert_eq!(shown["project"], json!({ "projectId": project, "name": "shop" }));
    let tests = shown["affectedTestCases"].as_array().unwrap();
    let told = call(&service, "get_test_case", json!({ "testCaseId": tests[0]["testCaseId"] })).await;
    assert_eq!(told["clusters"][0]["clusterId"], cluster);
    let missing = service.call("get_cluster", json!({ "clusterId": 999 })).await.unwrap_err();
    assert!(missing.contains("999 not found"), "{missing}");
}

#[tokio::test]
async fn status_note_and_base_commit_are_set_kept_and_cleared() {
    let service = Service::start().await;
    let stored = service.submit(run("shop", 10, &[click("pays", "pay")])).await;
    let groups = call(&service, "get_failure_groups", json!({ "runId": stored.run.get() })).await;
    let cluster = groups["items"][0]["clusterId"].clone();
    let set = async |more: Value| {
        let mut arguments = json!({ "clusterId": cluster });
        arguments.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        call(&service, "set_cluster_status", arguments).await
    };
    let done = set(json!({ "status": "ignored", "triageNote": "known" })).await;
    let expected = json!({
        "ok": true, "clusterId": cluster, "id": cluster, "status": "ignored", "note": "known", "previousStatus": "open",
    });
    assert_eq!(done, expected);
    assert_eq!(
        set(json!({ "status": "ignored" })).await["note"],
        "known",
        "a note that is not given is kept"
    );
    assert_eq!(set(json!({ "status": "open", "note": "" })).await.get("note"), None);
    let commit = json!({ "clusterId": cluster, "sha": "9FCEB02D" });
    assert_eq!(call(&service, "set_cluster_base_commit", commit).await["baseCommit"], "9fceb02d");
    let shown = call(&service, "get_cluster", json!({ "id": cluster })).await;
    assert_eq!(
        (&shown["status"], &shown["baseCommit"], shown.get("note")),
        (&json!("open"), &json!("9fceb02d"), None)
    );
    let wrong =
        service.call("set_cluster_base_commit", json!({ "clusterId": cluster, "commit": "main" })).await;
    assert!(wrong.is_err());
    let cleared = json!({ "clusterId": cluster, "commit": "" });
    assert_eq!(call(&service, "set_cluster_base_commit", cleared).await.get("baseCommit"), None);
}
