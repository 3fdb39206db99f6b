//! Which comment and which status are whose: accounts, projects, spellings, numbers of requests, and too many comments.

use callboard_store::Backend;
use callboard_test_support::code_host::{HostStatus, RequestState};
use callboard_test_support::{Client, CodeHost, Dialect, Fault, Service, for_each_backend};
use reqwest::Method;
use serde_json::{Value, json};

use super::feedback::{
    BRANCH, NUMBER, comment_of, host_with_request, items, later, only, open_request, set_request, switch_on,
    tested,
};
use super::{connected, edit, project, started};
use crate::builders::with;
use crate::comparison::submit;
use crate::rows::settled;
use crate::store::sql;

const OUTCOMES: [(&str, &str); 2] = [("pays", "failed"), ("ships", "passed")];

async fn sent(service: &Service, project: &str, minutes: i64, tip: &str) -> i64 {
    let run = submit(service.client(), tested(service, project, minutes, (BRANCH, tip), &OUTCOMES)).await;
    settled(service).await;
    run
}

async fn set_feedback(client: &Client, project: &str, body: Value) {
    let path = format!("{project}/repository/feedback");
    client.send_json(Method::PATCH, &path, &body).await.expect("an answer").success().expect("saved");
}

async fn post_again(service: &Service, run: i64) {
    let path = format!("/api/test-runs/{run}/feedback");
    service.client().post_json(&path, &json!({})).await.expect("queued");
    settled(service).await;
}

async fn accounts_change(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let (host, tip) = host_with_request(BRANCH, NUMBER).await;
        let project = connected(client, &host, dialect).await;
        let name = format!("shop on {}", dialect.word());
        set_feedback(client, &project, json!({ "comment": true })).await;
        sent(&service, &name, 60, &tip).await;
        let old = only(&host, NUMBER);

        host.change_account();
        let run = sent(&service, &name, 50, &tip).await;
        let comments = host.comments(NUMBER);
        assert_eq!((comments.len(), &comments[0]), (2, &old), "{dialect:?} the old one is left alone");
        assert!(comments[1].body.contains(&format!("[Run {run}]")), "{dialect:?}");
        let log = client.json(&format!("{project}/repository/feedback/log?limit=1")).await.expect("a log");
        assert_eq!(log["items"][0]["action"], "replaced", "{dialect:?} {log}");
        // From here on the new one is edited.
        let run = sent(&service, &name, 40, &tip).await;
        let comments = host.comments(NUMBER);
        assert_eq!((comments.len(), comments[1].edits), (2, 1), "{dialect:?}");
        assert!(comments[1].body.contains(&format!("[Run {run}]")), "{dialect:?}");
    }
}

#[tokio::test]
async fn another_account_leaves_the_old_comment_and_writes_one_of_its_own() {
    for_each_backend(accounts_change).await;
}

async fn names_are_one_projects(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let (host, tip) = host_with_request(BRANCH, NUMBER).await;
    let repository = host.address(Dialect::GitHub);
    let mut paths = Vec::new();
    for (name, url) in [("shop", repository.clone()), ("admin", format!("{repository}.git/"))] {
        let path = project(client, name).await;
        let token = callboard_test_support::code_host::TOKEN;
        let body = json!({ "repositoryUrl": url, "repositoryProvider": "github", "scmToken": token });
        edit(client, &path, body).await.success().expect("saved");
        set_feedback(client, &path, json!({ "status": true, "statusContext": "e2e" })).await;
        paths.push(path);
    }
    let shop = sent(&service, "shop", 60, &tip).await;
    let admin = sent(&service, "admin", 50, &tip).await;
    let status_of = async |run: i64| items(client, run).await[0].clone();
    assert_eq!(status_of(shop).await["state"], "sent");
    let refused = status_of(admin).await;
    assert_eq!(refused["state"], "failed", "{refused}");
    let why = refused["error"].as_str().expect("a sentence");
    assert!(why.starts_with("Another project sets a status of this name") && !why.contains("shop"), "{why}");
    let urls = |found: Vec<HostStatus>| found.into_iter().map(|status| status.url).collect::<Vec<_>>();
    let shown = urls(host.statuses(&tip));
    assert!(shown.len() == 1 && shown[0].ends_with(&format!("/test-runs/{shop}")), "{shown:?}");

    // A project that takes another name, or ends its statuses, gives the name back.
    set_feedback(client, &paths[0], json!({ "statusContext": "e2e-shop" })).await;
    post_again(&service, admin).await;
    assert_eq!(status_of(admin).await["state"], "sent");
    post_again(&service, shop).await;
    let mut names: Vec<String> = host.statuses(&tip).into_iter().map(|status| status.context).collect();
    names.dedup();
    assert_eq!(names, ["e2e", "e2e-shop"]);
}

#[tokio::test]
async fn two_projects_never_set_a_status_of_one_name() {
    for_each_backend(names_are_one_projects).await;
}

async fn spellings_are_one(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let (host, tip) = host_with_request(BRANCH, NUMBER).await;
    let project = connected(client, &host, Dialect::GitHub).await;
    switch_on(client, &project).await;
    sent(&service, "shop on github", 60, &tip).await;
    for (minutes, end) in [(50, ".git"), (40, "/"), (30, ".git/")] {
        let url = format!("{}{end}", host.address(Dialect::GitHub));
        edit(client, &project, json!({ "repositoryUrl": url })).await.success().expect("saved");
        let run = sent(&service, "shop on github", minutes, &tip).await;
        assert!(only(&host, NUMBER).body.contains(&format!("[Run {run}]")), "{end}");
    }
}

