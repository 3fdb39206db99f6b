//! What retention deletes changes no number: every answer that summarises runs
//! is the same before and after, but for what says how many are kept.

use std::collections::BTreeMap;

use callboard_store::Backend;
use callboard_test_support::{Client, Service, TestDatabase, for_each_backend};
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::detail_pages::{page, words_after};
use crate::mcp::Agent;
use crate::retention::{days_ago, set, swept};

/// Days after which runs are deleted.
const KEPT_DAYS: i64 = 30;

async fn service(backend: Backend) -> Service {
    let settings = [("SERVICE_GC_GRACE_SECONDS", "0"), ("SERVICE_RETENTION_GRACE_HOURS", "0")];
    let settings: Vec<_> = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let database = TestDatabase::fresh(backend).await.expect("a database");
    Service::over(database, &settings).await.expect("a service")
}

/// A run of one project: days ago, branch, environment, status of `pays`.
type History<'h> = &'h [(i64, &'h str, &'h str, &'h str)];

/// `shop` fails on main since before the limit; `blog` passes, and flaked
/// before the limit; `shelved` has no run after it; `fresh` none before it.
const PROJECTS: [(&str, History<'static>); 4] = [
    (
        "shop",
        &[
            (44, "main", "staging", "passed"),
            (43, "main", "production", "passed"),
            (42, "feature/a", "staging", "failed"),
            (41, "main", "staging", "failed"),
            (40, "main", "production", "failed"),
            (39, "feature/b", "", "flaky"),
            (38, "main", "staging", "failed"),
            (6, "main", "staging", "failed"),
            (5, "feature/a", "staging", "passed"),
            (4, "main", "production", "failed"),
            (3, "feature/b", "", "passed"),
        ],
    ),
    (
        "blog",
        &[
            (36, "main", "staging", "passed"),
            (35, "main", "staging", "flaky"),
            (34, "main", "production", "passed"),
            (5, "main", "staging", "passed"),
            (4, "main", "production", "passed"),
        ],
    ),
    (
        "shelved",
        &[
            (50, "main", "", "passed"),
            (49, "main", "", "flaky"),
            (48, "feature/a", "", "failed"),
            (47, "main", "", "failed"),
        ],
    ),
    ("fresh", &[(3, "main", "", "passed"), (2, "main", "", "failed")]),
];

async fn with_history(service: &Service) {
    set(
        service.client(),
        "/api/settings/retention",
        json!({ "keep": { "lastGreen": false, "firstFailure": false, "clusterSamples": 0 } }),
    )
    .await;
    for (project, history) in PROJECTS {
        for (at, (days, branch, environment, pays)) in history.iter().enumerate() {
            let mut cases = vec![attempt("looks", "passed", 0), attempt("searches", "passed", 0)];
            match *pays {
                "flaky" => cases.extend([attempt("pays", "failed", 0), attempt("pays", "passed", 1)]),
                status => cases.push(attempt("pays", status, 0)),
            }
            if *days > KEPT_DAYS {
                // A test that no run within the limit has, with a cause of its own.
                cases.push(attempt("is removed", if at % 2 == 0 { "failed" } else { "passed" }, 0));
            }
            for case in &mut cases {
                case["duration"] = json!(100 * (at + 1));
                case["networkRequests"] = json!([{ "method": "GET", "url": "https://shop.example/cart", "status": 200, "duration": 7 * (at + 1) }]);
            }
            let status = if *pays == "failed"
                || cases.iter().any(|case| case["title"] == "is removed" && case["status"] == "failed")
            {
                "failed"
            } else {
                "passed"
            };
            let more = json!({
                "startTime": days_ago(service, *days), "environment": environment, "isFullRun": true,
                "metadata": { "scm": { "branch": branch, "commit": format!("{:040x}", days) }, "git": { "branch": branch } },
            });
            let body = with(run(project, status, cases), more);
            service.client().post_json("/api/test-runs/submit", &body).await.expect("stored");
        }
    }
    for id in 1..=PROJECTS.len() {
        set(service.client(), &format!("/api/projects/{id}"), json!({ "defaultBranch": "main" })).await;
    }
    swept(service).await;
}

/// Answers that summarise runs, by their address.
async fn numbers(client: &Client) -> BTreeMap<String, Value> {
    let mut paths: Vec<String> = [
        "/api/projects",
        "/api/projects?standing=failing",
        "/api/projects/menu",
        "/api/projects/overview",
        "/api/projects/overview?environment=staging",
        "/api/failure-clusters",
        "/api/admin/stats",
    ]
    .map(str::to_owned)
    .into();
    for widget in ["slow-endpoints", "cluster-landscape", "browser-matrix"] {
        paths.push(format!("/api/analytics/{widget}?days=90"));
    }
    for widget in [
        "portfolio",
        "pass-rate-heatmap",
        "flaky-leaderboard",
        "wasted-time",
        "ci-time-trend",
        "regression-velocity",
        "insights",
    ] {
        for narrowed in ["", "&branch=main", "&environment=staging", "&branch=main&environment=staging"] {
            paths.push(format!("/api/analytics/{widget}?days=90{narrowed}"));
        }
    }
    for id in 1..=PROJECTS.len() {
        for path in [
            "",
            "/facets",
            "/badge.json",
            "/test-cases?sort=title",
            "/test-cases?sort=title&branch=main",
            "/test-cases?sort=title&environment=staging",
            "/flaky-tests",
            "/slow-tests",
            "/spec-health?days=90",
            "/timeout-opportunities",
            "/daily?days=90",
            "/daily?days=90&branch=main",
            "/quarantine",
            "/failure-clusters",
        ] {
            paths.push(format!("/api/projects/{id}{path}"));
        }
    }
    let mut found = BTreeMap::new();
    for path in paths {
        let answer = client.json(&path).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        found.insert(path, answer);
    }
    let of_list = |path: &str| -> Vec<i64> {
        let items = found[path]["items"].as_array().expect("a list").iter();
        items.map(|item| item["id"].as_i64().expect("an id")).collect()
    };
    let mut further = Vec::new();
    for cluster in of_list("/api/failure-clusters") {
        further.push(format!("/api/failure-clusters/{cluster}"));
        further.push(format!("/api/failure-clusters/{cluster}/test-cases"));
    }
    for id in 1..=PROJECTS.len() {
        for case in of_list(&format!("/api/projects/{id}/test-cases?sort=title")) {
            further.push(format!("/api/test-cases/{case}"));
            further.push(format!("/api/test-cases/{case}?branch=main"));
            further.push(format!("/api/test-cases/{case}/stability-trend?by=day&days=90"));
        }
    }
    for path in further {
        let answer = client.json(&path).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        found.insert(path, answer);
    }
    let agent = Agent::at(client.clone(), "/mcp");
    for (tool, arguments) in [
        ("list_projects", json!({})),
        ("get_project", json!({ "projectId": 1 })),
        ("get_project", json!({ "projectId": 2 })),
        ("get_project", json!({ "projectId": 3 })),
        ("get_instance_stats", json!({})),
        ("list_flaky_tests", json!({ "projectId": 1 })),
        ("get_slow_tests", json!({ "projectId": 1 })),
        ("get_spec_health", json!({ "projectId": 1 })),
        ("get_project_test_catalog", json!({ "projectId": 1 })),
        ("list_open_clusters", json!({})),
        ("search_test_cases", json!({ "projectId": 1, "query": "pays" })),
    ] {
        let answer =
            agent.call(tool, arguments.clone()).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
        found.insert(format!("{tool} {arguments}"), answer);
    }
    found
}

/// Lists of runs and executions, and what says how many are kept.
const OF_KEPT_RUNS: [&str; 7] =
    ["keptRuns", "recentRuns", "testRuns", "runs", "recentExecutions", "nextCursor", "storage"];
/// Runs that are shown when they are kept.
const RUNS: [&str; 2] = ["latestRun", "latestFullRun"];

/// Places in which two answers differ.
fn differences(place: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
                let null = Value::Null;
                let (one, other) = (before.get(key).unwrap_or(&null), after.get(key).unwrap_or(&null));
                let is_list =
                    OF_KEPT_RUNS.contains(&key.as_str()) && (one.is_array() || !key.ends_with("runs"));
                if is_list || RUNS.contains(&key.as_str()) && other.is_null() {
                    continue;
                }
                differences(&format!("{place}.{key}"), one, other, found);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (one, other)) in before.iter().zip(after).enumerate() {
                differences(&format!("{place}.{at}"), one, other, found);
            }
        }
        _ if before == after => {}
        _ => found.push(format!("{place}: {before} became {after}")),
    }
}

