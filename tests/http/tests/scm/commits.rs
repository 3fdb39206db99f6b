//! Lists of commits.

use callboard_store::Backend;
use callboard_test_support::{CodeHost, Dialect, for_each_backend};
use serde_json::json;

use super::{connected, encoded, hashes, history, refused, started};

async fn pages_hold_every_commit_once(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let all = history(&host, 5);
        let project = connected(client, &host, dialect).await;
        let base = &all[3];
        for (query, expected) in [("".to_owned(), &all[..]), (format!("&base={base}"), &all[..3])] {
            let mut found = Vec::new();
            let mut cursor = String::new();
            loop {
                let path = format!("{project}/commits?limit=2{query}{cursor}");
                let page = client.json(&path).await.expect("a page");
                assert_eq!(page["repositoryUrl"], json!(host.address(dialect)));
                found.extend(hashes(&page));
                // What is pushed meanwhile moves nothing.
                host.commit("Pushed meanwhile", &[]).expect("a commit");
                match page["nextCursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
            assert_eq!(found, expected, "{dialect:?} {query}");
            host.git(&["reset", "--quiet", "--hard", &all[0]]).expect("as before");
        }
        let page = client.json(&format!("{project}/commits?limit=1&base={base}")).await.expect("a page");
        let counted = json!({ "filesChanged": 1, "linesAdded": 1, "linesRemoved": 1 });
        // Gitea lists files of a range without counting their lines.
        let counted = if dialect == Dialect::Gitea { json!(null) } else { counted };
        assert_eq!(page["aggregate"], counted, "{dialect:?}");
        let commit = &page["items"][0];
        assert_eq!(commit["message"], "Change 5 🚀\n\nBecause.");
        assert_eq!((&commit["author"], &commit["shortSha"]), (&json!("Ada Lovelace"), &json!(all[0][..8])));
        assert!(commit["date"].as_str().is_some_and(|date| date.ends_with('Z') && date > "2020"), "{commit}");
        let foreign = format!("{project}/commits?limit=2&branch=main&cursor=");
        refused(&client.get(&(foreign + "eyJ2IjoxfQ")).await.expect("an answer"), 400, "invalid_cursor");
    }
}

#[tokio::test]
async fn commits_come_page_by_page_and_hold_still() {
    for_each_backend(pages_hold_every_commit_once).await;
}

async fn branches_are_found_by_their_names(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        history(&host, 1);
        let project = connected(client, &host, dialect).await;
        for branch in ["feature/x", "a%2fb", "🚀/launch", "plus+and&more", "fix#7"] {
            host.git(&["checkout", "--quiet", "-b", branch, "main"]).expect("a branch");
            let tip = host.commit(&format!("On {branch}"), &[]).expect("a commit");
            let path = format!("{project}/commits?branch={}", encoded(branch));
            let page = client.json(&path).await.expect("a page");
            assert_eq!((&hashes(&page)[0], &page["branch"]), (&tip, &json!(branch)), "{dialect:?}");
            let asked = host.take_requests();
            let sent = asked.iter().any(|asked| asked.query.iter().any(|(_, value)| value == branch));
            assert!(sent, "{dialect:?} {asked:?}");
        }
        for branch in ["..", "a..b", "../../user", "-x", "a b", "a.lock", "x\u{7}"] {
            let answer = client.get(&format!("{project}/commits?branch={}", encoded(branch))).await;
            let error = refused(&answer.expect("an answer"), 400, "invalid_query");
            assert_eq!(error["data"]["param"], "branch");
        }
        for base in ["main", "0a1b2c", "../x"] {
            let answer = client.get(&format!("{project}/commits?base={}", encoded(base))).await;
            assert_eq!(refused(&answer.expect("an answer"), 400, "invalid_query")["data"]["param"], "base");
        }
        assert!(host.take_requests().is_empty(), "what is no branch is asked of nobody");
        let answer = client.get(&format!("{project}/commits?branch=nowhere")).await.expect("an answer");
        let error = refused(&answer, 502, "upstream_failed");
        let said = format!("The repository {} has no branch nowhere.", dialect.repository());
        assert_eq!((&error["message"], &error["data"]["status"]), (&json!(said), &json!(404)));
    }
}

#[tokio::test]
async fn a_branch_is_found_by_any_name_that_git_allows() {
    for_each_backend(branches_are_found_by_their_names).await;
}

async fn nothing_is_listed_of_nothing(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let project = connected(client, &host, dialect).await;
        if dialect == Dialect::GitLab {
            // It has no branch to list then.
            let answer = client.get(&format!("{project}/commits")).await.expect("an answer");
            refused(&answer, 502, "upstream_failed");
            continue;
        }
        let page = client.json(&format!("{project}/commits")).await.expect("a page");
        assert_eq!((&page["items"], &page["nextCursor"]), (&json!([]), &json!(null)), "{dialect:?}");
    }
}

#[tokio::test]
async fn a_repository_without_commits_lists_none() {
    for_each_backend(nothing_is_listed_of_nothing).await;
}
