//! The audit log knows what was done, once, and of what was refused who tried.

use callboard_domain::account::Role;
use callboard_domain::ids::ProjectId;
use callboard_store::accounts::users::UserRow;
use callboard_store::{Backend, projects};
use callboard_test_support::accounts::{PASSWORD, trusted};
use callboard_test_support::{Client, Service, TestDatabase, for_each_backend, for_each_secured_service};
use reqwest::Method;
use serde_json::{Value, json};

use super::{send, settings};
use crate::access::hold;
use crate::builders::{attempt, run};
use crate::rows::settled;

const KEY: &str = "6f1c1d1e5d7b4c0fa7e1c2d3b4a59687";

/// What the log says since an entry, oldest first, and its newest entry now.
async fn since(client: &Client, last: &mut i64) -> Vec<String> {
    let entries = client.json("/api/audit?limit=50").await.expect("the log")["items"].clone();
    let entries = entries.as_array().expect("entries");
    let id = |entry: &Value| entry["id"].as_i64().expect("an id");
    let words = entries.iter().filter(|entry| id(entry) > *last);
    let mut words: Vec<String> =
        words.map(|entry| entry["action"].as_str().expect("a word").to_owned()).collect();
    words.reverse();
    *last = entries.iter().map(id).max().unwrap_or(*last);
    words
}

async fn open_service(backend: Backend) -> Service {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    Service::over(database, &settings(&[("SERVICE_SECRET_KEY", KEY)])).await.expect("a service")
}

