//! Reading changes nothing: whatever tools are asked over a connection that
//! only reads, every table and every stored object is what it was before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard_fn_jobs::{Budget, run_due};
use callboard_test_support::form::report_archive;
use callboard_test_support::{Answer, Form, Service, for_each_service};
use reqwest::Method;
use serde_json::json;

use super::agent::Agent;
use super::matrix::{Holding, name_of};
use crate::builders::{attempt, run, with};
use crate::rows::{changed, every_row};

/// What the timer of the service keeps for itself, and the counters of calls.
const MAY_CHANGE: [&str; 2] = ["jobs", "rate_limits"];

/// Every stored object with its length.
fn objects(service: &Service) -> BTreeMap<PathBuf, u64> {
    fn walk(folder: &Path, found: &mut BTreeMap<PathBuf, u64>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let meta = entry.metadata().expect("metadata");
            if meta.is_dir() {
                walk(&entry.path(), found);
            } else {
                found.insert(entry.path(), meta.len());
            }
        }
    }
    let root = service.database().storage_url();
    let mut found = BTreeMap::new();
    walk(Path::new(root.strip_prefix("file://").expect("a folder")), &mut found);
    found
}

/// A red run with evidence, a trace, a screenshot and a report, after a green
/// one; everything that is computed from them is computed.
async fn history(service: &Service) -> Holding {
    let pays = |status: &str| {
        let evidence = json!({
            "steps": [{ "title": "click", "category": "pw:api", "duration": 5, "error": "Timeout" }],
            "consoleLogs": [{ "type": "error", "text": "boom", "timestamp": 1_767_261_600_000_i64 }],
            "networkRequests": [{ "method": "GET", "url": "https://shop.example/a/7", "status": 503, "duration": 4 }],
            "ariaSnapshot": "- button \"Pay\"",
        });
        with(attempt("pays", status, 0), evidence)
    };
    let of = |status: &str, day: u8| {
        let more = json!({ "startTime": format!("2026-01-{day:02}T10:00:00.000Z"), "branch": "main", "isFullRun": true });
        with(run("shop", status, vec![pays(status)]), more)
    };
    let client = service.client();
    client.post_json("/api/test-runs/submit", &of("passed", 1)).await.expect("stored");
    let red = with(of("failed", 2), json!({ "testCases": [] }));
    let picture = json!([{ "name": "screenshot", "contentType": "image/png", "originalName": "red.png" }]);
    let report = report_archive(&[("index.html", b"report")]).expect("an archive");
    let form = Form::new()
        .field("projectName", "shop")
        .field("testRun", red.to_string())
        .field("testCases", json!([pays("failed")]).to_string())
        .field("attach_meta_0", picture.to_string())
        .file("attach_file_0", "red.png", "image/png", b"no picture at all")
        .file("trace_0", "trace.zip", "application/zip", b"PK\x05\x06nothing")
        .file("report_html", "report.gz", "application/gzip", &report);
    let request = client.request(Method::POST, "/api/test-runs/upload");
    let request = request.header("content-type", Form::content_type()).body(form.into_body());
    let stored = Answer::send(request).await.and_then(|answer| answer.success()).expect("stored");
    run_due(service.state(), Budget::new(Duration::from_secs(20))).await.expect("worked");
    Holding::new(service, &stored).await
}

#[tokio::test]
async fn a_connection_that_reads_changes_no_row_and_no_object() {
    for_each_service(async |service| {
        let holding = history(service).await;
        let open = Agent::at(service.client().clone(), "/mcp");
        let reader = Agent::at(service.client().clone(), "/mcp?readonly=1");
        let (before, kept) = (every_row(service, &MAY_CHANGE).await, objects(service));
        assert!(before.len() > 30 && !kept.is_empty());
        let reads = reader.tools().await;
        assert_eq!(reads.len(), 35);
        for tool in &reads {
            let mut arguments = holding.arguments(tool);
            // As much as there is to ask for.
            for (name, schema) in tool["inputSchema"]["properties"].as_object().expect("properties") {
                match (schema["type"].as_str(), schema["items"].get("enum")) {
                    (Some("boolean"), _) => arguments[name] = json!(true),
                    (Some("array"), Some(words)) => arguments[name] = words.clone(),
                    _ => {}
                }
            }
            let name = name_of(tool);
            if let Err(text) = reader.call(name, arguments.clone()).await {
                assert!(text.contains("is not configured"), "{name} {arguments}: {text}");
            }
        }
        for tool in
            open.tools().await.iter().filter(|tool| tool["annotations"]["readOnlyHint"] == json!(false))
        {
            let text = reader.call(name_of(tool), holding.arguments(tool)).await.unwrap_err();
            assert!(text.starts_with("This connection is read-only"), "{text}");
        }
        let (after, left) = (every_row(service, &MAY_CHANGE).await, objects(service));
        assert_eq!(changed(&before, &after), Vec::<&str>::new());
        assert_eq!(left, kept);
    })
    .await;
}

#[tokio::test]
async fn what_has_to_be_configured_is_named_with_a_page_that_exists() {
    for_each_service(async |service| {
        let holding = history(service).await;
        let agent = Agent::at(service.client().clone(), "/mcp");
        let mut told = 0;
        for tool in agent.tools().await {
            let Err(text) = agent.call(name_of(&tool), holding.arguments(&tool)).await else { continue };
            let Some((_, page)) = text.split_once(" Configure it at ") else { continue };
            let path = page.strip_prefix(service.base_url()).unwrap_or_else(|| panic!("{text}"));
            let answer = service.client().get(path).await.expect("an answer");
            assert_eq!(answer.status.as_u16(), 200, "{text}");
            assert!(answer.text().contains("<h1"), "{text}");
            told += 1;
        }
        assert_eq!(told, 3);
    })
    .await;
}
