//! Access that was taken away is gone at once, also from what was answered
//! before.

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::{ProjectId, UserId};
use callboard_store::accounts::{assignments, users};
use callboard_test_support::{Answer, Client, Form, Service, for_each_secured_service};
use reqwest::Method;
use serde_json::{Value, json};

use super::{refusal, refused};
use crate::builders::{attempt, run};

async fn under(client: &Client, key: &str, path: &str, body: &Value) -> Answer {
    let request = client.request(Method::POST, path).header("idempotency-key", key);
    Answer::send(request.header("content-type", "application/json").body(body.to_string()))
        .await
        .expect("an answer")
}

async fn unassign(service: &Service, user: UserId, project: ProjectId) {
    let mut session = service.state().store().db().begin().await.expect("a transaction");
    assignments::remove(&mut session, user, project).await.expect("removed");
    session.commit().await.expect("committed");
}

#[tokio::test]
async fn a_repeated_request_is_answered_to_those_who_may_still_make_it() {
    for_each_secured_service(async |service| {
        let admin = service.account("admin", Role::Administrator).await.expect("an account");
        let admin = service.program_of(admin, KeyPermission::Full).await.expect("a key");
        let made = admin.post_json("/api/projects", &json!({ "name": "shop" })).await.expect("a project");
        let project = ProjectId(made["project"]["id"].as_i64().expect("an id"));
        let ada = service.account("ada", Role::Reporter).await.expect("an account");
        service.assign(ada, Some(project)).await.expect("assigned");
        let program = service.program_of(ada, KeyPermission::Full).await.expect("a key");

        let submitted = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
        let stored =
            under(&program, "a", "/api/test-runs/submit", &submitted).await.success().expect("stored");
        let run = stored["runId"].clone();
        let link = json!({ "entityType": "test_run", "entityId": run, "url": "https://tracker.test/7" });
        let form = || {
            let form = Form::new().field("projectName", "shop").field("testRun", submitted.to_string());
            let request =
                program.request(Method::POST, "/api/test-runs/upload").header("idempotency-key", "e");
            Answer::send(request.header("content-type", Form::content_type()).body(form.into_body()))
        };
        let posts = [
            ("a", "/api/test-runs/submit".to_owned(), submitted.clone()),
            ("b", "/api/links".to_owned(), link),
            ("c", "/api/exports".to_owned(), json!({ "kind": "run", "id": run, "format": "csv" })),
            ("d", format!("/api/test-runs/{run}/cancel"), json!({})),
            (
                "d2",
                format!("/api/projects/{project}/markers"),
                json!({
                    "label": "Release", "occurredAt": "2026-01-01", "category": "release",
                }),
            ),
        ];
        let mut kept = Vec::new();
        for (key, path, body) in posts {
            let first = under(&program, key, &path, &body).await;
            let again = under(&program, key, &path, &body).await;
            if first.status.is_success() {
                assert_eq!(again.json().expect("JSON"), first.json().expect("JSON"), "{path}");
                kept.push((key, path, body));
            }
        }
        assert!(kept.len() >= 4, "{kept:?}");
        let uploaded = form().await.expect("an answer").success().expect("stored");
        assert_eq!(form().await.expect("an answer").json().expect("JSON"), uploaded);

        unassign(service, ada, project).await;
        for (key, path, body) in &kept {
            let answer = under(&program, key, path, body).await;
            assert_eq!(refusal(&answer), refused(403, "project_access_denied"), "{path}: {}", answer.text());
        }
        assert_eq!(refusal(&form().await.expect("an answer")), refused(403, "project_access_denied"));

        // Given back, it is the same request as before.
        service.assign(ada, Some(project)).await.expect("assigned");
        let again = under(&program, "a", "/api/test-runs/submit", &submitted).await;
        assert_eq!(again.success().expect("answered"), stored);
        let mut session = service.state().store().db().begin().await.expect("a transaction");
        let mut row = users::lock(&mut session, ada).await.expect("asked").expect("an account");
        row.role = Role::User;
        users::save(&mut session, &row).await.expect("saved");
        session.commit().await.expect("committed");
        let answer = under(&program, "a", "/api/test-runs/submit", &submitted).await;
        assert_eq!(refusal(&answer), refused(403, "insufficient_role"));
    })
    .await;
}

#[tokio::test]
async fn nobody_learns_from_a_list_which_accounts_there_are() {
    for_each_secured_service(async |service| {
        let admin = service.account("admin", Role::Administrator).await.expect("an account");
        let admin = service.browser_of(admin).await.expect("a browser");
        let made = admin.post_json("/api/projects", &json!({ "name": "shop" })).await.expect("a project");
        let project = made["project"]["id"].as_i64().expect("an id");
        let ada = service.account("ada", Role::User).await.expect("an account");
        service.assign(ada, Some(ProjectId(project))).await.expect("assigned");
        let stranger = service.account("bob", Role::User).await.expect("an account");
        let reader = service.browser_of(ada).await.expect("a browser");
        let narrowed = service.account("eve", Role::Administrator).await.expect("an account");
        let narrowed =
            service.program_with(narrowed, |key| key.projects = Some(vec![ProjectId(project)])).await;
        let narrowed = narrowed.expect("a key");
        for list in ["/api/failure-clusters".to_owned(), format!("/api/projects/{project}/failure-clusters")]
        {
            for asking in [&reader, &narrowed] {
                let of = async |id: i64| {
                    let answer = asking.get(&format!("{list}?assignee={id}")).await.expect("an answer");
                    (answer.status.as_u16(), answer.text())
                };
                let unknown = of(999_999).await;
                assert_eq!(unknown.0, 200, "{list}: {}", unknown.1);
                assert_eq!(of(stranger.get()).await, unknown, "{list}");
            }
            let told = admin.get(&format!("{list}?assignee=999999")).await.expect("an answer");
            assert_eq!(refusal(&told), refused(404, "user_not_found"));
        }
    })
    .await;
}
