//! What opens something is written into no log, at no level.

use callboard_store::Backend;
use callboard_test_support::accounts::{PASSWORD, secured_settings};
use callboard_test_support::{Answer, Client, Runner, TestDatabase};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run};
use crate::live::complete;

const WRONG_PASSWORD: &str = "a-wrong-guess-of-mine";
const NEW_PASSWORD: &str = "another battery staple";

async fn no_secret_is_logged(backend: Backend) {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let mut settings = secured_settings();
    let more = [
        ("SERVICE_DATABASE_URL", database.url().to_owned()),
        ("SERVICE_STORAGE_URL", database.storage_url()),
        ("SERVICE_LOG", "trace".to_owned()),
    ];
    settings.extend(more.map(|(name, value)| (name.to_owned(), value)));
    let mut runner = Runner::start(&settings).await.expect("a service");
    let browser = runner.client().browser();
    let mut secrets: Vec<String> = [PASSWORD, WRONG_PASSWORD, NEW_PASSWORD].map(str::to_owned).into();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();

    let account = |password: &str| json!({ "username": "ada", "password": password });
    browser.post_json("/api/auth/setup", &account(PASSWORD)).await.expect("set up");
    secrets.extend(browser.cookie("svc_session"));
    let refused = browser.post("/api/auth/login", &account(WRONG_PASSWORD)).await.expect("an answer");
    assert_eq!(refused.status, 401);
    browser.post_json("/api/auth/login", &account(PASSWORD)).await.expect("signed in");
    secrets.extend(browser.cookie("svc_session"));
    let body = json!({ "currentPassword": PASSWORD, "newPassword": NEW_PASSWORD });
    browser.post_json("/api/auth/change-password", &body).await.expect("changed");
    secrets.extend(browser.cookie("svc_session"));
    secrets.extend(browser.cookie("svc_device"));

    let key = browser.post_json("/api/users/me/api-keys", &json!({ "name": "ci" })).await.expect("a key");
    let key = text(&key["key"]);
    let unknown = format!("pd_{}", "e".repeat(64));
    for key in [&key, &unknown] {
        let bearer =
            runner.client().with_header("authorization", &format!("Bearer {key}")).expect("a header");
        let header = runner.client().with_header("x-api-key", key).expect("a header");
        for client in [bearer, header] {
            client.get("/api/projects").await.expect("an answer");
            client
                .post("/mcp", &json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
                .await
                .expect("an answer");
        }
        // Where it does not belong.
        runner.client().get(&format!("/api/projects?api_key={key}&token={key}")).await.expect("an answer");
    }
    secrets.extend([key.clone(), unknown]);

    let program = runner.client().with_header("x-api-key", &key).expect("a header");
    secrets.extend(feed(&program).await);
    secrets.extend(ask_for_files(&program).await);
    let token = format!("srp_{}", "x".repeat(36));
    let reset = json!({ "token": token, "password": NEW_PASSWORD });
    runner.client().post("/api/auth/reset-password", &reset).await.expect("an answer");
    runner.client().get(&format!("/api/auth/verify-email?token={token}")).await.expect("an answer");
    let callback = format!("/api/auth/oauth/idp/callback?code={token}&state={token}");
    runner.client().get(&callback).await.expect("an answer");
    secrets.push(token);

    let log = runner.process().output();
    assert!(
        log.contains("/api/auth/login") && log.contains("/api/test-runs/start"),
        "this is the log: {log}"
    );
    assert!(secrets.len() > 10, "{} secrets", secrets.len());
    for secret in secrets {
        assert!(secret.len() > 10, "{secret:?} is no secret");
        let line = log.lines().find(|line| line.contains(&secret));
        assert_eq!(line, None, "a secret is in the log");
    }
}

/// Sends a run as it goes on; the tokens.
async fn feed(client: &Client) -> Vec<String> {
    let begun =
        client.post_json("/api/test-runs/start", &json!({ "projectName": "shop" })).await.expect("a run");
    let token = begun["streamToken"].as_str().expect("a token").to_owned();
    let path = format!("/api/test-runs/{}", begun["runId"]);
    let results = json!({ "streamToken": token, "testCases": [complete(attempt("pays", "failed", 0))] });
    client.post_json(&format!("{path}/events"), &results).await.expect("taken");
    let invented = "d".repeat(64);
    let refused = client.post(&format!("{path}/heartbeat"), &json!({ "streamToken": invented })).await;
    assert_eq!(refused.expect("an answer").status, 403);
    let files = callboard_test_support::Form::new()
        .field("streamToken", &token)
        .field("testCase", attempt("pays", "failed", 0).to_string())
        .file("attach_file", "note.txt", "text/plain", b"a note");
    let request = client.request(Method::POST, &format!("{path}/case-files"));
    let request =
        request.header("content-type", callboard_test_support::Form::content_type()).body(files.into_body());
    Answer::send(request).await.and_then(|answer| answer.success()).expect("linked");
    let end = json!({ "streamToken": token, "status": "failed", "duration": 5 });
    client.post_json(&format!("{path}/finish"), &end).await.expect("finished");

    let project = json!({ "projectName": "shop", "clientRunId": "a-run-that-is-set-up" });
    let set_up = client.post_json("/api/test-runs/setup", &project).await.expect("set up");
    let setup_token = set_up["setupToken"].as_str().expect("a token").to_owned();
    let begin = format!("/api/test-runs/{}/begin", set_up["runId"]);
    let begun = client.post_json(&begin, &json!({ "setupToken": setup_token })).await.expect("begun");
    let of_begun = begun["streamToken"].as_str().expect("a token").to_owned();
    // Where neither belongs.
    for token in [&setup_token, &of_begun] {
        client
            .get(&format!("/api/test-runs?streamToken={token}&setupToken={token}"))
            .await
            .expect("an answer");
    }
    vec![token, invented, setup_token, of_begun]
}

/// Opens a link to a file; the grant in it.
async fn ask_for_files(client: &Client) -> Vec<String> {
    let submission = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
    let form = callboard_test_support::Form::new()
        .field("projectName", "shop")
        .field("testRun", submission.to_string())
        .field("testCases", submission["testCases"].to_string())
        .field("attach_meta_0", r#"[{"name":"page","contentType":"text/html","originalName":"page.html"}]"#)
        .file("attach_file_0", "page.html", "text/html", b"<!doctype html><title>page</title>");
    let request = client.request(Method::POST, "/api/test-runs/upload");
    let request =
        request.header("content-type", callboard_test_support::Form::content_type()).body(form.into_body());
    let stored = Answer::send(request).await.and_then(|answer| answer.success()).expect("stored");
    let run = &stored["runId"];
    let executions = client.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
    let execution = &executions["items"][0]["id"];
    let files = client.json(&format!("/api/test-run-cases/{execution}/files")).await.expect("files");
    let sent = client.get(&format!("/api/files/{}", files["items"][0]["id"])).await.expect("an answer");
    let link = sent.header("location").to_owned();
    let (_, path) = link.split_once("/f/").expect("a link below a grant");
    let opened = crate::files::listener_of(&link).get(&format!("/f/{path}")).await.expect("an answer");
    assert_eq!(opened.status, 200, "{link}");
    vec![path.split('/').next().expect("a grant").to_owned()]
}

#[tokio::test]
async fn no_secret_is_logged_on_sqlite() {
    no_secret_is_logged(Backend::Sqlite).await;
}

#[tokio::test]
async fn no_secret_is_logged_on_postgres() {
    no_secret_is_logged(Backend::Postgres).await;
}
