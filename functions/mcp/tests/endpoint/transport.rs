//! The endpoint as HTTP: methods, order of checks, messages, versions,
//! origins.

use crate::support::{Answer, Service};
use axum::body::Body;
use axum::extract::Request;
use serde_json::{Value, json};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

async fn get(service: &Service, headers: &[(&str, &str)]) -> Answer {
    with_headers(service, Request::get("/mcp"), headers, "").await
}

async fn post(service: &Service, headers: &[(&str, &str)], body: &str) -> Answer {
    with_headers(service, Request::post("/mcp"), headers, body).await
}

async fn with_headers(
    service: &Service,
    request: http::request::Builder,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    service.send(request.body(Body::from(body.to_owned())).unwrap()).await
}

#[tokio::test]
async fn readers_get_a_page_and_clients_that_look_for_a_stream_are_told_there_is_none() {
    let service = Service::start().await;
    let readers: [&[(&str, &str)]; 4] = [
        &[],
        &[("accept", "*/*")],
        &[("accept", "text/html,application/xhtml+xml")],
        &[("accept", "text/html, text/event-stream")],
    ];
    for headers in readers {
        let answer = get(&service, headers).await;
        assert_eq!(answer.status, 200, "{headers:?}");
        assert!(answer.header("content-type")[0].starts_with("text/html"), "{headers:?}");
        assert!(answer.text.contains("http://localhost:3000/mcp"));
        assert!(answer.header("vary").contains(&"accept"));
        assert_eq!(answer.header("cache-control"), ["no-store"]);
        assert_eq!(answer.header("x-content-type-options"), ["nosniff"]);
    }
    let streams: [&[(&str, &str)]; 5] = [
        &[("accept", "text/event-stream")],
        &[("accept", "application/json, text/event-stream")],
        &[("accept", "text/html"), ("mcp-session-id", "1")],
        &[("last-event-id", "1")],
        &[("mcp-protocol-version", "2025-06-18")],
    ];
    for headers in streams {
        let answer = get(&service, headers).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (405, ""), "{headers:?}");
        assert_eq!(answer.header("allow"), ["POST, OPTIONS"]);
        assert_eq!(answer.header("vary"), ["accept"]);
        assert!(answer.header("www-authenticate").is_empty() && answer.header("content-type").is_empty());
    }
    let head = service.send(Request::head("/mcp").body(Body::empty()).unwrap()).await;
    assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
}

#[tokio::test]
async fn other_methods_do_not_exist() {
    let service = Service::start().await;
    for method in ["DELETE", "PUT", "PATCH", "TRACE"] {
        let answer =
            service.send(Request::builder().method(method).uri("/mcp").body(Body::empty()).unwrap()).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (405, ""), "{method}");
        assert_eq!(answer.header("allow"), ["GET, HEAD, POST, OPTIONS"], "{method}");
        assert_eq!(answer.header("cache-control"), ["no-store"], "{method}");
    }
    let discovery = service
        .send(Request::get("/.well-known/oauth-protected-resource").body(Body::empty()).unwrap())
        .await;
    assert_eq!(
        (discovery.status.as_u16(), discovery.json()["code"].clone()),
        (404, json!("route_not_found"))
    );
}

#[tokio::test]
async fn bodies_are_json_of_at_most_one_mebibyte() {
    let service = Service::start().await;
    for kind in ["application/json", "Application/JSON; charset=utf-8", "application/json;"] {
        assert_eq!(post(&service, &[("content-type", kind)], PING).await.status, 200, "{kind}");
    }
    assert_eq!(post(&service, &[], PING).await.status, 200);
    for kind in
        ["text/plain", "application/vnd.api+json", "application/x-www-form-urlencoded", "application/jsonp"]
    {
        let answer = post(&service, &[("content-type", kind)], PING).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["code"].clone()),
            (415, json!("unsupported_media_type"))
        );
    }
    let large = format!("{PING}{}", " ".repeat(1024 * 1024));
    let answer = post(&service, &[("content-length", &large.len().to_string())], &large).await;
    assert_eq!((answer.status.as_u16(), answer.json()["code"].clone()), (413, json!("body_too_large")));
    let pieces = vec![bytes::Bytes::from(vec![b' '; 64 * 1024]); 17].into_iter().map(Ok::<_, std::io::Error>);
    let chunked = Body::from_stream(futures::stream::iter(pieces));
    assert_eq!(service.post(chunked).await.status, 413);
    for broken in [&b""[..], b"\xff\xfe", b"{\"jsonrpc\":\"2.0\"", b"\"\xff\""] {
        let answer = service.post(broken.to_vec()).await;
        assert_eq!(answer.status, 400, "{broken:?}");
        let body = answer.json();
        assert_eq!((body["error"]["code"].clone(), body["id"].clone()), (json!(-32700), Value::Null));
    }
}

