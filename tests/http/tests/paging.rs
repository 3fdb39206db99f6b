//! Every list of the API, found in its OpenAPI document: what its pages hold,
//! and which cursors it takes.

use std::collections::BTreeSet;

use callboard_domain::ids::{ProjectId, RunId};
use callboard_test_support::{Answer, Client, Service, for_each_service};
use serde_json::{Value, json};

use crate::builders::{attempt, passing, run, with};
use crate::live::context;

/// Runs that are there before the lists are read.
const RUNS: i64 = 5;
/// Rows without which a list shows nothing about pages.
const TELLING_ROWS: usize = 3;

/// A list, with the ids in its path filled in.
struct List {
    path: String,
    parameters: Vec<String>,
}

impl List {
    fn with(&self, query: &str) -> String {
        let required = match self.path.as_str() {
            "/api/links" => "entityType=test_run&entityId=1&",
            _ => "",
        };
        format!("{}?{required}{query}", self.path)
    }
}

async fn ask(client: &Client, path: &str) -> Answer {
    client.get(path).await.expect("an answer")
}

/// Two projects with red, green and flaky runs, and several of everything that
/// is listed.
async fn fill(service: &Service) {
    let client = service.client();
    for project in ["shop", "api"] {
        for day in 1..=RUNS {
            let is_red = day % 2 == 0;
            let status = if is_red { "failed" } else { "passed" };
            let mut cases = passing(45);
            for kind in ["pays", "orders", "ships", "mails"] {
                cases.push(attempt(kind, status, 0));
            }
            for wobbly in ["blinks", "drags", "drops"] {
                cases.push(attempt(wobbly, "failed", 0));
                cases.push(attempt(wobbly, "passed", 1));
            }
            let fields = json!({
                "startTime": format!("2026-01-0{day}T10:00:00.000Z"), "branch": "main", "isFullRun": true,
                "commit": day.to_string().repeat(40),
            });
            submit(client, with(run(project, status, cases), fields)).await;
        }
    }
    for run in 1..=2 * RUNS {
        let project = ProjectId(if run > RUNS { 2 } else { 1 });
        let ctx = context(service);
        let checked = callboard_ingest::check_run(&ctx, project, RunId(run), service.state().now());
        assert_ne!(checked.await.expect("checked"), callboard_ingest::Checked::Gone);
    }
    for n in 1..=4 {
        let post = async |path: &str, body: Value| {
            let answer = client.post(path, &body).await.expect("an answer");
            assert!(answer.status.is_success(), "{path}: {}", answer.text());
        };
        post("/api/tags", json!({ "text": format!("tag {n}"), "color": "teal" })).await;
        post(
            "/api/links",
            json!({ "entityType": "test_run", "entityId": 1, "url": format!("https://x.test/{n}") }),
        )
        .await;
        let marker =
            json!({ "label": format!("Release {n}"), "occurredAt": "2026-01-02", "category": "release" });
        post("/api/projects/1/markers", marker).await;
        post("/api/projects/1/quarantine", json!({ "testCaseId": n })).await;
        post("/api/test-runs/1/gate", json!({ "maxFailed": n })).await;
    }
}

async fn submit(client: &Client, submission: Value) {
    client.post_json("/api/test-runs/submit", &submission).await.expect("stored");
}

/// Every operation with a `limit` and a `cursor`.
async fn lists(client: &Client) -> Vec<List> {
    let document = client.json("/api/openapi.json").await.expect("the document");
    let failing = client.json("/api/test-runs/2/executions?outcome=failing").await.expect("executions");
    let failing = &failing["items"][0];
    let id_in = |path: &str| match path.split('/').nth(2) {
        Some("test-cases") => failing["testCaseId"].to_string(),
        Some("test-run-cases") => failing["id"].to_string(),
        Some("failure-clusters") => failing["clusterId"].to_string(),
        _ if path.contains("/cases/") || path.contains("/test-runs/{id}") => "2".to_owned(),
        _ => "1".to_owned(),
    };
    let named = |parameters: &Value| -> Vec<String> {
        let all = parameters.as_array().into_iter().flatten();
        let in_query = all.filter(|parameter| parameter["in"] == "query");
        in_query.filter_map(|parameter| Some(parameter["name"].as_str()?.to_owned())).collect()
    };
    let paths = document["paths"].as_object().expect("paths");
    let all = paths.iter().filter_map(|(path, item)| {
        let parameters = named(&item["get"]["parameters"]);
        // Commits are a list of another service's.
        let is_list = ["limit", "cursor"].iter().all(|name| parameters.iter().any(|known| known == name))
            && !path.ends_with("/commits");
        let path = path.replace("{id}", &id_in(path)).replace("{caseId}", &failing["id"].to_string());
        is_list.then_some(List { path, parameters })
    });
    all.collect()
}

/// What a row is known by, however its numbers change.
fn key(row: &Value) -> String {
    let names =
        ["id", "executionId", "testCaseId", "clusterId", "runId", "prefix", "filePath", "name", "route"];
    let found: Vec<&Value> = names.iter().map(|name| &row[*name]).filter(|value| !value.is_null()).collect();
    if found.is_empty() {
        row.to_string()
    } else {
        json!([found, row["project"]["id"], row["method"]]).to_string()
    }
}

impl List {
    /// The rows of a page in the order of the list.
    fn rows(&self, page: &Value) -> Vec<String> {
        let rows = if page["items"].is_array() { &page["items"] } else { &page["testCases"] };
        let mut rows: Vec<String> = rows.as_array().into_iter().flatten().map(key).collect();
        // A chart: its pages go back in time, and each is read forwards.
        if self.path.ends_with("/performance") {
            rows.reverse();
        }
        rows
    }
}

