//! Pages and who may see them: the form to sign in takes the place of a page,
//! at its address; programs are answered as ever.

use callboard_test_support::accounts::PASSWORD;
use callboard_test_support::{Answer, Client, for_each_secured_service, for_each_service};
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};

const PAGES: [&str; 12] = [
    "/",
    "/analytics",
    "/projects",
    "/failure-clusters/999",
    "/settings/tags",
    "/projects/999",
    "/test-runs/999",
    "/test-cases/999",
    "/settings",
    "/settings/account",
    "/settings/users",
    "/settings/audit",
];

async fn page(client: &Client, path: &str) -> Answer {
    let client = client.with_header("accept", "text/html").expect("a header");
    let answer = client.get(path).await.expect("an answer");
    assert!(answer.header("content-type").starts_with("text/html"), "{path}: {}", answer.text());
    answer
}

async fn signed_in(client: &Client, username: &str) -> Client {
    let browser = client.browser();
    let body = json!({ "username": username, "password": PASSWORD });
    browser.post_json("/api/auth/login", &body).await.expect("signed in");
    browser
}

/// A service with an administrator, two projects, and a reader of the first.
async fn furnished(client: &Client) -> (Client, i64, i64) {
    let administrator = client.browser();
    let body = json!({ "username": "ada", "password": PASSWORD });
    administrator.post_json("/api/auth/setup", &body).await.expect("the first administrator");
    let mut projects = Vec::new();
    for name in ["first", "second"] {
        let stored = administrator.post_json("/api/test-runs/submit", &run(name, "passed", Vec::new())).await;
        projects.push(stored.expect("stored")["projectId"].as_i64().expect("an id"));
    }
    let reader = json!({ "username": "rosa", "password": PASSWORD, "role": "user", "isGlobal": false, "projectIds": [projects[0]] });
    assert_eq!(administrator.post("/api/users", &reader).await.expect("an answer").status, 201);
    (administrator, projects[0], projects[1])
}

#[tokio::test]
async fn nobody_sees_a_page_before_signing_in() {
    for_each_secured_service(async |service| {
        let nobody = service.client();
        for path in PAGES {
            let answer = page(nobody, path).await;
            assert_eq!(answer.status, 401, "{path}");
            assert!(
                answer.text().contains("data-api=\"POST /api/auth/setup\" data-done=\"reload\""),
                "{path}"
            );
        }
        furnished(nobody).await;
        for path in PAGES {
            let answer = page(nobody, path).await;
            assert_eq!(answer.status, 401, "{path}");
            assert!(
                answer.text().contains("data-api=\"POST /api/auth/login\" data-done=\"reload\""),
                "{path}"
            );
            assert!(!answer.text().contains("first"), "{path} tells a name");
        }
        let answer = page(nobody, "/login?error=%3Cb%3E").await;
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("The sign-in did not work"));
        let api = nobody.get("/api/projects").await.expect("an answer");
        assert_eq!(
            (api.status.as_u16(), &api.json().expect("JSON")["code"]),
            (401, &json!("authentication_required"))
        );
    })
    .await;
}

#[tokio::test]
async fn a_reader_sees_their_project_and_is_told_about_others() {
    for_each_secured_service(async |service| {
        let (_, own, other) = furnished(service.client()).await;
        let reader = signed_in(service.client(), "rosa").await;
        let answer = page(&reader, &format!("/projects/{own}")).await;
        assert_eq!(answer.status, 200);
        assert!(!answer.text().contains("tab=members"));
        let refused = [
            (format!("/projects/{other}"), "not assigned to you"),
            (format!("/projects/{own}?tab=members"), "for another role"),
            (format!("/projects/{own}?tab=settings"), "for another role"),
            ("/settings/tags".to_owned(), "for another role"),
            ("/settings/users".to_owned(), "for another role"),
            ("/settings/audit".to_owned(), "for another role"),
        ];
        for (path, sentence) in refused {
            let answer = page(&reader, &path).await;
            assert_eq!(answer.status, 403, "{path}");
            let text = answer.text();
            assert!(text.contains(sentence) && text.contains("signed in as <b>rosa</b>"), "{path}: {text}");
            assert!(!text.contains("second"), "{path} tells a name");
        }
        let answer = page(&reader, "/settings/account").await;
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("You reach one project"));
    })
    .await;
}

#[tokio::test]
async fn an_administrator_sees_accounts_and_what_was_done() {
    for_each_secured_service(async |service| {
        let (administrator, own, _) = furnished(service.client()).await;
        let users: Value = administrator.json("/api/users?q=rosa").await.expect("users");
        let rosa = &users["items"][0]["id"];
        let listed = page(&administrator, "/settings/users?q=ros&role=user&state=active").await.text();
        assert!(listed.contains(&format!("href=\"/settings/users/{rosa}\"")) && !listed.contains(">ada</a>"));
        let one = page(&administrator, &format!("/settings/users/{rosa}")).await.text();
        assert!(one.contains(&format!("name=\"projectIds[]\" value=\"{own}\" checked")), "{one}");
        let members = page(&administrator, &format!("/projects/{own}?tab=members")).await.text();
        assert!(members.contains(&format!("name=\"userIds[]\" value=\"{rosa}\" checked")), "{members}");
        let audit = page(&administrator, "/settings/audit?action=user").await.text();
        assert!(audit.contains("User created") && !audit.contains("<b>Setup</b>"), "{audit}");
        assert_eq!(page(&administrator, "/settings/users/999").await.status, 404);
    })
    .await;
}