/// What a page says about since when projects fail.
async fn failing_since(client: &Client, path: &str) -> Vec<String> {
    let said = words_after(&page(client, path).await, "<main");
    let sentences = said.split("failing for").skip(1);
    sentences.map(|rest| rest.split_inclusive("run").next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn what_retention_deletes_changes_no_number() {
    for_each_backend(async |backend| {
        let service = service(backend).await;
        with_history(&service).await;
        let client = service.client();
        let before = numbers(client).await;
        let since = [failing_since(client, "/").await, failing_since(client, "/projects").await];
        assert!(since.iter().all(|said| said.len() == 3), "{since:?}");
        set(client, "/api/settings/retention", json!({ "runs": { "days": KEPT_DAYS } })).await;
        swept(&service).await;
        let listed = client.json("/api/test-runs?limit=100").await.expect("runs");
        let kept = PROJECTS.iter().flat_map(|(_, runs)| runs.iter()).filter(|run| run.0 < KEPT_DAYS).count();
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(kept));
        let after = numbers(client).await;
        assert_eq!([failing_since(client, "/").await, failing_since(client, "/projects").await], since);
        let mut found = Vec::new();
        for (path, answer) in &before {
            differences(path, answer, after.get(path).unwrap_or(&Value::Null), &mut found);
        }
        assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
    })
    .await;
}

/// Answers that are made of runs whose details are kept, and how many there are.
#[tokio::test]
async fn what_is_made_of_kept_runs_says_how_many_they_are() {
    for_each_backend(async |backend| {
        let service = service(backend).await;
        with_history(&service).await;
        let client = service.client();
        let case = client.json("/api/projects/1/test-cases?sort=title").await.expect("tests");
        let case = case["items"].as_array().expect("a list").iter().find(|case| case["title"] == "pays");
        let case = case.expect("a test")["id"].as_i64().expect("an id");
        let (of_all, of_kept) = (11, 4);
        let counts = async || {
            let agent = Agent::at(client.clone(), "/mcp");
            let mut found = Vec::new();
            for path in [
                "/api/projects/1".to_owned(),
                "/api/projects/1/performance".to_owned(),
                format!("/api/test-cases/{case}/stability-trend"),
                format!("/api/test-cases/{case}/stability-trend?by=day"),
            ] {
                found.push((path.clone(), client.json(&path).await.expect("an answer")));
            }
            for (tool, arguments) in [
                ("get_project", json!({ "projectId": 1 })),
                ("get_performance_trend", json!({ "projectId": 1 })),
                ("get_test_stability_trend", json!({ "testCaseId": case })),
            ] {
                found.push((tool.to_owned(), agent.call(tool, arguments).await.expect("an answer")));
            }
            let listed = agent.call("list_projects", json!({})).await.expect("an answer");
            let own = listed["items"].as_array().expect("a list").iter().find(|row| row["projectId"] == 1);
            found.push(("list_projects".to_owned(), own.expect("the project").clone()));
            let both = |(place, answer): (String, Value)| {
                let counts = answer.get("projectRuns").unwrap_or(&answer);
                (place, counts["totalRuns"].clone(), counts["keptRuns"].clone())
            };
            found.into_iter().map(both).collect::<Vec<_>>()
        };
        let pages = [
            "/projects".to_owned(),
            "/projects/1".to_owned(),
            "/projects/1?tab=performance".to_owned(),
            format!("/test-cases/{case}"),
            "/settings".to_owned(),
            "/settings/projects".to_owned(),
            "/settings/storage".to_owned(),
        ];
        for (place, total, kept) in counts().await {
            assert_eq!((total, kept), (json!(of_all), json!(of_all)), "{place}");
        }
        for path in &pages {
            let said = words_after(&page(client, path).await, "<main");
            assert!(!said.contains("details kept for"), "{path}: {said}");
        }
        set(client, "/api/settings/retention", json!({ "runs": { "days": KEPT_DAYS } })).await;
        swept(&service).await;
        for (place, total, kept) in counts().await {
            assert_eq!((total, kept), (json!(of_all), json!(of_kept)), "{place}");
        }
        for path in &pages {
            let said = words_after(&page(client, path).await, "<main");
            let count = if path == "/settings" { 8 } else { of_kept };
            assert!(said.contains(&format!("details kept for {count}")), "{path}: {said}");
        }
    })
    .await;
}

/// Tests that are taken out of a cluster take the branches with them on which
/// they failed, also those that only deleted runs had.
#[tokio::test]
async fn tests_taken_out_of_a_cluster_keep_the_branches_of_deleted_runs() {
    for_each_backend(async |backend| {
        let service = service(backend).await;
        let client = service.client();
        let policy = json!({ "keep": { "lastGreen": false, "firstFailure": false, "clusterSamples": 0 } });
        set(client, "/api/settings/retention", policy).await;
        let failing = |title: &str| with(attempt(title, "failed", 0), json!({ "error": "Error: no answer" }));
        for (days, branch, tests) in [
            (44, "feature/both", vec!["pays", "searches"]),
            (43, "feature/pays", vec!["pays"]),
            (42, "feature/searches", vec!["searches"]),
            (3, "main", vec!["pays", "searches"]),
        ] {
            let more = json!({
                "startTime": days_ago(&service, days), "isFullRun": true,
                "metadata": { "scm": { "branch": branch }, "git": { "branch": branch } },
            });
            let body = with(run("shop", "failed", tests.into_iter().map(failing).collect()), more);
            client.post_json("/api/test-runs/submit", &body).await.expect("stored");
        }
        swept(&service).await;
        set(client, "/api/settings/retention", json!({ "runs": { "days": KEPT_DAYS } })).await;
        swept(&service).await;
        let branches = async |cluster: &Value| {
            let cluster = client.json(&format!("/api/failure-clusters/{cluster}")).await.expect("a cluster");
            let mut branches: Vec<String> =
                serde_json::from_value(cluster["branches"].clone()).expect("texts");
            branches.sort();
            branches
        };
        let clusters = client.json("/api/failure-clusters").await.expect("clusters");
        assert_eq!(clusters["items"].as_array().map(Vec::len), Some(1), "{clusters}");
        let old = clusters["items"][0]["id"].clone();
        assert_eq!(branches(&old).await, ["feature/both", "feature/pays", "feature/searches", "main"]);
        let tests = client.json(&format!("/api/failure-clusters/{old}/test-cases")).await.expect("tests");
        let pays = tests["items"].as_array().expect("a list").iter().find(|test| test["title"] == "pays");
        let pays = pays.expect("the test")["testCaseId"].clone();
        let path = format!("/api/failure-clusters/{old}/extract-cases");
        let taken = client.post_json(&path, &json!({ "testCaseIds": [pays] })).await.expect("taken out");
        assert_eq!(branches(&taken["cluster"]["id"]).await, ["feature/both", "feature/pays", "main"]);
        assert_eq!(branches(&old).await, ["feature/both", "feature/searches", "main"]);
    })
    .await;
}
