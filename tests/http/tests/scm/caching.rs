//! What is stored is not asked for again.

use callboard_store::{Backend, scm_cache};
use callboard_test_support::code_host::TOKEN;
use callboard_test_support::{CodeHost, Dialect, for_each_backend};
use serde_json::json;

use super::{connected, edit, hashes, history, started};
use crate::rows::texts;
use crate::store::sql;

async fn lists_are_confirmed(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let all = history(&host, 2);
        let project = connected(client, &host, dialect).await;
        let path = format!("{project}/commits?branch=main");
        let list = async || client.json(&path).await.expect("a page");
        let first = list().await;
        assert_eq!((hashes(&first), host.take_requests().len()), (all.clone(), 1), "{dialect:?}");
        assert_eq!((list().await, host.take_requests().len()), (first.clone(), 0), "{dialect:?}");

        // A minute later.
        sql(&service, "UPDATE scm_cache SET fresh_until = 0").await;
        assert_eq!(list().await, first);
        let asked = host.take_requests();
        // Gitea sends no ETag.
        let confirms = dialect != Dialect::Gitea;
        assert_eq!((asked.len(), asked[0].is_conditional), (1, confirms), "{dialect:?}");
        assert_eq!((list().await, host.take_requests().len()), (first, 0), "{dialect:?}");

        sql(&service, "UPDATE scm_cache SET fresh_until = 0").await;
        let newest = host.commit("Newer", &[]).expect("a commit");
        assert_eq!(hashes(&list().await)[0], newest, "{dialect:?}");
    }
}

#[tokio::test]
async fn a_list_is_asked_for_once_a_minute_and_confirmed_then() {
    for_each_backend(lists_are_confirmed).await;
}

async fn commits_are_kept(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let tip = history(&host, 2)[0].clone();
        let project = connected(client, &host, dialect).await;
        let (whole, short) =
            (format!("{project}/commits/{tip}/diff"), format!("{project}/commits/{}/diff", &tip[..8]));
        let shown = client.json(&whole).await.expect("a diff");
        assert!(!host.take_requests().is_empty());
        assert_eq!(client.json(&whole).await.expect("a diff"), shown);
        assert!(host.take_requests().is_empty(), "{dialect:?}");
        // The beginning of a hash is looked up once.
        for requests in [true, false] {
            assert_eq!(client.json(&short).await.expect("a diff"), shown);
            assert_eq!(!host.take_requests().is_empty(), requests, "{dialect:?}");
        }
        // Another token may see less.
        edit(client, &project, json!({ "scmToken": TOKEN })).await.success().expect("saved");
        assert_eq!(client.json(&whole).await.expect("a diff"), shown);
        assert!(!host.take_requests().is_empty(), "{dialect:?}");
    }
    // What has expired is swept, and nothing else.
    let stored = texts(&service, "SELECT key FROM scm_cache").await.len();
    sql(&service, "UPDATE scm_cache SET expires_at = 1 WHERE key LIKE 'diff:%'").await;
    let mut session = service.state().store().db().begin().await.expect("a session");
    let swept = scm_cache::purge(&mut session, service.state().now(), 100).await.expect("swept");
    session.commit().await.expect("swept");
    assert_eq!(swept, Dialect::ALL.len() as u64);
    assert_eq!(texts(&service, "SELECT key FROM scm_cache").await.len(), stored - Dialect::ALL.len());
}

#[tokio::test]
async fn a_commit_is_asked_for_once() {
    for_each_backend(commits_are_kept).await;
}
