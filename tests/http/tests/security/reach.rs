//! What no route does: alter the audit log, and go where submitted data or a
//! link to this machine points.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callboard_auth::ROUTES;
use callboard_store::Backend;
use callboard_test_support::{Service, TestDatabase, for_each_backend};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{send, settings};
use crate::builders::{attempt, run, with};
use crate::mcp::Agent;
use crate::rows::settled;

#[test]
fn nothing_alters_the_audit_log() {
    let about_it = ROUTES.iter().filter(|route| route.pattern.contains("audit"));
    let methods: Vec<&str> = about_it.map(|route| route.method.as_str()).collect();
    assert_eq!(methods, ["GET", "GET"], "the list, and its page");
}

/// The remote of a run is something to show: the token of the project is for
/// the repository an administrator named, and nobody calls the other one, though
/// the address could be called.
async fn a_submitted_remote_is_never_called(backend: Backend) {
    let remote = TcpListener::bind("127.0.0.1:0").await.expect("a server");
    let host = remote.local_addr().expect("an address").to_string();
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let key = "0f1e2d3c4b5a69788796a5b4c3d2e1f00123456789abcdeffedcba9876543210";
    let settings = settings(&[("SERVICE_SECRET_KEY", key), ("SERVICE_EGRESS_ALLOW", &host)]);
    let service = Service::over(database, &settings).await.expect("a service");
    let client = service.client();
    let named = json!({
        "name": "shop", "repositoryUrl": "https://git.example.test/acme/shop", "scmToken": "glpat-very-secret-token",
    });
    let created = send(client, Method::POST, "/api/projects", named).await.success().expect("a project");
    let project = &created["project"]["id"];

    let commit = "c0ffee0c0ffee0c0ffee0c0ffee0c0ffee0c0ffe";
    let url = format!("http://{host}/acme/shop.git");
    let told = json!({ "commit": commit, "metadata": {
        "scm": { "commit": commit, "branch": "main", "remoteUrl": url },
        "ci": { "repository": url, "buildUrl": url },
    } });
    let submission = with(run("shop", "failed", vec![attempt("pays", "failed", 0)]), told);
    let stored = client.post_json("/api/test-runs/submit", &submission).await.expect("stored");
    settled(&service).await;

    let run = &stored["runId"];
    let clusters = client.json(&format!("/api/projects/{project}/failure-clusters")).await.expect("clusters");
    let cluster = &clusters["items"][0]["id"];
    let paths = [
        format!("/api/test-runs/{run}"),
        format!("/api/test-runs/{run}/insights"),
        format!("/api/failure-clusters/{cluster}"),
        format!("/api/failure-clusters/{cluster}/fix-plan"),
        format!("/test-runs/{run}"),
        format!("/projects/{project}"),
    ];
    for path in paths {
        assert_eq!(client.get(&path).await.expect("an answer").status.as_u16(), 200, "{path}");
    }
    let base = format!("/api/failure-clusters/{cluster}/base-commit");
    send(client, Method::PATCH, &base, json!({ "commit": commit })).await.success().expect("noted");
    let agent = Agent::at(client.clone(), "/mcp");
    for (tool, arguments) in [
        ("get_repo_commits", json!({ "projectId": project })),
        ("get_repo_diff", json!({ "projectId": project, "sha": commit })),
        ("get_cluster_context", json!({ "clusterId": cluster, "selectedCommitShas": [commit] })),
        ("get_run", json!({ "runId": run })),
    ] {
        let _ = agent.call(tool, arguments).await;
    }
    settled(&service).await;
    let called = tokio::time::timeout(Duration::from_millis(50), remote.accept()).await;
    assert!(called.is_err(), "the remote of a run was called");
}

#[tokio::test]
async fn the_remote_of_a_run_gets_no_token_and_no_call() {
    for_each_backend(a_submitted_remote_is_never_called).await;
}

/// A page of this machine, and how often it was asked for.
async fn page_of_this_machine() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a server");
    let port = listener.local_addr().expect("an address").port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let page = "<title>Inside</title>";
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
                page.len()
            );
            // Whoever hangs up has asked all the same.
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (port, asked)
}

/// Hangs links on a run and has their addresses looked at; the links then.
async fn linked(service: &Service, addresses: &[String]) -> Value {
    let client = service.client();
    let submission = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
    let stored = client.post_json("/api/test-runs/submit", &submission).await.expect("stored");
    for address in addresses {
        let link = json!({ "entityType": "test_run", "entityId": stored["runId"], "url": address });
        let made = send(client, Method::POST, "/api/links", link).await;
        assert!(made.status == 201 || made.status == 400, "{address}: {}", made.text());
        if made.status == 201 {
            let refresh = format!("/api/links/{}/refresh", made.json().expect("a link")["link"]["id"]);
            send(client, Method::POST, &refresh, json!({})).await.success().expect("looked at again");
        }
    }
    settled(service).await;
    let list = format!("/api/links?entityType=test_run&entityId={}", stored["runId"]);
    client.json(&list).await.expect("links")["items"].clone()
}

#[tokio::test]
async fn the_title_of_a_page_is_read_from_this_machine_only_where_the_environment_says_so() {
    for_each_backend(async |backend| {
        let (port, asked) = page_of_this_machine().await;
        let over = async |more: &[(&str, &str)]| {
            let database = TestDatabase::fresh(backend).await.expect("a database");
            Service::over(database, &settings(more)).await.expect("a service")
        };
        let hosts = [
            "127.0.0.1",
            "127.0.0.1.",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0.0.0.0",
            "localhost",
            "a.localhost",
            "[::1]",
            "[::ffff:127.0.0.1]",
        ];
        let closed = over(&[]).await;
        let links = linked(&closed, &hosts.map(|host| format!("http://{host}:{port}/"))).await;
        let links = links.as_array().expect("links");
        assert!(links.len() > 5 && links.iter().all(|link| link["unfurledAt"].is_null()), "{links:?}");
        assert_eq!(asked.load(Ordering::Relaxed), 0);

        let host = format!("127.0.0.1:{port}");
        let open = over(&[("SERVICE_EGRESS_ALLOW", &host)]).await;
        let links = linked(&open, &[format!("http://{host}/")]).await;
        assert_eq!(links[0]["title"], "Inside", "{links}");
        assert!(asked.load(Ordering::Relaxed) > 0);
    })
    .await;
}
