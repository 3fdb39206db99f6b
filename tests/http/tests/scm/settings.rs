//! The repository among the settings of a project, and the test of it.

use callboard_store::Backend;
use callboard_test_support::code_host::TOKEN;
use callboard_test_support::{CodeHost, Dialect, for_each_backend};
use serde_json::{Value, json};

use super::{connected, edit, history, project, refused, started};

async fn providers_follow_the_host(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let project = project(client, "shop").await;
    let provider = async |body: Value| {
        let saved = edit(client, &project, body).await.success().expect("saved");
        saved["project"]["repositoryProvider"].clone()
    };
    // The name of the host tells, a person may, and the cloud is nobody's choice.
    for (body, expected) in [
        (json!({ "repositoryUrl": "https://github.com/acme/shop" }), json!("github")),
        (json!({ "repositoryUrl": "https://git.example.org/acme/shop" }), json!("other")),
        (json!({ "repositoryProvider": "gitea" }), json!("gitea")),
        (json!({ "label": "Shop" }), json!("gitea")),
        (json!({ "repositoryUrl": "https://git.example.org/acme/store" }), json!("gitea")),
        (json!({ "repositoryProvider": null }), json!("other")),
        (json!({ "repositoryProvider": "bitbucket" }), json!("bitbucket")),
        (json!({ "repositoryUrl": "https://gitlab.example.org/acme/shop" }), json!("gitlab")),
        (json!({ "repositoryUrl": "https://codeberg.org/acme/shop" }), json!("gitea")),
        (json!({ "repositoryUrl": null }), json!(null)),
    ] {
        assert_eq!(provider(body.clone()).await, expected, "{body}");
    }
    for (body, code, field) in [
        (json!({ "repositoryProvider": "subversion" }), "invalid_field", "repositoryProvider"),
        (json!({ "repositoryProvider": 7 }), "invalid_field", "repositoryProvider"),
        (
            json!({ "repositoryUrl": "https://github.com/acme/shop", "repositoryProvider": "gitlab" }),
            "invalid_field",
            "repositoryProvider",
        ),
        // Without https only where the environment opens the host.
        (json!({ "repositoryUrl": "http://git.example.org/acme/shop" }), "invalid_field", "repositoryUrl"),
    ] {
        assert_eq!(refused(&edit(client, &project, body).await, 400, code)["data"]["field"], field);
    }
    let opened = json!({ "repositoryUrl": "http://127.0.0.1:3333/acme/shop" });
    edit(client, &project, opened).await.success().expect("saved");
}

#[tokio::test]
async fn the_provider_is_that_of_the_host_or_the_one_that_was_chosen() {
    for_each_backend(providers_follow_the_host).await;
}

async fn tokens_stay_with_their_host(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let project = project(client, "shop").await;
    let on = |host: &str| format!("https://{host}/acme/shop");
    let first = json!({ "repositoryUrl": on("github.com"), "scmToken": TOKEN });
    edit(client, &project, first).await.success().expect("saved");
    let has_token = async || client.json(&project).await.expect("the project")["hasScmToken"].clone();

    let moved = json!({ "repositoryUrl": on("evil.example") });
    let error = refused(&edit(client, &project, moved).await, 400, "missing_field");
    assert_eq!(error["data"]["field"], "scmToken");
    assert_eq!(client.json(&project).await.expect("the project")["repositoryUrl"], json!(on("github.com")));
    // Another repository of the same host may be read with it.
    let renamed = json!({ "repositoryUrl": "https://github.com/acme/store" });
    edit(client, &project, renamed).await.success().expect("saved");
    assert_eq!(has_token().await, true);
    let moved = json!({ "repositoryUrl": on("gitlab.com"), "scmToken": "glpat-another-token" });
    edit(client, &project, moved).await.success().expect("saved");
    assert_eq!(has_token().await, true);
    // There is no way round by leaving the repository out in between.
    edit(client, &project, json!({ "repositoryUrl": null })).await.success().expect("saved");
    assert_eq!(has_token().await, false);
    let cleared = client.json("/api/audit?action=secret.cleared").await.expect("entries");
    assert_eq!(cleared["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_token_is_never_taken_to_another_host() {
    for_each_backend(tokens_stay_with_their_host).await;
}

async fn missing_settings_are_named(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let project = project(client, "shop").await;
    let missing = async |setting: &str| {
        for path in [format!("{project}/commits"), format!("{project}/commits/0a1b2c3/diff")] {
            let error = refused(&client.get(&path).await.expect("an answer"), 503, "not_configured");
            assert_eq!(error["data"]["setting"], setting);
        }
        let tested = client.post(&format!("{project}/repository/test"), &json!({})).await.expect("an answer");
        refused(&tested, 503, "not_configured")["message"].as_str().expect("a sentence").to_owned()
    };
    assert!(missing("repositoryUrl").await.starts_with("The project has no repository;"));
    edit(client, &project, json!({ "repositoryUrl": "https://git.example.org/acme/shop" }))
        .await
        .success()
        .expect("saved");
    assert!(missing("repositoryProvider").await.starts_with("The provider of git.example.org is not known;"));
    edit(client, &project, json!({ "repositoryProvider": "gitlab" })).await.success().expect("saved");
    assert!(missing("scmToken").await.starts_with("No access token is stored"));
    let without_name = json!({ "repositoryUrl": "https://git.example.org/", "scmToken": TOKEN });
    edit(client, &project, without_name).await.success().expect("saved");
    assert!(missing("repositoryUrl").await.contains("owner and the name of a repository"));
}

#[tokio::test]
async fn what_is_missing_is_named_with_its_setting() {
    for_each_backend(missing_settings_are_named).await;
}

async fn connections_are_tested(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for (dialect, name) in Dialect::ALL.into_iter().zip(["GitHub", "GitLab", "Gitea / Forgejo", "Bitbucket"])
    {
        let host = CodeHost::start().await.expect("a code host");
        let project = connected(client, &host, dialect).await;
        let test =
            async || client.post(&format!("{project}/repository/test"), &json!({})).await.expect("an answer");
        let repository = dialect.repository();
        if dialect != Dialect::GitHub {
            let said = format!("Connected to {repository} on {name}. It has no commits yet.");
            assert_eq!(test().await.success().expect("connected")["message"], json!(said));
        }
        let tip = history(&host, 1)[0].clone();
        let connected = test().await.success().expect("connected");
        let said = format!("Connected to {repository} on {name}. Newest commit on main: {}.", &tip[..8]);
        assert_eq!(connected["message"], json!(said));
        assert_eq!(
            (&connected["repository"], &connected["defaultBranch"], &connected["newestCommit"]["sha"]),
            (&json!(repository), &json!("main"), &json!(tip))
        );
        // What is stored is not what is tested.
        let _ = host.take_requests();
        test().await.success().expect("connected");
        assert_eq!(host.take_requests().len(), 2);
        host.set_token("another token");
        let error = refused(&test().await, 502, "upstream_failed");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("rejected the access token")));
        // A repository of another name.
        host.set_token(TOKEN);
        edit(client, &project, json!({ "repositoryUrl": format!("http://{}/acme/else", host.host()) }))
            .await
            .success()
            .expect("saved");
        let error = refused(&test().await, 502, "upstream_failed");
        let said = format!(
            "{name} has no repository acme/else that the access token can read; it may have been renamed or deleted."
        );
        assert_eq!(error["message"], json!(said));
    }
}

#[tokio::test]
async fn a_connection_is_tested_with_what_is_saved() {
    for_each_backend(connections_are_tested).await;
}
