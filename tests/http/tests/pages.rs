//! Pages and who may see them: the form to sign in takes the place of a page,
//! at its address; programs are answered as ever.

use callboard_test_support::accounts::PASSWORD;
use callboard_test_support::{Answer, Client, for_each_secured_service, for_each_service};
use serde_json::{Value, json};

use crate::builders::run;

const PAGES: [&str; 9] = [
    "/",
    "/projects",
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
