//! Which commit turned a test red.

use callboard_store::Backend;
use callboard_test_support::{Client, CodeHost, Dialect, Fault, Service, for_each_backend};
use serde_json::{Value, json};

use super::{connected, history, project, refused, started};
use crate::builders::{attempt, run, with};
use crate::comparison::submit;
use crate::rows::{settled, texts};

const LABEL: &str = "<button>Place order</button>\n";
const OTHER: &str = "<button>Buy</button>\n";

/// Runs of one test at chosen times and commits.
struct Shop<'s> {
    service: &'s Service,
    name: String,
}

impl Shop<'_> {
    /// One run of the test; returns the run and the execution.
    async fn tested(&self, at: &str, branch: &str, commit: &str, status: &str) -> (i64, i64) {
        let client = self.service.client();
        let set = json!({
            "startTime": format!("2026-01-01T{at}:00.000Z"), "branch": branch, "commit": commit,
            "isFullRun": true, "metadata": { "scm": { "defaultBranch": "main" } },
        });
        let error = "TimeoutError: locator.click: Timeout 30000ms exceeded.\nCall log:\n  - waiting for \
            getByRole('button', { name: 'Place order' })\n\n    at /ci/shop/tests/shop.spec.ts:9:3";
        let case = attempt("pays", status, 0);
        let case = if status == "failed" { with(case, json!({ "error": error })) } else { case };
        let stored = submit(client, with(run(&self.name, status, vec![case]), set)).await;
        settled(self.service).await;
        let found = client.json(&format!("/api/test-runs/{stored}/executions")).await.expect("executions");
        (stored, found["items"][0]["id"].as_i64().expect("an execution"))
    }
}

fn address(run: i64, execution: i64) -> String {
    format!("/api/test-runs/{run}/culprit?executionId={execution}")
}

async fn searched(client: &Client, run: i64, execution: i64) -> (u16, Value) {
    let path = format!("/api/test-runs/{run}/culprit");
    let answer = client
        .send_json(reqwest::Method::POST, &path, &json!({ "executionId": execution }))
        .await
        .expect("an answer");
    (answer.status.as_u16(), answer.json().expect("a search"))
}

