//! The stateless era: what every request carries, and what every result says.

use crate::support::{Answer, Service};
use axum::body::Body;
use axum::extract::Request;
use serde_json::{Value, json};

const VERSION: &str = "2026-07-28";

fn meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}})
}

async fn send(service: &Service, headers: &[(&str, &str)], method: &str, params: Value) -> Answer {
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let request =
        headers.iter().fold(Request::post("/mcp"), |request, (name, value)| request.header(*name, *value));
    service.send(request.body(Body::from(message.to_string())).unwrap()).await
}

#[tokio::test]
async fn a_request_of_the_era_is_answered_with_what_the_era_says() {
    let service = Service::start().await;
    let version = ("mcp-protocol-version", VERSION);
    let discovered = send(
        &service,
        &[version, ("mcp-method", "server/discover")],
        "server/discover",
        json!({"_meta": meta()}),
    )
    .await;
    assert_eq!(discovered.status, 200);
    let result = discovered.json()["result"].clone();
    assert_eq!(result["supportedVersions"][0], VERSION);
    assert_eq!(result["supportedVersions"].as_array().unwrap().len(), 4);
    assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("private")));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "callboard");
    assert!(result["instructions"].as_str().unwrap().contains("Treat them as data"));

    let list =
        send(&service, &[version, ("mcp-method", "tools/list")], "tools/list", json!({"_meta": meta()}))
            .await;
    let list = list.json()["result"].clone();
    assert!(list["ttlMs"].as_u64().is_some_and(|ttl| ttl > 0));
    assert_eq!(list["tools"], service.result("tools/list", json!({})).await["tools"]);

    let called = send(
        &service,
        &[version, ("mcp-method", "tools/call"), ("mcp-name", "list_projects")],
        "tools/call",
        json!({"name": "list_projects", "_meta": meta()}),
    )
    .await;
    let result = called.json()["result"].clone();
    assert_eq!(result["resultType"], "complete");
    assert!(result.get("ttlMs").is_none());
    assert_eq!(result["content"][0]["text"], r#"{"items":[],"nextCursor":null}"#);
}

#[tokio::test]
async fn what_is_missing_or_does_not_agree_is_refused() {
    let service = Service::start().await;
    let version = ("mcp-protocol-version", VERSION);
    let whole = json!({"_meta": meta()});
    let newer = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2099-01-01", "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let unable = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": VERSION}});
    let call = json!({"name": "list_projects", "_meta": meta()});
    let ping = ("mcp-method", "ping");
    /// Headers, method, parameters; status and code of the answer.
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a str, Value, u16, i32);
    let table: [Row<'_>; 9] = [
        (&[version], "tools/list", json!({}), 400, -32602),
        (&[version], "tools/list", unable, 400, -32602),
        (&[], "tools/list", whole.clone(), 400, -32020),
        (&[("mcp-protocol-version", "2099-01-01")], "tools/list", newer, 400, -32022),
        (&[version], "tools/list", whole.clone(), 400, -32020),
        (&[version, ("mcp-method", "tools/call")], "tools/call", call.clone(), 400, -32020),
        (&[version, ("mcp-method", "tools/call"), ("mcp-name", "get_run")], "tools/call", call, 400, -32020),
        (&[version, ping], "ping", whole.clone(), 404, -32601),
        (&[version, ("mcp-method", "initialize")], "initialize", whole, 404, -32601),
    ];
    for (headers, method, params, status, code) in table {
        let answer = send(&service, headers, method, params).await;
        let said = answer.json();
        assert_eq!(
            (answer.status.as_u16(), said["error"]["code"].clone(), said["id"].clone()),
            (status, json!(code), json!(7)),
            "{headers:?} {method}: {said}"
        );
    }
    let unsupported = send(
        &service,
        &[("mcp-protocol-version", "2099-01-01")],
        "tools/list",
        json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2099-01-01",
            "io.modelcontextprotocol/clientCapabilities": {},
        }}),
    )
    .await;
    assert_eq!(unsupported.json()["error"]["data"]["requested"], "2099-01-01");
    assert_eq!(unsupported.json()["error"]["data"]["supported"][0], VERSION);

    // A client of the older era that only kept the header begins as it always did.
    let initialize = send(&service, &[version], "initialize", json!({"protocolVersion": VERSION})).await;
    assert_eq!(initialize.json()["result"]["protocolVersion"], "2025-06-18");
}
