//! Agents and pages read repositories as the API does.

use callboard_store::Backend;
use callboard_test_support::{CodeHost, Dialect, for_each_backend};
use serde_json::json;

use super::{connected, edit, hashes, history, project, started};
use crate::builders::{attempt, run, with};
use crate::comparison::submit;
use crate::mcp::Agent;
use crate::rows::settled;

const MARKUP: &str = "<img src=x onerror=alert(1)>";

fn id(project: &str) -> i64 {
    project.rsplit('/').next().and_then(|id| id.parse().ok()).expect("an id")
}

async fn agents_read_repositories(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let agent = Agent::at(client.clone(), "/mcp");
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let all = history(&host, 3);
        let project = connected(client, &host, dialect).await;
        let project_id = id(&project);
        let first = agent.call("get_repo_commits", json!({ "projectId": project_id, "limit": 2 })).await;
        let first = first.expect("commits");
        assert_eq!((hashes(&first), &first["repository"]), (all[..2].to_vec(), &json!(dialect.repository())));
        let rest = json!({ "projectId": project_id, "limit": 2, "cursor": first["nextCursor"] });
        let rest = agent.call("get_repo_commits", rest).await.expect("commits");
        assert_eq!((hashes(&rest), &rest["nextCursor"]), (all[2..].to_vec(), &json!(null)));

        let diff =
            agent.call("get_repo_diff", json!({ "projectId": project_id, "sha": &all[0][..10] })).await;
        let diff = diff.expect("a diff");
        assert_eq!(
            (&diff["commit"]["sha"], &diff["items"][0]["filename"]),
            (&json!(all[0]), &json!("count.txt"))
        );
        assert_eq!(diff["items"][0]["patch"], "@@ -1 +1 @@\n-2\n+3");

        // A long patch is cut, and whole when its file is asked for.
        let lines: String = (0..600).map(|line| format!("line {line}\n")).collect();
        let names: Vec<String> = (0..20).map(|number| format!("long-{number:02}.txt")).collect();
        let files: Vec<(&str, Option<&[u8]>)> =
            names.iter().map(|name| (name.as_str(), Some(lines.as_bytes()))).collect();
        let tip = host.commit("Long", &files).expect("a commit");
        let (mut found, mut cursor) = (0, json!(null));
        loop {
            let asked = json!({ "projectId": project_id, "sha": tip, "cursor": cursor });
            let page = agent.call("get_repo_diff", asked).await.expect("a page");
            assert!(page.to_string().len() <= 40_000 && page.get("truncated").is_none(), "{page}");
            for item in page["items"].as_array().expect("items") {
                found += 1;
                let patch = item["patch"].as_str().expect("a patch");
                assert!(patch.chars().count() <= 4_002 && patch.ends_with('…'), "{patch}");
            }
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(found, 20, "{dialect:?}");
        let one = json!({ "projectId": project_id, "sha": tip, "file": names[7] });
        let one = agent.call("get_repo_diff", one).await.expect("a file");
        assert!(one["items"][0]["patch"].as_str().is_some_and(|patch| patch.ends_with("+line 599")), "{one}");

        host.set_token("another token");
        let refused =
            agent.call("get_repo_commits", json!({ "projectId": project_id, "branch": "other" })).await;
        let text = refused.expect_err("an error");
        assert!(
            text.contains("rejected the access token") && text.contains("/settings/source-control"),
            "{text}"
        );
    }
    let project_id = id(&project(client, "without").await);
    let refused = agent.call("get_repo_diff", json!({ "projectId": project_id, "sha": "0a1b2c3" })).await;
    let text = refused.expect_err("an error");
    let said =
        format!("Source control is not configured for project {project_id}. The project has no repository;");
    assert!(text.starts_with(&said) && text.contains("Configure it at http"), "{text}");
}

#[tokio::test]
async fn agents_read_commits_and_diffs_within_their_budget() {
    for_each_backend(agents_read_repositories).await;
}

async fn pages_list_commits_later(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = CodeHost::start().await.expect("a code host");
    let green = host.commit("Green", &[("a.txt", Some(b"1\n"))]).expect("a commit");
    let red = host.commit(&format!("Break it {MARKUP}"), &[("a.txt", Some(b"2\n"))]).expect("a commit");
    let project = project(client, "shop").await;
    let tested = async |at: &str, status: &str, commit: &str| {
        let set = json!({
            "startTime": format!("2026-01-01T{at}:00.000Z"), "branch": "main", "commit": commit, "isFullRun": true,
            "metadata": { "scm": { "defaultBranch": "main" } },
        });
        let stored = submit(client, with(run("shop", status, vec![attempt("pays", status, 0)]), set)).await;
        settled(&service).await;
        stored
    };
    let first = tested("10:00", "passed", &green).await;
    let same = tested("11:00", "failed", &green).await;
    let broken = tested("12:00", "failed", &red).await;
    let page = async |run: i64, more: &str| {
        let client = client.with_header("accept", "text/html").expect("a header");
        let answer = client.get(&format!("/test-runs/{run}?tab=regression{more}")).await.expect("a page");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text()
    };
    assert!(!page(first, "").await.contains("repository-commits"), "there is nothing to compare with");
    let text = page(broken, "&commits=list").await;
    assert!(
        text.contains("The project has no repository;") && text.contains("tab=settings#repository-title"),
        "{text}"
    );

    let repository = json!({
        "repositoryUrl": host.address(Dialect::GitHub), "repositoryProvider": "github",
        "scmToken": callboard_test_support::code_host::TOKEN,
    });
    edit(client, &project, repository).await.success().expect("saved");
    // The page itself asks nobody.
    let text = page(broken, "").await;
    assert!(text.contains("data-later=") && !text.contains("Break it"), "{text}");
    assert!(host.take_requests().is_empty());
    let text = page(broken, "&commits=list").await;
    let address = format!("{}/commit/{red}", host.address(Dialect::GitHub));
    assert!(
        text.contains("Break it") && text.contains(&address) && !text.contains("commits=list\""),
        "{text}"
    );
    assert!(!text.contains("<img src=x"), "{text}");
    assert!(text.contains("1\u{a0}file changed: 1\u{a0}line added, 1 removed."), "{text}");
    let text = page(same, "&commits=list").await;
    assert!(text.contains("This run and the last green run tested the same commit."), "{text}");

    host.set_token("another token");
    crate::store::sql(&service, "DELETE FROM scm_cache").await;
    let text = page(broken, "&commits=list").await;
    assert!(text.contains("GitHub rejected the access token"), "{text}");

    let settings = client.with_header("accept", "text/html").expect("a header");
    let settings =
        settings.get(&format!("/projects/{}?tab=settings", id(&project))).await.expect("a page").text();
    assert!(
        settings.contains("Test connection") && settings.contains("Detect from the address"),
        "{settings}"
    );
    assert!(settings.contains("<option value=\"github\" selected>GitHub</option>"), "{settings}");
}

#[tokio::test]
async fn a_page_asks_for_commits_after_it_is_shown() {
    for_each_backend(pages_list_commits_later).await;
}
