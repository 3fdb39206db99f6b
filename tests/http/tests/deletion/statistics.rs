//! What figures count while a run is hidden, after it was restored, and after
//! it was freed.

use callboard_test_support::{Client, for_each_service};
use serde_json::{Value, json};

use super::{delete, delete_now, freed, refused, restore, submitted};
use crate::builders::{attempt, run, with};
use crate::detail_pages::{page, words_after};
use crate::rows::settled;

/// What the service says about the tests of a project, without ids and times
/// of its own.
async fn statistics(client: &Client, project: &str) -> Value {
    let projects = client.json("/api/projects").await.expect("projects");
    let projects = projects["items"].as_array().expect("projects").clone();
    let found = projects.iter().find(|found| found["name"] == project).expect("the project");
    let id = &found["id"];
    let mut tests = client.json(&format!("/api/projects/{id}/test-cases?sort=title")).await.expect("tests");
    for test in tests["items"].as_array_mut().expect("tests") {
        for own in ["id", "projectId", "lastExecutionId"] {
            test.as_object_mut().expect("a test").remove(own);
        }
    }
    let mut lanes = Vec::new();
    for lane in ["branch=main", "branch=feature"] {
        let path = format!("/api/projects/{id}/test-cases?sort=title&{lane}");
        let tests = client.json(&path).await.expect("tests");
        let numbers =
            |test: &Value| json!([test["title"], test["totalRuns"], test["failed"], test["lastStatus"]]);
        lanes.push(tests["items"].as_array().expect("tests").iter().map(numbers).collect::<Vec<_>>());
    }
    json!({
        "runs": found["totalRuns"], "latest": found["latestRun"]["startTime"], "tendency": found["tendency"],
        "lastRunAt": found["lastRunAt"], "openClusters": found["openClusters"],
        "tests": tests["items"], "lanes": lanes,
    })
}

#[tokio::test]
async fn statistics_after_a_deletion_are_those_of_a_project_that_never_had_the_run() {
    for_each_service(async |service| {
        let client = service.client();
        let runs = [
            ("2026-01-01T10:00:00.000Z", "main", "passed"),
            ("2026-01-01T11:00:00.000Z", "main", "failed"),
            ("2026-01-02T10:00:00.000Z", "feature", "failed"),
            ("2026-01-03T10:00:00.000Z", "main", "passed"),
        ];
        let send = async |project: &str, (start, branch, pays): (&str, &str, &str)| {
            let mut cases =
                vec![attempt("pays", pays, 0), attempt("looks", "failed", 0), attempt("looks", "passed", 1)];
            if branch == "feature" {
                cases.push(attempt("is new", "failed", 0));
            }
            let more = json!({ "startTime": start, "metadata": { "scm": { "branch": branch } } });
            let body = with(run(project, pays, cases), more);
            let answer = client.post_json("/api/test-runs/submit", &body).await.expect("stored");
            answer["runId"].as_i64().expect("a run")
        };
        for gone in [0, 1, 2, 3] {
            let (full, never) = (format!("full {gone}"), format!("never {gone}"));
            let mut ids = Vec::new();
            for of_run in runs {
                ids.push(send(&full, of_run).await);
            }
            for (at, of_run) in runs.into_iter().enumerate() {
                if at != gone {
                    send(&never, of_run).await;
                }
            }
            let path = format!("/api/test-runs/{}", ids[gone]);
            let before = statistics(client, &full).await;
            let hidden = delete(client, &path).await.success().expect("deleted");
            settled(service).await;
            let never = statistics(client, &never).await;
            assert_eq!(statistics(client, &full).await, never, "run {gone} is hidden");
            restore(client, &hidden["receipt"]).await.success().expect("restored");
            settled(service).await;
            assert_eq!(statistics(client, &full).await, before, "run {gone} is restored");
            let answer = delete_now(client, &path).await.success().expect("deleted");
            freed(service, &answer).await;
            assert_eq!(statistics(client, &full).await, never, "run {gone} is freed");
        }
    })
    .await;
}

#[tokio::test]
async fn a_clean_up_deletes_old_runs_and_keeps_what_they_counted_for() {
    for_each_service(async |service| {
        let client = service.client();
        let now = service.state().now().to_iso();
        for _ in 0..3 {
            submitted(service, "shop", "2020-01-01T10:00:00.000Z", json!({})).await;
        }
        let recent = submitted(service, "shop", &now, json!({})).await;
        let tests = async || client.json("/api/projects/1/test-cases?sort=title").await.expect("tests");
        let before = tests().await;
        // Header and chart count all runs there ever were, the list those whose details are kept.
        let counted = async |kept: i64| {
            let project = client.json("/api/projects/1").await.expect("the project");
            assert_eq!((&project["totalRuns"], &project["keptRuns"]), (&json!(4), &json!(kept)));
            let stats = client.json("/api/admin/stats").await.expect("stats");
            assert_eq!(stats["totalRuns"], 4);
            let mut days = 0;
            for span in
                ["from=2020-01-01&to=2020-01-01".to_owned(), format!("from={}&to={}", &now[..10], &now[..10])]
            {
                let daily = client.json(&format!("/api/projects/1/daily?{span}")).await.expect("days");
                let runs = daily["items"].as_array().expect("days").iter();
                days += runs.map(|day| day["runs"].as_i64().expect("a number")).sum::<i64>();
            }
            assert_eq!(days, 4, "the chart");
            let said = words_after(&page(client, "/projects/1").await, "<main");
            assert_eq!(said.contains(&format!("details kept for {kept}")), kept < 4, "{said}");
        };
        counted(4).await;
        let clean = async |body: Value| client.post("/api/admin/cleanup", &body).await.expect("an answer");
        refused(&clean(json!({})).await, 400, "missing_field");
        refused(&clean(json!({ "olderThanDays": 0 })).await, 400, "invalid_field");
        refused(&clean(json!({ "olderThanDays": 30, "projectId": 99 })).await, 404, "project_not_found");
        let dry = clean(json!({ "olderThanDays": 30, "dryRun": true })).await.json().expect("counted");
        assert_eq!(dry, json!({ "receipt": null, "matched": 3 }));
        let hidden = clean(json!({ "olderThanDays": 30 })).await.json().expect("cleaned");
        settled(service).await;
        assert_eq!(tests().await, before);
        counted(1).await;
        restore(client, &hidden["receipt"]).await.success().expect("restored");
        settled(service).await;
        assert_eq!(tests().await, before);
        let listed = client.json("/api/test-runs").await.expect("runs");
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(4));
        counted(4).await;
        let answer = clean(json!({ "olderThanDays": 30, "now": true })).await.json().expect("cleaned");
        assert_eq!(answer["matched"], 3);
        let receipt = freed(service, &answer).await;
        assert_eq!((&receipt["reason"], &receipt["rows"]["runs"]), (&json!("purge"), &json!(3)));
        let listed = client.json("/api/test-runs").await.expect("runs");
        let ids: Vec<&Value> =
            listed["items"].as_array().expect("runs").iter().map(|run| &run["id"]).collect();
        assert_eq!(ids, [&json!(recent)]);
        assert_eq!(tests().await, before);
        counted(1).await;
    })
    .await;
}
