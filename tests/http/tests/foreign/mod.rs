//! Two projects in one installation, and callers who reach one of them.
//! Whatever they name, by id, filter, cursor or body, nothing of the other
//! project comes back, nothing of it changes, and nothing of it shows in what
//! they may see.

mod below;
mod holding;
mod newcomers;
mod tools;

use std::collections::{BTreeMap, BTreeSet};

use callboard_auth::routes::{Access, Method as Verb, ProjectSource};
use callboard_auth::{ROUTES, Route};
use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::ProjectId;
use callboard_store::Backend;
use callboard_test_support::access::address;
use callboard_test_support::accounts::secured_settings;
use callboard_test_support::{Answer, Client, Form, Service, Settings, TestDatabase};
use reqwest::Method;
use serde_json::{Value, json};

pub(crate) use holding::{Held, fill};

use crate::builders::{attempt, run, with};

/// In every text of the other project, and what callers ask for.
const WORD: &str = "zebrafish";
/// In every text of the other project, and in no request: an answer that has
/// it tells of the other project.
const SECRET: &str = "unannounced";

/// One installation, and an administrator who fills it.
struct World {
    administrator: Client,
    service: Service,
    mine: Held,
    /// Who reaches the first project, or nothing.
    callers: Vec<(&'static str, Client)>,
}

/// A service that asks who is calling, and a program of its administrator.
async fn administered(backend: Backend, settings: &Settings) -> (Service, Client) {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let service = Service::over(database, settings).await.expect("a service");
    let user = service.account("an administrator", Role::Administrator).await.expect("an account");
    let administrator = service.program_of(user, KeyPermission::Full).await.expect("a key");
    (service, administrator)
}

impl World {
    async fn new(backend: Backend) -> Self {
        let mut settings = secured_settings();
        for (name, value) in [("SERVICE_RATE_LIMITS", "off"), ("SERVICE_SSE_MAX_SECONDS", "1")] {
            settings.push((name.to_owned(), value.to_owned()));
        }
        let (service, administrator) = administered(backend, &settings).await;
        let mine = fill(&service, &administrator, "owned", "plain").await;
        let project = ProjectId(mine.ids.project);
        let mut callers = Vec::new();
        for (name, role) in [("a reader", Role::User), ("a reporter", Role::Reporter)] {
            let user = service.account(name, role).await.expect("an account");
            service.assign(user, Some(project)).await.expect("assigned");
            callers.push((name, service.browser_of(user).await.expect("a browser")));
        }
        for (name, role) in
            [("a narrowed reporter", Role::Reporter), ("a narrowed administrator", Role::Administrator)]
        {
            let user = service.account(name, role).await.expect("an account");
            if role == Role::Reporter {
                service.assign(user, None).await.expect("assigned");
            }
            let narrow = service.program_with(user, |key| key.projects = Some(vec![project])).await;
            callers.push((name, narrow.expect("a key")));
        }
        let newcomer = service.account("a newcomer", Role::User).await.expect("an account");
        let newcomer = service.program_of(newcomer, KeyPermission::Full).await.expect("a key");
        callers.push(("a newcomer", newcomer));
        Self { administrator, service, mine, callers }
    }

    /// Fills the other project.
    async fn other(&self) -> Held {
        fill(&self.service, &self.administrator, WORD, SECRET).await
    }

    fn caller(&self, name: &str) -> &Client {
        &self.callers.iter().find(|(known, _)| *known == name).expect("a caller").1
    }
}

/// Everything of an answer that its reader sees.
fn told(answer: &Answer) -> String {
    let headers = answer.headers.values().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    headers.chain([answer.text()]).collect::<Vec<_>>().join("\n")
}

/// Asks, and writes down what should not have been told.
async fn ask(client: &Client, path: &str, wrong: &mut BTreeSet<String>) -> Answer {
    let answer = client.get(path).await.expect("an answer");
    let status = answer.status.as_u16();
    if told(&answer).contains(SECRET) || answer.is_fault() {
        wrong.insert(format!("GET {path} -> {status}"));
    }
    answer
}

#[track_caller]
fn nothing(wrong: BTreeSet<String>) {
    let shown: Vec<_> = wrong.iter().take(40).cloned().collect();
    assert!(wrong.is_empty(), "{} answers tell of the other project:\n{}", wrong.len(), shown.join("\n"));
}

/// What people and programs with an account read.
fn reads() -> impl Iterator<Item = &'static Route> {
    let needs_account =
        |route: &&Route| matches!(route.access, Access::Roles(_) | Access::RolesOrRunToken(_));
    ROUTES.iter().filter(|route| route.method == Verb::Get).filter(needs_account)
}

