//! What a restore brings back.

use callboard_test_support::{Client, for_each_service};
use serde_json::{Value, json};

use super::{delete, refused, restore, submitted};
use crate::builders::{attempt, run, with};
use crate::live;
use crate::rows::{every_row, settled, texts};

/// Tables of events, and of rows that a deletion writes on purpose.
const APART: [&str; 7] = [
    "jobs",
    "audit_events",
    "global_feed",
    "global_feed_head",
    "deletion_receipts",
    "id_counters",
    "run_tokens",
];

/// What every list and figure of a project says.
async fn figures(client: &Client, project: i64, runs: &[i64]) -> Vec<(String, Value)> {
    let mut paths: Vec<String> = [
        "",
        "/test-runs",
        "/facets",
        "/badge.json",
        "/latest-run",
        "/test-cases?sort=title",
        "/test-cases?sort=title&branch=main",
        "/test-cases?sort=title&branch=feature",
        "/flaky-tests",
        "/slow-tests",
        "/performance",
        "/spec-health",
        "/daily?from=2026-11-01&to=2026-11-30",
        "/quarantine",
        "/failure-clusters",
    ]
    .iter()
    .map(|path| format!("/api/projects/{project}{path}"))
    .collect();
    for path in [
        "/api/projects",
        "/api/projects/menu",
        "/api/projects/overview",
        "/api/test-runs",
        "/api/test-runs/recent",
        "/api/failure-clusters",
        "/api/admin/stats",
        "/api/search?q=shop",
        "/api/search?q=feature",
        "/api/analytics/portfolio",
        "/api/analytics/pass-rate-heatmap",
        "/api/analytics/flaky-leaderboard",
        "/api/analytics/wasted-time",
        "/api/analytics/ci-time-trend",
        "/api/analytics/regression-velocity",
        "/api/analytics/cluster-landscape",
        "/api/analytics/insights",
        "/api/analytics/browser-matrix",
    ] {
        paths.push(path.to_owned());
    }
    for run in runs {
        for path in ["", "/executions", "/insights", "/failure-groups", "/specs", "/timeline"] {
            paths.push(format!("/api/test-runs/{run}{path}"));
        }
    }
    let clusters = client.json("/api/failure-clusters").await.expect("clusters");
    for cluster in clusters["items"].as_array().expect("clusters") {
        for path in ["", "/occurrences", "/test-cases"] {
            paths.push(format!("/api/failure-clusters/{}{path}", cluster["id"]));
        }
    }
    let mut told = Vec::new();
    for path in paths {
        let mut answer = client.json(&path).await.expect("an answer");
        forget_volatile(&mut answer);
        told.push((path, answer));
    }
    told
}

/// When a row was written last is not what people look at.
fn forget_volatile(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for key in ["updatedAt", "generatedAt", "version"] {
                fields.remove(key);
            }
            fields.values_mut().for_each(forget_volatile);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_volatile),
        _ => {}
    }
}

#[track_caller]
fn same(before: &[(String, Value)], after: &[(String, Value)], of: &str) {
    assert_eq!(before.len(), after.len(), "{of}");
    for ((path, before), (_, after)) in before.iter().zip(after) {
        assert_eq!(before, after, "{of}: {path}");
    }
}

#[tokio::test]
async fn a_restored_run_is_as_if_it_was_never_deleted() {
    for_each_service(async |service| {
        let client = service.client();
        let mut runs = Vec::new();
        for (day, branch, pays) in [(1, "main", "passed"), (2, "main", "failed"), (3, "feature", "failed"), (4, "main", "passed")] {
            let mut cases = vec![
                attempt("pays", pays, 0),
                attempt("looks", "failed", 0),
                attempt("looks", "passed", 1),
                attempt("searches", "passed", 0),
            ];
            if branch == "feature" {
                cases.push(attempt("is only here", "timedOut", 0));
            }
            let more = json!({ "startTime": format!("2026-11-{day:02}T10:00:00.000Z"), "branch": branch, "commit": format!("{day}123456789abcdef") });
            let answer = client.post_json("/api/test-runs/submit", &with(run("shop", pays, cases), more)).await;
            runs.push(answer.expect("stored")["runId"].as_i64().expect("a run"));
        }
        settled(service).await;
        let cases = client.json("/api/projects/1/test-cases?sort=title").await.expect("tests");
        let aside = json!({ "testCaseId": cases["items"][0]["id"], "reason": "unreliable" });
        client.post_json("/api/projects/1/quarantine", &aside).await.expect("in quarantine");
        let before = figures(client, 1, &runs).await;
        let rows = every_row(service, &APART).await;
        for gone in &runs {
            let deleted = delete(client, &format!("/api/test-runs/{gone}")).await.success().expect("deleted");
            settled(service).await;
            refused(&client.get(&format!("/api/test-runs/{gone}")).await.expect("an answer"), 404, "run_not_found");
            let stats = client.json("/api/admin/stats").await.expect("stats");
            assert_eq!(stats["totalRuns"], 3);
            restore(client, &deleted["receipt"]).await.success().expect("restored");
            settled(service).await;
            same(&before, &figures(client, 1, &runs).await, &format!("run {gone}"));
        }
        let after = every_row(service, &APART).await;
        for table in ["deleted_runs", "deleted_executions", "doomed_runs", "test_daily", "project_daily", "spec_daily", "browser_daily", "cluster_daily", "cluster_runs", "cluster_tests", "files"] {
            assert_eq!(rows[table], after[table], "{table}");
        }
        let told = live::global_events(service).await;
        let restored = told.iter().filter(|(kind, ..)| kind == "run-restored").count();
        assert_eq!(restored, runs.len());
    })
    .await;
}

