//! Branches of a cluster with their open requests, and how linked issues stand.

use callboard_store::Backend;
use callboard_test_support::code_host::{Issue, PullRequest, RequestState};
use callboard_test_support::{Client, CodeHost, Dialect, Fault, for_each_backend};
use serde_json::{Value, json};

use super::{connected, history, project, refused, started};
use crate::builders::{attempt, run, with};
use crate::comparison::submit;
use crate::rows::settled;
use crate::store::sql;

const MARKUP: &str = "<img src=x onerror=alert(1)>";

async fn page(client: &Client, path: &str) -> String {
    let client = client.with_header("accept", "text/html").expect("a header");
    let answer = client.get(path).await.expect("a page");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

/// The page of an issue, and that of a request, at a host.
fn addresses(host: &CodeHost, dialect: Dialect) -> (String, String) {
    let (issues, requests) = match dialect {
        Dialect::GitHub => ("issues", "pull"),
        Dialect::Gitea => ("issues", "pulls"),
        Dialect::GitLab => ("-/issues", "-/merge_requests"),
        Dialect::Bitbucket => ("issues", "pull-requests"),
    };
    let repository = host.address(dialect);
    (format!("{repository}/{issues}/8"), format!("{repository}/{requests}/7"))
}

async fn requests_and_issues_are_shown(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let main = history(&host, 1)[0].clone();
        let own = connected(client, &host, dialect).await;
        let name = format!("shop on {}", dialect.word());
        let tested = async |branch: &str| {
            let set = json!({
                "branch": branch, "commit": main, "metadata": { "scm": { "defaultBranch": "main" } },
            });
            let stored =
                submit(client, with(run(&name, "failed", vec![attempt("pays", "failed", 0)]), set)).await;
            settled(&service).await;
            stored
        };
        tested("main").await;
        tested("feature/a+b&c").await;
        let id = tested("spike").await;
        let found = client.json(&format!("{own}/failure-clusters")).await.expect("clusters");
        let cluster = found["items"][0]["id"].as_i64().expect("a cluster");
        let request = |state| PullRequest {
            number: 7,
            title: format!("Add seven {MARKUP}"),
            branch: "feature/a+b&c".to_owned(),
            state,
            is_fork: false,
        };
        host.set_pull_request(request(RequestState::Open));
        let _ = host.take_requests();
        let path = format!("/failure-clusters/{cluster}");
        let text = page(client, &path).await;
        assert!(text.contains("?branches=show") && !text.contains("Add seven"), "{dialect:?} {text}");
        assert!(host.take_requests().is_empty(), "a page asks nobody");
        let api = format!("/api/failure-clusters/{cluster}/branches");
        let found = client.json(&api).await.expect("branches");
        let of = |name: &str| -> Value {
            let items = found["items"].as_array().expect("branches");
            items.iter().find(|item| item["branch"] == name).cloned().unwrap_or_else(|| panic!("{found}"))
        };
        let asked = of("feature/a+b&c");
        assert_eq!((&asked["request"]["number"], &asked["request"]["state"]), (&json!(7), &json!("open")));
        assert_eq!(of("spike")["request"], json!(null), "{dialect:?}");
        let text = page(client, &format!("{path}?branches=show")).await;
        assert!(text.contains("#7 Add seven") && !text.contains("<img src=x"), "{dialect:?} {text}");

        // A link is read when it is made; what is not of this repository never is.
        host.set_issue(Issue { number: 8, title: "Till is closed".to_owned(), is_open: true });
        let (issue, pull) = addresses(&host, dialect);
        let elsewhere = format!("http://{}/else/where/issues/8", host.host());
        for url in [&issue, &pull, &elsewhere] {
            let body = json!({ "entityType": "test_run", "entityId": id, "url": url });
            client.post_json("/api/links", &body).await.expect("a link");
        }
        settled(&service).await;
        let list = format!("/api/links?entityType=test_run&entityId={id}");
        let states = async || {
            let found = client.json(&list).await.expect("links");
            let items = found["items"].as_array().expect("links").clone();
            items.iter().map(|item| item["statusText"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(states().await, [json!("open"), json!("open"), json!(null)], "{dialect:?}");
        let details = format!("/test-runs/{id}?tab=details");
        let _ = host.take_requests();
        let text = page(client, &details).await;
        assert!(text.contains("Till is closed") && text.contains("links=show"), "{dialect:?} {text}");
        assert!(!text.contains("<img src=x"), "{dialect:?}");
        assert!(host.take_requests().is_empty(), "{dialect:?}: what is stored is shown");

        // They change; a page that was shown reads them, and a broken host takes nothing away.
        host.set_issue(Issue { number: 8, title: "Till is closed".to_owned(), is_open: false });
        host.set_pull_request(request(RequestState::Merged));
        sql(&service, "UPDATE scm_cache SET fresh_until = 0").await;
        host.set_fault(Some(Fault::Answers(503, Vec::new(), String::new())));
        page(client, &format!("{details}&links=show")).await;
        assert_eq!(states().await, [json!("open"), json!("open"), json!(null)], "{dialect:?}");
        let refused_by = client.get(&api).await.expect("an answer");
        refused(&refused_by, 502, "upstream_failed");
        let text = page(client, &format!("{path}?branches=show")).await;
        assert!(text.contains("branches-title") && text.contains("503"), "{dialect:?} {text}");
        host.set_fault(None);
        let text = page(client, &format!("{details}&links=show")).await;
        assert!(text.contains(">merged<") && text.contains(">closed<"), "{dialect:?} {text}");
        assert_eq!(states().await, [json!("closed"), json!("merged"), json!(null)], "{dialect:?}");
        let found = client.json(&api).await.expect("branches");
        assert!(found["items"].as_array().expect("branches").iter().all(|item| item["request"].is_null()));
    }
    project(client, "bare").await;
    let id = submit(client, run("bare", "failed", vec![attempt("pays", "failed", 0)])).await;
    settled(&service).await;
    let found = client.json(&format!("/api/test-runs/{id}/failure-groups")).await.expect("groups");
    let cluster = &found["items"][0]["id"];
    let answer = client.get(&format!("/api/failure-clusters/{cluster}/branches")).await.expect("an answer");
    refused(&answer, 503, "not_configured");
}

#[tokio::test]
async fn open_requests_and_linked_issues_are_read_beside_the_page() {
    for_each_backend(requests_and_issues_are_shown).await;
}
