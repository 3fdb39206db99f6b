//! Durations, folders, days and widgets: numbers against hand-counted ones.

use callboard_domain::time::{Day, Timestamp};
use callboard_test_support::{Client, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::comparison::{submit, work};
use crate::detail_pages::{page, words_after};

async fn get(client: &Client, path: &str) -> Value {
    client.json(path).await.expect("an answer")
}

/// A passed test of a file that took so long.
fn took(file: &str, title: &str, duration: i64) -> Value {
    let place = json!({ "location": format!("{file}:3:1"), "duration": duration });
    with(attempt(title, "passed", 0), place)
}

/// A run so many days ago.
fn days_ago(service: &Service, days: i64, cases: Vec<Value>) -> Value {
    let today = service.state().now().day();
    let start = Timestamp(Day(today.0 - days).start().millis() + 3_600_000).to_iso();
    let has_passed =
        |title: &Value| cases.iter().any(|one| one["title"] == *title && one["status"] == "passed");
    let status = if cases.iter().all(|one| has_passed(&one["title"])) { "passed" } else { "failed" };
    let id = format!("client-run-{days}-days-ago");
    let fields = json!({ "startTime": start, "branch": "main", "duration": 60_000, "clientRunId": id });
    with(run("shop", status, cases), fields)
}

#[tokio::test]
async fn slow_tests_and_runs_are_told_by_their_passed_executions() {
    for_each_service(async |service| {
        let client = service.client();
        let steady = [100, 200, 300, 400];
        for (at, duration) in steady.into_iter().enumerate() {
            let at = i64::try_from(at).expect("small");
            let cases = vec![
                took("tests/a.spec.ts", "grows", duration),
                took("tests/a.spec.ts", "same", 250),
                with(took("tests/a.spec.ts", "fails", 250), json!({ "status": "failed" })),
            ];
            submit(client, days_ago(service, 9 - at, cases)).await;
        }
        let slow = get(client, "/api/projects/1/slow-tests").await;
        let rows = slow["items"].as_array().expect("items");
        let by_id = |one: &Value, other: &Value| one["testCaseId"].as_i64() < other["testCaseId"].as_i64();
        assert!(rows.is_sorted_by(by_id), "equal means go by id");
        let mut told: Vec<Value> = rows
            .iter()
            .map(|row| {
                json!([
                    row["title"],
                    row["avgDuration"],
                    row["minDuration"],
                    row["maxDuration"],
                    row["p95Duration"],
                    row["runCount"],
                    row["latestDuration"],
                    row["trend"],
                ])
            })
            .collect();
        told.sort_by_key(|row| row[0].to_string());
        assert_eq!(
            json!(told),
            json!([
                ["grows", 250, 100, 400, 400, 4, 400, "slower"],
                ["same", 250, 250, 250, 250, 4, 250, "stable"],
            ]),
            "what only failed is left out"
        );
        let first = get(client, "/api/projects/1/slow-tests?limit=1").await;
        let next = first["nextCursor"].as_str().expect("a next page");
        let second = get(client, &format!("/api/projects/1/slow-tests?limit=1&cursor={next}")).await;
        assert_eq!(second["items"][0]["testCaseId"], rows[1]["testCaseId"]);
        assert_eq!(second["nextCursor"], Value::Null);

        let all = get(client, "/api/projects/1/test-cases").await;
        let mut ids: Vec<(&str, i64)> = all["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|row| (row["title"].as_str().expect("a title"), row["id"].as_i64().expect("an id")))
            .collect();
        ids.sort_by_key(|(_, id)| *id);
        let fails: Vec<&str> = vec!["fails"];
        let steady: Vec<&str> =
            ids.iter().map(|(title, _)| *title).filter(|title| *title != "fails").collect();
        let everything: Vec<&str> = ids.iter().map(|(title, _)| *title).collect();
        for (sort, expected) in [
            ("avgDuration", [steady.clone(), fails.clone()].concat()),
            ("passRate", [fails, steady].concat()),
            // Nothing is flaky: all have the same score.
            ("flakyScore", everything),
        ] {
            for limit in [1, 2, 50] {
                let mut titles = Vec::new();
                let mut cursor = String::new();
                loop {
                    let path = format!("/api/projects/1/test-cases?sort={sort}&limit={limit}{cursor}");
                    let page = get(client, &path).await;
                    let items = page["items"].as_array().expect("items");
                    titles.extend(items.iter().map(|row| row["title"].as_str().expect("a title").to_owned()));
                    let Some(next) = page["nextCursor"].as_str() else { break };
                    cursor = format!("&cursor={next}");
                }
                assert_eq!(titles, expected, "{sort} by {limit}");
            }
        }

        let chart = get(client, "/api/projects/1/performance?limit=3").await;
        let means: Vec<&Value> =
            chart["items"].as_array().expect("items").iter().map(|row| &row["avgTestDuration"]).collect();
        assert_eq!(means, [&json!(233), &json!(267), &json!(300)], "the newest three, oldest first");
        assert_eq!(chart["items"][2]["p90TestDuration"], 400);
        let next = chart["nextCursor"].as_str().expect("a next page");
        let older = get(client, &format!("/api/projects/1/performance?limit=3&cursor={next}")).await;
        assert_eq!(older["items"].as_array().expect("items").len(), 1);
        assert_eq!(older["nextCursor"], Value::Null);
        assert_eq!(get(client, "/api/projects/1/performance?branch=other").await["items"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn folders_and_days_add_up() {
    for_each_service(async |service| {
        let client = service.client();
        let retried = |title: &str| {
            let failed =
                json!({ "location": "tests/shop/pay.spec.ts:1:1", "status": "failed", "duration": 70 });
            let passed = json!({ "location": "tests/shop/pay.spec.ts:1:1", "duration": 30 });
            vec![with(attempt(title, "failed", 0), failed), with(attempt(title, "passed", 1), passed)]
        };
        let failed =
            |title: &str| with(took("tests/shop/cart.spec.ts", title, 500), json!({ "status": "failed" }));
        let waits = with(took("smoke.spec.ts", "starts", 10), json!({ "wastedTimeMs": 4 }));
        let first =
            [vec![took("tests/shop/cart.spec.ts", "adds", 100), waits.clone()], retried("pays")].concat();
        submit(client, days_ago(service, 2, first)).await;
        submit(client, days_ago(service, 0, vec![failed("adds"), waits])).await;
        let old = vec![took("tests/old/gone.spec.ts", "gone", 10)];
        submit(client, days_ago(service, 60, old)).await;
        // A resend changes nothing.
        let again = vec![took("tests/old/gone.spec.ts", "gone", 10)];
        submit(client, days_ago(service, 60, again)).await;
        work(service).await;

        let health = get(client, "/api/projects/1/spec-health").await;
        assert_eq!(
            health["items"],
            json!([
                {
                    "prefix": "smoke.spec.ts", "passRate": 1.0, "flakyRate": 0.0, "failureCount": 0,
                    "testCount": 1, "executionCount": 2, "avgDuration": 10,
                },
                {
                    "prefix": "tests/shop", "passRate": 0.6667, "flakyRate": 0.3333, "failureCount": 1,
                    "testCount": 2, "executionCount": 3, "avgDuration": 65,
                },
            ])
        );
        let files = get(client, "/api/projects/1/spec-health?folder=tests/shop").await;
        assert_eq!(
            files["items"],
            json!([
                {
                    "prefix": "tests/shop/cart.spec.ts", "passRate": 0.5, "flakyRate": 0.0, "failureCount": 1,
                    "testCount": 1, "executionCount": 2, "avgDuration": 100,
                },
                {
                    "prefix": "tests/shop/pay.spec.ts", "passRate": 1.0, "flakyRate": 1.0, "failureCount": 0,
                    "testCount": 1, "executionCount": 1, "avgDuration": 30,
                },
            ])
        );
        // A file beside all folders is its own folder; a folder is not what its name begins like.
        let alone = get(client, "/api/projects/1/spec-health?folder=smoke.spec.ts").await;
        assert_eq!(alone["items"][0], health["items"][0]);
        assert_eq!(get(client, "/api/projects/1/spec-health?folder=tests").await["items"], json!([]));
        let worst = get(client, "/api/projects/1/spec-health?sort=passRate&days=90&limit=1").await;
        assert_eq!(worst["items"][0]["prefix"], "tests/shop");
        let mut names = vec![worst["items"][0]["prefix"].clone()];
        let mut cursor = worst["nextCursor"].clone();
        while let Some(next) = cursor.as_str() {
            let path = format!("/api/projects/1/spec-health?sort=passRate&days=90&limit=1&cursor={next}");
            let page = get(client, &path).await;
            names.push(page["items"][0]["prefix"].clone());
            cursor = page["nextCursor"].clone();
        }
        assert_eq!(json!(names), json!(["tests/shop", "smoke.spec.ts", "tests/old"]));

        let days = get(client, "/api/projects/1/daily").await;
        let rows = days["items"].as_array().expect("items");
        let told: Vec<Value> = rows
            .iter()
            .map(|row| {
                json!([
                    row["runs"],
                    row["passedRuns"],
                    row["totalTests"],
                    row["passedTests"],
                    row["failedTests"],
                    row["flakyTests"],
                    row["testsDuration"],
                    row["wastedTimeMs"],
                    row["newRegressions"],
                ])
            })
            .collect();
        assert_eq!(json!(told), json!([[1, 1, 3, 3, 0, 1, 210, 4, 0], [1, 0, 2, 1, 1, 0, 510, 4, 1]]));

        let waste = get(client, "/api/analytics/wasted-time").await;
        assert_eq!(waste["totals"], json!({ "waitMs": 8, "failedMs": 70 }));
        assert_eq!(waste["byProject"][0]["project"]["name"], "shop");
        let time = get(client, "/api/analytics/ci-time-trend?days=31").await;
        assert_eq!(time["totals"], json!({ "durationMs": 120_000, "runCount": 2 }));
        assert_eq!(time["deltaRate"], 1.0, "twice as much as in the month before");
        let heat = get(client, "/api/analytics/pass-rate-heatmap?days=3").await;
        assert_eq!(heat["buckets"].as_array().expect("days").len(), 3);
        assert_eq!(heat["rows"][0]["cells"], json!([1.0, null, 0.5]));
        let broken = get(client, "/api/analytics/regression-velocity").await;
        assert_eq!(broken["totals"], json!({ "regressions": 1, "newFlaky": 0 }));
        let portfolio = get(client, "/api/analytics/portfolio").await;
        let shop = &portfolio["items"][0];
        assert_eq!(
            json!([shop["runCount"], shop["passRate"], shop["failingStreak"], shop["avgRunDuration"]]),
            json!([2, 0.8, 1, 60_000])
        );
        // What somebody tries elsewhere ends no streak of the branch the project is judged by.
        let scm = json!({ "scm": { "defaultBranch": "main" } });
        let elsewhere = json!({ "branch": "try", "clientRunId": "elsewhere", "metadata": scm });
        submit(client, with(days_ago(service, 0, vec![took("a.spec.ts", "steady", 100)]), elsewhere)).await;
        for (branch, told) in
            [("", json!([1, 4])), ("&branch=main", json!([1, 3])), ("&branch=try", json!([0, 1]))]
        {
            let portfolio = get(client, &format!("/api/analytics/portfolio?days=30{branch}")).await;
            let shop = &portfolio["items"][0];
            let runs = shop["recentRuns"].as_array().expect("runs").len();
            assert_eq!(json!([shop["failingStreak"], runs]), told, "{branch}");
        }
        let unknown = client.get("/api/analytics/moon-phase").await.expect("an answer");
        assert_eq!(unknown.json().expect("json")["code"], "route_not_found");
    })
    .await;
}

#[tokio::test]
async fn a_mean_is_the_same_wherever_it_is_told() {
    for_each_service(async |service| {
        let client = service.client();
        let run = |client_run: &str, duration: i64| {
            let id = json!({ "clientRunId": client_run, "duration": 60_000 + duration });
            with(days_ago(service, 0, vec![took("tests/shop/a.spec.ts", "adds", duration)]), id)
        };
        submit(client, run("one", 100)).await;
        submit(client, run("another", 101)).await;
        work(service).await;
        let test = get(client, "/api/projects/1/test-cases").await["items"][0].clone();
        let trend = format!("/api/test-cases/{}/stability-trend?by=day&days=1", test["id"]);
        for (path, key) in [
            ("/api/projects/1/test-cases", "avgDuration"),
            ("/api/projects/1/slow-tests", "avgDuration"),
            ("/api/projects/1/spec-health", "avgDuration"),
            (&trend, "avgDuration"),
        ] {
            assert_eq!(get(client, path).await["items"][0][key], 101, "{path}");
        }
        let portfolio = get(client, "/api/analytics/portfolio").await;
        assert_eq!(portfolio["items"][0]["avgRunDuration"], 60_101);
    })
    .await;
}

#[tokio::test]
async fn by_what_timeouts_are_judged_is_set_for_all_projects() {
    for_each_service(async |service| {
        let client = service.client();
        for day in 0..5 {
            let cases = vec![
                with(took("a.spec.ts", "half", 10_000), json!({ "timeout": 25_000 })),
                with(took("a.spec.ts", "tenth", 2_000), json!({ "timeout": 20_000 })),
            ];
            submit(client, days_ago(service, 5 - day, cases)).await;
        }
        let told = async || {
            let found = get(client, "/api/projects/1/timeout-opportunities").await;
            let rows = found["items"].as_array().expect("items").clone();
            let told = rows.iter().map(|row| json!([row["title"], row["recommendedTimeout"]]));
            json!(told.collect::<Vec<_>>())
        };
        assert_eq!(told().await, json!([["tenth", 5_000]]));
        let path = "/api/settings/timeout-hygiene";
        let before = get(client, path).await;
        assert_eq!((&before["settings"], &before["updatedAt"]), (&before["defaults"], &Value::Null));
        let set = async |body: Value| client.send_json(Method::PATCH, path, &body).await.expect("an answer");
        let changed = set(json!({ "factor": 2.5, "floorMs": 20_001, "safety": 1.5 })).await;
        let changed = changed.success().expect("set");
        assert_eq!(
            (&changed["settings"]["factor"], &changed["settings"]["minRuns"]),
            (&json!(2.5), &json!(5))
        );
        assert_eq!(told().await, json!([["half", 15_000]]));
        let field = page(client, "/settings/timeouts").await;
        assert!(field.contains(r#"name="floorMs""#) && field.contains(r#"value="20.001""#), "{field}");
        for (body, code, field) in [
            (json!({ "safety": 2, "factor": 0.9 }), "invalid_field", json!("factor")),
            (json!({ "floorMs": "long" }), "invalid_field", json!("floorMs")),
            (json!({ "floor": 1 }), "no_fields", Value::Null),
        ] {
            let refused = set(body).await;
            let told = refused.json().expect("an error");
            assert_eq!((refused.status.as_u16(), &told["code"]), (400, &json!(code)), "{told}");
            assert_eq!(told["data"]["field"], field, "{told}");
        }
        set(json!({ "factor": null, "floorMs": null })).await.success().expect("taken back");
        assert_eq!(told().await, json!([["tenth", 5_000]]));
    })
    .await;
}

#[tokio::test]
async fn generous_timeouts_are_told() {
    for_each_service(async |service| {
        let client = service.client();
        for day in 0..6 {
            let generous = with(took("a.spec.ts", "generous", 2_000), json!({ "timeout": 60_000 }));
            let generous = if day == 0 {
                with(generous, json!({ "status": "timedOut", "duration": 60_000 }))
            } else {
                generous
            };
            let slow = json!({ "timeout": 15_000, "testAnnotations": [{ "type": "slow" }] });
            let cases = vec![
                generous,
                with(took("a.spec.ts", "fits", 14_000), json!({ "timeout": 30_000 })),
                with(took("a.spec.ts", "was slow", 5_500), slow),
            ];
            submit(client, days_ago(service, 6 - day, cases)).await;
        }
        let found = get(client, "/api/projects/1/timeout-opportunities").await;
        let rows = found["items"].as_array().expect("items");
        let told: Vec<Value> = rows
            .iter()
            .map(|row| {
                json!([
                    row["title"],
                    row["kind"],
                    row["timeout"],
                    row["recommendedTimeout"],
                    row["estimatedSavingMs"],
                    row["runCount"],
                    row["failCount"],
                    row["hasSlowAnnotation"],
                ])
            })
            .collect();
        assert_eq!(
            json!(told),
            json!([
                ["generous", "oversized-timeout", 60_000, 5_000, 55_000, 5, 1, false],
                ["was slow", "stale-slow", 15_000, 11_000, 0, 6, 0, true],
            ])
        );
        // The page tells what was lost, where anything was.
        let words =
            async |path: &str| words_after(&page(client, path).await, "Timeouts that could be shorter");
        let told = words("/projects/1?tab=performance").await.replace('\u{a0}', " ");
        assert!(
            told.contains("Suggested Time lost Shop generous") && told.contains("5.0 s 55 s Shop was slow"),
            "{told}"
        );
        let cases = || vec![with(took("a.spec.ts", "generous", 2_000), json!({ "timeout": 60_000 }))];
        for day in 0..6 {
            let elsewhere = json!({ "branch": "calm", "clientRunId": format!("calm-{day}") });
            submit(client, with(days_ago(service, 6 - day, cases()), elsewhere)).await;
        }
        let calm = words("/projects/1?tab=performance&branch=calm").await.replace('\u{a0}', " ");
        assert!(
            calm.contains("None of them timed out recently")
                && calm.contains("Longest pass Suggested Shop generous"),
            "{calm}"
        );
    })
    .await;
}
