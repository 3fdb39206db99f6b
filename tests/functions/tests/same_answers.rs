//! Every route answers the same as a function and in the local runner, over
//! the same data.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use callboard_auth::routes::Method as RouteMethod;
use callboard_auth::{ROUTES, Route, RouteId};
use callboard_test_functions::both::{Both, assert_same, get, post, request, run, test_cases};
use http::Method;
use http::header::{ACCEPT, IF_NONE_MATCH, RANGE};
use serde_json::{Value, json};

/// These tell about the process that answers, as a function or not, or at what
/// moment it does; evidence has other fences each time.
const ABOUT_THE_PROCESS: [RouteId; 6] = [
    RouteId::Version,
    RouteId::SettingsPage,
    RouteId::RunStream,
    RouteId::ClusterContext,
    RouteId::ExecutionContext,
    RouteId::RunExecutionContext,
];

/// A commit that could be asked about.
const COMMIT: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567";

/// Ids and names of what was stored, to make real paths of patterns.
struct Stored {
    channel: Value,
    export: Value,
    user: Value,
    project: Value,
    run: Value,
    execution: Value,
    test_case: Value,
    cluster: Value,
    file: Value,
    report: String,
    grant: String,
    asset: String,
}

impl Stored {
    /// Uploads a run to the functions and reads its ids over REST.
    async fn by_upload(both: &Both) -> Result<Self> {
        let uploaded = both.upload_run("shop").await?;
        let run = uploaded["runId"].clone();
        let detail = json_of(both, &format!("/api/test-runs/{run}")).await?;
        let failed = &detail["testCases"][0];
        ensure!(failed["title"] == "pays", "trouble comes first: {detail}");
        let execution = failed["id"].clone();
        let files = json_of(both, &format!("/api/test-run-cases/{execution}/files")).await?;
        let report = uploaded["reports"][0]["path"].as_str().context("no report")?.to_owned();
        let opened = both.functions.send(&get(&format!("/api/files/{report}"))?).await?;
        // Names of styles and scripts change with their content; pages know them.
        let home = both.functions.send(&get("/")?).await?.text();
        let account = json!({ "username": "ada", "role": "user" });
        let created = both.functions.send(&post("/api/users", &account)?).await?.json()?;
        let export = json!({ "kind": "run", "id": run, "format": "csv" });
        let export = both.functions.send(&post("/api/exports", &export)?).await?.json()?;
        let address = json!({ "webhookUrl": "https://hooks.example.org/services/one" });
        let channel = json!({ "name": "#releases", "type": "slack", "config": address });
        let channel = both.functions.send(&post("/api/channels", &channel)?).await?.success()?;
        Ok(Self {
            channel: channel["channel"]["id"].clone(),
            export: export["export"]["id"].clone(),
            user: created["user"]["id"].clone(),
            project: uploaded["projectId"].clone(),
            run,
            test_case: failed["testCaseId"].clone(),
            cluster: failed["clusterId"].clone(),
            file: files["items"][0]["id"].clone(),
            execution,
            report,
            grant: between(opened.header("location"), "/f/", '/')?,
            asset: between(&home, "/static/", '"')?,
        })
    }

    /// A path that a route of the table serves.
    fn path_of(&self, route: &Route) -> String {
        let id = match route.pattern {
            pattern if pattern.contains("/projects/{id}") => &self.project,
            pattern if pattern.contains("/test-runs/{id}") => &self.run,
            pattern if pattern.contains("/test-cases/{id}") => &self.test_case,
            pattern if pattern.contains("/test-run-cases/{id}") => &self.execution,
            pattern if pattern.contains("/users/{id}") => &self.user,
            pattern if pattern.contains("/exports/{id}") => &self.export,
            pattern if pattern.contains("/failure-clusters/{id}") => &self.cluster,
            pattern if pattern.contains("/channels/{id}") => &self.channel,
            // Nothing was deleted: there is no first receipt.
            pattern if pattern.contains("/deletions/{id}") => &self.project,
            _ => &Value::Null,
        };
        let rest = match route.pattern {
            "/docs/{*path}" => "docs.js".to_owned(),
            "/mcp/{*path}" => "page.js".to_owned(),
            "/help/{*path}" => "quickstart".to_owned(),
            "/static/{*path}" => self.asset.clone(),
            "/api/files/{*path}" => self.file.to_string(),
            _ => "index.html".to_owned(),
        };
        let path = route.pattern.replace("{id}", &id.to_string()).replace("{*path}", &rest);
        let path = path.replace("{caseId}", &self.execution.to_string());
        let path = path.replace("{provider}", "idp").replace("{sha}", COMMIT);
        let query = match route.id {
            RouteId::Search => "?q=pays".to_owned(),
            RouteId::ExportRun => "?format=csv".to_owned(),
            RouteId::CompareRun => format!("?with={}", self.run),
            RouteId::RunCulprit => format!("?executionId={}", self.execution),
            RouteId::ListLinks => format!("?entityType=test_run&entityId={}", self.run),
            RouteId::TraceNetworkBody | RouteId::RunExecutionNetworkBody => "?sha1=0".to_owned(),
            _ => String::new(),
        };
        path.replace("{grant}", &self.grant) + &query
    }
}

