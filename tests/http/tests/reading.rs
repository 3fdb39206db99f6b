//! The reading routes: pages, filters, refusals, conditional answers.

use std::collections::BTreeSet;

use callboard_domain::ids::{ProjectId, RunId};
use callboard_test_support::{Answer, Client, for_each_service};
use futures::stream::{self, StreamExt as _};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, passing, run, with};
use crate::live::context;
use crate::rows::settled;

async fn submit(client: &Client, submission: Value) -> Value {
    client.post_json("/api/test-runs/submit", &submission).await.expect("stored")["runId"].clone()
}

async fn get(client: &Client, path: &str) -> Value {
    client.json(path).await.expect("an answer")
}

/// The ids of a whole list, page by page.
async fn all_ids(client: &Client, path: &str, limit: usize) -> Vec<i64> {
    let list = format!("{path}{}limit={limit}", if path.contains('?') { '&' } else { '?' });
    let mut ids = Vec::new();
    let mut page = get(client, &list).await;
    loop {
        let items = if page["items"].is_array() { &page["items"] } else { &page["testCases"] };
        let items = items.as_array().expect("rows");
        assert!(items.len() <= limit, "{path} has {} rows", items.len());
        ids.extend(items.iter().map(|item| item["id"].as_i64().expect("an id")));
        let Some(cursor) = page["nextCursor"].as_str() else { return ids };
        page = get(client, &format!("{list}&cursor={cursor}")).await;
    }
}

async fn is_complete(client: &Client, path: &str, expected: usize) {
    let whole = all_ids(client, path, 200).await;
    assert_eq!(whole.len(), expected, "{path}");
    assert_eq!(whole.iter().collect::<BTreeSet<_>>().len(), expected, "{path} repeats rows");
    assert_eq!(all_ids(client, path, 7).await, whole, "{path} by sevens");
}

#[tokio::test]
async fn every_list_shows_each_row_once_whatever_the_page_size() {
    const RUNS: usize = 230;
    // Whoever waits too long for a connection is sent away.
    const AT_ONCE: usize = 16;
    for_each_service(async |service| {
        let client = service.client();
        // Three start times for all runs, so that ids have to break ties.
        let runs = (0..RUNS).map(|n| {
            let start = format!("2026-01-01T1{}:00:00.000Z", n % 3);
            let cases = if n == 0 { passing(RUNS) } else { passing(1) };
            let branch = if n % 2 == 0 { "main" } else { "topic" };
            let fields = json!({ "startTime": start, "branch": branch, "isFullRun": n % 5 != 0 });
            submit(client, with(run("shop", "passed", cases), fields))
        });
        let runs: Vec<Value> = stream::iter(runs).buffered(AT_ONCE).collect().await;
        // Start in the future: the last activity of all these projects is the same.
        let others = (0..RUNS - 1).map(|n| {
            let fields = json!({ "startTime": "2031-01-01T00:00:00.000Z" });
            submit(client, with(run(&format!("project {n:03}"), "passed", Vec::new()), fields))
        });
        stream::iter(others).buffered(AT_ONCE).collect::<Vec<_>>().await;

        let large = &runs[0];
        let found = get(client, &format!("/api/test-runs/{large}")).await;
        let project = found["projectId"].as_i64().expect("a project");
        let test = found["testCases"].as_array().expect("executions");
        let test = test.iter().find(|item| item["title"] == "test 0").expect("test 0")["testCaseId"].clone();
        for (path, expected) in [
            (format!("/api/test-runs?project={project}"), RUNS),
            (format!("/api/test-runs?project={project}&order=asc"), RUNS),
            (format!("/api/test-runs?project={project}&branch=main"), RUNS / 2),
            (format!("/api/projects/{project}/test-runs?fullRuns=false"), RUNS / 5),
            ("/api/test-runs".to_owned(), 2 * RUNS - 1),
            ("/api/test-runs/recent".to_owned(), 2 * RUNS - 1),
            ("/api/projects".to_owned(), RUNS),
            ("/api/projects?sort=name&q=PROJECT".to_owned(), RUNS - 1),
            ("/api/projects/menu".to_owned(), RUNS),
            ("/api/projects/overview".to_owned(), RUNS),
            (format!("/api/test-cases/{test}/history"), RUNS),
            (format!("/api/test-cases/{test}/history?branch=topic&environment="), RUNS / 2),
            (format!("/api/test-runs/{large}/summary"), RUNS),
        ] {
            is_complete(client, &path, expected).await;
        }
        for sort in ["trouble", "id", "duration", "startedAt", "file"] {
            is_complete(client, &format!("/api/test-runs/{large}/executions?sort={sort}"), RUNS).await;
        }
        for sort in ["lastRun", "title", "file", "totalRuns"] {
            is_complete(client, &format!("/api/projects/{project}/test-cases?sort={sort}"), RUNS).await;
        }
        let runs = format!("/api/test-runs?project={project}");
        assert_eq!(all_ids(client, &runs, 1).await, all_ids(client, &runs, 200).await);
    })
    .await;
}

