//! Characters that reorder text: stored as they came, marks wherever people and
//! agents read them.

use callboard_test_support::for_each_service;
use reqwest::Method;
use serde_json::json;

use super::send;
use crate::builders::{attempt, run};
use crate::rows::settled;

const TITLE: &str = "opens \u{202e}gpj.exe\u{2066}";
const MARKED: &str = "opens ⟦U+202E⟧gpj.exe⟦U+2066⟧";

#[tokio::test]
async fn text_that_would_be_reordered_is_stored_verbatim_and_shown_with_marks() {
    for_each_service(async |service| {
        let client = service.client();
        let mut failed = attempt(TITLE, "failed", 0);
        failed["error"] = json!(format!("Error: expected {TITLE}"));
        let submitted = client.post_json("/api/test-runs/submit", &run("shop", "failed", vec![failed])).await;
        let id = submitted.expect("stored")["runId"].clone();
        settled(service).await;

        // Programs get what was stored.
        let listed = client.json(&format!("/api/test-runs/{id}/executions")).await.expect("executions");
        let execution = &listed["items"][0];
        assert_eq!(execution["title"], TITLE);
        let test = execution["testCaseId"].clone();

        let browser = client.with_header("accept", "text/html").expect("a header");
        let execution = execution["id"].clone();
        for path in [
            format!("/test-runs/{id}"),
            format!("/test-run-cases/{execution}"),
            format!("/test-cases/{test}"),
        ] {
            let page = browser.get(&path).await.expect("a page");
            let text = page.text();
            assert_eq!(page.status, 200, "{path}");
            assert!(text.contains(MARKED), "{path}: {text}");
            // What is sent back to the service or copied stays as it is stored.
            let shown = text.split(['<', '>']).skip(2).step_by(2).collect::<String>();
            assert!(!shown.contains('\u{202e}'), "{path}: {shown}");
        }

        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "get_run", "arguments": { "runId": id } },
        });
        let answer = send(client, Method::POST, "/mcp?structured=1", call).await;
        let text = answer.text();
        assert!(answer.status.is_success() && text.contains(MARKED) && !text.contains('\u{202e}'), "{text}");
        assert!(answer.json().expect("JSON")["result"]["structuredContent"].to_string().contains(MARKED));

        let table =
            client.get(&format!("/api/test-runs/{id}/export?format=csv")).await.expect("a table").text();
        assert!(table.contains(MARKED) && !table.contains('\u{202e}'), "{table}");
    })
    .await;
}
