//! One comment on a request and one status of a commit, whatever happens on the way.

use callboard_domain::time::Timestamp;
use callboard_store::Backend;
use callboard_test_support::code_host::{HostComment, PullRequest, RequestState};
use callboard_test_support::{Client, CodeHost, Dialect, Fault, Service, for_each_backend};
use reqwest::Method;
use serde_json::{Value, json};

use super::{connected, history, project, refused, started};
use crate::builders::{attempt, run, with};
use crate::comparison::submit;
use crate::rows::settled;
use crate::store::sql;

pub(super) const NUMBER: u64 = 7;
pub(super) const BRANCH: &str = "feature/cart";
const MARKUP: &str = "pays @team #12 !5 <img src=x> `a|b` https://evil.example";

/// A code host with an open request, and the newest commit of its branch.
pub(super) async fn host_with_request(branch: &str, number: u64) -> (CodeHost, String) {
    let host = CodeHost::start().await.expect("a code host");
    history(&host, 1);
    let tip = open_request(&host, branch, number);
    (host, tip)
}

/// Opens a request from a new branch; returns the newest commit of that.
pub(super) fn open_request(host: &CodeHost, branch: &str, number: u64) -> String {
    host.git(&["checkout", "--quiet", "-b", branch]).expect("a branch");
    let file = format!("{number}.txt");
    let tip = host.commit("On the branch", &[(file.as_str(), Some(b"1\n"))]).expect("a commit");
    host.git(&["checkout", "--quiet", "main"]).expect("the branch");
    set_request(host, branch, number, RequestState::Open, false);
    tip
}

pub(super) fn set_request(host: &CodeHost, branch: &str, number: u64, state: RequestState, is_fork: bool) {
    let (title, branch) = ("Add a cart".to_owned(), branch.to_owned());
    host.set_pull_request(PullRequest { number, title, branch, state, is_fork });
}

pub(super) async fn switch_on(client: &Client, project: &str) {
    let on = json!({ "comment": true, "status": true });
    let path = format!("{project}/repository/feedback");
    client.send_json(Method::PATCH, &path, &on).await.expect("an answer").success().expect("saved");
}

/// A full run that began some minutes ago.
pub(super) fn tested(
    service: &Service,
    project: &str,
    minutes_ago: i64,
    (branch, commit): (&str, &str),
    outcomes: &[(&str, &str)],
) -> Value {
    let start = Timestamp(service.state().now().millis() - minutes_ago * 60_000).to_iso();
    let failed = outcomes.iter().any(|(_, outcome)| *outcome == "failed");
    let cases = outcomes.iter().map(|(title, outcome)| attempt(title, outcome, 0)).collect();
    let more = json!({
        "startTime": start, "branch": branch, "commit": commit, "isFullRun": true,
        "metadata": { "scm": { "defaultBranch": "main" } },
    });
    with(run(project, if failed { "failed" } else { "passed" }, cases), more)
}

/// Time goes on until whatever waits is due.
pub(super) async fn later(service: &Service) {
    sql(service, "UPDATE scm_feedback SET next_at = 0 WHERE next_at IS NOT NULL").await;
    sql(service, "UPDATE scm_feedback_targets SET lease_until = NULL").await;
    sql(service, "DELETE FROM scm_cache").await;
    sql(service, "UPDATE jobs SET run_after = 0 WHERE state = 'queued' AND kind = 'post_feedback'").await;
    settled(service).await;
}

pub(super) async fn items(client: &Client, run: i64) -> Vec<Value> {
    let found = client.json(&format!("/api/test-runs/{run}/feedback")).await.expect("feedback");
    found["items"].as_array().expect("a list").clone()
}

/// State of the comment of a run, and why.
pub(super) async fn comment_of(client: &Client, run: i64) -> (String, String) {
    let items = items(client, run).await;
    let comment = items.iter().find(|item| item["kind"] == "comment").expect("a comment");
    let text = |key: &str| comment[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("error"))
}

#[track_caller]
pub(super) fn only(host: &CodeHost, number: u64) -> HostComment {
    let comments = host.comments(number);
    assert_eq!(comments.len(), 1, "{comments:#?}");
    comments[0].clone()
}