#[tokio::test]
async fn a_page_inside_an_entity_continues_at_the_list_of_its_cursor() {
    for_each_service(async |service| {
        let client = service.client();
        for _ in 0..4 {
            submit(client, run("shop", "passed", passing(5))).await;
        }
        let project = get(client, "/api/projects/1?limit=1").await;
        let cursor = project["testRunsNextCursor"].as_str().expect("more runs");
        let rest = get(client, &format!("/api/test-runs?project=1&cursor={cursor}")).await;
        assert_eq!(rest["items"].as_array().map(Vec::len), Some(3));

        let id = &rest["items"][0]["id"];
        let found = get(client, &format!("/api/test-runs/{id}?limit=2")).await;
        let cursor = found["testCasesNextCursor"].as_str().expect("more executions");
        let rest = get(client, &format!("/api/test-runs/{id}/executions?cursor={cursor}")).await;
        assert_eq!((rest["items"].as_array().map(Vec::len), &rest["total"]), (Some(3), &json!(5)));

        let test = &found["testCases"][0]["testCaseId"];
        let found = get(client, &format!("/api/test-cases/{test}?limit=1")).await;
        let cursor = found["recentNextCursor"].as_str().expect("more history");
        let rest = get(client, &format!("/api/test-cases/{test}/history?cursor={cursor}")).await;
        assert_eq!(rest["items"].as_array().map(Vec::len), Some(3));
    })
    .await;
}

#[tokio::test]
async fn a_history_goes_on_over_years_without_runs() {
    for_each_service(async |service| {
        let client = service.client();
        for year in [2015, 2018, 2021, 2026] {
            let status = if year == 2015 { "failed" } else { "passed" };
            let fields = json!({ "startTime": format!("{year}-03-01T10:00:00.000Z") });
            submit(client, with(run("shop", status, vec![attempt("pays", status, 0)]), fields)).await;
        }
        let test = get(client, "/api/projects/1/test-cases").await["items"][0]["id"].clone();
        let history = format!("/api/test-cases/{test}/history");
        assert_eq!(all_ids(client, &history, 200).await.len(), 4);
        assert_eq!(all_ids(client, &format!("{history}?status=failed"), 1).await.len(), 1);
        let within = format!("{history}?from=2018-03-01T10:00:00Z&to=2021-03-01");
        assert_eq!(all_ids(client, &within, 200).await.len(), 2);
        let after = format!("{history}?from=2018-03-01T10:00:00.001Z&to=2021-03-01");
        assert_eq!(all_ids(client, &after, 200).await.len(), 1);
    })
    .await;
}

