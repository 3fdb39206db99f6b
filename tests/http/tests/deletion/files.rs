//! Files of a hidden run: nothing of it can be read while its deletion waits
//! to be carried out.

use callboard_test_support::{Client, Service, for_each_service};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{delete, restore};
use crate::files::{listener_of, path_of, sent_to, store};
use crate::mcp::Agent;
use crate::rows::settled;

/// What an address answers.
async fn status(client: &Client, path: &str) -> u16 {
    client.get(path).await.expect("an answer").status.as_u16()
}

/// An export, and the address of its bytes once they are there.
async fn export(service: &Service, kind: &str, id: &Value) -> (String, String) {
    let client = service.client();
    let body = json!({ "kind": kind, "id": id, "format": "ndjson" });
    let made = client.post_json("/api/exports", &body).await.expect("an export");
    settled(service).await;
    let path = format!("/api/exports/{}", made["export"]["id"]);
    let ready = client.json(&path).await.expect("an export");
    let address = ready["export"]["downloadUrl"].as_str().expect("an address");
    (path, address.strip_prefix(client.base_url()).unwrap_or(address).to_owned())
}

#[tokio::test]
async fn no_file_of_a_hidden_run_can_be_read() {
    for_each_service(async |service| {
        let client = service.client();
        let files = store(service, "shop").await;
        let run = client.json("/api/test-runs").await.expect("runs")["items"][0]["id"].clone();
        let executions = client.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
        let execution = executions["items"][0]["id"].clone();
        let (note, trace, shot) = (files.id("note"), files.id("trace"), files.id("shot"));
        let listed = client.json(&format!("/api/test-run-cases/{execution}/files")).await.expect("files");
        let stored_name = listed["items"][0]["path"].as_str().expect("a stored name").to_owned();
        // Grants that were given before the deletion.
        let report = sent_to(service, &format!("/api/files/{}index.html", files.report)).await;
        let page = sent_to(service, &format!("/api/files/{}", files.id("page"))).await;
        let (of_run, run_bytes) = export(service, "run", &run).await;
        let (of_execution, execution_bytes) = export(service, "execution", &execution).await;
        let (of_project, project_bytes) = export(service, "project", &json!(1)).await;
        let mut paths = vec![
            format!("/api/files/{note}?download=1"),
            format!("/api/files/{trace}?download=1"),
            format!("/api/files/{shot}"),
            format!("/api/files/{stored_name}?download=1"),
            format!("/api/files/{}data/table.bin?download=1", files.report),
            format!("/api/test-runs/{run}/reports"),
            format!("/api/test-run-cases/{execution}"),
            format!("/api/test-run-cases/{execution}/files"),
            format!("/api/test-run-cases/{execution}/traces"),
            format!("/api/test-runs/{run}/cases/{execution}/files"),
            format!("/test-runs/{run}"),
            format!("/test-run-cases/{execution}"),
        ];
        paths.extend([of_run, run_bytes, of_execution, execution_bytes]);
        let of_whole_project = [of_project, project_bytes];
        let granted = [report, page];
        let agent = Agent::at(client.clone(), "/mcp");
        let pictures = async || agent.call("get_case_screenshots", json!({ "executionId": execution })).await;
        let look = async |wanted: u16| {
            for path in &paths {
                assert_eq!(status(client, path).await, wanted, "{path}");
            }
            for address in &granted {
                assert_eq!(status(&listener_of(address), path_of(address)).await, wanted, "{address}");
            }
            assert_eq!(pictures().await.is_ok(), wanted == 200);
        };
        look(200).await;
        for path in &of_whole_project {
            assert_eq!(status(client, path).await, 200, "{path}");
        }

        let deleted = delete(client, &format!("/api/test-runs/{run}")).await.success().expect("deleted");
        look(404).await;
        let head = client.send(client.request(Method::HEAD, &format!("/api/files/{note}"))).await;
        assert_eq!(head.expect("an answer").status, StatusCode::NOT_FOUND);
        // An export of the project may hold the run's rows.
        for path in &of_whole_project {
            assert_eq!(status(client, path).await, 404, "{path}");
        }
        settled(service).await;
        look(404).await;

        restore(client, &deleted["receipt"]).await.success().expect("restored");
        look(200).await;
    })
    .await;
}