#[tokio::test]
async fn every_change_leaves_its_entry_and_one_that_is_refused_leaves_none() {
    for_each_backend(async |backend| {
        let service = open_service(backend).await;
        let client = service.client();
        let held = hold(&service, "shop").await;
        let other = json!([attempt("adds", "failed", 0)]);
        let mut body = run("shop", "failed", Vec::new());
        body["testCases"] = other;
        body["testCases"][0]["error"] = json!("TypeError: cannot read properties of undefined (reading 'total')");
        let second = client.post_json("/api/test-runs/submit", &body).await.expect("stored")["runId"].clone();
        settled(&service).await;
        let list = format!("/api/test-runs/{second}/executions");
        let failed = client.json(&list).await.expect("executions")["items"][0].clone();
        let foreign_cluster = failed["clusterId"].clone();
        let tag = client.post_json("/api/tags", &json!({ "text": "web", "color": "teal" })).await.expect("a tag");
        let tag = tag["tag"]["id"].clone();
        let mut last = 0;
        since(client, &mut last).await;

        let project = format!("/api/projects/{}", held.project);
        let cluster = format!("/api/failure-clusters/{}", held.cluster);
        let run_path = format!("/api/test-runs/{}", held.run);
        let (post, patch, put, delete) = (Method::POST, Method::PATCH, Method::PUT, Method::DELETE);
        let quarantine = format!("{project}/quarantine");
        let marker = json!({ "label": "Release", "occurredAt": "2026-01-02", "category": "release" });
        let link = json!({ "entityType": "test_run", "entityId": held.run, "url": "https://tracker.test/8" });
        let pick = json!({ "locator": "getByText('x')", "method": "getByText", "args": ["x"], "score": 90 });
        let lost = json!({ "method": "getByText", "args": ["y"], "raw": "getByText('y')" });
        let function = json!({ "name": "look", "kind": "helper", "module": "./pages", "steps": [{ "action": "goto", "value": "/" }] });
        let steps: Vec<(Method, String, Value, &[&str])> = vec![
            (post.clone(), "/api/projects".into(), json!({ "name": "bank" }), &["project.created"]),
            (patch.clone(), project.clone(), json!({ "label": "Shop" }), &["project.changed"]),
            (patch.clone(), project.clone(), json!({ "scmToken": "glpat-0123456789" }), &["secret.set"]),
            (patch.clone(), project.clone(), json!({ "scmToken": null }), &["secret.cleared"]),
            (post.clone(), format!("{project}/badge-token"), json!({}), &["secret.set"]),
            (delete.clone(), format!("{project}/badge-token"), json!({}), &["secret.cleared"]),
            (patch.clone(), format!("{project}/retention"), json!({ "runs": { "days": 90 } }), &["settings.changed", "retention.queued"]),
            (delete.clone(), format!("{project}/retention/pending"), json!({}), &["retention.undone"]),
            (patch.clone(), format!("{project}/flakiness"), json!({ "minRuns": 30 }), &["settings.changed"]),
            (patch.clone(), "/api/settings/retention".into(), json!({ "runs": { "days": 900 } }), &["settings.changed", "retention.queued"]),
            (delete.clone(), "/api/settings/retention/pending".into(), json!({}), &["retention.undone"]),
            (patch.clone(), "/api/settings/flakiness".into(), json!({ "minRuns": 31 }), &["settings.changed"]),
            (patch.clone(), "/api/settings/timeout-hygiene".into(), json!({ "factor": 4 }), &["settings.changed"]),
            (patch.clone(), "/api/settings/source-control".into(), json!({ "repositories": ["https://github.com/acme/*"] }), &["settings.changed"]),
            (patch.clone(), "/api/settings/ai".into(), json!({ "limits": { "callsPerDay": 9 } }), &["settings.changed"]),
            (patch.clone(), format!("/api/failure-diagnoses/{}/feedback", held.diagnosis), json!({ "feedback": "up" }), &["diagnosis.rated"]),
            (post.clone(), quarantine.clone(), json!({ "testCaseId": held.test_case }), &["quarantine.entered"]),
            (delete.clone(), format!("{quarantine}/{}", held.test_case), json!({}), &["quarantine.left"]),
            (post.clone(), format!("{project}/flaky-classify"), json!({ "testCaseId": held.test_case }), &["test.classified"]),
            (post.clone(), format!("{run_path}/gate"), json!({ "maxFailed": 9 }), &["gate.judged"]),
            (post.clone(), format!("{project}/markers"), marker, &["marker.created"]),
            (patch.clone(), format!("/api/markers/{}", held.marker), json!({ "label": "Later" }), &["marker.changed"]),
            (delete.clone(), format!("/api/markers/{}", held.marker), json!({}), &["marker.deleted"]),
            (post.clone(), format!("{project}/gate-policies"), json!({ "name": "lax", "policy": { "maxFailed": 9 } }), &["policy.created"]),
            (patch.clone(), format!("/api/gate-policies/{}", held.policy), json!({ "isDefault": true }), &["policy.changed"]),
            (delete.clone(), format!("/api/gate-policies/{}", held.policy), json!({}), &["policy.deleted"]),
            (post.clone(), format!("{project}/test-functions"), function, &["function.created"]),
            (patch.clone(), format!("/api/test-functions/{}", held.function), json!({ "name": "pays" }), &["function.changed"]),
            (delete.clone(), format!("/api/test-functions/{}", held.function), json!({}), &["function.deleted"]),
            (post.clone(), "/api/tags".into(), json!({ "text": "api", "color": "teal" }), &["tag.created"]),
            (patch.clone(), format!("/api/tags/{tag}"), json!({ "text": "site" }), &["tag.changed"]),
            (delete.clone(), format!("/api/tags/{tag}"), json!({}), &["tag.deleted"]),
            (post.clone(), "/api/links".into(), link, &["link.created"]),
            (patch.clone(), format!("/api/links/{}", held.link), json!({ "title": "Another" }), &["link.changed"]),
            (delete.clone(), format!("/api/links/{}", held.link), json!({}), &["link.deleted"]),
            (patch.clone(), run_path.clone(), json!({ "label": "a label" }), &["run.changed"]),
            (put, format!("{run_path}/pin"), json!({ "reason": "to keep" }), &["run.changed"]),
            (delete.clone(), format!("{run_path}/pin"), json!({}), &["run.changed"]),
            (post.clone(), "/api/exports".into(), json!({ "kind": "run", "id": held.run, "format": "csv" }), &["export.created"]),
            (post.clone(), format!("/api/test-run-cases/{}/locator-pick", held.execution), json!({ "pickedLocator": pick, "failingLocator": lost }), &["locator.picked"]),
            (patch.clone(), cluster.clone(), json!({ "title": "The cart" }), &["cluster.changed"]),
            (patch.clone(), format!("{cluster}/status"), json!({ "status": "ignored" }), &["cluster.changed"]),
            (post.clone(), "/api/failure-clusters/bulk".into(), json!({ "ids": [held.cluster], "status": "open" }), &["cluster.changed"]),
            (patch, format!("{cluster}/base-commit"), json!({ "commit": "0123456789abcdef0123456789abcdef01234567" }), &["cluster.changed"]),
            (post.clone(), format!("{cluster}/extract-cases"), json!({ "testCaseIds": [held.test_case] }), &["cluster.extracted"]),
            (post.clone(), format!("/api/failure-clusters/{foreign_cluster}/merge"), json!({ "intoId": held.cluster }), &["cluster.merged"]),
            (delete.clone(), format!("/api/test-runs/{second}"), json!({}), &["run.deleted"]),
            (post, "/api/admin/cleanup".into(), json!({ "olderThanDays": 1, "confirm": true }), &["cleanup"]),
            (delete, project, json!({ "confirm": "shop" }), &["project.deleted"]),
        ];
        let mut wrong = Vec::new();
        for (method, path, body, expected) in steps {
            // The same to nothing, and as nonsense.
            let nothing: String = path
                .split('/')
                .map(|part| if part.parse::<i64>().is_ok() { "999999" } else { part })
                .collect::<Vec<_>>()
                .join("/");
            if nothing != path {
                let answer = send(client, method.clone(), &nothing, body.clone()).await;
                assert!(answer.status.is_client_error(), "{method} {nothing}: {}", answer.text());
            }
            let request = client.request(method.clone(), &path).header("content-type", "application/json");
            if method != Method::DELETE && !body.as_object().is_none_or(serde_json::Map::is_empty) {
                let answer = client.send(request.body("{\"label\": 1, ")).await.expect("an answer");
                assert_eq!(answer.status, 400, "{method} {path}: {}", answer.text());
            }
            let refused = since(client, &mut last).await;
            let answer = send(client, method.clone(), &path, body).await;
            let done = since(client, &mut last).await;
            if !refused.is_empty() || !answer.status.is_success() || done != expected {
                wrong.push(format!("{method} {path}: {refused:?}, then {} and {done:?}", answer.text()));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    })
    .await;
}

#[tokio::test]
async fn who_was_turned_away_is_noted() {
    for_each_secured_service(async |service| {
        let admin = service.account("admin", Role::Administrator).await.expect("an account");
        let admin = service.browser_of(admin).await.expect("a browser");
        let created = send(&admin, Method::POST, "/api/projects", json!({ "name": "shop" })).await;
        let project = created.success().expect("a project")["project"]["id"].as_i64().expect("an id");
        send(&admin, Method::POST, "/api/projects", json!({ "name": "bank" }))
            .await
            .success()
            .expect("another");
        let user = service.account("ada", Role::User).await.expect("an account");
        service.assign(user, Some(ProjectId(project))).await.expect("assigned");
        let ada = service.browser_of(user).await.expect("a browser");
        let mut last = 0;
        since(&admin, &mut last).await;

        let label = json!({ "label": "mine" });
        for (method, path, status) in [
            (Method::PATCH, format!("/api/projects/{project}"), 403),
            (Method::PATCH, format!("/api/projects/{}", project + 1), 403),
            (Method::GET, format!("/api/projects/{}", project + 1), 403),
            (Method::GET, "/api/audit".to_owned(), 403),
        ] {
            let answer = send(&ada, method.clone(), &path, label.clone()).await;
            assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        }
        let words = since(&admin, &mut last).await;
        assert!(!words.is_empty() && words.iter().all(|word| word == "access.refused"), "{words:?}");
        let noted = admin.json("/api/audit?action=access.refused").await.expect("entries")["items"].clone();
        for entry in noted.as_array().expect("entries") {
            assert_eq!(entry["actor"]["username"], "ada", "{entry}");
        }

        // Who is nobody and tries a token, or to become the first administrator, once an hour each.
        for _ in 0..2 {
            let token = format!("srp_{}", "a".repeat(43));
            let reset = json!({ "token": token, "password": PASSWORD });
            let answer = send(service.client(), Method::POST, "/api/auth/reset-password", reset).await;
            assert_eq!(answer.status, 400, "{}", answer.text());
            let answer = service.client().get("/api/auth/verify-email?token=svm_x").await.expect("an answer");
            assert_eq!(answer.status, 400, "{}", answer.text());
            let first = json!({ "username": "eve", "password": PASSWORD });
            let answer = send(service.client(), Method::POST, "/api/auth/setup", first).await;
            assert_eq!(answer.status, 400, "{}", answer.text());
        }
        assert_eq!(since(&admin, &mut last).await, ["access.refused"; 3]);

        let guess = json!({ "username": "ada", "password": "a wrong guess" });
        let mut words = Vec::new();
        for _ in 0..6 {
            send(service.client(), Method::POST, "/api/auth/login", guess.clone()).await;
            words.extend(since(&admin, &mut last).await);
        }
        let mut expected = vec!["login.failed"; 5];
        expected.push("login.limited");
        assert_eq!(words, expected);
        let body = json!({ "currentPassword": "a wrong guess", "newPassword": format!("{PASSWORD}!") });
        let answer = send(&ada, Method::POST, "/api/auth/change-password", body).await;
        assert!(answer.status.is_client_error(), "{}", answer.text());
        assert_eq!(since(&admin, &mut last).await, ["password.change_failed"]);
    })
    .await;
}

#[tokio::test]
async fn probing_many_ids_leaves_each_of_them_and_a_bounded_number_of_entries() {
    const PROBED: i64 = 210;
    for_each_secured_service(async |service| {
        let admin = service.account("admin", Role::Administrator).await.expect("an account");
        let admin = service.browser_of(admin).await.expect("a browser");
        let mut probed = Vec::new();
        let mut session = service.state().store().db().begin().await.expect("a transaction");
        for number in 0..PROBED {
            let name = format!("shop {number}");
            let created = projects::get_or_create(&mut session, &name, None, service.state().now()).await;
            probed.push(created.expect("a project").id.get());
        }
        session.commit().await.expect("stored");
        let user = service.account("ada", Role::User).await.expect("an account");
        let ada = service.browser_of(user).await.expect("a browser");
        for (number, project) in probed.iter().enumerate() {
            for _ in 0..if number == 0 { 3 } else { 1 } {
                let answer = ada.get(&format!("/api/projects/{project}")).await.expect("an answer");
                assert_eq!(answer.status, 403, "{}", answer.text());
            }
        }
        let mut noted = Vec::new();
        let mut next = "/api/audit?action=access.refused&limit=200".to_owned();
        loop {
            let page = admin.json(&next).await.expect("the log");
            noted.extend(page["items"].as_array().expect("entries").clone());
            let Some(cursor) = page["nextCursor"].as_str() else { break };
            next = format!("/api/audit?action=access.refused&limit=200&cursor={cursor}");
        }
        noted.reverse();
        let (listed, last) = noted.split_at(200);
        for (entry, project) in listed.iter().zip(&probed) {
            assert_eq!((&entry["targetType"], &entry["targetId"]), (&json!("project"), &json!(project)));
            assert_eq!((&entry["projectId"], &entry["actor"]["username"]), (&json!(project), &json!("ada")));
        }
        assert_eq!(last.len(), 1, "{last:?}");
        assert_eq!(last[0]["detail"]["code"], "more_not_listed");

        // What a body names is known as well.
        let reporter = service.account("eve", Role::Reporter).await.expect("an account");
        let eve = service.browser_of(reporter).await.expect("a browser");
        let submitted =
            send(&admin, Method::POST, "/api/test-runs/submit", run("bank", "passed", Vec::new())).await;
        let run = submitted.success().expect("stored")["runId"].clone();
        let link = json!({ "entityType": "test_run", "entityId": run, "url": "https://tracker.test/8" });
        let answer = send(&eve, Method::POST, "/api/links", link).await;
        assert_eq!(answer.status, 403, "{}", answer.text());
        let newest = admin.json("/api/audit?limit=1").await.expect("the log")["items"][0].clone();
        assert_eq!((&newest["targetType"], &newest["targetId"]), (&json!("run"), &run));
    })
    .await;
}

#[tokio::test]
async fn what_could_not_be_changed_is_noted_with_what_it_was_about() {
    for_each_secured_service(async |service| {
        let admin_id = service.account("admin", Role::Administrator).await.expect("an account");
        let admin = service.browser_of(admin_id).await.expect("a browser");
        let created = send(&admin, Method::POST, "/api/projects", json!({ "name": "shop" })).await;
        let project = created.success().expect("a project")["project"]["id"].as_i64().expect("an id");
        let address = |row: &mut UserRow| row.email = trusted("ada@example.org");
        let ada = service.account_with("ada", Role::User, address).await.expect("an account");
        let browser = service.browser_of(ada).await.expect("a browser");
        let (post, patch, delete) = (Method::POST, Method::PATCH, Method::DELETE);
        let of_project = format!("/api/projects/{project}");
        let of_admin = format!("/api/users/{admin_id}");
        let mut last = 0;
        since(&admin, &mut last).await;
        for (client, method, path, body, code, target) in [
            (&admin, &post, "/api/users", json!({ "username": "ADA", "role": "user" }), "name_taken", None),
            (
                &admin,
                &post,
                "/api/users",
                json!({ "username": "eve", "role": "user", "email": "Ada@Example.org" }),
                "email_taken",
                None,
            ),
            (&admin, &post, "/api/projects", json!({ "name": "shop" }), "name_taken", None),
            (
                &admin,
                &delete,
                &of_project,
                json!({ "confirm": "shoq" }),
                "invalid_field",
                Some(("project", project)),
            ),
            (&admin, &delete, &of_admin, json!({}), "cannot_change_self", Some(("user", admin_id.get()))),
            (
                &admin,
                &patch,
                &of_admin,
                json!({ "role": "user" }),
                "cannot_change_self",
                Some(("user", admin_id.get())),
            ),
            (&admin, &delete, "/api/test-runs/4711", json!({}), "run_not_found", Some(("run", 4711))),
            (&admin, &patch, "/api/settings/flakiness", json!({ "minRuns": "many" }), "invalid_field", None),
            (
                &browser,
                &patch,
                "/api/users/me",
                json!({ "email": "other@example.org", "currentPassword": "a wrong guess" }),
                "invalid_credentials",
                Some(("user", ada.get())),
            ),
            (
                &browser,
                &delete,
                "/api/users/me/api-keys/4711",
                json!({}),
                "api_key_not_found",
                Some(("api_key", 4711)),
            ),
        ] {
            let answer = send(client, method.clone(), path, body).await;
            assert!(answer.status.is_client_error(), "{method} {path}: {}", answer.text());
            let newest = admin.json("/api/audit?limit=1").await.expect("the log")["items"][0].clone();
            assert_eq!(since(&admin, &mut last).await, ["change.refused"], "{method} {path}");
            assert_eq!(newest["detail"]["code"], code, "{method} {path}: {newest}");
            let told = (newest["targetType"].as_str(), newest["targetId"].as_i64());
            assert_eq!(told, (target.map(|(kind, _)| kind), target.map(|(_, id)| id)), "{method} {path}");
            let by = if path.contains("/me") { "ada" } else { "admin" };
            assert_eq!(newest["actor"]["username"], by, "{newest}");
        }
        // What reporters do to results is not administration, and reading is no change.
        let lost = json!({ "entityType": "test_run", "entityId": 4711, "url": "https://tracker.test/7" });
        assert_eq!(send(&admin, post, "/api/links", lost).await.status, 404);
        assert_eq!(admin.get("/api/projects/4711").await.expect("an answer").status, 404);
        assert_eq!(since(&admin, &mut last).await, Vec::<String>::new());
    })
    .await;
}