async fn one_comment_is_edited(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let (host, tip) = host_with_request(BRANCH, NUMBER).await;
        let project = connected(client, &host, dialect).await;
        let name = format!("shop on {}", dialect.word());
        let send = async |minutes: i64, outcomes: &[(&str, &str)]| {
            let run = submit(client, tested(&service, &name, minutes, (BRANCH, &tip), outcomes)).await;
            settled(&service).await;
            run
        };
        // Off unless somebody switches it on.
        send(60, &[(MARKUP, "passed"), ("ships", "passed")]).await;
        assert!(host.comments(NUMBER).is_empty() && host.statuses(&tip).is_empty(), "{dialect:?}");
        switch_on(client, &project).await;

        let red = send(50, &[(MARKUP, "failed"), ("ships", "passed")]).await;
        let comment = only(&host, NUMBER);
        assert!(comment.body.starts_with("[//]: # (callboard-feedback "), "{}", comment.body);
        for part in ["1 new failure", &format!("[Run {red}]"), "1 failed, 1 passed", &tip[..8], "went wrong"]
        {
            assert!(comment.body.contains(part), "{dialect:?} {part}: {}", comment.body);
        }
        // What a test is called does nothing outside of code.
        assert!(comment.body.contains(&format!("- ``Shop › {MARKUP}`` in ")), "{}", comment.body);
        let failed = match dialect {
            Dialect::GitHub | Dialect::Gitea => "failure",
            Dialect::GitLab => "failed",
            Dialect::Bitbucket => "FAILED",
        };
        let status = host.statuses(&tip).pop().expect("a status");
        assert_eq!((status.state.as_str(), status.context), (failed, format!("callboard/{name}")));
        assert_eq!(status.description, "1 new failure · 1 failed, 1 passed");
        assert!(status.url.ends_with(&format!("/test-runs/{red}")));
        let states: Vec<(Value, Value)> = items(client, red)
            .await
            .into_iter()
            .map(|item| (item["kind"].clone(), item["state"].clone()))
            .collect();
        assert_eq!(states, [(json!("comment"), json!("sent")), (json!("status"), json!("sent"))]);

        let green = send(40, &[(MARKUP, "passed"), ("ships", "passed")]).await;
        let edited = only(&host, NUMBER);
        assert_eq!((edited.id, edited.edits), (comment.id, 1));
        assert!(edited.body.contains(&format!("[Run {green}]")) && edited.body.contains("#### Fixed (1)"));
        // An older run that comes late changes neither.
        let late = send(45, &[(MARKUP, "failed"), ("ships", "passed")]).await;
        assert_eq!(only(&host, NUMBER).body, edited.body);
        assert_eq!(host.statuses(&tip).len(), 2);
        let newer = format!("Run {green}, which is newer, is shown.");
        assert_eq!(comment_of(client, late).await, ("skipped".to_owned(), newer));
        // A request that is closed is left alone.
        set_request(&host, BRANCH, NUMBER, RequestState::Closed, false);
        let last = send(30, &[(MARKUP, "failed"), ("ships", "passed")]).await;
        assert_eq!(only(&host, NUMBER).body, edited.body);
        let reason = "No open request has this commit or branch.";
        assert_eq!(comment_of(client, last).await, ("skipped".to_owned(), reason.to_owned()));

        let log = client.json(&format!("{project}/repository/feedback/log?limit=3")).await.expect("a log");
        assert_eq!(log["items"].as_array().map(Vec::len), Some(3));
        assert!(log["nextCursor"].is_string(), "the log has pages");
        let skipped = client.json(&format!("{project}/repository/feedback/log?state=skipped")).await;
        let actions = skipped.expect("a log")["items"].as_array().expect("a list").clone();
        assert!(actions.len() == 3 && actions.iter().all(|entry| entry["action"] == "none"), "{actions:?}");
    }
}

#[tokio::test]
async fn a_request_has_one_comment_that_follows_its_newest_run() {
    for_each_backend(one_comment_is_edited).await;
}