#[tokio::test]
async fn without_authentication_there_is_nobody_to_sign_in() {
    for_each_service(async |service| {
        let client = service.client();
        for path in ["/", "/settings/users", "/settings/audit", "/settings/account"] {
            let answer = page(client, path).await;
            assert_eq!(answer.status, 200, "{path}");
            assert!(!answer.text().contains("Sign out"), "{path}");
        }
        assert!(page(client, "/setup").await.text().contains("Nothing to set up"));
    })
    .await;
}

#[tokio::test]
async fn a_cell_of_the_grid_shows_the_worst_browser_and_leads_to_it() {
    for_each_service(async |service| {
        let client = service.client();
        let in_browser = |status: &str, browser: &str| {
            with(attempt("pays", status, 0), json!({ "browser": { "projectName": browser } }))
        };
        let cases = vec![in_browser("passed", "chromium"), in_browser("failed", "firefox")];
        let stored =
            client.post_json("/api/test-runs/submit", &run("shop", "failed", cases)).await.expect("stored");
        let (project, run) = (&stored["projectId"], &stored["runId"]);
        let executions: Value = client
            .json(&format!("/api/test-runs/{run}/executions?outcome=failing"))
            .await
            .expect("executions");
        let failed = &executions["items"][0]["id"];
        let grid = page(client, &format!("/projects/{project}?tab=grid")).await.text();
        let cell = format!("<a class=\"failed\" href=\"/test-run-cases/{failed}\"");
        assert_eq!(grid.matches(&cell).count(), 1, "{grid}");
        assert_eq!(grid.matches("href=\"/test-run-cases/").count(), 1, "{grid}");
        let none = page(client, &format!("/projects/{project}?tab=grid&q=nothing")).await.text();
        assert!(none.contains("No test fits these filters"), "{none}");
    })
    .await;
}

#[tokio::test]
async fn two_ticked_runs_are_compared_the_newer_with_the_older() {
    for_each_service(async |service| {
        let client = service.client();
        let mut runs = Vec::new();
        for hour in 10..13 {
            let body = with(
                run("shop", "passed", vec![attempt("pays", "passed", 0)]),
                json!({ "startTime": format!("2026-01-01T{hour}:00:00.000Z") }),
            );
            let stored = client.post_json("/api/test-runs/submit", &body).await.expect("stored");
            runs.push((
                stored["projectId"].as_i64().expect("an id"),
                stored["runId"].as_i64().expect("an id"),
            ));
        }
        let [(project, first), (_, second), (_, third)] = runs[..] else { panic!("three runs") };
        let compare = format!("/projects/{project}?tab=compare");
        let client = client.with_header("accept", "text/html").expect("a header");
        let answer = client.get(&format!("{compare}&run={third}&run={first}")).await.expect("an answer");
        assert_eq!(answer.header("location"), format!("/test-runs/{third}?tab=compare&with={first}"));
        let one = page(&client, &format!("{compare}&run={second}")).await;
        assert!(one.text().contains(&format!("<option value=\"{second}\" selected")), "{}", one.text());
        let many = page(&client, &format!("{compare}&run={first}&run={second}&run={third}")).await;
        assert!(many.text().contains("Two runs can be compared at a time"));
        assert_eq!(page(&client, &format!("{compare}&run=x")).await.status, 400);
    })
    .await;
}

#[tokio::test]
async fn who_only_reads_finds_no_form_that_changes_something() {
    for_each_secured_service(async |service| {
        let (administrator, own, _) = furnished(service.client()).await;
        let body = run("first", "failed", vec![attempt("pays", "failed", 0)]);
        let stored = administrator.post_json("/api/test-runs/submit", &body).await.expect("stored");
        let run = &stored["runId"];
        let executions: Value =
            administrator.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
        let case = &executions["items"][0]["testCaseId"];
        let reader = signed_in(service.client(), "rosa").await;
        let pages = [
            format!("/test-runs/{run}"),
            format!("/test-cases/{case}"),
            format!("/projects/{own}?tab=quarantine"),
        ];
        for path in pages {
            let calls = async |client: &Client| {
                let text = page(client, &path).await.text();
                text.matches("data-api=\"").count() - text.matches("/api/auth/logout").count()
            };
            assert_eq!(calls(&reader).await, 0, "{path}");
            if !path.contains("quarantine") {
                assert!(calls(&administrator).await > 0, "{path}");
            }
        }
    })
    .await;
}
