//! Input that somebody made to break something: nested without end, full of
//! what means something to a database or a browser, or one byte too long.

use callboard_auth::routes::{Access, BodyLimit, Method as Verb};
use callboard_auth::{ROUTES, Route};
use callboard_domain::account::Role;
use callboard_test_support::access::{Holding, address};
use callboard_test_support::{
    Answer, Form, Service, TestDatabase, for_each_backend, for_each_secured_service, for_each_service,
    report_archive,
};
use reqwest::{Body, Method};
use serde_json::json;

use super::{refusal, refused, send, settings};
use crate::builders::{attempt, run, with};

/// Routes that read a JSON body, at which an administrator may call.
fn commands() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| {
        route.method != Verb::Get
            && route.method != Verb::Delete
            && route.body_limit != BodyLimit::Upload
            && !matches!(route.access, Access::System)
    })
}

#[tokio::test]
async fn json_that_is_nested_without_end_is_refused_everywhere() {
    for_each_secured_service(async |service| {
        let mut read = 0;
        for route in commands() {
            // Each as somebody new: some of these end the session they are asked with.
            let name = format!("admin {}", route.id.name());
            let admin = service.account(&name, Role::Administrator).await.expect("an account");
            let browser = service.browser_of(admin).await.expect("a browser");
            let path = address(route, &Holding::missing(), admin.get());
            let largest = if matches!(route.body_limit, BodyLimit::Fixed(bytes) if bytes < 30_000) {
                7_000
            } else {
                10_000
            };
            for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
                let depth = largest / open.len().max(2) * 2;
                let deep = format!("{{\"username\":{}1{}}}", open.repeat(depth), close.repeat(depth));
                let fits = !matches!(route.body_limit, BodyLimit::Fixed(bytes) if bytes < deep.len() as u64);
                let method: Method = route.method.as_str().parse().expect("a method");
                let request = browser.request(method, &path).header("content-type", "application/json");
                let answer = Answer::send(request.body(deep)).await.expect("an answer");
                let status = answer.status.as_u16();
                assert!(status < 500, "{} {path}: {}", route.method.as_str(), answer.text());
                read += usize::from(status == 400);
                assert!(fits || status == 413 || status == 400 || status == 401, "{path}: {status}");
                assert!(!answer.text().contains("recursion") || status == 400, "{}", answer.text());
            }
        }
        assert!(read > 40, "{read} routes read what they were sent");
        assert!(service.client().get("/api/health").await.expect("an answer").status.is_success());
    })
    .await;
}

#[tokio::test]
async fn nul_is_replaced_in_what_people_wrote_and_refused_in_names() {
    for_each_service(async |service| {
        let case = with(
            attempt("pays", "failed", 0),
            json!({ "error": "Error: a\u{0}b", "steps": [{ "title": "click\u{0}", "duration": 1 }],
                "consoleLogs": [{ "type": "error", "text": "c\u{0}d", "timestamp": 1_767_261_600_000_i64 }],
                "ariaSnapshot": "- button \"e\u{0}f\"", "stdout": "g\u{0}h" }),
        );
        let body =
            with(run("shop", "failed", vec![case]), json!({ "label": "l\u{0}m", "branch": "n\u{0}o" }));
        let stored = service.client().post_json("/api/test-runs/submit", &body).await.expect("stored");
        let list = format!("/api/test-runs/{}/executions", stored["runId"]);
        let execution = service.client().json(&list).await.expect("executions")["items"][0]["id"].clone();
        let detail =
            service.client().json(&format!("/api/test-run-cases/{execution}")).await.expect("a page");
        assert_eq!(detail["error"], "Error: a\u{fffd}b");
        assert_eq!(detail["evidence"]["steps"][0]["title"], "click\u{fffd}");
        assert!(!detail.to_string().contains("\\u0000"), "{detail}");
        let shown =
            service.client().json(&format!("/api/test-runs/{}", stored["runId"])).await.expect("a run");
        assert!(!shown.to_string().contains("\\u0000"), "{shown}");
        for body in [run("a\u{0}b", "passed", Vec::new()), run("\u{0}", "passed", Vec::new())] {
            let answer = send(service.client(), Method::POST, "/api/test-runs/submit", body).await;
            assert_eq!(refusal(&answer), refused(400, "invalid_project_name"));
        }
    })
    .await;
}