async fn faults_make_no_second_comment(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let (host, tip) = host_with_request(BRANCH, NUMBER).await;
        let project = connected(client, &host, dialect).await;
        let name = format!("shop on {}", dialect.word());
        switch_on(client, &project).await;
        client
            .send_json(Method::PATCH, &format!("{project}/repository/feedback"), &json!({ "status": false }))
            .await
            .expect("an answer")
            .success()
            .expect("saved");
        let send = async |minutes: i64| {
            let outcomes = [("pays", "failed"), ("ships", "passed")];
            let run = submit(client, tested(&service, &name, minutes, (BRANCH, &tip), &outcomes)).await;
            settled(&service).await;
            run
        };
        // It was written, and the answer was lost.
        host.plan_writes([Some(Fault::Cuts)]);
        let first = send(60).await;
        let only_one = only(&host, NUMBER);
        let (state, error) = comment_of(client, first).await;
        assert_eq!(state, "pending", "{dialect:?} {error}");
        later(&service).await;
        assert_eq!(comment_of(client, first).await, ("sent".to_owned(), String::new()), "{dialect:?}");
        assert_eq!(only(&host, NUMBER).id, only_one.id, "{dialect:?}");

        // The provider is down, then busy, then there.
        let busy = Fault::Answers(429, vec![("retry-after", "1200".to_owned())], String::new());
        host.plan_writes([Some(Fault::Answers(503, Vec::new(), String::new())), Some(busy)]);
        let second = send(50).await;
        let (state, error) = comment_of(client, second).await;
        assert!(state == "pending" && error.contains("503"), "{dialect:?} {state} {error}");
        later(&service).await;
        let (state, error) = comment_of(client, second).await;
        assert!(state == "pending" && error.contains("limits requests"), "{dialect:?} {state} {error}");
        let waiting = items(client, second).await[0]["nextAttemptAt"].as_str().expect("a time").to_owned();
        let until = Timestamp(service.state().now().millis() + 19 * 60_000).to_iso();
        assert!(waiting > until, "{dialect:?} {waiting} {until}");
        later(&service).await;
        assert_eq!(comment_of(client, second).await.0, "sent", "{dialect:?}");
        assert!(only(&host, NUMBER).body.contains(&format!("[Run {second}]")), "{dialect:?}");

        // Nobody waits for a permission, and the comment is edited once it is there again.
        host.plan_writes([403, 403].map(|status| Some(Fault::Answers(status, Vec::new(), "{}".to_owned()))));
        let third = send(40).await;
        let (state, error) = comment_of(client, third).await;
        assert!(state == "failed" && error.contains("lacks the permission"), "{dialect:?} {state} {error}");
        let again =
            client.post_json(&format!("/api/test-runs/{third}/feedback"), &json!({})).await.expect("queued");
        assert!(again["jobId"].is_i64(), "{again}");
        settled(&service).await;
        assert_eq!(comment_of(client, third).await.0, "sent", "{dialect:?}");
        assert_eq!(only(&host, NUMBER).id, only_one.id, "{dialect:?}");

        // Deleted: made anew once; whoever copied its marker is left alone.
        let copied = only(&host, NUMBER).body;
        host.delete_comments(NUMBER);
        host.add_comment(NUMBER, &copied);
        let fourth = send(30).await;
        let comments = host.comments(NUMBER);
        assert_eq!((comments.len(), comments[0].edits), (2, 0), "{dialect:?} {comments:#?}");
        assert!(comments[1].body.contains(&format!("[Run {fourth}]")), "{dialect:?}");
        host.delete_comments(NUMBER);
        let fifth = send(20).await;
        assert!(host.comments(NUMBER).is_empty(), "{dialect:?}");
        let (state, error) = comment_of(client, fifth).await;
        assert!(state == "skipped" && error.starts_with("The comment was deleted twice"), "{state} {error}");
        client.post_json(&format!("/api/test-runs/{fifth}/feedback"), &json!({})).await.expect("queued");
        settled(&service).await;
        assert!(only(&host, NUMBER).body.contains(&format!("[Run {fifth}]")), "{dialect:?}");
    }
}

#[tokio::test]
async fn no_fault_makes_a_second_comment() {
    for_each_backend(faults_make_no_second_comment).await;
}