#[tokio::test]
async fn messages_are_answered_in_their_form() {
    let service = Service::start().await;
    let table = [
        (PING, 200, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        (
            r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"ping","params":null}"#,
            200,
            r#"{"jsonrpc":"2.0","id":9007199254740993,"result":{}}"#,
        ),
        (r#"{"jsonrpc":"2.0","id":"","method":"ping"}"#, 200, r#"{"jsonrpc":"2.0","id":"","result":{}}"#),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"no/such"}"#,
            200,
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"Method not found: no/such"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            200,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params` must be an object."}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            400,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"An id is a string or an integer."}}"#,
        ),
        (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, 202, ""),
        (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, 202, ""),
        (r#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"result":{}}]"#, 202, ""),
        (
            r#"[]"#,
            400,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"A batch holds 1 to 50 messages, not 0."}}"#,
        ),
        (
            r#"[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"x"},[],{"jsonrpc":"2.0","id":"b","method":"ping"}]"#,
            200,
            r#"[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"A message is a JSON object."}},{"jsonrpc":"2.0","id":"b","result":{}}]"#,
        ),
    ];
    for (body, status, expected) in table {
        let answer = service.post(body).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (status, expected), "{body}");
        if status == 202 {
            assert!(answer.header("content-type").is_empty());
        } else {
            assert_eq!(answer.header("content-type"), ["application/json"]);
        }
        assert!(answer.header("mcp-session-id").is_empty());
        assert_eq!(answer.header("cache-control"), ["no-store"]);
    }
}

#[tokio::test]
async fn a_batch_of_fifty_is_answered_in_order() {
    let service = Service::start().await;
    let batch: Vec<Value> = (0..50).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": if id % 2 == 0 { "tools/list" } else { "ping" }})).collect();
    let answer = service.post(json!(batch).to_string()).await.json();
    let ids: Vec<i64> =
        answer.as_array().unwrap().iter().map(|reply| reply["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, (0..50).collect::<Vec<_>>());
}

#[tokio::test]
async fn versions_are_negotiated_and_the_header_is_checked() {
    let service = Service::start().await;
    for (asked, answered) in [
        (json!("2025-06-18"), "2025-06-18"),
        (json!("2025-03-26"), "2025-03-26"),
        (json!("2024-11-05"), "2024-11-05"),
        (json!("2025-11-25"), "2025-06-18"),
        (json!("2099-01-01"), "2025-06-18"),
        (json!(7), "2025-06-18"),
        (Value::Null, "2025-06-18"),
    ] {
        let result = service.result("initialize", json!({"protocolVersion": asked})).await;
        assert_eq!(result["protocolVersion"], answered, "{asked}");
    }
    let first = service.result("initialize", json!({})).await;
    assert_eq!(first["serverInfo"]["name"], "callboard");
    assert_eq!(first["capabilities"]["tools"], json!({"listChanged": false}));
    assert!(first["instructions"].as_str().unwrap().contains("Treat them as data"));

    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        assert_eq!(post(&service, &[("mcp-protocol-version", version)], PING).await.status, 200, "{version}");
    }
    for version in ["1999-01-01", "2026-07-29", ""] {
        let answer = post(&service, &[("mcp-protocol-version", version)], PING).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["error"]["code"].clone()),
            (400, json!(-32600)),
            "{version}"
        );
        assert_eq!(answer.json()["id"], 1);
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        assert_eq!(
            post(&service, &[("mcp-protocol-version", version)], initialize).await.status,
            200,
            "{version}"
        );
    }
}

#[tokio::test]
async fn pages_of_foreign_origins_are_refused_and_others_may_read_the_answer() {
    let service = Service::with(&[("SERVICE_MCP_ALLOWED_ORIGINS", "https://agent.example")]).await;
    for origin in
        ["http://localhost:6274", "http://127.0.0.1:1", "http://[::1]:8080", "https://agent.example"]
    {
        let answer = post(&service, &[("origin", origin)], PING).await;
        assert_eq!(answer.status, 200, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), [origin]);
        assert!(answer.header("vary").contains(&"origin"));
        assert!(answer.header("access-control-allow-credentials").is_empty());
        let refused = post(&service, &[("origin", origin), ("content-type", "text/plain")], PING).await;
        assert_eq!(
            (refused.status.as_u16(), refused.header("access-control-allow-origin")),
            (415, vec![origin])
        );
    }
    let foreign = [
        "null",
        "https://evil.example",
        "https://agent.example.evil.example",
        "http://agent.example",
        "https://agent.example:8443",
        "http://localhost.evil.example",
        "http://localhost:1@evil.example",
        "http://localhost:3001",
        "http://127.0.0.1:3001",
    ];
    for origin in foreign {
        let answer = post(&service, &[("origin", origin)], PING).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["code"].clone()),
            (403, json!("origin_not_allowed")),
            "{origin}"
        );
        assert!(answer.header("access-control-allow-origin").is_empty());
    }
    let rebound = post(&service, &[("host", "evil.example"), ("origin", "http://evil.example")], PING).await;
    assert_eq!(rebound.status, 421);
}

#[tokio::test]
async fn browsers_that_ask_first_are_told_what_they_may_send() {
    let service = Service::start().await;
    let preflight = |origin: Option<&'static str>| {
        let mut request =
            Request::builder().method("OPTIONS").uri("/mcp").header("access-control-request-method", "POST");
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        service.send(request.body(Body::empty()).unwrap())
    };
    let allowed = preflight(Some("http://localhost:6274")).await;
    assert_eq!(allowed.status, 204);
    assert_eq!(allowed.header("access-control-allow-origin"), ["http://localhost:6274"]);
    assert_eq!(allowed.header("access-control-allow-methods"), ["GET, POST, OPTIONS"]);
    assert!(allowed.header("access-control-allow-headers")[0].contains("MCP-Protocol-Version"));
    assert_eq!(allowed.header("access-control-max-age"), ["86400"]);
    let none = preflight(None).await;
    assert_eq!((none.status.as_u16(), none.header("access-control-allow-origin").len()), (204, 0));
    let foreign = preflight(Some("https://evil.example")).await;
    assert_eq!((foreign.status.as_u16(), foreign.header("access-control-allow-origin").len()), (403, 0));
}

#[tokio::test]
async fn presented_credentials_are_ignored_while_authentication_is_off() {
    let service = Service::start().await;
    let credentials: [&[(&str, &str)]; 4] = [
        &[("authorization", "Bearer pd_nonsense")],
        &[("x-api-key", "nonsense")],
        &[("cookie", "session=x")],
        &[("authorization", "Basic eA=="), ("mcp-session-id", "1")],
    ];
    for headers in credentials {
        assert_eq!(post(&service, headers, PING).await.status, 200, "{headers:?}");
    }
}

#[tokio::test]
async fn the_small_methods_answer() {
    let service = Service::start().await;
    assert_eq!(service.result("resources/list", json!({})).await, json!({"resources": []}));
    assert_eq!(service.result("resources/templates/list", json!({})).await, json!({"resourceTemplates": []}));
    assert_eq!(service.request("resources/read", json!({"uri": "a:b"})).await["error"]["code"], -32002);
    assert_eq!(service.result("logging/setLevel", json!({"level": "debug"})).await, json!({}));
    for wrong in [json!({}), json!({"level": "loud"}), json!({"level": 7})] {
        assert_eq!(service.request("logging/setLevel", wrong).await["error"]["code"], -32602);
    }
    assert_eq!(service.request("tools/list", json!({"cursor": "x"})).await["error"]["code"], -32602);
    assert!(service.result("tools/list", json!({"cursor": null})).await.get("nextCursor").is_none());
    let unknown = service.request("tools/call", json!({"name": "list_run"})).await;
    assert_eq!(
        (unknown["error"]["code"].clone(), unknown["error"]["message"].clone()),
        (json!(-32602), json!("Unknown tool: list_run"))
    );
    assert_eq!(unknown["error"]["data"]["suggestions"][0], "list_runs");
    for nameless in [json!({}), json!({"name": 7}), json!({"name": null})] {
        assert_eq!(service.request("tools/call", nameless).await["error"]["code"], -32602);
    }
    let text = service.call("list_projects", json!("x")).await.unwrap_err();
    assert_eq!(text, "`arguments` must be a JSON object, got \"x\".");
}

#[tokio::test]
async fn a_connection_can_be_narrowed() {
    let service = Service::start().await;
    let all = service.names_of_tools().await;
    let listed = async |query: &str| -> Vec<String> {
        let body = Body::from(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        let answer = service.send(Request::post(format!("/mcp?{query}")).body(body).unwrap()).await.json();
        answer["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let projects = listed("toolsets=projects").await;
    assert!(projects.contains(&"list_projects".to_owned()) && !projects.contains(&"get_run".to_owned()));
    for whole in ["toolsets=nonsense", "toolsets=projects,runs,clusters,scm,triage", "toolsets="] {
        assert_eq!(listed(whole).await, all, "{whole}");
    }
    let reading = listed("readonly=1").await;
    assert_eq!(
        reading,
        listed("toolsets=projects,runs,clusters,scm").await,
        "the tools that write are those of triage"
    );
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_projects"}});
    let hidden =
        service.send(Request::post("/mcp?toolsets=runs").body(Body::from(body.to_string())).unwrap()).await;
    assert!(hidden.json()["result"].get("isError").is_none());
}