async fn page(client: &Client, path: &str) -> Value {
    ask(client, path).await.success().unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Nothing that was there is lost or repeated, whatever arrives in between.
#[tokio::test]
async fn every_list_pages_without_loss_while_rows_are_added() {
    for_each_service(async |service| {
        let client = service.client();
        fill(service).await;
        let mut told = BTreeSet::new();
        let mut arrived = 0;
        for list in lists(client).await {
            let first = ask(client, &list.with("limit=200")).await;
            if first.status != 200 {
                // Accounts, where there are none.
                assert_eq!(first.status, 404, "{}: {}", list.path, first.text());
                continue;
            }
            let whole = list.rows(&first.json().expect("a page"));
            if whole.len() < TELLING_ROWS {
                continue;
            }
            told.insert(list.path.clone());
            let before: BTreeSet<&String> = whole.iter().collect();
            assert_eq!(before.len(), whole.len(), "{} repeats rows", list.path);
            for limit in [1, 2, 3, whole.len() - 1, whole.len()] {
                let mut read = Vec::new();
                let mut at = page(client, &list.with(&format!("limit={limit}"))).await;
                // Pages of one row are many: some are enough to see them go on.
                for turn in 0..60 {
                    let here = list.rows(&at);
                    assert!(here.len() <= limit, "{} limit {limit}: {} rows", list.path, here.len());
                    read.extend(here);
                    let Some(cursor) = at["nextCursor"].as_str() else { break };
                    if turn == 1 {
                        arrived += 1;
                        let fields = json!({ "startTime": "2026-02-01T10:00:00.000Z" });
                        submit(client, with(run(&format!("new {arrived}"), "passed", passing(1)), fields))
                            .await;
                    }
                    at = page(client, &list.with(&format!("limit={limit}&cursor={cursor}"))).await;
                }
                let is_over = at["nextCursor"].is_null();
                let known: Vec<&String> = read.iter().filter(|row| before.contains(row)).collect();
                let once: BTreeSet<&&String> = known.iter().collect();
                assert_eq!(once.len(), known.len(), "{} limit {limit} repeats rows", list.path);
                let expected: Vec<&String> =
                    whole.iter().take(if is_over { whole.len() } else { known.len() }).collect();
                assert_eq!(known, expected, "{} limit {limit}", list.path);
            }
        }
        assert!(told.len() >= 20, "only these lists had rows: {told:?}");
    })
    .await;
}

/// A value that the parameter may have, other than what it has when it is left out.
fn another(parameter: &str) -> &'static str {
    match parameter {
        "from" => "2026-01-01",
        "to" => "2027-01-01",
        "days" | "runs" | "maxAgeDays" => "200",
        "project" | "tag" | "shard" | "worker" | "clusterId" => "1",
        "sort" => "name,duration,occurrences,failed,count,title,impact,passRate",
        "order" => "asc",
        "status" => "failed,open",
        "category" | "outcome" => "failed,failing,release",
        _ => "main,true,false",
    }
}

/// A cursor leads on in its own list with its own filters, and nowhere else.
#[tokio::test]
async fn a_cursor_of_another_list_or_filter_is_refused_and_unknown_parameters_do_not_count() {
    for_each_service(async |service| {
        let client = service.client();
        fill(service).await;
        let lists = lists(client).await;
        let mut cursors: Vec<(String, String)> = Vec::new();
        let (mut foreign, mut refiltered) = (0, 0);
        for list in &lists {
            let first = ask(client, &list.with("limit=1")).await;
            let Ok(first) = first.success() else { continue };
            for (other, cursor) in &cursors {
                let refused = ask(client, &list.with(&format!("limit=1&cursor={cursor}"))).await;
                assert_eq!(refused.status, 400, "{} takes the cursor of {other}", list.path);
                assert_eq!(refused.json().expect("an error")["code"], "invalid_cursor", "{}", list.path);
                foreign += 1;
            }
            let Some(cursor) = first["nextCursor"].as_str() else { continue };
            cursors.push((list.path.clone(), cursor.to_owned()));
            let altered = format!("{}x", &cursor[..cursor.len() - 2]);
            let refused = ask(client, &list.with(&format!("limit=1&cursor={altered}"))).await;
            assert_eq!(refused.status, 400, "{} takes an altered cursor", list.path);
            let on = page(client, &list.with(&format!("limit=1&cursor={cursor}"))).await;
            let same = page(client, &list.with(&format!("limit=1&cursor={cursor}&surprise=1"))).await;
            assert_eq!(list.rows(&on), list.rows(&same), "{}", list.path);
            for parameter in list
                .parameters
                .iter()
                .filter(|name| !matches!(name.as_str(), "limit" | "cursor" | "candidates"))
            {
                for value in another(parameter).split(',') {
                    let filter = format!("limit=1&{parameter}={value}");
                    if list.with("").contains(&format!("{parameter}="))
                        || ask(client, &list.with(&filter)).await.status != 200
                    {
                        continue;
                    }
                    let refused = ask(client, &list.with(&format!("{filter}&cursor={cursor}"))).await;
                    let is_default =
                        matches!((parameter.as_str(), value), ("sort", "failed") | ("status", "open"));
                    assert!(
                        is_default || refused.status == 400,
                        "{} goes on with another {parameter}",
                        list.path
                    );
                    refiltered += 1;
                }
            }
        }
        assert!(
            cursors.len() >= 15 && foreign > 100 && refiltered > 40,
            "{} {foreign} {refiltered}",
            cursors.len()
        );
    })
    .await;
}