fn is_stream(route: &Route) -> bool {
    route.pattern.ends_with("/stream")
}

/// The parameters of the queries of each path, as the document tells them.
async fn parameters(client: &Client) -> BTreeMap<String, Vec<String>> {
    let document = client.json("/api/openapi.json").await.expect("a document");
    let paths = document["paths"].as_object().expect("paths");
    let of = |path: &Value| {
        let all = path["get"]["parameters"].as_array().into_iter().flatten();
        let in_query = all.filter(|parameter| parameter["in"] == "query");
        in_query.filter_map(|parameter| parameter["name"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    paths.iter().map(|(path, content)| (path.clone(), of(content))).collect()
}

/// What the queries of pages can hold.
const PAGE_PARAMETERS: [&str; 8] = ["with", "run", "project", "cluster", "tag", "q", "branch", "cursor"];
pub(crate) const TABS: [&str; 18] = [
    "owners",
    "runs",
    "cases",
    "grid",
    "clusters",
    "flaky",
    "performance",
    "health",
    "quarantine",
    "compare",
    "members",
    "settings",
    "executions",
    "insights",
    "groups",
    "regression",
    "timeline",
    "details",
];

async fn nothing_is_read(backend: Backend) {
    let world = World::new(backend).await;
    let other = world.other().await;
    let mut wrong = BTreeSet::new();
    let documented = parameters(world.caller("a reader")).await;
    assert!(documented.values().map(Vec::len).sum::<usize>() > 100, "{documented:?}");
    let mut values: BTreeSet<String> = other.numbers().iter().map(i64::to_string).collect();
    values.extend([WORD.to_owned(), format!("{WORD}%20"), other.report.clone(), other.trace.clone()]);

    // Whom all of it is for is told of it nearly everywhere.
    let mut shown = BTreeSet::new();
    for route in reads().filter(|route| !is_stream(route)) {
        ask(&world.administrator, &address(route, &other.ids, 1), &mut shown).await;
    }
    assert!(shown.len() > 20, "{shown:?}");

    let numbers: BTreeSet<i64> = other.numbers().into_iter().collect();
    for (_, client) in &world.callers {
        for route in reads() {
            // Its own path, once as it is and once with every number of the other project.
            ask(client, &address(route, &world.mine.ids, 1), &mut wrong).await;
            if route.pattern.contains("{id}") && !is_stream(route) {
                for id in &numbers {
                    ask(client, &route.pattern.replace("{id}", &id.to_string()), &mut wrong).await;
                }
            }
            if !is_stream(route) || route.pattern.contains("{id}") {
                ask(client, &address(route, &other.ids, 1), &mut wrong).await;
            }
        }
        for path in [&other.report, &other.report.replace("index.html", "%2e%2e/index.html")] {
            for query in ["", "?download=1", "?viewer=1"] {
                ask(client, &format!("/api/files/{path}{query}"), &mut wrong).await;
            }
        }
        ask(client, "/api/stream?lastEventId=0", &mut wrong).await;
    }
    // By role on one engine, by key on the other: each takes thousands of requests.
    let name = if backend == Backend::Sqlite { "a reporter" } else { "a narrowed administrator" };
    let client = world.caller(name);
    for route in reads().filter(|route| !is_stream(route)) {
        let own = address(route, &world.mine.ids, 1);
        let (own, fixed) =
            own.split_once('?').map_or((own.as_str(), None), |(path, query)| (path, Some(query)));
        let is_page = !route.pattern.starts_with("/api/");
        let names: Vec<&str> = match documented.get(route.pattern) {
            Some(names) => names.iter().map(String::as_str).collect(),
            None if is_page && name == "a reporter" => PAGE_PARAMETERS.to_vec(),
            None => Vec::new(),
        };
        for parameter in names {
            for value in &values {
                let fixed = fixed.filter(|fixed| !fixed.starts_with(parameter));
                let fixed = fixed.map(|fixed| format!("{fixed}&")).unwrap_or_default();
                ask(client, &format!("{own}?{fixed}{parameter}={value}"), &mut wrong).await;
            }
        }
        if matches!(route.pattern, "/projects/{id}" | "/test-runs/{id}") {
            for tab in TABS {
                for parameter in ["q", "with", "run"] {
                    for value in [other.ids.run, other.ids.project, other.ids.cluster] {
                        ask(client, &format!("{own}?tab={tab}&{parameter}={value}"), &mut wrong).await;
                    }
                }
            }
        }
    }
    for kind in ["test_run", "execution", "test_case", "failure_cluster"] {
        for id in &numbers {
            ask(client, &format!("/api/links?entityType={kind}&entityId={id}"), &mut wrong).await;
        }
    }
    nothing(wrong);
}

#[tokio::test]
async fn nothing_of_another_project_is_read_on_sqlite() {
    nothing_is_read(Backend::Sqlite).await;
}

#[tokio::test]
async fn nothing_of_another_project_is_read_on_postgres() {
    nothing_is_read(Backend::Postgres).await;
}

/// Lists that span projects, page by page with one row each.
const LISTS: [&str; 7] = [
    "/api/projects?limit=1",
    "/api/projects/menu?limit=1",
    "/api/projects/overview?limit=1",
    "/api/test-runs?limit=1",
    "/api/test-runs/recent?limit=1",
    "/api/failure-clusters?limit=1",
    "/api/failure-clusters?limit=1&sort=id",
];

#[tokio::test]
async fn a_cursor_of_somebody_else_leads_to_nothing_of_theirs() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let world = World::new(backend).await;
        let other = world.other().await;
        let mut wrong = BTreeSet::new();
        let mut followed = 0;
        let inside = [
            format!("/api/test-runs/{}/executions?limit=1", other.ids.run),
            format!("/api/projects/{}/test-runs?limit=1", other.ids.project),
            format!("/api/projects/{}/test-cases?limit=1", other.ids.project),
        ];
        for list in LISTS.iter().map(|list| (*list).to_owned()).chain(inside) {
            let page = &world.administrator.json(&list).await.expect("a page");
            let Some(cursor) = page["nextCursor"].as_str() else { continue };
            followed += 1;
            for (_, client) in &world.callers {
                ask(client, &format!("{list}&cursor={cursor}"), &mut wrong).await;
                let own = list
                    .replace(
                        &format!("/test-runs/{}", other.ids.run),
                        &format!("/test-runs/{}", world.mine.ids.run),
                    )
                    .replace(
                        &format!("/projects/{}", other.ids.project),
                        &format!("/projects/{}", world.mine.ids.project),
                    );
                ask(client, &format!("{own}&cursor={cursor}"), &mut wrong).await;
            }
        }
        assert!(followed >= 7, "{followed} lists went on");
        nothing(wrong);
    }
}

/// What a caller is answered by every route that gives JSON, without what
/// differs from one answer to the next.
async fn answers(client: &Client, held: &Held) -> BTreeMap<String, String> {
    answers_of(client, held, |route| route.pattern.starts_with("/api/")).await
}

/// What is told of the things of a project.
async fn state_of(client: &Client, held: &Held) -> BTreeMap<String, String> {
    let is_of_project = |route: &Route| {
        route.pattern.starts_with("/api/")
            && matches!(route.project, ProjectSource::FromPath | ProjectSource::FromEntity(_))
    };
    answers_of(client, held, is_of_project).await
}

async fn answers_of(
    client: &Client,
    held: &Held,
    asked: impl Fn(&Route) -> bool,
) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for route in reads().filter(|route| asked(route) && !is_stream(route)) {
        let path = address(route, &held.ids, 1);
        let answer = client.get(&path).await.expect("an answer");
        if let Ok(mut body) = answer.json() {
            still(&mut body);
            all.insert(path, format!("{} {body:#}", answer.status));
        }
    }
    all
}