async fn projects_and_forks(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let (host, tip) = host_with_request(BRANCH, NUMBER).await;
    let outcomes = [("pays with a secret card", "failed"), ("ships", "passed")];
    for name in ["shop", "admin"] {
        let path = project(client, name).await;
        let repository = json!({
            "repositoryUrl": host.address(Dialect::GitHub), "repositoryProvider": "github",
            "scmToken": callboard_test_support::code_host::TOKEN,
        });
        super::edit(client, &path, repository).await.success().expect("saved");
        switch_on(client, &path).await;
        submit(client, tested(&service, name, 60, (BRANCH, &tip), &outcomes)).await;
    }
    settled(&service).await;
    let of = |name: &str| {
        let comments = host.comments(NUMBER);
        let found = comments.iter().filter(|comment| comment.body.contains(&format!("`{name}`: ")));
        found.cloned().collect::<Vec<_>>()
    };
    assert_eq!((of("shop").len(), of("admin").len(), host.comments(NUMBER).len()), (1, 1, 2));
    let mut contexts: Vec<String> = host.statuses(&tip).into_iter().map(|status| status.context).collect();
    contexts.sort();
    assert_eq!(contexts, ["callboard/admin", "callboard/shop"]);
    submit(client, tested(&service, "shop", 50, (BRANCH, &tip), &[("ships", "passed")])).await;
    settled(&service).await;
    assert_eq!((of("shop")[0].edits, of("admin")[0].edits), (1, 0));

    // A fork learns counts.
    let fork = open_request(&host, "from-a-fork", 8);
    set_request(&host, "from-a-fork", 8, RequestState::Open, true);
    submit(client, tested(&service, "shop", 40, ("from-a-fork", &fork), &outcomes)).await;
    settled(&service).await;
    let body = only(&host, 8).body;
    assert!(body.contains("1 failed, 1 passed") && body.contains("comes from a fork"), "{body}");
    for hidden in ["pays", "secret", "went wrong", "spec.ts"] {
        assert!(!body.contains(hidden), "{hidden}: {body}");
    }
}

#[tokio::test]
async fn projects_of_one_repository_have_a_comment_each_and_forks_learn_counts() {
    for_each_backend(projects_and_forks).await;
}

async fn settings_are_checked(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let path = project(client, "shop").await;
    let settings = format!("{path}/repository/feedback");
    let found = client.json(&settings).await.expect("settings");
    let expected = json!({
        "comment": false, "status": false,
        "statusContext": "callboard/shop", "defaultStatusContext": "callboard/shop",
    });
    assert_eq!(found, expected);
    for (body, field) in [
        (json!({ "comment": "yes" }), "comment"),
        (json!({ "statusContext": " padded " }), "statusContext"),
        (json!({ "status": true, "statusContext": "x".repeat(81) }), "statusContext"),
    ] {
        let answer = client.send_json(Method::PATCH, &settings, &body).await.expect("an answer");
        assert_eq!(refused(&answer, 400, "invalid_field")["data"]["field"], field);
    }
    assert_eq!(client.json(&settings).await.expect("settings"), expected, "nothing was saved");
    let set = json!({ "status": true, "statusContext": "e2e" });
    let saved = client.send_json(Method::PATCH, &settings, &set).await.expect("an answer");
    assert_eq!(saved.success().expect("saved")["statusContext"], "e2e");
    let off = json!({ "status": null, "statusContext": null });
    let saved = client.send_json(Method::PATCH, &settings, &off).await.expect("an answer");
    assert_eq!(saved.success().expect("saved")["statusContext"], "callboard/shop");

    let run = submit(client, tested(&service, "shop", 10, ("main", ""), &[("pays", "passed")])).await;
    settled(&service).await;
    let post = format!("/api/test-runs/{run}/feedback");
    let error = refused(&client.post(&post, &json!({})).await.expect("an answer"), 503, "not_configured");
    assert_eq!(error["data"]["setting"], "comment");
    // Switched on without a repository: the log says what is missing.
    switch_on(client, &path).await;
    client.post_json(&post, &json!({})).await.expect("queued");
    settled(&service).await;
    let log = client.json(&format!("{settings}/log?state=failed")).await.expect("a log");
    let errors: Vec<&str> =
        log["items"].as_array().expect("a list").iter().filter_map(|entry| entry["error"].as_str()).collect();
    assert!(errors.len() == 2 && errors.iter().all(|error| error.contains("has no repository")), "{log}");
}

#[tokio::test]
async fn settings_of_feedback_are_checked_and_named_when_missing() {
    for_each_backend(settings_are_checked).await;
}
