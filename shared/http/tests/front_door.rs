//! What every request passes before a handler, and every answer after it,
//! tested on handlers that do nothing but what the test needs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use callboard_auth::RouteId;
use callboard_domain::ids::RunId;
use callboard_http::extract::{Caller, Granted, JsonBody, Multipart, Path, Tail};
use callboard_http::{ApiError, AppState, Door, Routes, Sandbox, Site, front};
use callboard_platform::config::Config;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A small limit, so tests need not send much.
const LIMIT: &str = "1048576";

struct Service {
    router: Router,
    state: AppState,
    _folder: tempfile::TempDir,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn code(&self) -> String {
        self.json()["code"].as_str().unwrap().to_owned()
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

async fn service(settings: &[(&str, &str)], door: Door) -> Service {
    let folder = tempfile::tempdir().unwrap();
    let data = ("SERVICE_DATA_DIR", folder.path().to_str().unwrap());
    let limits = [("SERVICE_INGEST_MAX_SUBMIT_BYTES", LIMIT), ("SERVICE_UPLOAD_MAX_BYTES", LIMIT), data];
    let pairs = settings.iter().chain(&limits).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let state = AppState::connect(Config::from_env(pairs).unwrap()).await.unwrap();
    state.store().migrate().await.unwrap();
    let state = state.with_sandbox(Sandbox::Loopback { port: 3001, main_port: 3000 });
    Service { router: front(handlers(state.clone()), state.clone(), door), state, _folder: folder }
}

async fn local() -> Service {
    service(&[], Door::Main).await
}

fn handlers(state: AppState) -> Router {
    async fn large() -> Json<Value> {
        Json(json!({ "text": "x".repeat(5000) }))
    }
    async fn small() -> Json<Value> {
        Json(json!({ "text": "x" }))
    }
    async fn run(_: Caller, Path(run): Path<RunId>, site: Site) -> Json<Value> {
        Json(json!({ "id": run, "url": site.url("/test-runs/7") }))
    }
    async fn submit(_: Caller, JsonBody(body): JsonBody<Value>) -> Json<Value> {
        Json(body)
    }
    async fn upload(_: Caller, mut form: Multipart) -> Result<Json<Value>, ApiError> {
        let mut bytes = 0;
        while let Some(mut part) = form.next_part().await? {
            while let Some(chunk) = part.chunk().await? {
                bytes += chunk.len();
            }
        }
        Ok(Json(json!(bytes)))
    }
    async fn file(Tail(path): Tail) -> Response {
        ([("accept-ranges", "bytes"), ("content-type", "text/plain")], path.repeat(2000)).into_response()
    }
    async fn granted(Granted(grant): Granted, headers: HeaderMap) -> Json<Value> {
        Json(json!({ "project": grant.project(), "cookie": headers.contains_key("cookie") }))
    }
    async fn panics() -> Json<Value> {
        panic!("a secret detail")
    }
    async fn other_methods(method: Method) -> Response {
        (StatusCode::METHOD_NOT_ALLOWED, [("allow", "GET, HEAD, POST, OPTIONS")], format!("not {method}"))
            .into_response()
    }
    Routes::new(state)
        .on(RouteId::Health, small)
        .on(RouteId::ListProjects, large)
        .on(RouteId::GetRun, run)
        .on(RouteId::SubmitRun, submit)
        .on(RouteId::UploadRun, upload)
        .on(RouteId::GetFile, file)
        .on(RouteId::GrantedFile, granted)
        .on(RouteId::RecentRuns, panics)
        .on(RouteId::McpMessages, small)
        .on(RouteId::McpPage, small)
        .otherwise(RouteId::McpPage, other_methods)
        .into_router()
}

impl Service {
    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "localhost:3000");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], Body::empty()).await
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
        self.send("POST", path, headers, body).await
    }
}

#[tokio::test]
async fn answers_carry_the_headers_of_the_browser_boundary() {
    let service = local().await;
    for (path, status) in [("/api/projects", 200), ("/api/nothing", 404), ("/api/test-runs/recent", 500)] {
        let answer = service.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("x-frame-options"), "DENY");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(answer.header("content-security-policy"), "default-src 'none'; frame-ancestors 'none'");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("strict-transport-security"), "");
        assert_eq!(answer.header("server"), "");
        assert_eq!(answer.header("x-request-id").len(), 16);
    }
    let behind_tls = service_with_site().await;
    let answer =
        behind_tls.send("GET", "/api/projects", &[("host", "tests.example.org")], Body::empty()).await;
    assert_eq!(answer.header("strict-transport-security"), "max-age=31536000");
}

async fn service_with_site() -> Service {
    service(&[("SERVICE_SITE_URL", "https://tests.example.org")], Door::Main).await
}

#[tokio::test]
async fn a_panic_is_an_error_with_a_reference_and_without_details() {
    let answer = local().await.get("/api/test-runs/recent").await;
    assert_eq!(answer.status, 500);
    assert_eq!(answer.json()["data"]["reference"], answer.header("x-request-id"));
    assert!(!String::from_utf8(answer.body).unwrap().contains("secret"));
}

