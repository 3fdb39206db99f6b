//! The shared access token serves the repositories on its list, at one host, and projects without a token of their own.

use callboard_store::Backend;
use callboard_test_support::code_host::TOKEN;
use callboard_test_support::{Client, CodeHost, Dialect, for_each_backend};
use reqwest::Method;
use serde_json::{Value, json};

use super::{connected, edit, history, project, refused, started};

const PATH: &str = "/api/settings/source-control";

async fn set(client: &Client, body: Value) -> callboard_test_support::Answer {
    client.send_json(Method::PATCH, PATH, &body).await.expect("an answer")
}

async fn serves_its_list(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let tip = history(&host, 1)[0].clone();
        let project = project(client, &format!("shared {}", dialect.word())).await;
        let repository =
            json!({ "repositoryUrl": host.address(dialect), "repositoryProvider": dialect.word() });
        edit(client, &project, repository).await.success().expect("saved");
        let commits = async || client.get(&format!("{project}/commits")).await.expect("an answer");
        let missing = async || {
            let error = refused(&commits().await, 503, "not_configured");
            assert_eq!(error["data"]["setting"], "scmToken", "{dialect:?}");
        };
        missing().await;

        // Another repository of the host is not served, nor one whose name only begins alike.
        let elsewhere =
            [format!("http://{}/acme/sho", host.host()), format!("http://{}/other/*", host.host())];
        set(client, json!({ "repositories": [], "token": null })).await.success().expect("saved");
        set(client, json!({ "repositories": elsewhere, "token": TOKEN })).await.success().expect("saved");
        missing().await;
        assert!(host.take_requests().is_empty(), "{dialect:?} the token went nowhere");

        // Its address is, and so are all of its owner.
        for entry in [format!("{}.git", host.address(dialect)), format!("http://{}/Acme/*", host.host())] {
            let saved = set(client, json!({ "repositories": [entry] })).await.success().expect("saved");
            assert_eq!(
                saved["settings"],
                json!({ "repositories": [entry], "hasToken": true }),
                "{dialect:?}"
            );
            let found = commits().await.success().expect("commits");
            assert_eq!(found["items"][0]["sha"], json!(tip), "{dialect:?}");
        }
        let tested = client.post(&format!("{project}/repository/test"), &json!({})).await.expect("an answer");
        assert!(
            tested.success().expect("connected")["message"].as_str().is_some_and(|it| it.contains(&tip[..8]))
        );

        // A project's own token comes first.
        edit(client, &project, json!({ "scmToken": "of-its-own" })).await.success().expect("saved");
        let tested = client.post(&format!("{project}/repository/test"), &json!({})).await.expect("an answer");
        let error = refused(&tested, 502, "upstream_failed");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("rejected the access token")));
    }
    let shown = client.get(PATH).await.expect("an answer").text();
    assert!(!shown.contains(TOKEN) && shown.contains("\"hasToken\":true"), "{shown}");
}

#[tokio::test]
async fn the_shared_token_serves_its_list_only() {
    for_each_backend(serves_its_list).await;
}

async fn stays_with_its_host(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let shop = "https://github.com/acme/shop";
    for (body, field) in [
        (json!({ "repositories": ["acme/*"] }), "repositories"),
        (json!({ "repositories": ["https://github.com/*"] }), "repositories"),
        (json!({ "repositories": "https://github.com/acme/shop" }), "repositories"),
        (json!({ "repositories": [shop, "https://gitlab.com/acme/shop"] }), "repositories"),
        // Without encryption only where the environment opens the host.
        (json!({ "repositories": ["http://git.example.org/acme/*"] }), "repositories"),
    ] {
        assert_eq!(
            refused(&set(client, body.clone()).await, 400, "invalid_field")["data"]["field"],
            field,
            "{body}"
        );
    }
    refused(&set(client, json!({})).await, 400, "no_fields");
    set(client, json!({ "repositories": [shop], "token": TOKEN })).await.success().expect("saved");
    let moved = json!({ "repositories": ["https://gitlab.com/acme/*"] });
    assert_eq!(refused(&set(client, moved).await, 400, "missing_field")["data"]["field"], "token");
    set(client, json!({ "repositories": [shop, "https://github.com/acme/*"] }))
        .await
        .success()
        .expect("saved");
    // There is no way round by an empty list.
    set(client, json!({ "repositories": [] })).await.success().expect("saved");
    let after =
        set(client, json!({ "repositories": ["https://gitlab.com/acme/*"] })).await.success().expect("saved");
    assert_eq!(after["settings"]["hasToken"], false);
    let audit = client.json("/api/audit?action=secret.set").await.expect("entries");
    assert_eq!(audit["items"].as_array().map(Vec::len), Some(1), "{audit}");
    assert!(!audit.to_string().contains(TOKEN));

    // Pages say whose token a project uses.
    let host = CodeHost::start().await.expect("a code host");
    let own = connected(client, &host, Dialect::GitLab).await;
    edit(client, &own, json!({ "scmToken": null })).await.success().expect("saved");
    let page = async || client.get("/settings/source-control").await.expect("a page").text();
    assert!(!page().await.contains(">shared<"));
    let entry = json!({ "repositories": [format!("http://{}/acme/*", host.host())], "token": TOKEN });
    set(client, entry).await.success().expect("saved");
    let text = page().await;
    assert!(text.contains(">shared<") && !text.contains(TOKEN), "{text}");
}

#[tokio::test]
async fn the_shared_token_stays_with_its_host() {
    for_each_backend(stays_with_its_host).await;
}
