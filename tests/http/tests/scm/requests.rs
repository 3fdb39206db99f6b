//! Pull and merge requests of runs.

use callboard_store::Backend;
use callboard_test_support::code_host::{PullRequest, RequestState};
use callboard_test_support::{Client, CodeHost, Dialect, for_each_backend};
use serde_json::json;

use super::{connected, history, started};
use crate::builders::{attempt, run, with};
use crate::comparison::submit;
use crate::rows::settled;
use crate::store::sql;

const MARKUP: &str = "<img src=x onerror=alert(1)>";

async fn page(client: &Client, run: i64, more: &str) -> String {
    let client = client.with_header("accept", "text/html").expect("a header");
    let answer = client.get(&format!("/test-runs/{run}{more}")).await.expect("a page");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

async fn runs_name_their_request(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let main = history(&host, 1)[0].clone();
        host.git(&["checkout", "--quiet", "-b", "feature/a+b&c"]).expect("a branch");
        let tip = host.commit("On the branch", &[("new.txt", Some(b"1\n"))]).expect("a commit");
        host.git(&["checkout", "--quiet", "main"]).expect("the branch");
        let request = |number, state, is_fork| PullRequest {
            number,
            title: format!("Add {number} {MARKUP}"),
            branch: "feature/a+b&c".to_owned(),
            state,
            is_fork,
        };
        connected(client, &host, dialect).await;
        let tested = async |branch: &str, commit: &str| {
            let set = json!({ "branch": branch, "commit": commit });
            let name = format!("shop on {}", dialect.word());
            let stored =
                submit(client, with(run(&name, "passed", vec![attempt("pays", "passed", 0)]), set)).await;
            settled(&service).await;
            stored
        };
        let of_main = tested("main", &main).await;
        let of_branch = tested("feature/a+b&c", &tip).await;
        let later = tested("feature/a+b&c", "0123456789012345678901234567890123456789").await;
        let show = async |run: i64| {
            sql(&service, "UPDATE scm_cache SET fresh_until = 0").await;
            page(client, run, "?request=show").await
        };

        // The page itself asks nobody; jobs read who owns the tests.
        let _ = host.take_requests();
        assert!(page(client, of_branch, "").await.contains("data-later="), "{dialect:?}");
        assert!(host.take_requests().is_empty(), "{dialect:?}");
        let text = show(of_branch).await;
        assert!(!text.contains("#7 ") && text.contains("id=\"run-request\" hidden"), "{dialect:?} {text}");

        host.set_pull_request(request(6, RequestState::Closed, false));
        host.set_pull_request(request(7, RequestState::Draft, false));
        host.set_pull_request(request(5, RequestState::Merged, false));
        // Found by its commit; an open one comes before others. Gitea names one of a commit.
        let text = show(of_branch).await;
        let expected = if dialect == Dialect::Gitea { ("#5 Add 5", "merged") } else { ("#7 Add 7", "draft") };
        assert!(
            text.contains(expected.0) && text.contains(&format!(">{}<", expected.1)),
            "{dialect:?} {text}"
        );
        assert!(text.contains("https://host.test/acme/") && !text.contains("<img src=x"), "{dialect:?}");
        // A commit that the host does not know: found by its branch.
        let text = show(later).await;
        assert!(text.contains("#7 Add 7"), "{dialect:?} {text}");
        assert!(!show(of_main).await.contains("#7 "), "{dialect:?}");

        // Stored for a minute, and confirmed then where the provider sends an ETag.
        show(of_branch).await;
        let _ = host.take_requests();
        page(client, of_branch, "?request=show").await;
        assert!(host.take_requests().is_empty(), "{dialect:?}");
        show(of_branch).await;
        let asked = host.take_requests();
        let confirms = dialect != Dialect::Gitea;
        assert_eq!((asked.len(), asked[0].is_conditional), (1, confirms), "{dialect:?} {asked:?}");

        host.set_pull_request(request(7, RequestState::Open, true));
        let text = show(of_branch).await;
        assert!(text.contains("from a fork") && text.contains(">open<"), "{dialect:?} {text}");
        host.set_token("another token");
        let text = show(of_branch).await;
        assert!(text.contains("rejected the access token"), "{dialect:?} {text}");
    }
}

#[tokio::test]
async fn a_run_names_the_request_that_it_tested() {
    for_each_backend(runs_name_their_request).await;
}