#[tokio::test]
async fn unknown_paths_and_other_methods_say_so() {
    let service = local().await;
    assert_eq!(service.get("/api/nothing").await.code(), "route_not_found");
    assert_eq!(service.get("/.well-known/oauth-authorization-server").await.code(), "route_not_found");
    let page = service.send("GET", "/nothing", &[("accept", "text/html,*/*")], Body::empty()).await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (StatusCode::NOT_FOUND, "text/html; charset=utf-8")
    );
    let wrong = service.post("/api/projects", &[], "").await;
    assert_eq!((wrong.status, wrong.header("allow")), (StatusCode::METHOD_NOT_ALLOWED, "GET,HEAD"));
    assert_eq!(wrong.code(), "method_not_allowed");
    let own = service.send("DELETE", "/mcp", &[], Body::empty()).await;
    assert_eq!((own.header("allow"), own.body.as_slice()), ("GET, HEAD, POST, OPTIONS", &b"not DELETE"[..]));
}

#[tokio::test]
async fn paths_have_one_spelling() {
    let service = local().await;
    for path in [
        "/api//projects",
        "/api/projects/",
        "/api/./projects",
        "/api/x/../projects",
        "/api/files/../../../etc/passwd",
        "/api/files/%2e%2e/%2e%2e/etc/passwd",
        "/api/files/a%2f..%2fb",
        "/api/files/a%5cb",
        "/api/files/a%00b",
        "/api/files/a;b",
        "/api/files/%ff",
    ] {
        let answer = service.get(path).await;
        assert_eq!(
            (answer.status, answer.code()),
            (StatusCode::NOT_FOUND, "route_not_found".to_owned()),
            "{path}"
        );
    }
    assert_eq!(service.get("/api/files/a%20b").await.status, 200);
}

#[tokio::test]
async fn ids_are_read_strictly() {
    let service = local().await;
    assert_eq!(service.get("/api/test-runs/7").await.json()["id"], 7);
    for id in ["0", "07", "abc", "-1", "9223372036854775808", "1.0", "%37x"] {
        let answer = service.get(&format!("/api/test-runs/{id}")).await;
        assert_eq!(
            (answer.status, answer.code()),
            (StatusCode::BAD_REQUEST, "invalid_run_id".to_owned()),
            "{id}"
        );
    }
}

#[tokio::test]
async fn the_first_check_that_fails_decides() {
    let service = local().await;
    let foreign = ("origin", "http://evil.example");
    let path = "/api/test-runs/submit";
    let too_long = format!("{path}?q={}", "x".repeat(9000));
    assert_eq!(service.post(&too_long, &[foreign], "").await.status, 414);
    let long_header = "x".repeat(40_000);
    assert_eq!(service.post(path, &[("x-long", &long_header), foreign], "").await.status, 431);
    let declared = ("content-length", "1048577");
    let host = ("host", "evil.example");
    assert_eq!(service.post(path, &[declared, host, foreign], "").await.status, 413);
    assert_eq!(service.post(path, &[host, foreign], "").await.code(), "host_not_allowed");
    assert_eq!(
        service.post(path, &[foreign, ("content-type", "text/plain")], "x").await.code(),
        "origin_not_allowed"
    );
    assert_eq!(service.post(path, &[("content-type", "text/plain")], "x").await.status, 415);
    assert_eq!(service.post(path, &[], "x").await.code(), "invalid_json");
    assert_eq!(service.post(path, &[("origin", "http://localhost:3000")], "{}").await.status, 200);
    assert_eq!(service.send("GET", "/api/health", &[host], Body::empty()).await.status, 200);
}

#[tokio::test]
async fn the_mcp_endpoint_has_its_own_list_of_origins() {
    let service = local().await;
    for (origin, status) in [
        ("http://localhost:6274", 200),
        ("http://evil.example", 403),
        ("null", 403),
        ("http://127.0.0.1:3001", 403),
    ] {
        assert_eq!(service.post("/mcp", &[("origin", origin)], "{}").await.status, status, "{origin}");
    }
    assert_eq!(service.send("OPTIONS", "/mcp", &[("host", "evil.example")], Body::empty()).await.status, 421);
}

#[tokio::test]
async fn bodies_are_counted_with_and_without_a_length() {
    let service = local().await;
    let path = "/api/test-runs/submit";
    let fits = format!("\"{}\"", "x".repeat(1_048_574));
    assert_eq!(service.post(path, &[], fits.clone()).await.status, 200);
    let chunked = |text: String| {
        let bytes = text.into_bytes();
        let pieces: Vec<_> =
            bytes.chunks(10_000).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
        Body::from_stream(futures::stream::iter(pieces))
    };
    assert_eq!(service.post(path, &[], chunked(fits)).await.status, 200);
    let over = format!("\"{}\"", "x".repeat(1_048_575));
    let answer = service.post(path, &[], chunked(over)).await;
    assert_eq!(
        (answer.status, answer.json()["data"]["limit"].clone()),
        (StatusCode::PAYLOAD_TOO_LARGE, json!(1_048_576))
    );
}

