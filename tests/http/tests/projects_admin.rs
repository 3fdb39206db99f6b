//! Creating and changing projects, the secrets they keep, and what the audit
//! log says about it.

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::ProjectId;
use callboard_store::Backend;
use callboard_store::projects::edit;
use callboard_test_support::accounts::secured_settings;
use callboard_test_support::{
    Answer, Client, Process, Service, Settings, TestDatabase, for_each_backend, for_each_secured_service,
    for_each_service,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run};
use crate::live;

const KEY: &str = "d6a9b1f0c3e84752a1b0c9d8e7f60514";
const NEWER_KEY: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
const TOKEN: &str = "glpat-very-secret-token";

async fn send(client: &Client, method: Method, path: &str, body: Value) -> Answer {
    client.send_json(method, path, &body).await.expect("an answer")
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    let body = answer.json().expect("an error");
    assert_eq!((answer.status.as_u16(), body["code"].as_str()), (status, Some(code)), "{body}");
}

fn settings(more: &[(&str, &str)]) -> Settings {
    more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn a_project_is_created_once_and_changed_field_by_field() {
    for_each_service(async |service| {
        let client = service.client();
        let tag = send(client, Method::POST, "/api/tags", json!({ "text": "web", "color": "teal" })).await;
        let tag = tag.json().expect("a tag")["tag"]["id"].clone();
        let new = json!({ "name": "shop", "label": "Web shop", "tagIds": [tag] });
        let created = send(client, Method::POST, "/api/projects", new.clone()).await;
        assert_eq!(created.status.as_u16(), 201, "{}", created.text());
        let project = created.json().expect("a project")["project"].clone();
        assert_eq!((&project["name"], &project["label"], &project["tags"][0]["text"]), (&json!("shop"), &json!("Web shop"), &json!("web")));
        assert_eq!((&project["totalRuns"], &project["hasScmToken"], &project["trackedBranches"]), (&json!(0), &json!(false), &json!([])));
        refused(&send(client, Method::POST, "/api/projects", new).await, 409, "name_taken");

        // Nothing is written when something is wrong.
        for (body, status, code) in [
            (json!({ "name": "other", "tagIds": [999] }), 404, "tag_not_found"),
            (json!({ "name": "other", "label": "" }), 400, "invalid_field"),
            (json!({ "name": "a\u{7}b" }), 400, "invalid_field"),
            (json!({ "name": "x".repeat(256) }), 400, "invalid_field"),
            (json!({ "label": "no name" }), 400, "missing_field"),
        ] {
            refused(&send(client, Method::POST, "/api/projects", body).await, status, code);
        }
        assert_eq!(client.json("/api/projects").await.expect("projects")["items"].as_array().map(Vec::len), Some(1));

        let path = format!("/api/projects/{}", project["id"]);
        let shown = async || client.json(&format!("{path}?limit=0")).await.expect("the project");
        for (field, value) in [
            ("label", json!("Shop")),
            ("description", json!("Two\nlines")),
            ("diagnosisInstructions", json!("Look at the cart first.")),
            ("defaultBranch", json!("trunk")),
            ("repositoryUrl", json!("https://gitlab.example.org/acme/shop")),
        ] {
            for method in [Method::PATCH, Method::PUT] {
                let mut body = json!({});
                body[field] = value.clone();
                let changed = send(client, method, &path, body).await.success().expect("changed");
                assert_eq!(changed["project"][field], value);
            }
            let before = shown().await;
            // Absent keeps, null clears.
            send(client, Method::PATCH, &path, json!({ "trackedBranches": ["release/*"] })).await.success().expect("changed");
            assert_eq!(shown().await[field], before[field]);
            let mut body = json!({});
            body[field] = Value::Null;
            let cleared = send(client, Method::PATCH, &path, body).await.success().expect("cleared");
            assert_eq!(cleared["project"][field], Value::Null);
        }
        assert_eq!(shown().await["trackedBranches"], json!(["release/*"]));
        let cleared = send(client, Method::PATCH, &path, json!({ "trackedBranches": null, "tagIds": null })).await.success().expect("cleared");
        assert_eq!((&cleared["project"]["trackedBranches"], &cleared["project"]["tags"]), (&json!([]), &json!([])));

        let before = shown().await;
        for (body, status, code) in [
            (json!({ "label": "Another", "tagIds": [999] }), 404, "tag_not_found"),
            (json!({ "label": "Another", "repositoryUrl": "http://example.org/x" }), 400, "invalid_field"),
            (json!({ "label": "Another", "repositoryUrl": "https://user:pass@example.org/x" }), 400, "invalid_field"),
            (json!({ "label": "Another", "name": null }), 400, "invalid_field"),
            (json!({ "label": "Another", "trackedBranches": vec!["a"; 51].iter().enumerate().map(|(n, a)| format!("{a}{n}")).collect::<Vec<_>>() }), 413, "too_many_items"),
            (json!({ "label": "Another", "scmToken": TOKEN }), 503, "secret_key_not_configured"),
            (json!({ "unknown": 1 }), 400, "no_fields"),
        ] {
            refused(&send(client, Method::PATCH, &path, body).await, status, code);
        }
        assert_eq!(shown().await, before);
        refused(&send(client, Method::PATCH, "/api/projects/999", json!({ "label": "x" })).await, 404, "project_not_found");

        // The new name is the one that submissions find it by.
        send(client, Method::PATCH, &path, json!({ "name": "store" })).await.success().expect("renamed");
        let body = run("store", "passed", vec![attempt("pays", "passed", 0)]);
        let stored = client.post_json("/api/test-runs/submit", &body).await.expect("stored");
        assert_eq!(stored["projectId"], project["id"]);
        let searched = client.json("/api/projects?q=STOR").await.expect("projects");
        assert_eq!(searched["items"].as_array().map(Vec::len), Some(1));
    })
    .await;
}

async fn token_is_sealed(backend: Backend) {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let service =
        Service::over(database, &settings(&[("SERVICE_SECRET_KEY", KEY)])).await.expect("a service");
    let client = service.client();
    let created = send(client, Method::POST, "/api/projects", json!({ "name": "shop" })).await;
    let path = format!("/api/projects/{}", created.json().expect("a project")["project"]["id"]);
    let project = ProjectId(created.json().expect("a project")["project"]["id"].as_i64().expect("an id"));
    let changed = send(client, Method::PATCH, &path, json!({ "scmToken": TOKEN })).await;
    assert_eq!(changed.json().expect("a project")["project"]["hasScmToken"], true);
    let sealed = async || {
        let mut session = service.state().store().db().begin().await.expect("a session");
        edit::lock(&mut session, project)
            .await
            .expect("read")
            .expect("the project")
            .scm_token
            .expect("a token")
    };
    let first = sealed().await;
    assert!(first.starts_with("sk1:") && !first.contains(TOKEN), "{first}");
    let shown = client.get(&path).await.expect("an answer").text();
    let audit = client.get("/api/audit").await.expect("an answer").text();
    for text in [changed.text(), shown, audit.clone()] {
        assert!(!text.contains(TOKEN) && !text.contains("sk1:"), "{text}");
    }
    assert!(audit.contains("secret.set"), "{audit}");

    // With an older key in the list all of them open; rotating leaves the old one without use.
    let rotate = async |keys: &str| {
        let (database, storage) = (service.database().url(), service.database().storage_url());
        let settings = settings(&[
            ("SERVICE_DATABASE_URL", database),
            ("SERVICE_STORAGE_URL", &storage),
            ("SERVICE_SECRET_KEY", keys),
        ]);
        let mut command = Process::command("callboard", &["rotate-secrets"], &settings).expect("a command");
        (command.end().await.expect("an end").success(), command.output())
    };
    let both = format!("{NEWER_KEY},{KEY}");
    for (keys, is_done, told) in [
        (both.as_str(), true, "1 stored secrets: 1 sealed anew, 0 that no key opens"),
        (&both, true, "1 stored secrets: 0 sealed anew, 0 that no key opens"),
        (NEWER_KEY, true, "1 stored secrets: 0 sealed anew, 0 that no key opens"),
        (KEY, false, "1 stored secrets: 0 sealed anew, 1 that no key opens"),
        ("", false, "SERVICE_SECRET_KEY is not set"),
    ] {
        let before = sealed().await;
        let (succeeded, output) = rotate(keys).await;
        assert!(succeeded == is_done && output.contains(told), "{output}");
        assert_eq!(sealed().await == before, !told.contains("1 sealed"), "{told}");
    }
    assert_ne!(sealed().await, first);
    // Put where it was not sealed for, it is nobody's.
    send(client, Method::POST, "/api/projects", json!({ "name": "bank" }))
        .await
        .success()
        .expect("a project");
    let moved = "UPDATE projects SET scm_token = (SELECT MAX(scm_token) FROM projects) WHERE name = 'bank'";
    crate::store::sql(&service, moved).await;
    let (succeeded, output) = rotate(NEWER_KEY).await;
    assert!(
        !succeeded && output.contains("2 stored secrets: 0 sealed anew, 1 that no key opens"),
        "{output}"
    );

    let cleared =
        send(client, Method::PATCH, &path, json!({ "scmToken": null })).await.success().expect("cleared");
    assert_eq!(cleared["project"]["hasScmToken"], false);
    assert_eq!(
        client.json("/api/audit?action=secret.cleared").await.expect("entries")["items"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn a_token_is_sealed_on_its_way_in_and_has_no_way_out() {
    for_each_backend(token_is_sealed).await;
}

async fn actions(admin: &Client, query: &str) -> Vec<Value> {
    let found = admin.json(&format!("/api/audit?{query}")).await.expect("entries");
    found["items"].as_array().expect("items").clone()
}

#[tokio::test]
async fn refused_access_and_tokens_are_in_the_audit_log() {
    for_each_secured_service(async |service| {
        let admin = service.account("admin", Role::Administrator).await.expect("an account");
        let admin = service.browser_of(admin).await.expect("a browser");
        let user = service.account("user", Role::User).await.expect("an account");
        let client = service.browser_of(user).await.expect("a browser");
        for _ in 0..20 {
            refused(
                &send(&client, Method::POST, "/api/tags", json!({ "text": "x", "color": "red" })).await,
                403,
                "insufficient_role",
            );
            refused(&client.get("/api/audit").await.expect("an answer"), 403, "insufficient_role");
            refused(
                &service.client().get("/api/projects").await.expect("an answer"),
                401,
                "authentication_required",
            );
            let key = service
                .client()
                .with_header("authorization", &format!("Bearer pd_{}", "0".repeat(64)))
                .expect("a client");
            refused(&key.get("/api/projects").await.expect("an answer"), 401, "invalid_api_key");
        }
        let mut refusals: Vec<(Value, Value)> = actions(&admin, "action=access.refused")
            .await
            .into_iter()
            .map(|entry| {
                (entry["actor"]["userId"].clone(), json!([entry["detail"]["route"], entry["detail"]["code"]]))
            })
            .collect();
        refusals.sort_by_key(|refusal| refusal.1.to_string());
        let user = json!(user.get());
        assert_eq!(
            refusals,
            [
                (user.clone(), json!(["CreateTag", "insufficient_role"])),
                (user, json!(["ListAudit", "insufficient_role"])),
                (Value::Null, json!(["ListProjects", "invalid_api_key"])),
            ]
        );

        let reporter = service.account("reporter", Role::Reporter).await.expect("an account");
        service.assign(reporter, None).await.expect("assigned");
        let program = service.program_of(reporter, KeyPermission::Full).await.expect("a key");
        let feeder = live::start(&program, json!({})).await;
        let minted = actions(&admin, "action=token.").await;
        assert_eq!(
            (minted.len(), &minted[0]["targetId"], &minted[0]["actor"]["userId"]),
            (1, &json!(feeder.run), &json!(reporter.get()))
        );
        assert!(!minted[0].to_string().contains(&feeder.token));
        let made = actions(&admin, "action=project.created").await;
        assert_eq!(
            (&made[0]["detail"], &made[0]["actor"]["userId"]),
            (&json!({ "name": "shop", "by": "submission" }), &json!(reporter.get()))
        );
        program
            .post_json(&format!("/api/test-runs/{}/cancel", feeder.run), &json!({}))
            .await
            .expect("cancelled");
        let words: Vec<Value> = actions(&admin, "targetType=run")
            .await
            .into_iter()
            .map(|entry| entry["action"].clone())
            .collect();
        assert_eq!(words, ["token.revoked", "run.changed", "token.minted"]);
    })
    .await;
}

async fn tokens_of_nobody_end(backend: Backend) {
    let open = Service::start(backend).await.expect("a service");
    let first = Service::over(open.into_database().await, &secured_settings()).await.expect("a service");
    // Switched off, a token belongs to nobody; switched on again, it opens nothing.
    let off = Service::over(first.into_database().await, &Settings::new()).await.expect("a service");
    let feeder = live::start(off.client(), json!({})).await;
    assert!(feeder.call("heartbeat", json!({})).await.status.is_success());
    let on = Service::over(off.into_database().await, &secured_settings()).await.expect("a service");
    let beat = format!("/api/test-runs/{}/heartbeat", feeder.run);
    let answer = on.client().post(&beat, &json!({ "streamToken": feeder.token })).await.expect("an answer");
    refused(&answer, 403, "token_revoked");
}

#[tokio::test]
async fn tokens_from_a_time_without_accounts_end_with_it() {
    for_each_backend(tokens_of_nobody_end).await;
}

#[tokio::test]
async fn a_command_without_a_body_is_not_a_form() {
    for_each_service(async |service| {
        let feeder = live::start(service.client(), json!({})).await;
        let path = format!("/api/test-runs/{}/cancel", feeder.run);
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
            let request = service.client().request(Method::POST, &path).header("content-type", kind);
            refused(&service.client().send(request).await.expect("an answer"), 415, "unsupported_media_type");
        }
        let request = service.client().request(Method::POST, &path);
        service.client().send(request).await.and_then(|answer| answer.success()).expect("cancelled");
    })
    .await;
}
