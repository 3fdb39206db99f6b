//! The headers that every answer carries, whatever it is about.

use callboard_test_support::{Answer, Client, Service, for_each_secured_service, for_each_service};
use reqwest::Method;
use reqwest::header::ACCEPT;
use serde_json::json;

use super::send;
use crate::files::{ask, listener_of, path_of, sent_to, store};

const DATA: &str = "default-src 'none'; frame-ancestors 'none'";

/// Which kind of answer it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// For programs.
    Data,
    /// Of the dashboard.
    Page,
    /// What somebody uploaded, on our origin.
    File,
    /// What somebody uploaded and runs, on an origin of its own.
    Foreign,
}

/// What is wrong with the headers of an answer.
fn wrong(kind: Kind, answer: &Answer) -> Vec<String> {
    let is_page = kind == Kind::Page;
    let is_foreign = kind == Kind::Foreign;
    let mut expected = vec![
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", if is_foreign { "" } else { "DENY" }),
        ("referrer-policy", if is_page { "same-origin" } else { "no-referrer" }),
        ("cross-origin-resource-policy", if is_foreign { "cross-origin" } else { "same-origin" }),
        ("cross-origin-opener-policy", if is_page { "same-origin" } else { "" }),
        ("access-control-allow-origin", ""),
        ("strict-transport-security", ""),
        ("server", ""),
        ("x-powered-by", ""),
    ];
    if kind == Kind::Data {
        expected.extend([("cache-control", "no-store"), ("content-security-policy", DATA)]);
    }
    let mut wrong: Vec<String> = expected
        .into_iter()
        .filter(|(name, value)| answer.header(name) != *value)
        .map(|(name, value)| format!("{name}: {:?} instead of {value:?}", answer.header(name)))
        .collect();
    let policy = answer.header("content-security-policy");
    let closed: &[&str] = match kind {
        Kind::Page => &[
            "default-src 'self'",
            "script-src 'self';",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        ],
        Kind::Foreign => &["form-action 'none'", "frame-ancestors http"],
        Kind::Data | Kind::File => &["default-src 'none'"],
    };
    wrong.extend(
        closed.iter().filter(|part| !policy.contains(**part)).map(|part| format!("{part}: {policy}")),
    );
    if is_page && !answer.header("permissions-policy").contains("camera=()") {
        wrong.push("permissions-policy".to_owned());
    }
    wrong
}

fn judge(of: &str, kind: Kind, status: u16, answer: &Answer) {
    assert_eq!(answer.status.as_u16(), status, "{of}: {}", answer.text());
    let wrong = wrong(kind, answer);
    assert!(wrong.is_empty(), "{of} ({kind:?}, {status}):\n{}", wrong.join("\n"));
}

async fn page(client: &Client, path: &str) -> Answer {
    ask(client, path, &[(ACCEPT, "text/html")]).await
}

#[tokio::test]
async fn every_kind_of_answer_carries_its_headers() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        let stored = store(service, "shop").await;
        let file = |name: &str| format!("/api/files/{}", stored.id(name));
        for (path, kind, status) in [
            ("/api/projects".to_owned(), Kind::Data, 200),
            ("/api/health".to_owned(), Kind::Data, 200),
            ("/api/openapi.json".to_owned(), Kind::File, 200),
            ("/api/nothing".to_owned(), Kind::Data, 404),
            ("/api/test-runs/999".to_owned(), Kind::Data, 404),
            ("/api/projects?sort=sideways".to_owned(), Kind::Data, 400),
            (file("page"), Kind::Data, 302),
            (file("shot"), Kind::File, 200),
            (file("note"), Kind::File, 200),
            (file("unknown"), Kind::File, 200),
        ] {
            judge(&path, kind, status, &ask(client, &path, &[]).await);
        }
        for (path, status) in [
            ("/", 200),
            ("/projects", 200),
            ("/nothing", 404),
            ("/test-runs/999", 404),
            ("/mcp", 200),
            ("/docs", 200),
        ] {
            judge(path, Kind::Page, status, &page(client, path).await);
        }
        for (method, path, kind, body, status) in [
            (Method::DELETE, "/api/projects", "application/json", "", 405),
            (Method::POST, "/api/tags", "text/plain", "{}", 415),
            (Method::POST, "/api/tags", "application/json", "{", 400),
            (Method::POST, "/mcp", "application/json", "{", 400),
        ] {
            let request = client.request(method, path).header("content-type", kind).body(body);
            judge(path, Kind::Data, status, &Answer::send(request).await.expect("an answer"));
        }
        let elsewhere = client.with_header("origin", "https://evil.example").expect("a header");
        judge("an origin", Kind::Data, 403, &send(&elsewhere, Method::POST, "/api/tags", json!({})).await);
        let renamed = client.with_header("host", "evil.example").expect("a header");
        judge("a host", Kind::Data, 421, &ask(&renamed, "/api/projects", &[]).await);

        let address = sent_to(service, &file("page")).await;
        judge(&address, Kind::Foreign, 200, &page(&listener_of(&address), path_of(&address)).await);

        // Without its files, and then without its database, it answers in the same way.
        let objects = service.database().folder().join("objects");
        std::fs::rename(&objects, objects.with_extension("away")).expect("moved");
        std::fs::write(&objects, "no folder").expect("a file");
        let unread = ask(client, &file("shot"), &[]).await;
        judge("a file without the storage", Kind::Data, 503, &unread);
        let told = unread.json().expect("JSON");
        assert!(told["code"] == "storage_unavailable" && !unread.text().contains("objects"), "{told}");
        service.state().store().db().close().await;
        judge("data without a database", Kind::Data, 503, &ask(client, "/api/projects", &[]).await);
        judge("a page without a database", Kind::Page, 503, &page(client, "/projects").await);
        judge("a file without a database", Kind::Data, 503, &ask(client, &file("shot"), &[]).await);
    })
    .await;
}

#[tokio::test]
async fn who_is_turned_away_gets_the_same_headers() {
    for_each_secured_service(async |service| {
        let client = service.client();
        for path in ["/api/projects", "/api/test-runs/1", "/api/files/1", "/api/stream"] {
            judge(path, Kind::Data, 401, &ask(client, path, &[]).await);
        }
        let guess = json!({ "username": "nobody", "password": "a wrong guess" });
        judge("login", Kind::Data, 401, &send(client, Method::POST, "/api/auth/login", guess).await);
        judge("the page of login", Kind::Page, 200, &page(client, "/login").await);
        // The form to sign in takes the place of the page.
        judge("a page", Kind::Page, 401, &page(client, "/projects").await);
        judge("agents", Kind::Data, 401, &send(client, Method::POST, "/mcp", json!({})).await);
    })
    .await;
}
