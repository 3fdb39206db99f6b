//! What an agent that repairs tests is told: it has to be about the attempt
//! that failed, fit the file it is to change, and be there however old the
//! failure is.

use callboard_store::Db;
use callboard_test_support::{Answer, Form, Service, TestDatabase, for_each_backend, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use super::agent::Agent;
use crate::builders::{attempt, run, with};
use crate::healing::{LOCATION, failed, passed, snapshot, submit};
use crate::rows::{settled, texts};

fn agent(service: &Service) -> Agent {
    Agent::at(service.client().clone(), "/mcp")
}

/// Every part of the evidence of an attempt, with this word in it.
fn evidence(word: &str, status: u16) -> Value {
    json!({
        "steps": [{ "title": format!("click {word}"), "category": "action", "duration": 5, "failed": status >= 400 }],
        "consoleLogs": [{ "type": "log", "text": format!("console of {word}"), "timestamp": 1_767_261_600_000_i64 }],
        "networkRequests": [{ "method": "GET", "url": format!("https://shop.example/{word}"), "status": status, "duration": 4 }],
        "ariaSnapshot": format!("- heading \"{word}\""),
    })
}

#[tokio::test]
async fn a_flaky_failure_is_told_by_the_attempt_that_failed() {
    for_each_service(async |service| {
        let agent = agent(service);
        let tries = vec![
            with(attempt("pays", "failed", 0), evidence("failure", 503)),
            with(attempt("pays", "passed", 1), evidence("success", 200)),
        ];
        let stored = service.client().post_json("/api/test-runs/submit", &run("shop", "passed", tries)).await;
        let run = stored.expect("stored")["runId"].clone();
        let shown = agent.call("get_run", json!({ "runId": run, "statusFilter": "flaky" })).await.unwrap();
        let execution = shown["cases"][0]["executionId"].clone();

        let why = agent.call("explain_failure", json!({ "executionId": execution })).await.unwrap();
        assert_eq!(why["failingStep"]["title"], "click failure");
        assert_eq!(
            (&why["console"][0]["text"], &why["network"][0]["status"], &why["ariaExcerpt"]),
            (&json!("console of failure"), &json!(503), &json!("- heading \"failure\"")),
            "{why:#}"
        );
        let whole = "Error: pays went wrong\n    at tests/shop.spec.ts:9:3";
        assert_eq!(why["error"], whole);
        let summary = json!({ "executionId": execution, "detail": "summary" });
        let summary = agent.call("explain_failure", summary).await.unwrap();
        assert_eq!((&summary["error"], summary.get("console")), (&json!(whole), None));

        let every = ["steps", "console", "network", "aria"];
        let asked = json!({ "executionId": execution, "include": every });
        let told = agent.call("get_test_run_case", asked).await.unwrap();
        assert_eq!((&told["evidenceRetry"], &told["error"]), (&json!(0), &json!(whole)));
        assert!(!told.to_string().contains("success"), "{told:#}");
        assert_eq!(told["attempts"].as_array().map(Vec::len), Some(2));
        assert_eq!(told["console"][0]["timestamp"], "2026-01-01T10:00:00.000Z");

        let cluster = told["clusterId"].clone();
        let context = agent.call("get_cluster_context", json!({ "clusterId": cluster })).await.unwrap();
        let text = context["text"].as_str().unwrap();
        assert!(text.contains("click failure (5 ms) FAILED\n"), "{text}");
        assert!(text.contains("log: console of failure") && !text.contains("success"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn a_patch_keeps_the_line_breaks_and_the_words_of_its_file() {
    for_each_service(async |service| {
        let client = service.client();
        let before = passed("logs in", json!([snapshot(LOCATION, "Log in")]));
        let (_, passing) = submit(client, 1, "passed", vec![before]).await;
        let snippet = "    25 |   const password = 'hunter2';\r\n>   26 |   await page.getByRole('button', { name: 'Log in' }).click();\r\n    27 | });\r\n    28 | ";
        let frame = json!({ "file": "tests/login.spec.ts", "line": 26, "snippet": snippet });
        let broken = with(failed("logs in"), json!({ "testSourceFrames": [frame] }));
        let (_, execution) = submit(client, 2, "failed", vec![broken]).await;
        let path = format!("/api/test-run-cases/{execution}/locator-healing");
        let found = client.json(&path).await.expect("an answer");
        let diff = found["edit"]["unifiedDiff"].as_str().expect("a diff");
        assert!(diff.contains(" const password = 'hunter2';\r\n-"), "{diff:?}");

        let told = agent(service).call("get_locator_healing", json!({ "executionId": execution })).await.unwrap();
        assert_eq!(told["edit"], found["edit"]);
        let shown = agent(service).call("get_test_run_case", json!({ "executionId": execution })).await.unwrap();
        let plan = json!({ "clusterId": shown["clusterId"] });
        let plan = agent(service).call("get_fix_plan", plan).await.unwrap();
        assert_eq!(plan["edits"][0]["unifiedDiff"], diff);
        let why = agent(service).call("explain_failure", json!({ "executionId": execution })).await.unwrap();
        assert_eq!(why["lastPassed"]["executionId"], passing);
    })
    .await;
}

#[tokio::test]
async fn a_cluster_is_told_although_its_runs_are_gone() {
    for_each_backend(async |backend| {
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let immediately = [("SERVICE_RETENTION_GRACE_HOURS".to_owned(), "0".to_owned())];
        let service = &Service::over(database, &immediately.to_vec()).await.expect("a service");
        let (client, agent) = (service.client(), agent(service));
        let day = |back: i64| {
            let day = service.state().now().day().0 - back;
            json!({ "startTime": format!("{}T10:00:00.000Z", callboard_domain::time::Day(day).to_iso()) })
        };
        let red = with(run("shop", "failed", vec![attempt("pays", "failed", 0)]), day(40));
        let red = client.post_json("/api/test-runs/submit", &red).await.expect("stored");
        let shown = agent.call("get_run", json!({ "runId": red["runId"] })).await.unwrap();
        let cluster = json!({ "clusterId": shown["cases"][0]["clusterId"] });
        let green = with(run("shop", "passed", vec![attempt("pays", "passed", 0)]), day(1));
        client.post_json("/api/test-runs/submit", &green).await.expect("stored");
        settled(service).await;

        let policy = json!({ "runs": { "days": 5 }, "keep": { "firstFailure": false, "clusterSamples": 0 } });
        let path = format!("/api/projects/{}/retention", red["projectId"]);
        let set = client.request(Method::PATCH, &path).json(&policy);
        Answer::send(set).await.and_then(|answer| answer.success()).expect("set");
        let (ctx, now) = (service.state().background(), service.state().now());
        while !callboard_query::retention::sweep(&ctx, 0, now).await.expect("swept").is_over() {}
        settled(service).await;
        let gone = agent.call("get_run", json!({ "runId": red["runId"] })).await.unwrap_err();
        assert!(gone.contains("not found"), "{gone}");

        let told = agent.call("get_cluster_context", cluster.clone()).await.unwrap();
        assert!(told["text"].as_str().unwrap().contains("occurrences: 1 in 1 tests"), "{told:#}");
        for tool in ["get_cluster", "get_fix_plan"] {
            agent.call(tool, cluster.clone()).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
        }
    })
    .await;
}

/// More partial runs than one question looks at.
const PARTIAL_RUNS: usize = 6_000;

#[tokio::test]
async fn full_runs_are_found_among_however_many_partial_ones() {
    for_each_service(async |service| {
        let of_kind = |is_full: bool| {
            let cases = vec![attempt("pays", "passed", 0)];
            with(run("shop", "passed", cases), json!({ "isFullRun": is_full, "branch": "main" }))
        };
        let client = service.client();
        let full = client.post_json("/api/test-runs/submit", &of_kind(true)).await.expect("stored");
        settled(service).await;
        partial_copies(service, &full["runId"]).await;
        let asked = json!({ "projectId": full["projectId"], "branch": "main", "limit": 3 });
        let trend = agent(service).call("get_performance_trend", asked).await.unwrap();
        let runs: Vec<&Value> = trend["items"].as_array().unwrap().iter().map(|row| &row["runId"]).collect();
        assert_eq!(runs, [&full["runId"]]);
    })
    .await;
}

/// Adds partial runs that are like this one and newer.
async fn partial_copies(service: &Service, run: &Value) {
    let (columns, numbers) = match service.state().store().db() {
        Db::Sqlite { .. } => (
            "SELECT name FROM pragma_table_info('test_runs')",
            format!(
                "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {PARTIAL_RUNS})"
            ),
        ),
        Db::Postgres(_) => (
            "SELECT column_name::text FROM information_schema.columns \
             WHERE table_schema = current_schema() AND table_name = 'test_runs'",
            format!("WITH numbers(n) AS (SELECT * FROM generate_series(1, {PARTIAL_RUNS}))"),
        ),
    };
    let columns = texts(service, columns).await;
    let values = columns.iter().map(|column| match column.as_str() {
        "id" | "start_time" | "order_at" => format!("{column} + n"),
        "is_full" => "0".to_owned(),
        other => other.to_owned(),
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let columns = columns.join(", ");
    let insert = format!(
        "{numbers} INSERT INTO test_runs ({columns}) SELECT {values} FROM test_runs, numbers WHERE id = {run}"
    );
    let insert = sqlx::AssertSqlSafe(insert);
    match service.state().store().db() {
        Db::Sqlite { writer, .. } => {
            sqlx::query(insert)
                .execute(&mut *writer.get().await.expect("a connection"))
                .await
                .expect("written");
        }
        Db::Postgres(pool) => {
            sqlx::query(insert)
                .execute(&mut *pool.get().await.expect("a connection"))
                .await
                .expect("written");
        }
    }
}

#[tokio::test]
async fn a_lost_screenshot_is_left_out_with_its_reason() {
    for_each_service(async |service| {
        let picture =
            json!([{ "name": "screenshot", "contentType": "image/png", "originalName": "red.png" }]);
        let red = with(run("shop", "failed", Vec::new()), json!({ "testCases": [] }));
        let form = Form::new()
            .field("projectName", "shop")
            .field("testRun", red.to_string())
            .field("testCases", json!([attempt("pays", "failed", 0)]).to_string())
            .field("attach_meta_0", picture.to_string())
            .file("attach_file_0", "red.png", "image/png", b"\x89PNG\r\n\x1a\nbroken");
        let request = service.client().request(Method::POST, "/api/test-runs/upload");
        let request = request.header("content-type", Form::content_type()).body(form.into_body());
        let stored = Answer::send(request).await.and_then(|answer| answer.success()).expect("stored");
        let agent = agent(service);
        let shown = agent.call("get_run", json!({ "runId": stored["runId"] })).await.unwrap();
        let asked = json!({ "executionId": shown["cases"][0]["executionId"], "content": true });
        let broken = agent.call("get_case_screenshots", asked.clone()).await.unwrap();
        assert_eq!(broken["items"][0]["omitted"], "it cannot be read as PNG, JPEG or WebP");

        std::fs::remove_dir_all(service.database().folder().join("objects")).expect("removed");
        let lost = agent.call("get_case_screenshots", asked).await.unwrap();
        assert_eq!(lost["items"][0]["omitted"], "its file cannot be read");
    })
    .await;
}
