//! Results of a running client are counted many at a time. Its own numbers are
//! there at once, and in the end everything counts as if it had come whole.

use callboard_test_support::{Service, for_each_service};
use serde_json::{Value, json};

use super::{picked, start, sweep};
use crate::builders::attempt;
use crate::rows::texts;

/// What the tests of a project count for: states, days, folders, browser projects.
async fn counted(service: &Service, project: &Value) -> Vec<String> {
    let sums = |table: &str, columns: &[&str], order: &str| {
        let columns: Vec<String> = columns.iter().map(|name| format!("CAST({name} AS TEXT)")).collect();
        format!(
            "SELECT '{table} ' || {} FROM {table} WHERE project_id = {project} ORDER BY {order}",
            columns.join(" || ' ' || ")
        )
    };
    let mut all = Vec::new();
    for statement in [
        sums("test_state", &["total", "passed", "failed", "flaky", "passing_streak"], "lane_id, 1"),
        sums("test_daily", &["runs", "passed", "failed", "flaky", "dur_sum"], "lane_id, 1"),
        sums("spec_daily", &["executions", "passed", "failed", "flaky", "dur_n"], "lane_id, prefix"),
        sums("browser_daily", &["passed", "failed"], "browser_id"),
        sums("project_stats", &["runs", "test_cases", "executions"], "project_id"),
    ] {
        all.extend(texts(service, &statement).await);
    }
    all
}

#[tokio::test]
async fn results_wait_for_a_moment_and_count_like_those_that_come_whole() {
    for_each_service(async |service| {
        let client = service.client();
        let place = json!({ "branch": "main", "environment": "staging" });
        let feeder = start(client, place.clone()).await;
        feeder.results(vec![attempt("pays", "failed", 0), attempt("looks", "passed", 0)]).await;
        let shown = feeder.shown().await;
        let project = shown["projectId"].clone();
        assert_eq!(picked(&shown, ["totalTests", "failedTests"]), [json!(2), json!(1)]);
        assert_eq!(counted(service, &project).await, ["project_stats 1 2 0"]);
        // A client that pauses does not keep them waiting.
        sweep(service, 3_000).await;
        let early = counted(service, &project).await;
        assert_eq!(
            early.iter().filter(|row| row.starts_with("test_state")).count(),
            8,
            "two tests in four lanes"
        );
        // One that is counted changes, one that waits changes before it counts, others come in hundreds.
        let many: Vec<Value> = (0..230).map(|at| attempt(&format!("test {at}"), "passed", 0)).collect();
        feeder.results(vec![attempt("pays", "passed", 1), attempt("waits", "failed", 0)]).await;
        feeder.results(vec![attempt("waits", "passed", 1)]).await;
        for batch in many.chunks(40) {
            feeder.results(batch.to_vec()).await;
        }
        feeder.finish("passed").await;
        let mut cases = vec![
            attempt("pays", "failed", 0),
            attempt("pays", "passed", 1),
            attempt("looks", "passed", 0),
            attempt("waits", "failed", 0),
            attempt("waits", "passed", 1),
        ];
        cases.extend(many);
        let whole = crate::builders::with(
            json!({ "projectName": "whole", "status": "passed", "duration": 5000, "testCases": cases,
                "startTime": "2026-01-01T10:00:00.000Z" }),
            place,
        );
        let whole = client.post_json("/api/test-runs/submit", &whole).await.expect("submitted");
        let (streamed, whole) =
            (counted(service, &project).await, counted(service, &whole["projectId"]).await);
        assert_eq!(streamed, whole);
    })
    .await;
}
