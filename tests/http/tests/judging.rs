//! By what tests are judged, that all lists judge alike, and what stands out.

use callboard_domain::time::Timestamp;
use callboard_test_support::{Answer, Client, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::comparison::{submit, work};
use crate::detail_pages::page;

async fn get(client: &Client, path: &str) -> Value {
    client.json(path).await.expect(path)
}

async fn patch(client: &Client, path: &str, body: Value) -> Answer {
    client.send_json(Method::PATCH, path, &body).await.expect("an answer")
}

/// A full run of the default branch, so many hours ago.
fn hours_ago(service: &Service, hours: i64, status: &str, cases: Vec<Value>) -> Value {
    let start = Timestamp(service.state().now().millis() - hours * 3_600_000).to_iso();
    let scm = json!({ "scm": { "defaultBranch": "main" } });
    let fields = json!({ "startTime": start, "branch": "main", "metadata": scm, "isFullRun": true, "duration": 60_000 });
    with(run("shop", status, cases), fields)
}

/// `count` tests that end the same way.
fn tests(count: usize, status: &str) -> Vec<Value> {
    (0..count).map(|n| attempt(&format!("{status} {n}"), status, 0)).collect()
}

#[tokio::test]
async fn thresholds_are_set_for_all_and_for_one_project() {
    for_each_service(async |service| {
        let client = service.client();
        let mut cases = tests(3, "failed");
        cases.extend(tests(3, "passed"));
        submit(client, hours_ago(service, 5, "failed", cases.clone())).await;
        let (all, own) = ("/api/settings/flakiness", "/api/projects/1/flakiness");
        let before = get(client, all).await;
        assert_eq!(before["settings"], before["defaults"]);
        assert_eq!(
            before["settings"],
            json!({ "minRuns": 1, "quarantineScore": 40, "quarantineWasteMs": 120_000, "releaseAfterPasses": 10,
                "massFailureRate": 0.8 })
        );
        for (body, field) in [
            (json!({ "massFailureRate": 2 }), "massFailureRate"),
            (json!({ "quarantineScore": "high" }), "quarantineScore"),
            (json!({ "minRuns": 5, "releaseAfterPasses": 0 }), "releaseAfterPasses"),
        ] {
            for path in [all, own] {
                let refused = patch(client, path, body.clone()).await;
                let told = refused.json().expect("JSON");
                assert_eq!((refused.status.as_u16(), &told["data"]["field"]), (400, &json!(field)), "{told}");
            }
        }
        assert_eq!(patch(client, all, json!({ "other": 1 })).await.status.as_u16(), 400);
        assert_eq!(get(client, all).await["settings"], before["settings"]);

        patch(client, all, json!({ "quarantineScore": 60, "minRuns": 3 })).await.success().expect("set");
        patch(client, own, json!({ "massFailureRate": 0.5, "minRuns": 4 })).await.success().expect("set");
        let held = get(client, own).await;
        assert_eq!((&held["effective"]["quarantineScore"], &held["effective"]["minRuns"]), (&json!(60), &json!(4)));
        assert_eq!(held["inheritedKeys"], json!(["quarantineScore", "quarantineWasteMs", "releaseAfterPasses"]));
        patch(client, own, json!({ "minRuns": null })).await.success().expect("taken back");
        assert_eq!(get(client, own).await["effective"]["minRuns"], 3);
        let audit = get(client, "/api/audit?action=settings").await;
        let changed = &audit["items"][0]["detail"];
        assert_eq!((&changed["group"], &changed["changed"]["minRuns"]), (&json!("flakiness"), &json!({ "before": 4, "after": null })));

        // Half of a run failing says nothing about its tests in this project from now on.
        let id = submit(client, hours_ago(service, 4, "failed", cases)).await;
        work(service).await;
        let gate = client.post_json(&format!("/api/test-runs/{id}/gate"), &json!({ "maxFailed": 0 })).await;
        assert_eq!(gate.expect("judged")["facts"]["massFailure"], true);
    })
    .await;
}

#[tokio::test]
async fn a_test_is_as_flaky_in_the_catalogue_as_in_the_list_of_flaky_tests() {
    for_each_service(async |service| {
        let client = service.client();
        // Without retries only the branch tells chance from work in progress.
        for at in 0..24_i64 {
            let wobbles = if at % 3 == 0 { "failed" } else { "passed" };
            let mut cases = vec![attempt("wobbles", wobbles, 0), attempt("stands", "passed", 0)];
            cases.extend(tests(8, "passed"));
            submit(client, hours_ago(service, 48 - at, wobbles, cases)).await;
        }
        let listed = get(client, "/api/projects/1/flaky-tests").await;
        let (score, id) = (&listed["items"][0]["flakyScore"], &listed["items"][0]["testCaseId"]);
        assert!(score.as_i64().expect("a score") > 40, "{listed}");
        let catalogue = get(client, "/api/projects/1/test-cases?sort=flakyScore&limit=4").await;
        assert_eq!((&catalogue["items"][0]["id"], &catalogue["items"][0]["flakyScore"]), (id, score));
        assert_eq!(get(client, &format!("/api/test-cases/{id}")).await["flakyScore"], *score);
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let page =
                get(client, &format!("/api/projects/1/test-cases?sort=flakyScore&limit=4{cursor}")).await;
            seen.extend(
                page["items"]
                    .as_array()
                    .expect("items")
                    .iter()
                    .map(|item| item["id"].as_i64().expect("an id")),
            );
            let Some(next) = page["nextCursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!((seen.len(), json!(seen[0])), (10, id.clone()), "each test once: {seen:?}");
        assert!(seen[1..].is_sorted(), "the others by id");

        patch(client, "/api/projects/1/flakiness", json!({ "minRuns": 30 })).await.success().expect("set");
        assert_eq!(
            get(client, "/api/projects/1/flaky-tests").await["items"],
            json!([]),
            "too few runs to call it so"
        );
    })
    .await;
}

#[tokio::test]
async fn what_stands_out_and_what_fails_is_told_across_projects() {
    for_each_service(async |service| {
        let client = service.client();
        for at in 0..8_i64 {
            submit(client, hours_ago(service, 24 * 40 + at, "passed", tests(30, "passed"))).await;
            let mut worse = tests(20, "passed");
            worse.extend(tests(10, "failed"));
            submit(client, hours_ago(service, 24 * 3 - at, "failed", worse)).await;
        }
        work(service).await;
        let found = get(client, "/api/analytics/insights?project=1").await;
        let mut told: Vec<(&str, &str)> = found["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|item| {
                (item["ruleId"].as_str().expect("a rule"), item["severity"].as_str().expect("a word"))
            })
            .collect();
        told.sort_unstable();
        assert_eq!(told, [("failing-streak", "critical"), ("pass-rate-drop", "critical")], "{found}");
        assert!(found["items"][0]["to"].as_str().expect("a page").ends_with("/projects/1"), "{found}");
        assert_eq!(
            get(client, "/api/analytics/insights?days=366").await["items"].as_array().map(Vec::len),
            Some(1)
        );

        for (days, has_before) in [(30, true), (90, false)] {
            let html = page(client, &format!("/analytics?days={days}")).await;
            assert_eq!(html.contains(">Change</th>"), has_before, "{days} days: {html}");
        }

        let landscape = get(client, "/api/analytics/cluster-landscape").await;
        let open = landscape["totalOpen"].as_i64().expect("a count");
        assert!(open > 0);
        assert_eq!(landscape["byErrorType"], json!([{ "errorType": "unknown", "count": open }]));
        let worst = &landscape["clusters"][0];
        assert_eq!(worst["project"]["id"], 1);
        let path = format!("/api/failure-clusters/{}/status", worst["id"]);
        patch(client, &path, json!({ "status": "resolved" })).await.success().expect("resolved");
        let after = get(client, "/api/analytics/cluster-landscape").await;
        assert_eq!((after["totalOpen"].as_i64(), &after["resolvedInPeriod"]), (Some(open - 1), &json!(1)));
        let overview = get(client, "/api/projects/overview").await;
        assert_eq!(overview["items"][0]["openClusters"], open - 1);
        assert_eq!(get(client, "/api/analytics/portfolio").await["items"][0]["openClusters"], open - 1);

        let test = get(client, "/api/projects/1/test-cases").await["items"][0]["id"].clone();
        client
            .post_json("/api/projects/1/quarantine", &json!({ "testCaseId": test }))
            .await
            .expect("set aside");
        assert_eq!(get(client, "/api/projects/1").await["quarantinedTests"], 1);
        assert_eq!(get(client, "/api/projects").await["items"][0]["quarantinedTests"], 1);
    })
    .await;
}

#[tokio::test]
async fn a_test_in_many_browser_projects_has_regressions_in_all_of_them() {
    const BROWSERS: usize = 20;
    for_each_service(async |service| {
        let client = service.client();
        let cases = |status: &str| {
            let case = |n: usize| {
                with(attempt("pays", status, 0), json!({ "browserProject": format!("browser {n:02}") }))
            };
            (0..BROWSERS).map(case).collect()
        };
        submit(client, hours_ago(service, 48, "passed", cases("passed"))).await;
        let red = submit(client, hours_ago(service, 24, "failed", cases("failed"))).await;
        let list = format!("/api/test-runs/{red}/executions?isNewRegression=true&limit=200");
        let found = get(client, &list).await;
        assert_eq!(found["items"].as_array().map(Vec::len), Some(BROWSERS));
        let fixed = submit(client, hours_ago(service, 12, "passed", cases("passed"))).await;
        let found = get(client, &format!("/api/test-runs/{fixed}/executions?isFixed=true&limit=200")).await;
        assert_eq!(found["items"].as_array().map(Vec::len), Some(BROWSERS));
    })
    .await;
}
