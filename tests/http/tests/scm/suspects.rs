//! What may have caused a failure cluster.

use callboard_store::Backend;
use callboard_test_support::code_host::TOKEN;
use callboard_test_support::{Client, CodeHost, Dialect, Fault, Service, for_each_backend};
use serde_json::{Value, json};

use super::{connected, edit, hashes, project, refused, started};
use crate::builders::{attempt, run, with};
use crate::comparison::submit;
use crate::mcp::Agent;
use crate::rows::settled;

const FORM: &str = "export function Form() {\n  return <button>Place order</button>;\n}\n";
const BROKEN: &str = "export function Form() {\n  return <button>Buy</button>;\n}\n";
const MARKUP: &str = "<img src=x onerror=alert(1)>";
const SPEC: &str = "import { Screen } from './screens/checkout';\n";

/// Commits of a shop: the green one, the one that breaks it, and the newest.
struct History {
    green: String,
    culprit: String,
    red: String,
}

impl History {
    fn make(host: &CodeHost) -> Self {
        let commit = |message: &str, files: &[(&str, &str)]| {
            let files: Vec<_> = files.iter().map(|(path, text)| (*path, Some(text.as_bytes()))).collect();
            host.commit(message, &files).expect("a commit")
        };
        let green = commit(
            "Open the shop",
            &[
                ("src/form.tsx", FORM),
                ("src/other.tsx", "a\n"),
                ("tests/screens/checkout.ts", "import './base';\n"),
            ],
        );
        commit("Describe it", &[("README.md", "Words\n")]);
        commit("Other things", &[("src/other.tsx", "b\n")]);
        let culprit = commit(&format!("Shorten labels {MARKUP}"), &[("src/form.tsx", BROKEN)]);
        commit("More things", &[("src/other.tsx", "c\n")]);
        let red = commit("Rules", &[("tests/screens/base.ts", "d\n")]);
        Self { green, culprit, red }
    }
}

/// Runs of the shop at two commits; returns the cluster and the execution of the
/// failure.
async fn failed(service: &Service, name: &str, history: &History) -> (i64, i64) {
    let client = service.client();
    let error = "TimeoutError: locator.click: Timeout 30000ms exceeded.\nCall log:\n  - waiting for \
        getByRole('button', { name: 'Place order' })\n\n    at /ci/shop/tests/shop.spec.ts:9:3";
    let tested = async |at: &str, status: &str, commit: &str| {
        let set = json!({
            "startTime": format!("2026-01-01T{at}:00.000Z"), "branch": "main", "commit": commit, "isFullRun": true,
            "metadata": { "scm": { "defaultBranch": "main" } },
        });
        let case = attempt("pays", status, 0);
        let case = match status {
            "failed" => with(case, json!({ "error": error, "testSource": SPEC })),
            _ => case,
        };
        let stored = submit(client, with(run(name, status, vec![case]), set)).await;
        settled(service).await;
        stored
    };
    tested("10:00", "passed", &history.green).await;
    let red = tested("12:00", "failed", &history.red).await;
    let found = client.json(&format!("/api/test-runs/{red}/executions")).await.expect("executions");
    let item = &found["items"][0];
    (item["clusterId"].as_i64().expect("a cluster"), item["id"].as_i64().expect("an execution"))
}

