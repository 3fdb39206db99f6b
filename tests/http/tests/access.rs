//! The authorization matrix: every route, every kind of caller, things of
//! their own, of others and of nobody. What should come of each request is
//! read from the route table.

use callboard_store::Backend;
use callboard_test_support::access::{AUTH_SECRET, Cast, Holding, diagnosis, suggestion};
use callboard_test_support::{Answer, Form, Service, TestDatabase};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run};
use crate::rows::{changed, every_row, settled};

/// What telling who asks leaves behind, refused or not; what the timer of the
/// service keeps for itself, as the days on which files and evidence end; and
/// what is changed by commands that take no body, which cannot be asked for
/// with nonsense.
const MAY_CHANGE: [&str; 11] = [
    "jobs",
    "rate_limits",
    "audit_events",
    "sessions",
    "api_keys",
    "cluster_suggestions",
    "exports",
    "id_counters",
    "instance_state",
    "files",
    "packs",
];

/// A service that asks who is calling, on a database that was filled by one
/// that does not.
async fn secured(backend: Backend) -> (Service, Cast) {
    let open = Service::start(backend).await.expect("a service");
    let first = hold(&open, "first").await;
    let second = hold(&open, "second").await;
    // Streams end soon, so that their answers are whole; wrong keys come by the hundred.
    let settings = [
        ("SERVICE_AUTH_ENABLED", "true"),
        ("SERVICE_AUTH_SECRET", AUTH_SECRET),
        ("SERVICE_SSE_MAX_SECONDS", "1"),
        ("SERVICE_RATE_LIMITS", "off"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let database: TestDatabase = open.into_database().await;
    let service = Service::over(database, &settings.to_vec()).await.expect("a secured service");
    // Accounts from before would see all projects.
    let state = service.state();
    let cast = Cast::assemble(state.store(), state.now(), first, second).await.expect("accounts");
    (service, cast)
}

pub(crate) async fn hold(service: &Service, name: &str) -> Holding {
    let client = service.client();
    let form = Form::new()
        .field("projectName", name)
        .field("testRun", run(name, "failed", Vec::new()).to_string())
        .field("testCases", json!([attempt("pays", "failed", 0)]).to_string())
        .field("attach_meta_0", r#"[{"name":"note","contentType":"text/plain","originalName":"note.txt"}]"#)
        .file("attach_file_0", "note.txt", "text/plain", b"a note");
    let request = client
        .request(Method::POST, "/api/test-runs/upload")
        .header("content-type", Form::content_type())
        .body(form.into_body());
    let stored = Answer::send(request).await.and_then(|answer| answer.success()).expect("stored");
    let number = |value: &Value| value.as_i64().expect("an id");
    let run = number(&stored["runId"]);
    let detail = client.json(&format!("/api/test-runs/{run}")).await.expect("a run");
    let failed = &detail["testCases"][0];
    let execution = number(&failed["id"]);
    let files = client.json(&format!("/api/test-run-cases/{execution}/files")).await.expect("files");
    let failed_cluster =
        client.json(&format!("/api/test-run-cases/{execution}")).await.expect("an execution");
    let address = "https://tracker.test/7";
    let link = json!({ "entityType": "test_run", "entityId": run, "url": address });
    let link = client
        .send_json(Method::POST, "/api/links", &link)
        .await
        .and_then(|answer| answer.success())
        .expect("a link");
    let project = number(&stored["projectId"]);
    let marker = json!({ "label": "Release", "occurredAt": "2026-01-01", "category": "release" });
    let markers = format!("/api/projects/{project}/markers");
    let marker = client
        .send_json(Method::POST, &markers, &marker)
        .await
        .and_then(|answer| answer.success())
        .expect("a marker");
    let policy = json!({ "name": "strict", "policy": { "maxFailed": 0 } });
    let function = json!({
        "name": "pay", "kind": "helper", "module": "./pages", "steps": [{ "action": "goto", "value": "/pay" }],
    });
    let functions = format!("/api/projects/{project}/test-functions");
    let function = client.post_json(&functions, &function).await.expect("a function");
    let export = json!({ "kind": "run", "id": run, "format": "csv" });
    let export = client.post_json("/api/exports", &export).await.expect("an export");
    let policies = format!("/api/projects/{project}/gate-policies");
    let policy = client.post_json(&policies, &policy).await.expect("a policy");
    let cluster = number(&failed_cluster["cluster"]["id"]);
    let (store, now) = (service.state().store(), service.state().now());
    let suggestion = suggestion(store, project, cluster, now).await.expect("a suggestion");
    let diagnosis = diagnosis(store, project, cluster, now).await.expect("a diagnosis");
    Holding {
        project: number(&stored["projectId"]),
        name: name.to_owned(),
        run,
        test_case: number(&failed["testCaseId"]),
        execution,
        file: number(&files["items"][0]["id"]),
        link: number(&link["link"]["id"]),
        marker: number(&marker["marker"]["id"]),
        function: number(&function["testFunction"]["id"]),
        export: number(&export["export"]["id"]),
        cluster,
        suggestion,
        diagnosis,
        policy: number(&policy["policy"]["id"]),
    }
}

async fn matrix(backend: Backend) {
    let (service, cast) = secured(backend).await;
    let client = service.client();
    let host = client.base_url().trim_start_matches("http://").to_owned();
    let mut wrong = Vec::new();
    settled(&service).await;
    let before = every_row(&service, &MAY_CHANGE).await;
    for question in cast.questions() {
        let request = cast.request(&question, &host).expect("a request");
        let (parts, body) = request.into_parts();
        let sent = client.request(parts.method, &parts.uri.to_string()).headers(parts.headers).body(body);
        let answer = Answer::send(sent).await.expect("an answer");
        if let Err(sentence) = question.judge(answer.status.as_u16(), &answer.body) {
            wrong.push(sentence);
        }
    }
    assert!(wrong.is_empty(), "{} answers differ from the table:\n{}", wrong.len(), wrong.join("\n"));
    // What is let through is asked for with nonsense: none of all this changes anything.
    assert_eq!(changed(&before, &every_row(&service, &MAY_CHANGE).await), Vec::<&str>::new());
}

#[tokio::test]
async fn every_route_admits_whom_the_table_names_on_sqlite() {
    matrix(Backend::Sqlite).await;
}

#[tokio::test]
async fn every_route_admits_whom_the_table_names_on_postgresql() {
    matrix(Backend::Postgres).await;
}