async fn json_of(both: &Both, path: &str) -> Result<Value> {
    both.functions.send(&get(path)?).await?.success()
}

/// What stands between a text and the next such character.
fn between(text: &str, begin: &str, end: char) -> Result<String> {
    let found = text.split(begin).nth(1).and_then(|rest| rest.split(end).next());
    Ok(found.with_context(|| format!("no {begin} in {text}"))?.to_owned())
}

#[tokio::test]
async fn every_read_route_answers_as_in_the_local_runner() {
    let both = Both::start().await.unwrap();
    let stored = Stored::by_upload(&both).await.unwrap();
    for route in ROUTES.iter().filter(|route| route.method == RouteMethod::Get) {
        let path = stored.path_of(route);
        let mut answers = both.ask(&get(&path).unwrap()).await.unwrap();
        if ABOUT_THE_PROCESS.contains(&route.id) {
            assert_ne!(answers[0].body, answers[1].body, "GET {path}");
            answers.iter_mut().for_each(|answer| answer.body.clear());
        }
        assert_same(&answers, &format!("GET {path}"));
        let [by_function, _] = answers;
        let expected = match route.id {
            // Nobody proves an address where nobody signs in.
            RouteId::VerifyEmail => 400..401,
            // Nothing was deleted, no badge was made public, and the viewer is opened through the other origin only.
            RouteId::GetDeletion | RouteId::PublicBadge | RouteId::ViewerAsset => 404..405,
            // The project has no repository.
            RouteId::ProjectCommits
            | RouteId::CommitDiff
            | RouteId::ClusterCommits
            | RouteId::ClusterBranches
            | RouteId::RunCulprit => 503..504,
            _ => 200..400,
        };
        assert!(
            expected.contains(&by_function.status),
            "GET {path}: {} {}",
            by_function.status,
            by_function.body
        );
    }
}

#[tokio::test]
async fn files_come_from_the_bucket_whole_in_part_and_by_odd_names() {
    let both = Both::start().await.unwrap();
    let stored = Stored::by_upload(&both).await.unwrap();
    assert!(!both.bucket.keys().unwrap().is_empty());

    let file = format!("/api/files/{}?download=1", stored.file);
    let [whole, _] = both.ask(&get(&file).unwrap()).await.unwrap();
    assert_eq!((whole.status, whole.body.as_str()), (200, "a note from the test"));
    let tag = whole.headers.iter().find(|(name, _)| name == "etag").map(|(_, value)| value.clone()).unwrap();

    let part = request(Method::GET, &file).header(RANGE, "bytes=2-5").body(Bytes::new()).unwrap();
    let unchanged = request(Method::GET, &file).header(IF_NONE_MATCH, &tag).body(Bytes::new()).unwrap();
    let beyond = request(Method::GET, &file).header(RANGE, "bytes=900-").body(Bytes::new()).unwrap();
    for (request, status, body) in
        [(part, 206, Some("note")), (unchanged, 304, Some("")), (beyond, 416, None)]
    {
        let answers = both.ask(&request).await.unwrap();
        assert_same(&answers, &format!("{request:?}"));
        let [by_function, _] = answers;
        assert_eq!(by_function.status, status);
        assert!(body.is_none_or(|body| body == by_function.body), "{}", by_function.body);
    }

    // The gateway hands over this path decoded.
    let folder = stored.report.trim_end_matches("index.html");
    for path in [
        format!("/api/files/{folder}data/a%20b%23c%2541.txt?download=1"),
        format!("/f/{}/data/a%20b%23c%2541.txt", stored.grant),
    ] {
        let answers = both.ask(&get(&path).unwrap()).await.unwrap();
        assert_same(&answers, &format!("GET {path}"));
        let [by_function, _] = answers;
        assert_eq!((by_function.status, by_function.body.as_str()), (200, "named with care"), "GET {path}");
    }
}