#[tokio::test]
async fn forms_are_read_without_a_length() {
    let service = local().await;
    let form = b"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n12345\r\n--b--\r\n".to_vec();
    let kind = ("content-type", "multipart/form-data; boundary=b");
    let path = "/api/test-runs/upload";
    assert_eq!(service.post(path, &[kind], form.clone()).await.json(), 5);
    assert_eq!(service.post(path, &[kind], form[..50].to_vec()).await.code(), "invalid_multipart");
    assert_eq!(
        service.post(path, &[("content-type", "multipart/form-data")], form).await.code(),
        "invalid_multipart"
    );
    let no_form = service.post(path, &[("content-type", "application/json")], "{}").await;
    assert_eq!((no_form.status.as_u16(), no_form.code()), (400, "invalid_multipart".to_owned()));
}

#[tokio::test]
async fn large_text_is_compressed_and_files_are_not() {
    let service = local().await;
    let gzip = ("accept-encoding", "gzip");
    let large = service.send("GET", "/api/projects", &[gzip], Body::empty()).await;
    assert_eq!(large.header("content-encoding"), "gzip");
    assert_eq!(service.get("/api/projects").await.header("content-encoding"), "");
    let small = service.send("GET", "/api/health", &[gzip], Body::empty()).await;
    assert_eq!(small.header("content-encoding"), "");
    let file = service.send("GET", "/api/files/a.txt", &[gzip], Body::empty()).await;
    assert_eq!((file.header("content-encoding"), file.body.len()), ("", 10_000));
}

#[tokio::test]
async fn the_sandbox_door_opens_files_only_and_knows_nobody() {
    let service = service(&[], Door::Sandbox).await;
    let identity = callboard_auth::Identity::auth_off();
    let project = identity.authorize(callboard_domain::ids::ProjectId(3)).unwrap();
    let target = callboard_auth::GrantTarget::Prefix("project-3/reports/1/1/".to_owned());
    let grant = service
        .state
        .grants()
        .await
        .unwrap()
        .seal(project, &target, None, "localhost", service.state.now(), 60_000)
        .unwrap();

    let answer =
        service.send("GET", &format!("/f/{grant}/index.html"), &[("cookie", "a=b")], Body::empty()).await;
    assert_eq!(answer.json(), json!({ "project": 3, "cookie": false }));
    assert!(
        answer
            .header("content-security-policy")
            .ends_with("frame-ancestors http://localhost:3000 http://127.0.0.1:3000")
    );
    assert_eq!(
        (answer.header("x-frame-options"), answer.header("cross-origin-resource-policy")),
        ("", "cross-origin")
    );

    // There the dashboard may be in use, whose cookies the content would share.
    let path = format!("/f/{grant}/index.html");
    for elsewhere in ["127.0.0.1:3000", "files.localhost:3000", "[::1]:3000"] {
        let answer = service.send("GET", &path, &[("host", elsewhere)], Body::empty()).await;
        assert_eq!(answer.code(), "file_not_found", "{elsewhere}");
    }
    assert_eq!(service.get("/f/AAAA/index.html").await.code(), "file_not_found");
    assert_eq!(service.get("/api/health").await.status, 200);
    for path in ["/api/projects", "/mcp", "/api/files/a"] {
        assert_eq!(service.get(path).await.code(), "route_not_found", "{path}");
    }
}

#[tokio::test]
async fn through_the_main_door_granted_content_gets_an_opaque_origin() {
    let answer = local().await.get("/f/AAAA/index.html").await;
    assert!(answer.header("content-security-policy").starts_with("sandbox allow-scripts"));
}

#[tokio::test]
async fn links_use_the_public_address_when_there_is_one() {
    assert_eq!(
        local().await.get("/api/test-runs/7").await.json()["url"],
        "http://localhost:3000/test-runs/7"
    );
    let answer = service_with_site()
        .await
        .send("GET", "/api/test-runs/7", &[("host", "10.0.0.7")], Body::empty())
        .await;
    assert_eq!(answer.json()["url"], "https://tests.example.org/test-runs/7");
}

#[tokio::test]
async fn writes_wait_for_migrations_and_reads_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let data = [("SERVICE_DATA_DIR".to_owned(), folder.path().to_str().unwrap().to_owned())];
    let state = AppState::connect(Config::from_env(data).unwrap()).await.unwrap();
    let router = front(handlers(state.clone()), state.clone(), Door::Main);
    let service = Service { router, state, _folder: folder };
    let answer = service.post("/api/test-runs/submit", &[], "{}").await;
    assert_eq!((answer.status, answer.header("retry-after")), (StatusCode::SERVICE_UNAVAILABLE, "5"));
    assert_eq!(answer.code(), "database_unavailable");
    assert_eq!(service.get("/api/projects").await.status, 200);
    service.state.store().migrate().await.unwrap();
    assert_eq!(service.post("/api/test-runs/submit", &[], "{}").await.status, 200);
}