/// Six runs that differ in everything that can be filtered by.
async fn varied_runs(client: &Client) {
    let sha = "AbC1230000000000000000000000000000000001".to_lowercase();
    let smoke = json!({
        "tags": ["@smoke"], "testMeta": { "owner": "Ada", "priority": "high", "feature": "checkout" },
        "browserProject": "mobile", "workerIndex": 3, "location": "tests/Pay.spec.ts:3:1", "suitePath": ["Größe"],
    });
    let red = vec![
        with(attempt("pays", "failed", 0), smoke.clone()),
        attempt("retries", "failed", 0),
        attempt("retries", "passed", 1),
        attempt("skips", "skipped", 0),
    ];
    let green = || vec![with(attempt("pays", "passed", 0), smoke.clone()), attempt("retries", "passed", 0)];
    for (hour, cases, fields) in [
        (1, green(), json!({ "branch": "main", "commit": sha, "author": "Ada", "label": "100%" })),
        (2, red, json!({ "branch": "main", "status": "failed", "pullRequest": "7" })),
        (
            3,
            green(),
            json!({ "branch": "topic", "isFullRun": false, "label": "100 per cent", "environment": "staging" }),
        ),
        (4, green(), json!({ "branch": "topic", "environment": "staging" })),
        (5, green(), json!({})),
        (6, green(), json!({ "projectName": "Überall", "branch": "main" })),
    ] {
        let start = json!({ "startTime": format!("2026-01-01T{hour:02}:00:00.000Z") });
        submit(client, with(with(run("shop", "passed", cases), start), fields)).await;
    }
}

#[tokio::test]
async fn filters_keep_what_they_name() {
    for_each_service(async |service| {
        let client = service.client();
        varied_runs(client).await;
        let pays = get(client, "/api/projects/1/test-cases?q=pays").await["items"][0]["id"].clone();
        for (path, expected) in [
            ("/api/projects?q=ÜBER", 1),
            ("/api/projects?q=%25", 0),
            ("/api/test-runs?branch=main", 3),
            ("/api/test-runs?branch=main&branch=", 4),
            ("/api/test-runs?project=1&branch=main&environment=", 2),
            ("/api/test-runs?status=failed,timedOut", 1),
            ("/api/test-runs?fullRuns=false", 1),
            ("/api/test-runs?commit=ABC1230", 1),
            ("/api/test-runs?pullRequest=7", 1),
            ("/api/test-runs?author=Ada", 1),
            ("/api/test-runs?label=100%25", 1),
            ("/api/test-runs?hasFailures=false", 5),
            ("/api/test-runs?green=true", 4),
            ("/api/test-runs?from=2026-01-01T02:00:00Z&to=2026-01-01T04:00:00Z", 3),
            ("/api/test-runs?from=2026-01-02", 0),
            ("/api/test-runs?to=2026-01-01", 6),
            ("/api/projects/1/test-runs?environment=staging", 2),
            ("/api/test-runs/2/executions?outcome=failing", 1),
            ("/api/test-runs/2/executions?outcome=flaky", 1),
            ("/api/test-runs/2/executions?status=passed", 1),
            ("/api/test-runs/2/executions?status=passed&outcome=passed", 0),
            ("/api/test-runs/2/executions?q=GRÖSSE", 0),
            ("/api/test-runs/2/executions?q=GRÖßE", 1),
            ("/api/test-runs/2/executions?tag=@smoke", 1),
            ("/api/test-runs/2/executions?owner=Ada&priority=high", 1),
            ("/api/test-runs/2/executions?browser=mobile", 1),
            ("/api/test-runs/2/executions?browser=", 2),
            ("/api/test-runs/2/executions?worker=3", 1),
            ("/api/test-runs/2/executions?file=tests/Pay.spec.ts", 1),
            ("/api/test-runs/2/executions?isNewRegression=true", 1),
            ("/api/test-runs/2/executions?isNewRegression=false", 2),
            ("/api/test-runs/2/executions?isNewRegression=true&isNewFlaky=true", 0),
            ("/api/projects/1/test-cases", 3),
            ("/api/projects/1/test-cases?category=skipped", 1),
            ("/api/projects/1/test-cases?branch=main&status=failed", 1),
            ("/api/projects/1/test-cases?branch=nowhere", 0),
            ("/api/projects/1/test-cases?category=never-run", 0),
            ("/api/projects/1/test-cases?category=never-run&branch=topic", 1),
            ("/api/projects/1/test-cases?category=never-run&branch=nowhere", 3),
            ("/api/projects/1/test-cases?category=never-run&branch=nowhere&tags=smoke", 1),
            ("/api/projects/1/test-cases?environment=staging", 2),
            ("/api/projects/1/test-cases?file=tests/P", 1),
            ("/api/projects/1/test-cases?file=tests/p", 0),
            ("/api/projects/1/test-cases?tags=smoke&owner=Ada&feature=checkout", 1),
            ("/api/projects/1/test-cases?tags=smoke,other", 0),
            (&format!("/api/test-cases/{pays}/history?branch=topic&branch="), 3),
            (&format!("/api/test-cases/{pays}/history?environment="), 3),
            (&format!("/api/test-cases/{pays}/history?status=failed&browser=mobile"), 1),
            (&format!("/api/test-cases/{pays}/history?browser=desktop"), 0),
        ] {
            assert_eq!(all_ids(client, path, 200).await.len(), expected, "{path}");
        }
        let latest = async |query: &str| {
            get(client, &format!("/api/projects/1/latest-run?{query}")).await["run"]["id"].clone()
        };
        assert_eq!(latest("").await, 5);
        assert_eq!(latest("branch=topic&fullRuns=false").await, 3);
        assert_eq!(latest("status=failed").await, 2);
        assert_eq!(latest("branch=nowhere").await, Value::Null);
    })
    .await;
}