#[tokio::test]
async fn a_run_submitted_to_either_is_read_from_both() {
    let both = Both::start().await.unwrap();
    let mut body = run("shop");
    body["testCases"] = test_cases();
    let submitted = post("/api/test-runs/submit", &body).unwrap();
    let by_function = both.functions.send(&submitted).await.unwrap().success().unwrap();
    let by_runner = both.ask_runner(&submitted).await.unwrap().success().unwrap();
    assert_eq!(by_function["projectId"], by_runner["projectId"]);
    assert_ne!(by_function["runId"], by_runner["runId"]);
    for field in ["status", "totalTests", "passedTests", "failedTests", "skippedTests", "flakyTests"] {
        assert_eq!(by_function[field], by_runner[field], "{field}");
    }
    both.completed().await.unwrap();
    for answer in [&by_function, &by_runner] {
        let path = format!("/api/test-runs/{}", answer["runId"]);
        let answers = both.ask(&get(&path).unwrap()).await.unwrap();
        assert_same(&answers, &path);
        assert_eq!(answers[0].status, 200, "{}", answers[0].body);
    }

    // A page begun at one is continued at the other.
    let first = json_of(&both, "/api/test-runs?limit=1").await.unwrap();
    let cursor = first["nextCursor"].as_str().unwrap();
    let next =
        both.ask_runner(&get(&format!("/api/test-runs?limit=1&cursor={cursor}")).unwrap()).await.unwrap();
    let next = next.success().unwrap();
    assert_ne!(first["items"][0]["id"], next["items"][0]["id"]);
    assert_eq!(next["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn agents_get_the_same_from_both() {
    let both = Both::start().await.unwrap();
    let stored = Stored::by_upload(&both).await.unwrap();
    let call = |name: &str, arguments: Value| json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }),
        call("list_projects", json!({})),
        call("list_runs", json!({ "projectId": stored.project })),
        call("get_run", json!({ "runId": stored.run })),
        call("list_failed_cases", json!({ "runId": stored.run })),
        call("no_such_tool", json!({})),
        json!({ "jsonrpc": "2.0", "id": 4, "method": "no/such/method" }),
    ];
    for message in messages {
        let mut asked = post("/mcp", &message).unwrap();
        asked.headers_mut().insert(ACCEPT, "application/json, text/event-stream".parse().unwrap());
        let answers = both.ask(&asked).await.unwrap();
        assert_same(&answers, &message.to_string());
        assert_eq!(answers[0].status, 200, "{message}: {}", answers[0].body);
    }
}

#[tokio::test]
async fn refusals_are_the_same_from_both() {
    let both = Both::start().await.unwrap();
    let mut requests: Vec<_> = [
        "/api/test-runs/12abc",
        "/api/test-runs/999999",
        "/api/projects/999999",
        "/api/nothing",
        "/nothing",
        "/api/test-runs?limit=many",
    ]
    .map(|path| get(path).unwrap())
    .into();
    requests.push(request(Method::DELETE, "/api/health").body(Bytes::new()).unwrap());
    requests.push(request(Method::GET, "/api/test-runs/submit").body(Bytes::new()).unwrap());
    requests.push(request(Method::POST, "/api/test-runs/submit").body(Bytes::from_static(b"{")).unwrap());
    requests.push(post("/api/test-runs/submit", &json!({ "projectName": "shop" })).unwrap());
    requests.push(post("/api/test-runs/upload", &json!({})).unwrap());
    for request in requests {
        let answers = both.ask(&request).await.unwrap();
        assert_same(&answers, &format!("{} {}", request.method(), request.uri()));
        assert!((400..500).contains(&answers[0].status), "{} {}", request.method(), request.uri());
    }
}