/// Takes out of an answer what every answer has of its own.
fn still(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !matches!(name.as_str(), "lastSeenAt" | "lastUsedAt" | "generatedAt"));
            fields.values_mut().for_each(still);
        }
        Value::Array(items) => items.iter_mut().for_each(still),
        Value::String(text) if text.contains("/f/") => text.truncate(text.find("/f/").unwrap_or_default()),
        _ => {}
    }
}

/// An answer without the random parts of the fences around evidence, which are others each time.
fn without_fences(answer: &str) -> String {
    const NONCE_CHARS: usize = 16;
    let mut plain = String::new();
    let mut rest = answer;
    while let Some(at) =
        ["<<<evidence ", "<<<end "].iter().filter_map(|fence| Some(rest.find(fence)? + fence.len())).min()
    {
        plain.push_str(&rest[..at]);
        rest = rest[at..].get(NONCE_CHARS..).unwrap_or_default();
    }
    plain + rest
}

fn differences(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let differs = |(path, answer): (&String, &String)| {
        let now = after.get(path).map(|answer| without_fences(answer));
        (now != Some(without_fences(answer))).then(|| {
            format!("{path}\nbefore: {answer}\nafter: {}", after.get(path).map_or("", String::as_str))
        })
    };
    before.iter().filter_map(differs).collect()
}