#[tokio::test]
async fn answers_have_the_shapes_of_the_contract_on_both_engines() {
    for_each_service(async |service| {
        let client = service.client();
        varied_runs(client).await;
        // What follows the end of runs is done, whoever does it first.
        let context = context(service);
        for run in 1..=6 {
            let project = ProjectId(if run == 6 { 2 } else { 1 });
            let checked = callboard_ingest::check_run(&context, project, RunId(run), service.state().now());
            assert_ne!(checked.await.expect("checked"), callboard_ingest::Checked::Gone);
        }
        let failed = get(client, "/api/test-runs/2/executions?outcome=failing").await["items"][0].clone();
        let (execution, test) = (&failed["id"], &failed["testCaseId"]);
        for (name, path) in [
            ("project", "/api/projects/1?limit=1"),
            ("overview", "/api/projects/overview?environment=staging"),
            ("facets", "/api/projects/1/facets?branchQ=MAI"),
            ("summary", "/api/test-runs/2/summary?limit=1"),
            ("test_case", &format!("/api/test-cases/{test}?branch=main&limit=1")),
            ("stability", &format!("/api/test-cases/{test}/stability-trend?buckets=5&branch=topic")),
            ("execution", &format!("/api/test-run-cases/{execution}")),
        ] {
            let mut found = get(client, path).await;
            blank(&mut found, service.base_url());
            insta::assert_json_snapshot!(format!("reading_{name}"), found);
        }
    })
    .await;
}