#[tokio::test]
async fn a_run_comes_back_before_its_deletion_was_counted() {
    for_each_service(async |service| {
        let client = service.client();
        let first = submitted(service, "shop", "2026-11-01T10:00:00.000Z", json!({})).await;
        let second = submitted(service, "shop", "2026-11-02T10:00:00.000Z", json!({})).await;
        settled(service).await;
        let before = figures(client, 1, &[first, second]).await;
        let deleted = delete(client, &format!("/api/test-runs/{second}")).await.success().expect("deleted");
        restore(client, &deleted["receipt"]).await.success().expect("restored");
        settled(service).await;
        same(&before, &figures(client, 1, &[first, second]).await, "restored immediately");
    })
    .await;
}

#[tokio::test]
async fn a_run_that_was_going_on_comes_back_as_cancelled() {
    for_each_service(async |service| {
        let client = service.client();
        let feeder = live::start(client, json!({})).await;
        feeder.results(vec![attempt("pays", "passed", 0), attempt("looks", "failed", 0)]).await;
        let path = format!("/api/test-runs/{}", feeder.run);
        let deleted = delete(client, &path).await.success().expect("deleted");
        settled(service).await;
        refused(&feeder.call("heartbeat", json!({})).await, 404, "run_not_found");
        restore(client, &deleted["receipt"]).await.success().expect("restored");
        settled(service).await;
        let back = client.json(&path).await.expect("the run");
        assert_eq!(
            (&back["status"], &back["totalTests"], &back["failedTests"]),
            (&json!("cancelled"), &json!(2), &json!(1))
        );
        let answer = feeder.call("heartbeat", json!({})).await;
        assert!(!answer.status.is_success(), "its client is not heard any more: {}", answer.text());
        let stats = client.json("/api/admin/stats").await.expect("stats");
        assert_eq!((&stats["totalRuns"], &stats["totalExecutions"]), (&json!(1), &json!(2)));
    })
    .await;
}

#[tokio::test]
async fn several_runs_are_restored_together() {
    for_each_service(async |service| {
        let client = service.client();
        let mut runs = Vec::new();
        for (project, day) in [("shop", 1), ("shop", 2), ("other", 3)] {
            let start = format!("2026-11-{day:02}T10:00:00.000Z");
            runs.push(submitted(service, project, &start, json!({})).await);
        }
        settled(service).await;
        let before = figures(client, 1, &runs).await;
        let deleted =
            client.post_json("/api/test-runs/bulk-delete", &json!({ "ids": runs })).await.expect("deleted");
        settled(service).await;
        assert_eq!(client.json("/api/test-runs").await.expect("runs")["items"], json!([]));
        assert_eq!(client.json("/api/failure-clusters").await.expect("clusters")["items"], json!([]));
        assert_eq!(client.json("/api/admin/stats").await.expect("stats")["totalExecutions"], 0);
        restore(client, &deleted["receipt"]).await.success().expect("restored");
        settled(service).await;
        same(&before, &figures(client, 1, &runs).await, "several runs");
    })
    .await;
}

#[tokio::test]
async fn failures_of_a_restored_run_count_for_the_cluster_that_took_theirs_over() {
    for_each_service(async |service| {
        let client = service.client();
        let failing = |title: &str, error: &str| with(attempt(title, "failed", 0), json!({ "error": error }));
        let submit = async |day: u32, cases: Vec<Value>| {
            let more = json!({ "startTime": format!("2026-11-{day:02}T10:00:00.000Z") });
            let answer =
                client.post_json("/api/test-runs/submit", &with(run("shop", "failed", cases), more)).await;
            answer.expect("stored")["runId"].as_i64().expect("a run")
        };
        let both =
            || vec![failing("pays", "Error: no card reader"), failing("looks", "TypeError: window is gone")];
        submit(1, both()).await;
        let second = submit(2, both()).await;
        settled(service).await;
        let clusters = client.json("/api/failure-clusters").await.expect("clusters")["items"].clone();
        assert_eq!(clusters.as_array().map(Vec::len), Some(2));
        let deleted = delete(client, &format!("/api/test-runs/{second}")).await.success().expect("deleted");
        settled(service).await;
        let (target, source) = (&clusters[0]["id"], &clusters[1]["id"]);
        client
            .post_json(&format!("/api/failure-clusters/{source}/merge"), &json!({ "intoId": target }))
            .await
            .expect("merged");
        settled(service).await;
        restore(client, &deleted["receipt"]).await.success().expect("restored");
        settled(service).await;
        let left = client.json("/api/failure-clusters").await.expect("clusters")["items"].clone();
        assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
        assert_eq!(left[0]["occurrences"], 4, "{left}");
    })
    .await;
}

#[tokio::test]
async fn tables_of_restorable_rows_have_the_columns_of_those_they_come_from() {
    for_each_service(async |service| {
        for table in ["runs", "executions", "projects", "project_stats", "project_assignments", "project_tags"] {
            let source = if table == "runs" { "test_runs" } else { table };
            let columns = async |table: String| {
                let is_sqlite = matches!(service.state().store().db(), callboard_store::Db::Sqlite { .. });
                let statement = if is_sqlite {
                    format!("SELECT name FROM pragma_table_info('{table}') ORDER BY cid")
                } else {
                    format!("SELECT column_name::text FROM information_schema.columns WHERE table_name = '{table}' \
                        AND table_schema = current_schema() ORDER BY ordinal_position")
                };
                texts(service, &statement).await
            };
            let kept = columns(format!("deleted_{table}")).await;
            assert!(!kept.is_empty());
            assert_eq!(columns(source.to_owned()).await, kept, "{table}");
        }
    })
    .await;
}