#[tokio::test]
async fn another_project_shows_in_no_number_either() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let world = World::new(backend).await;
        let mut before = Vec::new();
        for (_, client) in &world.callers {
            before.push(answers(client, &world.mine).await);
        }
        world.other().await;
        for ((name, client), before) in world.callers.iter().zip(before) {
            assert!(before.len() > 60, "{} routes", before.len());
            let changed = differences(&before, &answers(client, &world.mine).await);
            assert!(changed.is_empty(), "{name} notices:\n{}", changed.join("\n"));
            // How much there is in all projects together, and how the service is set up.
            let settings = client.get("/settings").await.expect("a page");
            assert_eq!(settings.status, 200, "{name}");
            for told in ["Test cases", "SERVICE_DATABASE_URL"] {
                assert!(!settings.text().contains(told), "{name} is told of {told}");
            }
        }
    }
}

/// Requests that name something of one's own and something of the other
/// project, or do to the other project what one may do to one's own.
fn attempts(mine: &Held, other: &Held) -> Vec<(Method, String, Value)> {
    let (post, patch, put, delete) = (Method::POST, Method::PATCH, Method::PUT, Method::DELETE);
    let (own, their) = (&mine.ids, &other.ids);
    let (project, cluster) =
        (format!("/api/projects/{}", own.project), format!("/api/failure-clusters/{}", own.cluster));
    let link =
        |kind: &str, id: i64| json!({ "entityType": kind, "entityId": id, "url": "https://tracker.test/1" });
    let running = |more: Value| with(run(&their.name, "passed", vec![attempt("pays", "passed", 0)]), more);
    vec![
        (post.clone(), "/api/links".into(), link("test_run", their.run)),
        (post.clone(), "/api/links".into(), link("execution", their.execution)),
        (post.clone(), "/api/links".into(), link("test_case", their.test_case)),
        (post.clone(), "/api/links".into(), link("failure_cluster", their.cluster)),
        (
            post.clone(),
            format!("{project}/quarantine"),
            json!({ "testCaseId": their.test_case, "reason": "mine" }),
        ),
        (delete.clone(), format!("{project}/quarantine/{}", other.quarantined), Value::Null),
        (post.clone(), format!("{project}/flaky-classify"), json!({ "testCaseId": their.test_case })),
        (
            post.clone(),
            "/api/failure-clusters/bulk".into(),
            json!({ "ids": [own.cluster, their.cluster], "note": "mine" }),
        ),
        (
            post.clone(),
            "/api/failure-clusters/bulk".into(),
            json!({ "ids": [their.cluster], "status": "ignored" }),
        ),
        (post.clone(), format!("{cluster}/merge"), json!({ "intoId": their.cluster })),
        (
            post.clone(),
            format!("/api/failure-clusters/{}/merge", their.cluster),
            json!({ "intoId": own.cluster }),
        ),
        (post.clone(), format!("{cluster}/extract-cases"), json!({ "testCaseIds": [their.test_case] })),
        (post.clone(), format!("/api/test-runs/{}/gate", own.run), json!({ "policy": their.name })),
        (post.clone(), format!("/api/test-runs/{}/gate", their.run), json!({ "maxFailed": 0 })),
        (post.clone(), "/api/test-runs/submit".into(), running(json!({ "clientRunId": other.client_run }))),
        (post.clone(), "/api/test-runs/start".into(), running(json!({}))),
        (post.clone(), "/api/test-runs/setup".into(), running(json!({}))),
        (post.clone(), "/api/test-runs/bulk-delete".into(), json!({ "ids": [their.run] })),
        (post.clone(), "/api/test-runs/bulk-delete".into(), json!({ "ids": [mine.green, their.run] })),
        (
            post.clone(),
            "/api/test-runs/bulk-delete".into(),
            json!({ "filter": { "project": their.project, "before": "2027-01-01" } }),
        ),
        (
            post.clone(),
            "/api/admin/cleanup".into(),
            json!({ "olderThanDays": 1, "projectId": their.project }),
        ),
        (post.clone(), "/api/admin/cleanup".into(), json!({ "olderThanDays": 1 })),
        (delete, format!("/api/admin/cleanup?olderThanDays=1&projectId={}", their.project), Value::Null),
        (put.clone(), format!("/api/projects/{}/members", their.project), json!({ "userIds": [] })),
        (put, format!("/api/test-runs/{}/pin", their.run), json!({})),
        (patch.clone(), format!("/api/projects/{}", their.project), json!({ "label": "mine" })),
        (patch.clone(), format!("/api/gate-policies/{}", their.policy), json!({ "isDefault": true })),
        (patch, format!("/api/markers/{}", their.marker), json!({ "label": "mine" })),
        (post, "/api/projects".into(), json!({ "name": "of my own" })),
    ]
}