async fn page(client: &Client, cluster: i64, more: &str) -> String {
    let client = client.with_header("accept", "text/html").expect("a header");
    let answer = client.get(&format!("/failure-clusters/{cluster}{more}")).await.expect("a page");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

async fn suspects_are_named(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let agent = Agent::at(client.clone(), "/mcp");
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let history = History::make(&host);
        let name = format!("shop on {}", dialect.word());
        connected(client, &host, dialect).await;
        let (cluster, execution) = failed(&service, &name, &history).await;
        // Jobs read who owns the tests.
        let _ = host.take_requests();

        // What may ask nobody has nothing to show yet.
        let plan =
            async || agent.call("get_fix_plan", json!({ "clusterId": cluster })).await.expect("a plan");
        assert_eq!(plan().await["suspects"], json!(null));
        let rest = format!("/api/failure-clusters/{cluster}/fix-plan");
        assert_eq!(client.json(&rest).await.expect("a plan")["suspects"], json!(null));
        let text = page(client, cluster, "").await;
        assert!(text.contains("data-later=") && !text.contains("Shorten labels"), "{text}");
        assert!(host.take_requests().is_empty(), "{dialect:?}");

        let path = format!("/api/failure-clusters/{cluster}/commits");
        let found = client.json(&path).await.expect("suspects");
        let range = &found["range"];
        assert_eq!((&range["base"], &range["head"]), (&json!(history.green), &json!(history.red)), "{found}");
        assert_eq!((hashes(range).len(), &range["examinedCommits"]), (5, &json!(5)), "{found}");
        assert_eq!((&range["provider"], &range["problem"]), (&json!(dialect.word()), &json!(null)));
        let first = &range["commits"][0];
        assert_eq!((&first["sha"], &first["isTop"]), (&json!(history.culprit), &json!(true)), "{found}");
        assert_eq!(first["reasons"][0]["text"], "removes “Place order”, which the test looks for");
        assert_eq!(range["files"][0]["path"], "src/form.tsx");
        let files = range["files"].as_array().expect("files");
        let imported = files.iter().find(|file| file["path"] == "tests/screens/base.ts").expect("an import");
        assert_eq!(imported["reasons"][0], "is imported by a file that the test imports", "{found}");
        assert!(files.iter().all(|file| file["path"] != "README.md"), "{found}");

        // From here on it is stored.
        assert!(!host.take_requests().is_empty());
        assert_eq!(client.json(&path).await.expect("suspects"), found);
        assert_eq!(plan().await["suspects"]["commits"][0]["sha"], json!(history.culprit[..8]));
        let planned = client.json(&rest).await.expect("a plan");
        assert_eq!(planned["suspects"]["commits"][0]["sha"], json!(history.culprit), "{planned}");
        let text = page(client, cluster, "?tab=plan").await;
        assert!(text.contains("Shorten labels") && text.contains("top suspect"), "{text}");
        let told = agent.call("explain_failure", json!({ "executionId": execution })).await.expect("reasons");
        assert_eq!(told["suspects"]["files"][0]["path"], "src/form.tsx", "{told}");
        let context = agent.call("get_cluster_context", json!({ "clusterId": cluster })).await.expect("text");
        let text = context["text"].as_str().expect("a text");
        assert!(text.contains("likely cause: ") && text.contains("Shorten labels"), "{text}");
        let coverage = &context["coverage"];
        assert_eq!(
            (&coverage["hasCommitRange"], &coverage["commitsCount"], &coverage["filesCount"]),
            (&json!(true), &json!(5), &json!(4)),
            "{coverage}"
        );
        let text = page(client, cluster, "?suspects=show").await;
        assert!(text.contains("Shorten labels") && text.contains("top suspect"), "{text}");
        assert!(!text.contains("<img src=x") && !text.contains("?suspects=show\">"), "{text}");
        assert!(host.take_requests().is_empty(), "{dialect:?}");

        // A base that somebody chose shortens the range.
        let only = client.json(&format!("{path}?base={}", history.culprit)).await.expect("suspects");
        assert_eq!((hashes(&only["range"]).len(), &only["range"]["base"]), (2, &json!(history.culprit)));
        let pinned = json!({ "commit": &history.red });
        edit(client, &format!("/api/failure-clusters/{cluster}/base-commit"), pinned)
            .await
            .success()
            .expect("pinned");
        let none = client.json(&path).await.expect("nothing");
        let same = "This run and the last green run tested the same commit.";
        assert_eq!(none, json!({ "range": null, "reason": same }));
    }
}

#[tokio::test]
async fn the_commit_that_broke_a_test_is_named_everywhere() {
    for_each_backend(suspects_are_named).await;
}

async fn trouble_is_told(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = CodeHost::start().await.expect("a code host");
    let history = History::make(&host);
    let shop = project(client, "shop").await;
    let (cluster, _) = failed(&service, "shop", &history).await;
    let path = format!("/api/failure-clusters/{cluster}/commits");
    refused(&client.get(&path).await.expect("an answer"), 503, "not_configured");
    let text = page(client, cluster, "?suspects=show").await;
    assert!(text.contains("The project has no repository;"), "{text}");
    let error = client.get(&format!("{path}?base=main")).await.expect("an answer");
    assert_eq!(refused(&error, 400, "invalid_query")["data"]["param"], "base");
    refused(
        &client.get("/api/failure-clusters/999999/commits").await.expect("an answer"),
        404,
        "cluster_not_found",
    );

    let repository = json!({
        "repositoryUrl": host.address(Dialect::GitHub), "repositoryProvider": "github", "scmToken": TOKEN,
    });
    edit(client, &shop, repository).await.success().expect("saved");
    let limited = vec![("retry-after", "60".to_owned())];
    for (fault, said) in [
        (Fault::Answers(429, limited, String::new()), "limits requests"),
        (Fault::Floods(200_000_000), "larger than"),
        (Fault::Answers(502, Vec::new(), "<html>".to_owned()), "502"),
    ] {
        crate::store::sql(&service, "DELETE FROM scm_cache").await;
        host.set_fault(Some(fault));
        let error = refused(&client.get(&path).await.expect("an answer"), 502, "upstream_failed");
        let message = error["message"].as_str().expect("a sentence");
        assert!(message.contains(said), "{message}");
        assert!(page(client, cluster, "?suspects=show").await.contains("Suspects"));
    }
    crate::store::sql(&service, "DELETE FROM scm_cache").await;
    host.set_fault(None);
    let found: Value = client.json(&path).await.expect("suspects");
    assert_eq!(found["range"]["commits"][0]["sha"], json!(history.culprit), "nothing is lost");
}

#[tokio::test]
async fn a_host_that_fails_is_told_in_a_sentence_and_asked_again() {
    for_each_backend(trouble_is_told).await;
}
