//! Starting the whole service, and the functions that need no results:
//! health, versions, the API reference, signing in.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use callboard_http::{AppState, Sandbox};
use callboard_local_runner::{app, run};
use callboard_platform::config::Config;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

fn config(folder: &tempfile::TempDir, settings: &[(&str, &str)]) -> Config {
    let data = ("SERVICE_DATA_DIR", folder.path().to_str().unwrap());
    let pairs = settings.iter().chain([&data]).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::from_env(pairs).unwrap()
}

async fn service(folder: &tempfile::TempDir) -> Router {
    let state = AppState::connect(config(folder, &[])).await.unwrap();
    state.store().migrate().await.unwrap();
    app(state)
}

async fn send(router: &Router, request: http::request::Builder, body: &str) -> Answer {
    let request: Request =
        request.header("host", "localhost:3000").body(Body::from(body.to_owned())).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    Answer { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
}

async fn get(router: &Router, path: &str) -> Answer {
    send(router, Request::get(path), "").await
}

async fn login(router: &Router, body: &str) -> Answer {
    send(router, Request::post("/api/auth/login"), body).await
}

#[tokio::test]
async fn health_tells_what_is_reachable() {
    let folder = tempfile::tempdir().unwrap();
    let router = service(&folder).await;
    assert_eq!(
        get(&router, "/api/health").await.json(),
        json!({"status": "ok", "database": "ok", "storage": "ok"})
    );
    assert_eq!(get(&router, "/api/health?probe=live").await.json(), json!({"status": "ok"}));
    assert_eq!(get(&router, "/api/health?probe=deep").await.json()["data"], json!({"param": "probe"}));
}

#[tokio::test]
async fn health_is_503_while_a_migration_is_pending() {
    let folder = tempfile::tempdir().unwrap();
    let router = app(AppState::connect(config(&folder, &[])).await.unwrap());
    let answer = get(&router, "/api/health").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json(), json!({"status": "error", "database": "migration_pending", "storage": "ok"}));
    assert_eq!(get(&router, "/api/health?probe=live").await.status, 200);
}

#[tokio::test]
async fn the_version_names_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let version = get(&service(&folder).await, "/api/version").await.json();
    assert_eq!((&version["dbBackend"], &version["apiVersion"]), (&json!("sqlite"), &json!("1")));
    assert_eq!(version["appVersion"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn the_document_is_sent_once_to_a_client_that_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let router = service(&folder).await;
    let first = get(&router, "/api/openapi.json").await;
    assert_eq!(first.json()["openapi"], "3.1.0");
    let again = Request::get("/api/openapi.json").header("if-none-match", first.header("etag"));
    let again = send(&router, again, "").await;
    assert_eq!((again.status, again.text.as_str()), (StatusCode::NOT_MODIFIED, ""));
}

#[tokio::test]
async fn the_reference_loads_nothing_from_elsewhere_and_has_no_inline_script() {
    let folder = tempfile::tempdir().unwrap();
    let router = service(&folder).await;
    let page = get(&router, "/docs").await;
    assert!(page.header("content-security-policy").contains("script-src 'self';"));
    let addresses: Vec<&str> = page.text.split(['"', '\'']).filter(|text| text.contains('/')).collect();
    assert!(
        !addresses.iter().any(|text| text.starts_with("http") || text.starts_with("//")),
        "{addresses:?}"
    );
    for tag in page.text.split("<script").skip(1) {
        assert!(tag.starts_with(" src=\"/docs/") && tag.contains("></script>"), "{tag}");
    }
    for (asset, kind) in [
        ("swagger-ui.css", "text/css; charset=utf-8"),
        ("swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
        ("docs.js", "text/javascript; charset=utf-8"),
        ("lone.js", "text/javascript; charset=utf-8"),
        ("docs.css", "text/css; charset=utf-8"),
    ] {
        let answer = get(&router, &format!("/docs/{asset}")).await;
        assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, kind));
    }
    assert_eq!(get(&router, "/docs/oauth2-redirect.html").await.status, 404);
}

#[tokio::test]
async fn the_page_for_agents_brings_what_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let router = service(&folder).await;
    let page = get(&router, "/mcp").await;
    let named: Vec<&str> = page.text.split('"').filter(|text| text.starts_with("/mcp/")).collect();
    assert_eq!(named, ["/mcp/page.css", "/mcp/lone.js", "/mcp/page.js"]);
    for address in named {
        assert_eq!(get(&router, address).await.status, StatusCode::OK, "{address}");
    }
}

#[tokio::test]
async fn with_authentication_off_any_name_and_password_sign_in() {
    let folder = tempfile::tempdir().unwrap();
    let router = service(&folder).await;
    let answer = login(&router, r#"{"username":"ci","password":"x"}"#).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["success"], true);
    assert_eq!(answer.json()["user"]["role"], "administrator");
    assert_eq!(
        answer.header("set-cookie"),
        "svc_session=authentication-off; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax"
    );
    let out = send(&router, Request::post("/api/auth/logout"), "").await;
    assert_eq!(out.json(), json!({"success": true}));
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    let me = get(&router, "/api/auth/me").await.json();
    assert_eq!((&me["authenticated"], &me["authEnabled"]), (&json!(true), &json!(false)));
}

#[tokio::test]
async fn a_login_without_name_or_password_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let router = service(&folder).await;
    for (body, code) in [
        ("", "invalid_json"),
        ("[]", "invalid_body"),
        ("{}", "missing_field"),
        (r#"{"username":"ci","password":null}"#, "missing_field"),
        (r#"{"username":"ci","password":7}"#, "invalid_field"),
        (r#"{"username":"","password":"x"}"#, "invalid_field"),
    ] {
        let answer = login(&router, body).await;
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (StatusCode::BAD_REQUEST, Some(code)),
            "{body}"
        );
    }
    assert_eq!(login(&router, &format!("\"{}\"", "x".repeat(17_000))).await.status, 413);
}

#[tokio::test]
async fn a_local_start_opens_a_second_door_for_untrusted_content() {
    let folder = tempfile::tempdir().unwrap();
    let ready = run::prepare(config(&folder, &[("SERVICE_PORT", "0")])).await.unwrap();
    let Sandbox::Loopback { port, main_port } = *ready.state().sandbox() else { panic!("no second door") };
    assert_eq!(main_port, ready.port().unwrap());
    assert_ne!(port, main_port);
    let banner = ready.banner().unwrap();
    for line in [format!("http://localhost:{main_port}/mcp"), format!("http://127.0.0.1:{port}")] {
        assert!(banner.contains(&line), "{banner}");
    }
}

#[tokio::test]
async fn on_the_network_untrusted_content_stays_on_the_same_address() {
    let folder = tempfile::tempdir().unwrap();
    let ready =
        run::prepare(config(&folder, &[("SERVICE_PORT", "0"), ("SERVICE_HOST", "0.0.0.0")])).await.unwrap();
    assert_eq!(ready.state().sandbox(), &Sandbox::Opaque);
}

#[tokio::test]
async fn a_second_start_on_the_same_port_says_what_to_do() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = run::prepare(config(&one, &[("SERVICE_PORT", "0")])).await.unwrap();
    let port = first.port().unwrap().to_string();
    let error = run::prepare(config(&two, &[("SERVICE_PORT", &port)])).await.unwrap_err();
    assert!(error.to_string().contains("set SERVICE_PORT to a free port"), "{error}");
}
