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
        for project in [&project, &whole["projectId"]] {
            let tests = client.json(&format!("/api/projects/{project}/test-cases")).await.expect("tests");
            assert_eq!(tests["items"][0]["totalRuns"], json!(1), "{tests}");
            let states = counted(service, project).await;
            let states = states.iter().filter(|row| row.starts_with("test_state")).count();
            assert_eq!(states, 4 * 233, "who asks counts what waits");
        }
        let (streamed, whole) =
            (counted(service, &project).await, counted(service, &whole["projectId"]).await);
        assert_eq!(streamed, whole);
    })
    .await;
}

/// Questions whose answers hold numbers of tests: of a project, one of its
/// tests, its last run and an execution of that.
const ASKED: [&str; 19] = [
    "/api/projects/{project}/test-cases",
    "/api/projects/{project}/flaky-tests",
    "/api/projects/{project}/slow-tests",
    "/api/projects/{project}/spec-health",
    "/api/projects/{project}/timeout-opportunities",
    "/api/projects/{project}/quarantine?candidates=true",
    "/api/test-cases/{test}",
    "/api/test-cases/{test}/history",
    "/api/test-cases/{test}/stability-trend",
    "/api/test-runs/{run}/executions?isNewRegression=true",
    "/api/test-runs/{run}/insights",
    "/api/test-runs/{run}/compare",
    "/api/test-runs/{run}/rerun?select=new",
    "/api/test-runs/{run}/export?format=csv",
    "/api/test-run-cases/{execution}",
    "/api/test-run-cases/{execution}/explain",
    "/api/search?q=pays",
    "/api/analytics/browser-matrix",
    "/api/analytics/insights",
];

#[tokio::test]
async fn whoever_asks_for_numbers_of_tests_finds_every_run_that_is_over_in_them() {
    for_each_service(async |service| {
        let client = service.client();
        for (at, question) in ASKED.iter().enumerate() {
            let submit = async |day: &str, status: &str| {
                let body = json!({
                    "projectName": format!("asked-{at}"), "status": status, "duration": 5000, "branch": "main",
                    "startTime": format!("2026-01-0{day}T10:00:00.000Z"), "testCases": [attempt("pays", status, 0)],
                });
                client.post_json("/api/test-runs/submit", &body).await.expect("submitted")
            };
            submit("1", "passed").await;
            let last = submit("2", "failed").await;
            let (project, run) = (&last["projectId"], &last["runId"]);
            let of_test = |columns: &str, table: &str| {
                format!("SELECT CAST({columns} AS TEXT) FROM {table} WHERE project_id = {project} ORDER BY 1 DESC")
            };
            let test = texts(service, &of_test("id", "test_cases")).await.remove(0);
            let execution = texts(service, &of_test("id", "executions")).await.remove(0);
            assert_eq!(texts(service, &of_test("total", "test_state")).await, Vec::<String>::new());
            let question = [
                ("{project}", project.to_string()),
                ("{run}", run.to_string()),
                ("{test}", test),
                ("{execution}", execution),
            ]
            .into_iter()
            .fold((*question).to_owned(), |text, (name, id)| text.replace(name, &id));
            let answer = client.get(&question).await.expect("an answer");
            assert_eq!(answer.status.as_u16(), 200, "{question}: {}", answer.text());
            assert_eq!(texts(service, &of_test("total", "test_state")).await, ["2", "2"], "{question}");
            // What is remarkable about an execution is told by what was counted before it.
            let shown = client.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
            assert_eq!(shown["items"][0]["isNewRegression"], json!(true), "{shown}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_result_is_compared_with_the_run_before_however_many_of_it_are_counted_at_a_time() {
    for_each_service(async |service| {
        let client = service.client();
        let submit = async |day: &str, failing: &str, tests: Vec<usize>| {
            let case = |at: &usize| {
                let title = format!("test {at}");
                let status = if title == failing { "failed" } else { "passed" };
                attempt(&title, status, 0)
            };
            let cases: Vec<Value> = tests.iter().map(case).collect();
            let body = json!({
                "projectName": "reordered", "status": "failed", "duration": 5000,
                "startTime": format!("2026-01-0{day}T10:00:00.000Z"), "testCases": cases,
            });
            client.post_json("/api/test-runs/submit", &body).await.expect("submitted")
        };
        // More tests than one transaction counts of a run; the one that fails comes late in one run, early in the next.
        let first = submit("1", "none", (0..900).collect()).await;
        let project = first["projectId"].to_string();
        client.json(&format!("/api/projects/{project}/test-cases?limit=1")).await.expect("counted");
        let broken = submit("2", "test 850", (0..900).collect()).await;
        let still = submit("3", "test 850", (0..900).rev().collect()).await;
        let mended = submit("4", "none", (0..900).rev().collect()).await;
        for (run, new, fixed) in [(broken, 1, 0), (still, 0, 0), (mended, 0, 1)] {
            let list = async |flag: &str| {
                let path = format!("/api/test-runs/{}/executions?{flag}=true", run["runId"]);
                client.json(&path).await.expect("executions")["items"].as_array().map(Vec::len)
            };
            assert_eq!((list("isNewRegression").await, list("isFixed").await), (Some(new), Some(fixed)));
        }
        let totals =
            format!("SELECT DISTINCT CAST(total AS TEXT) FROM test_state WHERE project_id = {project}");
        assert_eq!(texts(service, &totals).await, ["4"]);
    })
    .await;
}