#[tokio::test]
async fn nothing_of_another_project_is_changed() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let world = World::new(backend).await;
        let other = world.other().await;
        let everything = &world.administrator;
        let before = state_of(everything, &other).await;
        let mine_before = state_of(everything, &world.mine).await;
        for (name, client) in &world.callers {
            for (method, path, body) in attempts(&world.mine, &other) {
                let answer = client.send_json(method.clone(), &path, &body).await.expect("an answer");
                let status = answer.status.as_u16();
                assert!(
                    (400..500).contains(&status) && status != 401 && status != 415,
                    "{name}: {method} {path} {body}: {status} {}",
                    answer.text()
                );
                assert!(
                    !told(&answer).contains(SECRET) || body.to_string().contains(SECRET),
                    "{path}: {}",
                    answer.text()
                );
            }
            let form = Form::new()
                .field("projectName", &world.mine.ids.name)
                .field("testRunId", other.ids.run.to_string())
                .field("testRun", run(&world.mine.ids.name, "passed", Vec::new()).to_string())
                .file("report_html", "report.gz", "application/gzip", b"not a report");
            let upload = client.request(Method::POST, "/api/test-runs/upload");
            let upload = upload.header("content-type", Form::content_type()).body(form.into_body());
            let answer = client.send(upload).await.expect("an answer");
            assert_eq!(answer.status, 403, "{name}: {}", answer.text());
            // Nothing is learnt about what is stored there.
            let asked = json!({ "projectName": other.ids.name, "hashes": [other.trace] });
            let answer = client.post("/api/traces/check", &asked).await.expect("an answer");
            if answer.status == 200 {
                assert_eq!(answer.json().expect("an answer")["existing"], json!([]), "{name}");
            }
        }
        for (before, held) in [(before, &other), (mine_before, &world.mine)] {
            let changed = differences(&before, &state_of(everything, held).await);
            assert!(changed.is_empty(), "{}", changed.join("\n"));
        }
    }
}

#[tokio::test]
async fn what_a_client_calls_its_run_is_its_own_in_every_project() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let world = World::new(backend).await;
        let other = world.other().await;
        let before = state_of(&world.administrator, &other).await;
        let name = &world.mine.ids.name;
        for path in ["/api/test-runs/submit", "/api/test-runs/start", "/api/test-runs/setup"] {
            let body = with(
                run(name, "passed", vec![attempt("pays", "passed", 0)]),
                json!({ "clientRunId": format!("{}-{}", other.client_run, path.len()), "instanceId": other.client_run }),
            );
            let stored = world.caller("a reporter").post_json(path, &body).await.expect("stored");
            assert_ne!(stored["runId"], other.ids.run);
        }
        assert_eq!(differences(&before, &state_of(&world.administrator, &other).await), Vec::<String>::new());
    }
}
