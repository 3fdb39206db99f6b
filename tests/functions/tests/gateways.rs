//! Functions behind whatever makes events of requests: an HTTP API, a REST API, a load
//! balancer. Their answers are those of the local runner.

use bytes::Bytes;
use callboard_store::Backend;
use callboard_test_functions::both::{Both, assert_same, get, post, request, run, settings, test_cases};
use callboard_test_functions::deployment::Deployment;
use callboard_test_support::access::AUTH_SECRET;
use callboard_test_support::{Client, Form, Gateway, S3Server, TestDatabase};
use http::header::{CONTENT_TYPE, COOKIE, HOST, LOCATION, SET_COOKIE};
use http::{Method, Request};
use serde_json::{Value, json};

const GATEWAYS: [Gateway; 3] = [Gateway::HttpApi, Gateway::RestApi, Gateway::LoadBalancer];

#[tokio::test]
async fn answers_are_those_of_the_runner_behind_every_gateway() {
    for gateway in GATEWAYS {
        let both = Both::behind(gateway, &[]).await.unwrap();
        // Multipart with bytes that are no text, and a report with odd names.
        let uploaded = both.upload_run("shop & co").await.unwrap();
        let run = &uploaded["runId"];
        for path in [
            "/",
            "/docs",
            "/api/projects?limit=1",
            "/api/search?q=shop+%26%20co",
            "/api/search?q=100%25%2Bmore&limit=5",
            &format!("/api/test-runs/{run}/executions?status=failed&status=passed"),
            &format!("/api/test-runs/{run}/executions?status=nothing"),
            "/api/projects/caf%C3%A9",
            "/nowhere/at%20all",
        ] {
            assert_same(&both.ask(&get(path).unwrap()).await.unwrap(), &format!("{gateway:?}: GET {path}"));
        }

        let report = uploaded["reports"][0]["path"].as_str().unwrap();
        let opened = both.functions.send(&get(&format!("/api/files/{report}")).unwrap()).await.unwrap();
        let opened = opened.header(LOCATION.as_str()).to_owned();
        let page = opened.strip_prefix("https://files.example.org").expect("the other origin");
        let odd = page.replace("index.html", "data/a%20b%23c%2541.txt");
        let read = Request::get(odd).header(HOST, "files.example.org").body(Bytes::new()).unwrap();
        // Their policies differ: what is large comes from the bucket here.
        for answer in both.ask(&read).await.unwrap() {
            assert_eq!((answer.status, answer.body.as_str()), (200, "named with care"), "{gateway:?}");
        }
    }
}

#[tokio::test]
async fn sessions_work_behind_every_gateway() {
    for gateway in GATEWAYS {
        let database = TestDatabase::fresh(Backend::Postgres).await.unwrap();
        let bucket = S3Server::start().await.unwrap();
        let mut settings = settings(&database, &bucket);
        let signed_in = [("SERVICE_AUTH_ENABLED", "true"), ("SERVICE_AUTH_SECRET", AUTH_SECRET)];
        settings.extend(signed_in.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let functions = Deployment::new(settings).unwrap().behind(gateway);
        let account = json!({ "username": "ada", "password": "correct horse battery staple" });
        let created = functions.send(&post("/api/auth/setup", &account).unwrap()).await.unwrap();
        assert!(created.status.is_success(), "{gateway:?}: {}", created.text());
        let cookies: Vec<&str> =
            created.headers.get_all(SET_COOKIE).iter().map(|cookie| cookie.to_str().unwrap()).collect();
        let sent: Vec<&str> = cookies.iter().map(|cookie| cookie.split(';').next().unwrap()).collect();
        assert!(cookies.iter().all(|cookie| cookie.contains("Secure")), "{gateway:?}: {cookies:?}");
        let me =
            request(Method::GET, "/api/auth/me").header(COOKIE, sent.join("; ")).body(Bytes::new()).unwrap();
        let me = functions.send(&me).await.unwrap().success().unwrap();
        assert_eq!(me["user"]["username"], "ada", "{gateway:?}: {me}");
    }
}

/// Fits through an API gateway and not through a load balancer.
const FILE_BYTES: usize = 900_000;

#[tokio::test]
async fn behind_a_load_balancer_files_leave_through_the_bucket_earlier() {
    let both =
        Both::behind(Gateway::LoadBalancer, &[("SERVICE_GATEWAY_MAX_BYTES", "1048576")]).await.unwrap();
    let note: Vec<u8> = (0..FILE_BYTES).map(|at| b'a' + u8::try_from(at % 23).unwrap()).collect();
    let form = Form::new()
        .field("projectName", "shop")
        .field("testRun", run("shop").to_string())
        .field("testCases", test_cases().to_string())
        .field("attach_meta_0", r#"[{"name":"note","contentType":"text/plain","originalName":"note.txt"}]"#)
        .file("attach_file_0", "note.txt", "text/plain", &note);
    let sent = request(Method::POST, "/api/test-runs/upload").header(CONTENT_TYPE, Form::content_type());
    let sent = sent.body(form.into_body()).unwrap();
    let uploaded = both.ask_runner(&sent).await.unwrap().success().unwrap();
    let all = format!("/api/test-runs/{}", uploaded["runId"]);
    let all = both.functions.send(&get(&all).unwrap()).await.unwrap().success().unwrap();
    let mut file = Value::Null;
    for execution in all["testCases"].as_array().unwrap() {
        let files = format!("/api/test-run-cases/{}/files", execution["id"]);
        let files = both.functions.send(&get(&files).unwrap()).await.unwrap().success().unwrap();
        if let Some(found) = files["items"].as_array().unwrap().first() {
            file = found["id"].clone();
        }
    }
    let path = format!("/api/files/{file}");
    let redirected = both.functions.send(&get(&path).unwrap()).await.unwrap();
    assert_eq!(redirected.status.as_u16(), 302, "{}", redirected.text());
    let bucket = Client::new(both.bucket.endpoint().to_owned()).unwrap();
    let signed = redirected.header("location").strip_prefix(both.bucket.endpoint()).unwrap().to_owned();
    assert!(bucket.get(&signed).await.unwrap().body == note);

    let start = json!({ "projectName": "shop", "startTime": "2026-01-01T10:00:00.000Z" });
    let opened = both.functions.send(&post("/api/test-runs/start", &start).unwrap()).await.unwrap();
    let limits = opened.success().unwrap()["limits"].clone();
    assert!(limits["requestMaxBytes"].as_u64().unwrap() < FILE_BYTES as u64, "{limits}");
}