async fn page(client: &Client, execution: i64) -> String {
    let client = client.with_header("accept", "text/html").expect("a header");
    let answer = client.get(&format!("/test-run-cases/{execution}")).await.expect("a page");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

async fn jobs(service: &Service) -> usize {
    texts(service, "SELECT key FROM jobs WHERE kind = 'find_culprit'").await.len()
}

fn score_of(found: &Value, sha: &str) -> f64 {
    let suspects = found["suspects"].as_array().expect("suspects");
    let suspect = suspects.iter().find(|suspect| suspect["sha"] == sha);
    suspect.and_then(|suspect| suspect["score"].as_f64()).unwrap_or_else(|| panic!("{found}"))
}

async fn culprit_is_found(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for (before, dialect) in Dialect::ALL.into_iter().enumerate() {
        let host = CodeHost::start().await.expect("a code host");
        let commit = |message: &str, path: &str, text: &str| {
            host.commit(message, &[(path, Some(text.as_bytes()))]).expect("a commit")
        };
        let green = commit("Open the shop", "src/form.tsx", LABEL);
        let early: Vec<String> = (0..3).map(|n| commit("Words", "README.md", &format!("{n}\n"))).collect();
        let culprit = commit("Shorten labels", "src/form.tsx", OTHER);
        let late = commit("More words", "README.md", "more\n");
        let red = commit("Rules", "src/rules.ts", "a\n");
        let shop = Shop { service: &service, name: format!("shop on {}", dialect.word()) };
        connected(client, &host, dialect).await;
        shop.tested("10:00", "main", &green, "passed").await;
        let (run, execution) = shop.tested("12:00", "main", &red, "failed").await;
        let _ = host.take_requests();

        // Nobody asked yet: the range is known, and nothing outside was read.
        let found = client.json(&address(run, execution)).await.expect("a search");
        assert_eq!((&found["state"], &found["suspects"]), (&json!("none"), &json!([])), "{found}");
        let range = &found["range"];
        assert_eq!((&range["base"], &range["head"]), (&json!(green), &json!(red)), "{found}");
        let bisect = found["bisect"].as_str().expect("a command");
        assert!(bisect.starts_with(&format!("git bisect start {red} {green} && ")), "{bisect}");
        assert!(bisect.contains("./tests/shop.spec.ts") && bisect.contains("Shop.*pays"), "{bisect}");
        assert!(page(client, execution).await.contains("Find culprit"));
        assert!(host.take_requests().is_empty(), "{dialect:?}");

        // Asked twice, it is searched once.
        let (status, found) = searched(client, run, execution).await;
        assert_eq!((status, &found["state"]), (202, &json!("running")), "{found}");
        assert_eq!(searched(client, run, execution).await.0, 202);
        assert_eq!(jobs(&service).await, before + 1);
        let text = page(client, execution).await;
        assert!(text.contains("data-follow=") && !text.contains("Find culprit"), "{text}");
        settled(&service).await;
        let found = client.json(&address(run, execution)).await.expect("a search");
        assert_eq!((&found["state"], &found["reason"]), (&json!("completed"), &json!(null)), "{found}");
        let suspects = found["suspects"].as_array().expect("suspects");
        assert_eq!(suspects.len(), 6, "{found}");
        assert_eq!(suspects[0]["sha"], json!(culprit), "{found}");
        assert_eq!(suspects[0]["why"][0]["text"], "removes “Place order”, which the test looks for");
        let sum: f64 = suspects.iter().filter_map(|suspect| suspect["score"].as_f64()).sum();
        assert!((sum - 1.0).abs() < 0.01, "{found}");
        let _ = host.take_requests();
        let text = page(client, execution).await;
        assert!(text.contains("Shorten labels") && text.contains("git bisect start"), "{text}");

        // A later run on a commit of the range counts as soon as it is there.
        let at_early = score_of(&found, &early[1]);
        let next = found["next"]["sha"].as_str().expect("a commit to test").to_owned();
        assert!(next == culprit || next == early[2], "{found}");
        shop.tested("13:00", "bisect", &early[2], "passed").await;
        let found = client.json(&address(run, execution)).await.expect("a search");
        assert!(score_of(&found, &early[1]) < at_early / 4.0, "{found}");
        let suspects = found["suspects"].as_array().expect("suspects");
        let tested = suspects.iter().find(|suspect| suspect["sha"] == early[2]).expect("the tested one");
        assert_eq!((&tested["passedRuns"], &tested["failedRuns"]), (&json!(1), &json!(0)), "{found}");
        shop.tested("13:30", "bisect", &culprit, "failed").await;
        shop.tested("13:40", "bisect", &late, "failed").await;
        let found = client.json(&address(run, execution)).await.expect("a search");
        assert!(score_of(&found, &culprit) > 0.95, "{found}");
        assert_eq!(found["next"], json!(null), "{found}");
        let (status, again) = searched(client, run, execution).await;
        assert_eq!((status, &again), (200, &found), "done once for a range");
        assert_eq!(jobs(&service).await, before + 1);
        assert!(host.take_requests().is_empty(), "{dialect:?}");

        // Another failure of the same streak shares the range.
        let (later, failure) = shop.tested("14:00", "main", &red, "failed").await;
        let shared = client.json(&address(later, failure)).await.expect("a search");
        assert_eq!((&shared["state"], &shared["range"]["failedRuns"]), (&json!("completed"), &json!(2)));
        assert!((score_of(&shared, &culprit) - score_of(&found, &culprit)).abs() < 0.05, "{shared}");
    }
}

#[tokio::test]
async fn a_streak_is_searched_once_and_every_run_on_its_commits_counts() {
    for_each_backend(culprit_is_found).await;
}

async fn words_are_clear(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = CodeHost::start().await.expect("a code host");
    let mut commits = history(&host, 3);
    commits.reverse();
    let bare = Shop { service: &service, name: "bare".to_owned() };
    project(client, "bare").await;
    bare.tested("10:00", "main", &commits[0], "passed").await;
    let (run, execution) = bare.tested("11:00", "main", &commits[2], "failed").await;
    refused(&client.get(&address(run, execution)).await.expect("an answer"), 503, "not_configured");
    assert!(!page(client, execution).await.contains("culprit-title"), "no repository, no block");

    connected(client, &host, Dialect::GitHub).await;
    let shop = Shop { service: &service, name: "shop on github".to_owned() };
    let said = async |run: i64, execution: i64| {
        let (status, found) = searched(client, run, execution).await;
        assert_eq!((status, &found["state"]), (200, &json!("unavailable")), "{found}");
        let reason = found["reason"].as_str().expect("a sentence").to_owned();
        let text = page(client, execution).await;
        assert!(text.contains("culprit-title") && !text.contains("Find culprit"), "{text}");
        reason
    };
    let (run, execution) = shop.tested("10:00", "main", &commits[0], "failed").await;
    assert!(said(run, execution).await.starts_with("The test never passed before"));
    let (green_run, green) = shop.tested("10:30", "main", &commits[1], "passed").await;
    let found = client.json(&address(green_run, green)).await.expect("a search");
    assert_eq!(found["reason"], "The test did not fail in this run.");
    let (run, execution) = shop.tested("11:00", "main", &commits[1], "failed").await;
    assert!(said(run, execution).await.contains("passed and failed on the same commit"));
    assert_eq!(jobs(&service).await, 0, "nothing to search");

    // A host that fails is told in a sentence, and asked again on demand.
    let (run, execution) = shop.tested("12:00", "next", &commits[2], "failed").await;
    host.set_fault(Some(Fault::Answers(502, Vec::new(), "<html>".to_owned())));
    assert_eq!(searched(client, run, execution).await.0, 202);
    settled(&service).await;
    let found = client.json(&address(run, execution)).await.expect("a search");
    assert_eq!(found["state"], "failed", "{found}");
    assert!(found["reason"].as_str().is_some_and(|reason| reason.contains("502")), "{found}");
    assert!(page(client, execution).await.contains("Try again"));
    host.set_fault(None);
    assert_eq!(searched(client, run, execution).await.1["state"], "running");
    settled(&service).await;
    let found = client.json(&address(run, execution)).await.expect("a search");
    assert_eq!((&found["state"], &found["suspects"][0]["sha"]), (&json!("completed"), &json!(commits[2])));
    assert_eq!(found["reason"], "Only one commit lies between the last pass and the failure.");
    assert_eq!((&found["suspects"][0]["score"], &found["next"]), (&json!(1.0), &json!(null)), "{found}");

    let path = format!("/api/test-runs/{run}/culprit");
    let error = refused(&client.get(&path).await.expect("an answer"), 400, "invalid_query");
    assert_eq!(error["data"]["param"], "executionId");
    let empty = client.send_json(reqwest::Method::POST, &path, &json!({})).await.expect("an answer");
    refused(&empty, 400, "missing_field");
    let foreign = client.get(&address(run, green)).await.expect("an answer");
    refused(&foreign, 404, "execution_not_found");
    let unknown = client.get(&address(999_999, green)).await.expect("an answer");
    refused(&unknown, 404, "run_not_found");
}

#[tokio::test]
async fn what_cannot_be_searched_says_why_and_what_failed_is_tried_again() {
    for_each_backend(words_are_clear).await;
}
