//! Demo mode: everything can be looked at, nothing changes.

use std::time::Duration;

use callboard_auth::routes::Method as Verb;
use callboard_auth::{ROUTES, RouteId};
use callboard_domain::account::Role;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_fn_jobs::{Budget, run_due};
use callboard_ingest::Completion;
use callboard_query::deletions::DeleteTarget;
use callboard_store::jobs::{self, Payload as _};
use callboard_test_support::access::{Holding, address};
use callboard_test_support::accounts::{PASSWORD, secured_settings};
use callboard_test_support::{
    Answer, Client, Provider, Service, Settings, TestDatabase, for_each_backend, for_each_secured_service,
    for_each_service,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::boundary::{send, shown, something};
use crate::detail_pages::page;
use crate::mcp::Agent;

const LINE: &str = "This is a demo: you can look at everything, nothing can be changed.";

fn demo(more: Settings) -> Settings {
    [vec![("SERVICE_DEMO".to_owned(), "true".to_owned())], more].concat()
}

fn code(answer: &Answer) -> String {
    answer.json().ok().and_then(|body| body["code"].as_str().map(str::to_owned)).unwrap_or_default()
}

/// What is not a GET and still answers: it reads, or signs in and out.
const OPEN: [RouteId; 10] = [
    RouteId::Login,
    RouteId::Logout,
    RouteId::CheckTraces,
    RouteId::StepResolution,
    RouteId::GateRun,
    RouteId::PreviewInstanceRetention,
    RouteId::PreviewRetention,
    RouteId::TestRepository,
    RouteId::McpMessages,
    RouteId::Tick,
];

#[tokio::test]
async fn every_route_that_writes_is_refused_and_nothing_changes() {
    for_each_service(async |service| {
        let holding = something(service.client()).await;
        let before = shown(service.client()).await;
        let demo = service.beside(&demo(Vec::new())).await.expect("a demo");
        for route in ROUTES.iter().filter(|route| route.method != Verb::Get) {
            let path = address(route, &holding, 1);
            let answer = send(demo.client(), route, &path, &[]).await;
            let is_refused = (answer.status.as_u16(), code(&answer)) == (403, "demo_mode".to_owned());
            assert_eq!(is_refused, !OPEN.contains(&route.id), "{} {}", route.id.name(), answer.text());
            assert!(!is_refused || answer.json().expect("an error")["message"] == json!(LINE));
        }
        let link = demo.client().get("/api/auth/verify-email?token=sve_x").await.expect("an answer");
        assert_eq!(code(&link), "demo_mode");
        assert_eq!(shown(service.client()).await, before);
        let version =
            async |of: &Service| of.client().json("/api/version").await.expect("a version")["demo"].clone();
        assert_eq!((version(&demo).await, version(service).await), (json!(true), json!(false)));
    })
    .await;
}

#[tokio::test]
async fn every_page_says_that_it_is_a_demo() {
    for_each_service(async |service| {
        let holding = something(service.client()).await;
        let demo = service.beside(&demo(Vec::new())).await.expect("a demo");
        let missing = Holding::missing().project.to_string();
        let is_page = |pattern: &str| {
            !pattern.starts_with("/api/") && !pattern.contains("{*path}") && !pattern.starts_with("/badge/")
        };
        let pages = ROUTES.iter().filter(|route| route.method == Verb::Get && is_page(route.pattern));
        let paths: Vec<String> = pages
            .filter(|route| route.pattern != "/f/{grant}/{*path}" && route.pattern != "/settings/users/{id}")
            .map(|route| address(route, &holding, 1))
            // Where nobody signs in, this one leads home.
            .filter(|path| path != "/login" && !path.contains(&missing))
            .chain(["/nowhere".to_owned()])
            .collect();
        assert!(paths.len() > 15, "{paths:?}");
        for path in paths {
            let html = async |of: &Service| {
                let client = of.client().with_header("accept", "text/html").expect("a header");
                client.get(&path).await.expect("a page").text()
            };
            assert!(html(&demo).await.contains(LINE), "{path}");
            assert!(!html(service).await.contains(LINE), "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn gates_and_agents_still_read_and_keep_nothing() {
    for_each_service(async |service| {
        let holding = something(service.client()).await;
        let demo = service.beside(&demo(Vec::new())).await.expect("a demo");
        let gate = format!("/api/test-runs/{}/gate", holding.run);
        let judged = demo.client().post_json(&gate, &json!({ "maxFailed": 0 })).await.expect("judged");
        assert_eq!((&judged["passed"], &judged["id"]), (&json!(false), &Value::Null), "{judged}");
        let results = format!("/api/test-runs/{}/gate-results", holding.run);
        assert_eq!(demo.client().json(&results).await.expect("results")["items"], json!([]));
        service.client().post_json(&gate, &json!({ "maxFailed": 0 })).await.expect("judged");
        let kept = service.client().json(&results).await.expect("results");
        assert_eq!(kept["items"].as_array().map(Vec::len), Some(1), "elsewhere the result is kept");

        let agent = Agent::at(demo.client().clone(), "/mcp");
        let run = agent.call("get_run", json!({ "runId": holding.run })).await.expect("a run");
        let cluster = &run["cases"][0]["clusterId"];
        let set = json!({ "clusterId": cluster, "status": "ignored", "note": "known" });
        assert_eq!(agent.call("set_cluster_status", set).await, Err(LINE.to_owned()));
    })
    .await;
}

#[tokio::test]
async fn people_sign_in_and_out_of_a_demo_and_change_nothing_in_between() {
    for_each_secured_service(async |service| {
        service.account("admin", Role::Administrator).await.expect("an account");
        let provider = Provider::start().await.expect("a provider");
        let settings: Settings = [provider.settings(), secured_settings()].concat();
        let demo = service.beside(&demo(settings)).await.expect("a demo");
        let browser = demo.client().browser();
        let credentials = json!({ "username": "admin", "password": PASSWORD });
        browser.post_json("/api/auth/login", &credentials).await.expect("signed in");
        assert!(page(&browser, "/settings/audit").await.contains(LINE));
        let key = browser.post("/api/users/me/api-keys", &json!({ "name": "CI" })).await.expect("an answer");
        assert_eq!((key.status.as_u16(), code(&key)), (403, "demo_mode".to_owned()));
        let edit = browser.request(Method::PATCH, "/api/users/me").json(&json!({ "name": "Ada" }));
        assert_eq!(code(&browser.send(edit).await.expect("an answer")), "demo_mode");
        browser.post_json("/api/auth/logout", &json!({})).await.expect("signed out");
        let gone = browser.get("/api/projects").await.expect("an answer");
        assert_eq!((gone.status.as_u16(), code(&gone)), (401, "authentication_required".to_owned()));
        providers_are_closed(demo.client()).await;
        assert_eq!(provider.token_requests(), 0);
    })
    .await;
}

async fn providers_are_closed(client: &Client) {
    let html = client.with_header("accept", "text/html").expect("a header");
    let login = html.get("/login").await.expect("a page").text();
    assert!(login.contains(LINE) && !login.contains("/api/auth/oauth/"), "{login}");
    for step in ["idp/login", "codehost/login", "idp/callback?code=x&state=y"] {
        let answer = client.get(&format!("/api/auth/oauth/{step}")).await.expect("an answer");
        assert_eq!((answer.status.as_u16(), answer.header("location")), (302, "/login?error=demo-mode"));
    }
}

#[tokio::test]
async fn jobs_complete_what_was_accepted_and_delete_nothing() {
    for_each_backend(async |backend| {
        let service = Service::start(backend).await.expect("a service");
        let holding = something(service.client()).await;
        // Alone on its database: what is left undone is left by the demo.
        let demo = Service::over(service.into_database().await, &demo(Vec::new())).await.expect("a demo");
        let (state, now) = (demo.state(), demo.state().now());
        let mut session = state.store().db().begin().await.expect("a transaction");
        let completion = Completion { project: ProjectId(holding.project), run: RunId(holding.run) };
        let deletion = DeleteTarget { receipt: 1, further: None };
        jobs::enqueue(&mut session, "demo:completion", None, &completion, now).await.expect("enqueued");
        jobs::enqueue(&mut session, "demo:deletion", None, &deletion, now).await.expect("enqueued");
        session.commit().await.expect("committed");
        let due = async |kind| {
            let mut session = state.store().db().read().await.expect("a connection");
            jobs::next_due(&mut session, &[kind]).await.expect("a time").is_some_and(|due| due <= now)
        };
        while due(Completion::KIND).await {
            run_due(state, Budget::new(Duration::from_secs(20))).await.expect("worked");
        }
        assert!(due(DeleteTarget::KIND).await);
    })
    .await;
}

#[tokio::test]
async fn a_demo_enqueues_no_sweeps() {
    for_each_backend(async |backend| {
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let demo = Service::over(database, &demo(Vec::new())).await.expect("a demo");
        let summary = run_due(demo.state(), Budget::new(Duration::from_secs(20))).await.expect("worked");
        assert_eq!((summary.claimed, summary.next_due), (0, None));
        let mut session = demo.state().store().db().read().await.expect("a connection");
        let counts = jobs::counts(&mut session).await.expect("counts");
        assert_eq!((counts.queued, counts.done), (0, 0));
    })
    .await;
}