#[tokio::test]
async fn nul_and_half_a_pair_break_no_statement_wherever_they_stand() {
    for_each_service(async |service| {
        let client = service.client();
        let submission = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
        let form = |meta: &str| {
            let report = report_archive(&[("index.html", b"<h1>Report</h1>")]).expect("an archive");
            Form::new()
                .field("projectName", "shop")
                .field("testRun", submission.to_string())
                .field("testCases", submission["testCases"].to_string())
                .field("attach_meta_0", meta)
                .file("attach_file_0", "a.txt", "text/plain", b"a note")
                .field("report_label_html", "l\u{0}m")
                .file("report_html", "report.gz", "application/gzip", &report)
        };
        for meta in [
            r#"[{"name":"n\u0000x","originalName":"e\u0000.txt","contentType":"text/\u0000plain"}]"#,
            r#"[{"name":"n\ud83dx"}]"#,
        ] {
            let request = client.request(Method::POST, "/api/test-runs/upload");
            let request = request.header("content-type", Form::content_type()).body(form(meta).into_body());
            let stored = Answer::send(request).await.and_then(|answer| answer.success()).expect("stored");
            assert_eq!(stored["reports"][0]["label"], "l\u{fffd}m");
            let list = format!("/api/test-runs/{}/executions", stored["runId"]);
            let execution = client.json(&list).await.expect("executions")["items"][0]["id"].clone();
            let files = format!("/api/test-run-cases/{execution}/files");
            assert_eq!(client.json(&files).await.expect("files")["items"][0]["name"], "n\u{fffd}x");
        }
        for (method, path, body) in [
            (Method::PATCH, "/api/projects/1", r#"{"description":"a\u0000b\ud83dc"}"#),
            (Method::PATCH, "/api/test-runs/1", r#"{"label":"a\ud83db"}"#),
        ] {
            let request = client.request(method, path).header("content-type", "application/json").body(body);
            let answer = Answer::send(request).await.expect("an answer");
            assert!(answer.status.is_success(), "{path}: {}", answer.text());
        }
        let project = client.json("/api/projects/1").await.expect("the project");
        assert_eq!(project["description"], "a\u{fffd}b\u{fffd}c");
    })
    .await;
    for_each_secured_service(async |service| {
        service.account("us1", Role::User).await.expect("an account");
        for name in ["us1\u{0}", "\u{0}", "us\u{0}1"] {
            let body = json!({ "username": name, "password": "a wrong guess" });
            let answer = send(service.client(), Method::POST, "/api/auth/login", body).await;
            assert_eq!(refusal(&answer), refused(401, "invalid_credentials"));
            let body = json!({ "email": format!("{name}@example.org") });
            let answer = send(service.client(), Method::POST, "/api/auth/forgot-password", body).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        let empty =
            send(service.client(), Method::POST, "/api/auth/forgot-password", json!({ "email": "" })).await;
        assert_eq!(empty.status, 200, "an address that is none is answered like any other");
        crate::rows::settled(service).await;
        let troubled = "SELECT kind FROM jobs WHERE error IS NOT NULL";
        assert_eq!(crate::rows::texts(service, troubled).await, Vec::<String>::new());
    })
    .await;
}

/// A form whose file ends at so many bytes of body.
fn form_of(bytes: usize) -> Vec<u8> {
    let submission = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
    let form = |file: usize| {
        Form::new()
            .field("projectName", "shop")
            .field("testRun", submission.to_string())
            .field("testCases", submission["testCases"].to_string())
            .file("trace_0", "trace.zip", "application/zip", &vec![b'x'; file])
            .into_body()
    };
    let around = form(0).len();
    form(bytes - around).to_vec()
}

#[tokio::test]
async fn one_byte_over_the_limit_of_an_upload_is_too_many() {
    const LIMIT: usize = 1024 * 1024;
    for_each_backend(async |backend| {
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let settings = settings(&[("SERVICE_UPLOAD_MAX_BYTES", "1048576")]);
        let service = Service::over(database, &settings).await.expect("a service");
        let upload = async |body: Body| {
            let request = service.client().request(Method::POST, "/api/test-runs/upload");
            Answer::send(request.header("content-type", Form::content_type()).body(body))
                .await
                .expect("an answer")
        };
        let chunked = |bytes: Vec<u8>| {
            let pieces: Vec<_> =
                bytes.chunks(60_000).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
            Body::wrap_stream(futures::stream::iter(pieces))
        };
        for body in [form_of(LIMIT + 1).into(), chunked(form_of(LIMIT + 1))] {
            let answer = upload(body).await;
            assert_eq!(answer.status, 413, "{}", answer.text());
            assert_eq!(answer.json().expect("JSON")["data"]["limit"], LIMIT);
        }
        assert_eq!(service.client().json("/api/projects").await.expect("projects")["items"], json!([]));
        for body in [form_of(LIMIT).into(), chunked(form_of(LIMIT))] {
            assert_eq!(upload(body).await.status, 200);
        }
    })
    .await;
}