#[tokio::test]
async fn another_spelling_of_the_repository_makes_no_second_comment() {
    for_each_backend(spellings_are_one).await;
}

async fn numbers_are_checked(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let (host, _) = host_with_request(BRANCH, NUMBER).await;
        let project = connected(client, &host, dialect).await;
        let name = format!("shop on {}", dialect.word());
        set_feedback(client, &project, json!({ "comment": true })).await;
        // The branch is in a fork, and the commit is one that the CI system made of both branches.
        open_request(&host, "from-a-fork", 8);
        set_request(&host, "from-a-fork", 8, RequestState::Open, true);
        let merged = "0123456789abcdef0123456789abcdef01234567";
        let numbered = |minutes: i64, branch: &str, number: &str| {
            let run = tested(&service, &name, minutes, (branch, merged), &OUTCOMES);
            with(run, json!({ "pullRequest": number }))
        };
        let unnumbered = tested(&service, &name, 60, ("from-a-fork", merged), &OUTCOMES);
        submit(client, unnumbered).await;
        settled(&service).await;
        assert!(host.comments(8).is_empty(), "{dialect:?}");
        submit(client, numbered(50, "from-a-fork", "8")).await;
        settled(&service).await;
        assert!(only(&host, 8).body.contains("comes from a fork"), "{dialect:?}");
        // The number of another repository's request, one that is closed, and one that is none.
        for (minutes, branch, number) in [(40, "elsewhere", "7"), (30, BRANCH, "404"), (20, BRANCH, "x")] {
            submit(client, numbered(minutes, branch, number)).await;
            settled(&service).await;
        }
        assert!(only(&host, NUMBER).body.contains(&format!("branch `{BRANCH}`")), "{dialect:?}");
        assert_eq!(only(&host, 8).edits, 0, "{dialect:?}");
        set_request(&host, "from-a-fork", 8, RequestState::Closed, true);
        let last = submit(client, numbered(10, "from-a-fork", "8")).await;
        settled(&service).await;
        assert_eq!(comment_of(client, last).await.0, "skipped", "{dialect:?}");
    }
}

#[tokio::test]
async fn the_number_of_the_request_counts_where_its_branch_was_tested() {
    for_each_backend(numbers_are_checked).await;
}

async fn crashes_end(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let (host, tip) = host_with_request(BRANCH, NUMBER).await;
    let project = connected(client, &host, Dialect::GitHub).await;
    switch_on(client, &project).await;
    let run = sent(&service, "shop on github", 60, &tip).await;
    // As if the process had ended in each of its attempts.
    client.post_json(&format!("/api/test-runs/{run}/feedback"), &json!({})).await.expect("queued");
    sql(&service, "UPDATE scm_feedback SET state = 'sending', attempts = 7 WHERE kind = 'comment'").await;
    sql(&service, "UPDATE scm_feedback SET state = 'sending', attempts = 1 WHERE kind = 'status'").await;
    settled(&service).await;
    let (state, why) = comment_of(client, run).await;
    assert!(state == "failed" && why.starts_with("7 attempts ended before they were done."), "{state} {why}");
    let status = items(client, run).await.into_iter().find(|item| item["kind"] == "status");
    assert_eq!(status.expect("a status")["state"], "sent");
    let log = client.json(&format!("{project}/repository/feedback/log?state=failed")).await.expect("a log");
    assert_eq!(log["items"].as_array().map(Vec::len), Some(1), "{log}");
    post_again(&service, run).await;
    assert_eq!(comment_of(client, run).await.0, "sent");
    assert_eq!(only(&host, NUMBER).edits, 1);
}

#[tokio::test]
async fn attempts_that_never_end_are_given_up_where_people_see_it() {
    for_each_backend(crashes_end).await;
}

fn add_comments(host: &CodeHost, count: usize) {
    (0..count).for_each(|number| host.add_comment(NUMBER, &format!("Comment {number}")));
}

async fn crowded_requests(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let (host, tip) = host_with_request(BRANCH, NUMBER).await;
        let project = connected(client, &host, dialect).await;
        let name = format!("shop on {}", dialect.word());
        set_feedback(client, &project, json!({ "comment": true })).await;
        let ours = || {
            let comments = host.comments(NUMBER);
            comments.into_iter().filter(|comment| comment.body.contains("callboard-feedback")).count()
        };
        // It is the newest of very many, and its answer was lost.
        add_comments(&host, 3_150);
        host.plan_writes([Some(Fault::Cuts)]);
        let first = sent(&service, &name, 60, &tip).await;
        later(&service).await;
        assert_eq!((comment_of(client, first).await.0.as_str(), ours()), ("sent", 1), "{dialect:?}");
        if dialect == Dialect::Gitea {
            // All comments are one answer there.
            continue;
        }
        // The same, and very many came after it.
        sql(&service, "UPDATE scm_feedback_targets SET external_id = NULL").await;
        add_comments(&host, 3_150);
        let second = sent(&service, &name, 50, &tip).await;
        let (state, why) = comment_of(client, second).await;
        assert!(
            state == "failed" && why.contains("more than the 3000 comments"),
            "{dialect:?} {state} {why}"
        );
        assert_eq!(ours(), 1, "{dialect:?}");
        post_again(&service, second).await;
        assert_eq!((comment_of(client, second).await.0.as_str(), ours()), ("sent", 2), "{dialect:?}");
    }
}

#[tokio::test]
async fn a_comment_is_found_among_thousands_or_no_second_one_is_made() {
    for_each_backend(crowded_requests).await;
}
