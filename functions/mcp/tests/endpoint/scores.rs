//! Flaky and slow tests, folders and runs over time: what the tools say about
//! hand-counted histories.

use std::time::{SystemTime, UNIX_EPOCH};

use callboard_domain::time::Timestamp;
use serde_json::{Value, json};

use crate::support::{Service, run, test};

/// So many minutes before now.
fn minutes_ago(minutes: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    Timestamp(i64::try_from(now).unwrap() - minutes * 60_000).to_iso()
}

/// Five runs within the last minutes: `wobbles` passes on a retry in two of
/// them, `even` and `odd` pass always and take as long as each other.
async fn history() -> (Service, i64) {
    let service = Service::start().await;
    let mut project = 0;
    for number in 0..5_u32 {
        let mut tests = Vec::new();
        if number % 2 == 1 {
            tests.push(test("wobbles", "failed"));
        }
        let mut last = test("wobbles", "passed");
        last["retries"] = json!(number % 2);
        tests.push(last);
        tests.extend(["even", "odd"].map(|title| {
            let mut steady = test(title, "passed");
            steady["duration"] = json!(2_000 + 100 * number);
            steady["location"] = json!("checks/deep/down/steady.spec.ts:1:1");
            steady
        }));
        let mut run = run("shop", 0, &tests);
        run["status"] = json!("passed");
        run["branch"] = json!("main");
        run["startTime"] = json!(minutes_ago(i64::from(10 - number)));
        run["isFullRun"] = json!(number != 2);
        project = service.submit(run).await.project.get();
    }
    (service, project)
}

async fn call(service: &Service, tool: &str, arguments: Value) -> Value {
    service.call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}"))
}

#[tokio::test]
async fn flaky_tests_are_told_with_their_evidence() {
    let (service, project) = history().await;
    let found = call(&service, "list_flaky_tests", json!({"projectId": project})).await;
    let items = found["items"].as_array().unwrap();
    assert_eq!(items.len(), 1);
    let mut row = items[0].clone();
    let case = row["testCaseId"].clone();
    // Equals the 0.9974 of a slow implementation of the same filter.
    assert_eq!(row["flakyScore"].take(), 100);
    row.as_object_mut().unwrap().remove("flakyScore");
    assert_eq!(
        row,
        json!({
            "testCaseId": case, "title": "wobbles", "filePath": "tests/shop.spec.ts", "failureRate": 0.0,
            "runCount": 5, "failCount": 0, "retryPassCount": 2, "alternationCount": 0,
            "impact": 18, "wastedDuration": 2400, "avgFailedDuration": 1200,
            "url": format!("http://localhost:3000/test-cases/{case}"),
        })
    );
    assert_eq!(found["nextCursor"], Value::Null);
    let newest = call(&service, "list_flaky_tests", json!({"project": project, "runs": 1})).await;
    assert_eq!(newest, json!({"items": [], "nextCursor": null}));
    let missing = service.call("list_flaky_tests", json!({"projectId": 99})).await;
    assert!(missing.unwrap_err().starts_with("Project 99 not found"));
}

#[tokio::test]
async fn slow_tests_with_equal_means_are_read_to_the_last() {
    let (service, project) = history().await;
    let first = call(&service, "get_slow_tests", json!({"projectId": project, "pageSize": 1})).await;
    let cursor = first["nextCursor"].clone();
    let second =
        call(&service, "get_slow_tests", json!({"projectId": project, "pageSize": 1, "cursor": cursor}))
            .await;
    let told = |page: &Value| {
        let row = &page["items"][0];
        json!([
            row["title"],
            row["avgDuration"],
            row["minDuration"],
            row["maxDuration"],
            row["runCount"],
            row["trend"]
        ])
    };
    assert_eq!(told(&first), json!(["even", 2200, 2000, 2400, 5, "slower"]));
    assert_eq!(told(&second), json!(["odd", 2200, 2000, 2400, 5, "slower"]));
    let newest = call(&service, "get_slow_tests", json!({"projectId": project, "runs": 2})).await;
    assert_eq!(newest["items"][0]["avgDuration"], 2350);
    assert_eq!(newest["items"][0]["latestDuration"], 2400);
}

#[tokio::test]
async fn folders_are_told_by_their_first_two_segments() {
    let (service, project) = history().await;
    let health = call(&service, "get_spec_health", json!({"projectId": project, "days": 2})).await;
    assert_eq!(
        health,
        json!({
            "items": [
                {
                    "prefix": "checks/deep", "passRate": 1.0, "flakyRate": 0.0, "failureCount": 0,
                    "testCount": 2, "executionCount": 10, "avgDuration": 2200,
                },
                {
                    "prefix": "tests", "passRate": 1.0, "flakyRate": 0.4, "failureCount": 0,
                    "testCount": 1, "executionCount": 5, "avgDuration": 1200,
                },
            ],
            "nextCursor": null,
        })
    );
}

#[tokio::test]
async fn only_full_runs_are_in_the_trend() {
    let (service, project) = history().await;
    let trend = call(&service, "get_performance_trend", json!({"projectId": project, "limit": 3})).await;
    let rows = trend["items"].as_array().unwrap();
    let means: Vec<&Value> = rows.iter().map(|row| &row["avgTestDuration"]).collect();
    // (1,200 + 2 · duration) / 3 of the second, fourth and fifth run.
    assert_eq!(means, [&json!(1800), &json!(1933), &json!(2000)]);
    assert!(rows.iter().all(|row| row["isFullRun"] == true));
    let elsewhere = json!({"projectId": project, "branch": "other"});
    assert_eq!(call(&service, "get_performance_trend", elsewhere).await["items"], json!([]));
}
