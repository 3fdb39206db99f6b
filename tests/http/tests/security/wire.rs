//! Requests as no client of ours writes them: what is asked for, and of whom,
//! is what the request line says.

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::ProjectId;
use callboard_store::Backend;
use callboard_test_support::accounts::secured_settings;
use callboard_test_support::{Client, Service, TestDatabase, for_each_secured_service, for_each_service};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{send, settings};
use crate::rows::texts;

fn address_of(client: &Client) -> String {
    client.base_url().strip_prefix("http://").expect("an address").to_owned()
}

/// Sends bytes as they are and reads what comes until the connection ends.
async fn say(client: &Client, request: &str) -> String {
    let mut stream = TcpStream::connect(address_of(client)).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    // Whoever is refused early may find the connection reset behind the answer.
    while stream.read_buf(&mut answer).await.is_ok_and(|read| read > 0) {}
    String::from_utf8_lossy(&answer).into_owned()
}

#[track_caller]
fn assert_status(answer: &str, status: u16, what: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {answer}");
}

#[tokio::test]
async fn the_server_a_request_line_names_is_the_one_that_is_asked() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let service = Service::over(database, &settings(&[])).await.expect("a service");
    let client = service.client();
    let own = address_of(client);
    let ask = async |target: &str, host: &str| {
        say(client, &format!("GET {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")).await
    };
    for (target, host, status) in [
        (format!("http://{own}/api/projects"), own.clone(), 200),
        (format!("http://{own}/api/projects"), "evil.example".to_owned(), 200),
        ("http://evil.example/api/projects".to_owned(), own.clone(), 421),
        ("http://evil.example/api/projects".to_owned(), "evil.example".to_owned(), 421),
        ("https://evil.example/api/projects".to_owned(), own.clone(), 421),
        (format!("http://{own}@evil.example/api/projects"), own.clone(), 421),
        (format!("http://evil.example@{own}/api/projects"), own.clone(), 421),
        ("http://evil.example/api/health".to_owned(), own.clone(), 200),
    ] {
        assert_status(&ask(&target, &host).await, status, &format!("{target} at {host}"));
    }
    let tag = r#"{"text":"web","color":"teal"}"#;
    for (target, origin, status) in [
        ("http://evil.example/api/tags".to_owned(), "http://evil.example".to_owned(), 421),
        (format!("http://{own}/api/tags"), "http://evil.example".to_owned(), 403),
        (format!("http://{own}/api/tags"), format!("http://{own}"), 201),
    ] {
        let request = format!(
            "POST {target} HTTP/1.1\r\nhost: evil.example\r\norigin: {origin}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{tag}",
            tag.len()
        );
        assert_status(&say(client, &request).await, status, &format!("{target} from {origin}"));
    }
    // Two names are none, whatever the request line says.
    for target in ["/api/projects".to_owned(), format!("http://{own}/api/projects")] {
        let request =
            format!("GET {target} HTTP/1.1\r\nhost: {own}\r\nhost: {own}\r\nconnection: close\r\n\r\n");
        let answer = say(client, &request).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{target}: {answer}");
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_read_gets_the_usual_error() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let service = Service::over(database, &settings(&[])).await.expect("a service");
    let client = service.client();
    let own = address_of(client);
    let read = "GET /api/health?probe=live HTTP/1.1\r\nhost: x\r\n\r\n";
    let many: String = (0..200).map(|n| format!("x-{n}: 1\r\n")).collect();
    for (what, request, status, code) in [
        (
            "a long address",
            format!("GET /{} HTTP/1.1\r\nhost: {own}\r\n\r\n", "a".repeat(70_000)),
            414,
            "url_too_long",
        ),
        (
            "an address with a bad byte",
            format!("GET /a\u{1}b HTTP/1.1\r\nhost: {own}\r\n\r\n"),
            400,
            "malformed_request",
        ),
        ("a bad method", format!("G(T / HTTP/1.1\r\nhost: {own}\r\n\r\n"), 400, "malformed_request"),
        (
            "a bad header",
            format!("GET / HTTP/1.1\r\nhost: {own}\r\nx y: z\r\n\r\n"),
            400,
            "malformed_request",
        ),
        ("many headers", format!("GET / HTTP/1.1\r\nhost: {own}\r\n{many}\r\n"), 431, "headers_too_large"),
        (
            "a long header",
            format!("GET / HTTP/1.1\r\nhost: {own}\r\nx: {}\r\n\r\n", "a".repeat(600_000)),
            431,
            "headers_too_large",
        ),
    ] {
        let answer = say(client, &request).await;
        assert_status(&answer, status, what);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let body: serde_json::Value = serde_json::from_str(body).expect("one JSON body");
        assert_eq!(
            (&body["error"], &body["statusCode"], &body["code"]),
            (&json!(true), &json!(status), &json!(code)),
            "{what}"
        );
        for header in [
            "content-type: application/json",
            "x-content-type-options: nosniff",
            "content-security-policy: ",
            "x-request-id: ",
            "connection: close",
        ] {
            assert!(head.contains(&format!("\r\n{header}")), "{what}: {header} in {head}");
        }
    }
    // Also behind a request that was answered.
    let mut stream = TcpStream::connect(&own).await.expect("a connection");
    stream.write_all(read.as_bytes()).await.expect("sent");
    let mut answer = vec![0; 8192];
    let length = stream.read(&mut answer).await.expect("read");
    assert_status(&String::from_utf8_lossy(&answer[..length]), 200, "the first request");
    stream.write_all(b"GET / HTTP/9.9\r\n\r\n").await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read");
    assert_status(&answer, 400, "the second request");
    assert!(answer.contains("malformed_request"), "{answer}");
}