/// Replaces what differs between two services: addresses and the time of day.
fn blank(value: &mut Value, address: &str) {
    match value {
        Value::String(text) => *text = text.replace(address, "http://callboard"),
        Value::Array(values) => values.iter_mut().for_each(|value| blank(value, address)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match key.as_str() {
                    "createdAt" | "updatedAt" => *value = json!("[time]"),
                    "nextCursor" if value.is_string() => *value = json!("[cursor]"),
                    _ => blank(value, address),
                }
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn whatever_cannot_be_used_is_refused_by_name() {
    for_each_service(async |service| {
        let client = service.client();
        varied_runs(client).await;
        let mut refusals = Vec::new();
        for path in [
            "/api/test-runs?limit=0",
            "/api/test-runs?limit=-1",
            "/api/test-runs?limit=x",
            "/api/projects/menu?limit=0",
            "/api/test-runs/1?limit=-1",
            "/api/test-runs?cursor=nonsense",
            "/api/test-runs?status=green",
            "/api/test-runs?order=up",
            "/api/test-runs?fullRuns=perhaps",
            "/api/test-runs?from=soon",
            "/api/test-runs?from=2026-02-01&to=2026-01-01",
            "/api/test-runs?commit=abc",
            "/api/test-runs?project=99",
            "/api/test-runs?project=x",
            "/api/test-runs?branch=a%00b",
            "/api/test-runs/1/executions?status=flaky",
            "/api/test-runs/1/executions?outcome=red",
            "/api/test-runs/1/executions?sort=newest",
            "/api/test-runs/1/executions?priority=urgent",
            "/api/test-runs/1/executions?worker=-1",
            "/api/projects?sort=size",
            "/api/projects/1/test-cases?sort=colour",
            "/api/projects/1/test-cases?sort=title&dir=up",
            "/api/projects/1/test-cases?offset=10001",
            "/api/projects/1/test-cases?category=red",
            "/api/projects/1/test-cases?category=failed,never-run",
            "/api/projects/1/test-cases?branch=a&branch=b",
            "/api/projects/1/test-cases?branch=",
            "/api/test-cases/1/stability-trend?buckets=4",
            "/api/test-cases/1/stability-trend?by=week",
            "/api/test-cases/1/stability-trend?by=day&days=367",
            "/api/test-cases/1/stability-trend?days=7",
            "/api/test-cases/1/stability-trend?by=day&buckets=7",
            "/api/test-run-cases/1048577?include=everything",
            "/api/test-run-cases/1048577?include=none,steps",
            "/api/test-run-cases/1048577/files?kind=pdf",
            "/api/projects/1/failure-clusters?assignee=4711",
            "/api/failure-clusters?assignee=4711",
            "/api/deletions?project=4711",
            "/api/projects/1/flaky-tests?fullRuns=true",
            "/api/projects/1/slow-tests?days=0",
            "/api/projects/1/spec-health?fullRuns=false",
            "/api/projects/0",
            "/api/test-runs/12abc",
            "/api/test-cases/9223372036854775808",
            "/api/test-run-cases/-1",
            "/api/projects/99/facets",
            "/api/test-runs/9223372036854775807",
            "/api/test-cases/99/history",
            "/api/test-run-cases/1",
            "/api/test-run-cases/1048600/traces",
        ] {
            let answer = client.get(path).await.expect("an answer");
            let body = answer.json().expect("an error body");
            assert_eq!((&body["error"], &body["statusCode"]), (&json!(true), &json!(answer.status.as_u16())));
            let param = body["data"]["param"].as_str().map(|param| format!(" [{param}]")).unwrap_or_default();
            let sentence = body["message"].as_str().expect("a sentence");
            refusals.push(format!(
                "{path} -> {} {}{param} {sentence}",
                answer.status.as_u16(),
                body["code"].as_str().expect("a code")
            ));
        }
        insta::assert_json_snapshot!("reading_refusals", refusals);
        let large = get(client, "/api/test-runs?limit=1000000000").await;
        assert_eq!(large["items"].as_array().map(Vec::len), Some(6), "a large limit is the largest one");
    })
    .await;
}

#[tokio::test]
async fn a_cursor_opens_only_the_list_it_came_from() {
    for_each_service(async |service| {
        let client = service.client();
        varied_runs(client).await;
        let cursor = async |path: &str| {
            let page = get(client, &format!("{path}limit=1")).await;
            page["nextCursor"].as_str().expect("a next page").to_owned()
        };
        let runs = cursor("/api/test-runs?").await;
        let executions = cursor("/api/test-runs/1/executions?").await;
        let projects = cursor("/api/projects?").await;
        for path in [
            format!("/api/test-runs?status=passed&cursor={runs}"),
            format!("/api/test-runs?order=asc&cursor={runs}"),
            format!("/api/projects/1/test-runs?cursor={runs}"),
            format!("/api/test-runs?cursor={}x", &runs[..runs.len() - 1]),
            format!("/api/test-runs/2/executions?cursor={executions}"),
            format!("/api/test-runs/1/executions?sort=id&cursor={executions}"),
            format!("/api/projects?sort=name&cursor={projects}"),
        ] {
            let answer = client.get(&path).await.expect("an answer");
            let code = answer.json().expect("an error body")["code"].clone();
            assert_eq!((answer.status.as_u16(), code), (400, json!("invalid_cursor")), "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_entity_the_client_has_is_not_sent_again() {
    for_each_service(async |service| {
        let client = service.client();
        varied_runs(client).await;
        let conditional = async |path: &str, tag: &str| {
            Answer::send(client.request(Method::GET, path).header("if-none-match", tag))
                .await
                .expect("an answer")
        };
        for path in
            ["/api/projects/1", "/api/test-runs/1", "/api/test-cases/1", "/api/test-run-cases/1048577"]
        {
            // What is counted later changes an entity between two looks at it.
            settled(service).await;
            let first = client.get(path).await.expect("an answer");
            let tag = first.header("etag").to_owned();
            assert!(tag.starts_with("W/\""), "{path}: {tag}");
            let second = conditional(path, &tag).await;
            assert_eq!((second.status.as_u16(), second.body.len()), (304, 0), "{path}");
            submit(client, run("shop", "passed", vec![attempt("pays", "passed", 0)])).await;
        }
        let tag = client.get("/api/projects/1").await.expect("an answer").header("etag").to_owned();
        submit(client, run("shop", "passed", passing(1))).await;
        assert_eq!(conditional("/api/projects/1", &tag).await.status.as_u16(), 200, "it has changed");
    })
    .await;
}

#[tokio::test]
async fn only_the_asked_parts_of_the_evidence_are_sent() {
    for_each_service(async |service| {
        let client = service.client();
        let first = with(
            attempt("pays", "failed", 0),
            json!({ "steps": [{ "title": "click", "duration": 5 }], "stdout": "hello", "ariaSnapshot": "- button" }),
        );
        submit(client, run("shop", "passed", vec![first, attempt("pays", "passed", 1)])).await;
        let keys = |evidence: &Value| evidence.as_object().expect("evidence").keys().cloned().collect::<Vec<_>>();
        let path = "/api/test-run-cases/1048577";
        let asked = get(client, &format!("{path}?attempt=0&include=console,aria")).await;
        assert_eq!(keys(&asked["evidence"]), ["ariaSnapshot", "attempt", "consoleLogs", "stderr", "stdout"]);
        assert_eq!(asked["evidence"]["attempt"], json!({ "retry": 0, "repetition": 0 }));
        assert_eq!(keys(&asked["evidenceAvailable"]), ["aria", "console", "steps"]);
        assert_eq!(asked["error"], "Error: pays went wrong\n    at tests/shop.spec.ts:9:3");
        let none = get(client, &format!("{path}?attempt=0&include=none")).await;
        assert_eq!((&none["evidence"], &none["attemptCount"]), (&Value::Null, &json!(2)));
        let deciding = get(client, path).await;
        assert_eq!((&deciding["error"], &deciding["flaky"]), (&Value::Null, &json!(true)));
    })
    .await;
}

#[tokio::test]
async fn a_project_is_judged_by_its_default_branch() {
    for_each_service(async |service| {
        let client = service.client();
        let send = async |project: &str, n: usize, branch: &str, status: &str| {
            let set = json!({
                "startTime": format!("2026-01-01T10:{n:02}:00.000Z"), "clientRunId": format!("{project}-{n}"),
                "branch": branch, "isFullRun": true, "metadata": { "scm": { "defaultBranch": "main" } },
            });
            let submission = run(project, status, vec![attempt("pays", status, 0)]);
            client.post_json("/api/test-runs/submit", &with(submission, set)).await.expect("stored");
        };
        for n in 0..2 {
            send("shop", n, "main", "passed").await;
        }
        // More than the home page looks at.
        for n in 2..26 {
            send("shop", n, "feature/cart", "failed").await;
        }
        // Where the default branch never ran, what did run is all there is.
        for n in 0..2 {
            send("fork", n, "feature/cart", "failed").await;
        }
        for list in ["/api/projects", "/api/projects/menu", "/api/projects/overview"] {
            let page = client.json(list).await.expect("projects");
            let items = page["items"].as_array().expect("a list");
            let of = |name: &str| &items.iter().find(|item| item["name"] == name).expect("it")["tendency"];
            assert_eq!((of("shop"), of("fork")), (&json!("passing"), &json!("failing")), "{list}");
        }
        let home = client.get("/").await.expect("a page").text();
        assert!(home.contains("1 of 2 projects is failing"), "the headline");
        assert_eq!(home.matches("failing for").count(), 1, "only of the fork");
    })
    .await;
}

#[tokio::test]
async fn the_overview_shows_each_project_its_own_newest_runs() {
    for_each_service(async |service| {
        let client = service.client();
        for n in 0..24 {
            // Several start in the same millisecond; the newest of one environment lie far back.
            let start = format!("2026-01-01T10:00:{:02}.000Z", n / 3);
            let set = json!({
                "startTime": start, "clientRunId": format!("overview-{n}"),
                "environment": if n < 3 { "staging" } else { "ci" }, "isFullRun": n < 8,
            });
            for project in if n % 8 == 0 { &["busy", "calm"][..] } else { &["busy"] } {
                let submission = run(project, "passed", vec![attempt("pays", "passed", 0)]);
                client
                    .post_json("/api/test-runs/submit", &with(submission, set.clone()))
                    .await
                    .expect("stored");
            }
        }
        let of = async |query: &str, name: &str| {
            let page = client.json(&format!("/api/projects/overview{query}")).await.expect("an overview");
            let items = page["items"].as_array().cloned().unwrap_or_default();
            items.into_iter().find(|item| item["name"] == name).expect("the project")
        };
        let runs = |item: &Value| item["recentRuns"].as_array().map_or(0, Vec::len);
        let (busy, calm) = (of("", "busy").await, of("", "calm").await);
        assert_eq!((runs(&busy), runs(&calm)), (20, 3));
        // Its full runs lie further back than what is shown.
        assert_eq!((&busy["tendency"], &calm["tendency"]), (&json!("passing"), &json!("unknown")));
        assert_eq!(busy["latestFullRun"]["startTime"], "2026-01-01T10:00:02.000Z");
        let staging = of("?environment=staging", "busy").await;
        assert_eq!((runs(&staging), &staging["tendency"]), (3, &json!("passing")));
    })
    .await;
}

/// What a list says when it is read in pages of two.
async fn in_pages(client: &Client, path: &str) -> Vec<String> {
    let mut titles = Vec::new();
    let mut at = client.json(&format!("{path}&limit=2")).await.expect("a page");
    loop {
        let items = at["items"].as_array().expect("tests").iter();
        titles.extend(items.map(|test| test["title"].as_str().expect("a title").to_owned()));
        let Some(cursor) = at["nextCursor"].as_str() else { return titles };
        at = client.json(&format!("{path}&limit=2&cursor={cursor}")).await.expect("a page");
    }
}

#[tokio::test]
async fn the_catalogue_goes_both_ways_and_rows_can_be_counted_off() {
    for_each_service(async |service| {
        let client = service.client();
        let timed =
            |title: &str, duration: i64| with(attempt(title, "passed", 0), json!({ "duration": duration }));
        let skipped = |title: &str| with(attempt(title, "skipped", 0), json!({ "duration": 0 }));
        let mut cases = vec![timed("d", 40), timed("b", 900), timed("a", 40), skipped("e"), skipped("f")];
        cases.extend([attempt("c", "failed", 0), attempt("c", "passed", 1)]);
        let body = with(run("shop", "passed", cases), json!({ "startTime": "2026-01-01T10:00:00.000Z" }));
        client.post_json("/api/test-runs/submit", &body).await.expect("stored");
        for (sort, usual, other) in [
            ("title", "asc", "desc"),
            ("file", "asc", "desc"),
            ("lastRun", "desc", "asc"),
            ("totalRuns", "desc", "asc"),
            ("flakyScore", "desc", "asc"),
            ("avgDuration", "desc", "asc"),
            ("passRate", "asc", "desc"),
        ] {
            let of = |dir: &str| format!("/api/projects/1/test-cases?sort={sort}{dir}");
            let usually = in_pages(client, &of("")).await;
            assert_eq!(in_pages(client, &of(&format!("&dir={usual}"))).await, usually, "{sort}");
            let turned = in_pages(client, &of(&format!("&dir={other}"))).await;
            let mut sorted = turned.clone();
            sorted.sort();
            assert_eq!(sorted, ["a", "b", "c", "d", "e", "f"], "{sort} {other}");
            assert_ne!(turned, usually, "{sort}");
            let counted = in_pages(client, &of(&format!("&dir={other}&offset=4"))).await;
            assert_eq!(counted, turned[4..], "{sort} {other}");
        }
        let fastest = in_pages(client, "/api/projects/1/test-cases?sort=avgDuration&dir=asc").await;
        assert_eq!(fastest[4..], ["e", "f"], "without a duration they come last");
        let calm = in_pages(client, "/api/projects/1/test-cases?sort=flakyScore&dir=asc").await;
        assert_eq!(calm[5], "c");
        assert_eq!(in_pages(client, "/api/projects/1/test-cases?offset=6").await, Vec::<String>::new());
    })
    .await;
}
