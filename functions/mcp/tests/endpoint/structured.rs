//! Structured content: off unless asked for, equal to the text, and of the
//! shape its schema says.

use crate::support::{Service, run, test};
use axum::body::Body;
use axum::extract::Request;
use serde_json::{Map, Value, json};

async fn ask(service: &Service, query: &str, method: &str, params: Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = Request::post(format!("/mcp{query}")).body(Body::from(message.to_string())).unwrap();
    service.send(request).await.json()["result"].clone()
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "string" => value.is_string(),
        other => panic!("{other} is no kind"),
    }
}

/// Every field of a result is one the document of the tools knows, of the kind it says. An object
/// whose fields are not said is open.
fn assert_described(shape: &Value, value: &Value, path: &str) {
    let kind = shape["type"].as_str().unwrap_or_else(|| panic!("{path} is not described: {value}"));
    assert!(is_of(kind, value), "{path} is no {kind}: {value}");
    for (at, element) in value.as_array().into_iter().flatten().enumerate() {
        assert_described(&shape["items"], element, &format!("{path}[{at}]"));
    }
    let Some(known) = shape["properties"].as_object() else { return };
    for (name, field) in value.as_object().into_iter().flatten() {
        let is_everywhere = ["nextCursor", "truncated"].contains(&name.as_str());
        let is_known_null = name == "diagnosis" && field.is_null();
        if !is_everywhere && !is_known_null {
            let shape = known.get(name).unwrap_or(&Value::Null);
            assert_described(shape, field, &format!("{path}.{name}"));
        }
    }
}

#[tokio::test]
async fn results_have_the_shape_their_schema_says() {
    let service = Service::start().await;
    let mut pays = test("pays", "failed");
    pays["steps"] = json!([{"title": "goto /pay", "duration": 900, "category": "navigation"}]);
    pays["consoleLogs"] = json!([{"type": "error", "text": "boom"}]);
    pays["networkRequests"] =
        json!([{"method": "GET", "url": "https://shop.example/api/a/7", "status": 503, "duration": 8}]);
    let mut green = run("shop", 5, &[test("pays", "passed"), test("ships", "passed")]);
    green["status"] = json!("passed");
    service.submit(green).await;
    let red = service.submit(run("shop", 10, &[pays, test("ships", "passed")])).await;
    let failed = service.call("get_run", json!({"runId": red.run.get()})).await.unwrap();
    let failed = &failed["cases"][0];
    let ids = json!({
        "projectId": red.project.get(), "runId": red.run.get(), "testCaseId": failed["testCaseId"],
        "executionId": failed["executionId"], "clusterId": failed["clusterId"], "entityId": red.run.get(),
        "entityType": "test_run", "query": "pays", "status": "ignored", "feedback": "up", "name": "pay",
        "kind": "helper", "module": "./pages/checkout", "steps": [{"action": "goto", "value": "/"}],
    });

    let plain = ask(&service, "", "tools/list", json!({})).await;
    assert!(plain["tools"].as_array().unwrap().iter().all(|tool| tool.get("outputSchema").is_none()));
    let listed = ask(&service, "?structured=1", "tools/list", json!({})).await;
    let listed = listed["tools"].as_array().unwrap();
    assert_eq!(listed.len(), plain["tools"].as_array().unwrap().len());
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/mcp-tools.json");
    let document: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(document).unwrap()).unwrap();
    let mut unanswered = Vec::new();
    for tool in listed {
        let name = tool["name"].as_str().unwrap();
        let schema = &tool["outputSchema"];
        assert_eq!(schema["type"], "object", "{name}");
        let required = tool["inputSchema"]["required"].as_array().into_iter().flatten();
        let arguments: Map<String, Value> = required
            .filter_map(Value::as_str)
            .map(|name| (name.to_owned(), ids.get(name).cloned().unwrap_or_else(|| json!("abcdef1"))))
            .collect();
        let params = json!({"name": name, "arguments": arguments});
        if tool["annotations"]["readOnlyHint"] == json!(true) {
            assert!(ask(&service, "", "tools/call", params.clone()).await.get("structuredContent").is_none());
        }
        let result = ask(&service, "?structured=1", "tools/call", params).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        if result["isError"] == json!(true) {
            assert!(result.get("structuredContent").is_none(), "{name}: {text}");
            unanswered.push(name);
            continue;
        }
        let content = &result["structuredContent"];
        assert_eq!(*content, serde_json::from_str::<Value>(text).unwrap(), "{name}");
        let described = document.iter().find(|tool| tool["name"] == name).unwrap();
        assert_described(&described["outputSchema"], content, name);
        let shown: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        let known: Vec<&String> =
            described["outputSchema"]["properties"].as_object().unwrap().keys().collect();
        assert_eq!(shown, known, "{name}");
        for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            assert!(content.get(required.as_str().unwrap()).is_some(), "{name}: {content}");
        }
    }
    // Nothing is configured for them, and there is no diagnosis to rate.
    let missing = ["get_repo_commits", "get_repo_diff", "submit_diagnosis_feedback", "run_cluster_diagnosis"];
    assert_eq!(unanswered, missing);

    let everywhere = Service::with(&[("SERVICE_MCP_STRUCTURED", "true")]).await;
    let result = ask(&everywhere, "", "tools/call", json!({"name": "list_projects"})).await;
    assert_eq!(result["structuredContent"], json!({"items": [], "nextCursor": null}));
}