#[tokio::test]
async fn what_is_no_path_of_ours_leads_nowhere() {
    for_each_secured_service(async |service| {
        let admin = service.account("admin", Role::Administrator).await.expect("an account");
        let program = service.program_of(admin, KeyPermission::Full).await.expect("a key");
        program.json("/api/projects").await.expect("the key opens it");
        let key = program.request(Method::GET, "/").build().expect("a request");
        let key = key.headers()["authorization"].to_str().expect("ASCII").to_owned();
        let own = address_of(service.client());
        for target in [
            "/api/projects/",
            "//api/projects",
            "/api//projects",
            "/./api/projects",
            "/x/../api/projects",
            "/x/%2e%2e/api/projects",
            "/api/projects;a=b",
            "/api/projects%2f",
            "/api%2fprojects",
            "/api/projects%00",
            "/api\\projects",
            "/API/projects",
            "/api/Projects",
            "/%61pi/projects/%2e",
            "/api/%252e%252e/projects",
            "*",
        ] {
            let request = format!(
                "GET {target} HTTP/1.1\r\nhost: {own}\r\nauthorization: {key}\r\nconnection: close\r\n\r\n"
            );
            let answer = say(service.client(), &request).await;
            assert!(
                answer.starts_with("HTTP/1.1 404 ") || answer.starts_with("HTTP/1.1 400 "),
                "{target}: {answer}"
            );
        }
        for line in
            ["OPTIONS * HTTP/1.1", "CONNECT evil.example:443 HTTP/1.1", "TRACE /api/projects HTTP/1.1"]
        {
            let request =
                format!("{line}\r\nhost: {own}\r\nauthorization: {key}\r\nconnection: close\r\n\r\n");
            let answer = say(service.client(), &request).await;
            assert!(answer.starts_with("HTTP/1.1 4"), "{line}: {answer}");
            assert!(!answer.contains(&key), "{line}: {answer}");
        }
    })
    .await;
}

/// The body of a form up to somewhere in the middle of its one file.
fn begun(fields: &[(&str, &str)], bytes: usize) -> String {
    let mut body = String::new();
    for (name, value) in fields {
        body.push_str(&format!(
            "--cut\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        ));
    }
    body.push_str("--cut\r\ncontent-disposition: form-data; name=\"trace_0\"; filename=\"t.zip\"\r\n\r\n");
    body.push_str(&"x".repeat(bytes));
    body
}

#[tokio::test]
async fn a_form_for_a_project_out_of_reach_is_refused_before_its_files_are_stored() {
    for_each_service(async |open: &Service| {
        let mut secured = secured_settings();
        secured.push(("SERVICE_RATE_LIMITS".to_owned(), "off".to_owned()));
        let service = open.beside(&secured).await.expect("a service");
        assert_eq!(service.client().get("/api/projects").await.expect("an answer").status, 401);
        let make = async |name: &str| {
            let made = send(open.client(), Method::POST, "/api/projects", json!({ "name": name })).await;
            made.success().expect("a project")["project"]["id"].as_i64().expect("an id")
        };
        let (own, _) = (make("own").await, make("bank").await);
        let user = service.account("ada", Role::Reporter).await.expect("an account");
        service.assign(user, Some(ProjectId(own))).await.expect("assigned");
        let program = service.program_of(user, KeyPermission::Ingest).await.expect("a key");
        let key = program.request(Method::GET, "/").build().expect("a request");
        let key = key.headers()["authorization"].to_str().expect("ASCII").to_owned();
        let run = json!({ "status": "passed", "startTime": "2026-01-01T10:00:00.000Z" }).to_string();
        for (name, code) in
            [("bank", "project_access_denied"), ("nobody has this", "project_creation_forbidden")]
        {
            // The rest of the form never comes: the answer does not wait for it.
            let body = begun(&[("projectName", name), ("testRun", &run)], 1_500_000);
            let request = format!(
                "POST /api/test-runs/upload HTTP/1.1\r\nhost: {}\r\nauthorization: {key}\r\nconnection: close\r\n\
                 content-type: multipart/form-data; boundary=cut\r\ncontent-length: 90000000\r\n\r\n{body}",
                address_of(service.client())
            );
            let answer = say(service.client(), &request).await;
            assert_status(&answer, 403, name);
            assert!(answer.contains(code), "{name}: {answer}");
        }
        let nothing: [String; 0] = [];
        assert_eq!(texts(&service, "SELECT staging_key FROM upload_tickets").await, nothing);
        assert_eq!(texts(&service, "SELECT key FROM blobs").await, nothing);
        let staging = service.database().storage_url();
        let staging = std::path::Path::new(staging.strip_prefix("file://").expect("a folder")).join("staging");
        let left = walk(&staging);
        assert!(left.is_empty(), "{left:?}");
    })
    .await;
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
