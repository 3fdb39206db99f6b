//! Runs that come in another order than they began: what they say of each
//! other is the same.

use callboard_test_support::{Client, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, with};
use crate::comparison::{at, get, submit, titles, work};
use crate::live;
use crate::rows::settled;

#[tokio::test]
async fn a_new_branch_is_compared_with_a_default_branch_that_was_not_counted_when_it_came() {
    for_each_service(async |service| {
        let client = service.client();
        let cases = |ships: &str| vec![attempt("pays", "passed", 0), attempt("ships", ships, 0)];
        submit(client, at(1, "main", "passed", cases("passed"))).await;
        let topic = submit(client, at(2, "topic", "failed", cases("failed"))).await;
        let insights = get(client, &format!("/api/test-runs/{topic}/insights")).await;
        assert_eq!(titles(&insights["newRegressions"]), ["ships"]);
        work(service).await;
        assert_eq!(get(client, &format!("/api/test-runs/{topic}")).await["newRegressions"], 1);
    })
    .await;
}

#[tokio::test]
async fn runs_compare_alike_in_whatever_order_they_come_and_after_one_is_deleted() {
    for_each_service(async |service| {
        let client = service.client();
        // Of the second test only some runs know.
        let runs = [
            (1, vec![attempt("pays", "passed", 0), attempt("ships", "passed", 0)]),
            (2, vec![attempt("pays", "failed", 0)]),
            (3, vec![attempt("pays", "failed", 0)]),
            (4, vec![attempt("pays", "passed", 0), attempt("ships", "failed", 0)]),
        ];
        let told = async |ids: &[i64]| {
            let mut told = Vec::new();
            for id in ids {
                let run = get(client, &format!("/api/test-runs/{id}")).await;
                told.push(json!([run["newRegressions"], run["fixedTests"]]));
            }
            json!(told)
        };
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [3, 0, 1, 2], [1, 3, 0, 2]] {
            let project = format!("in the order {order:?}");
            let mut ids = [0; 4];
            for place in order {
                let (hour, cases) = &runs[place];
                let is_red = cases.iter().any(|case| case["status"] == "failed");
                let body = at(*hour, "main", if is_red { "failed" } else { "passed" }, cases.clone());
                ids[place] = submit(client, with(body, json!({ "projectName": project }))).await;
                work(service).await;
            }
            assert_eq!(told(&ids).await, json!([[null, null], [1, 0], [0, 0], [1, 1]]), "{project}");
            let id = get(client, &format!("/api/test-runs/{}", ids[0])).await["projectId"].clone();
            let days = get(client, &format!("/api/projects/{id}/daily?from=2026-01-01&to=2026-01-01")).await;
            assert_eq!(days["items"][0]["newRegressions"], 2, "{project}");

            // Without the second run its tests broke in the third, and without the first nothing is known before that.
            for (gone, expected) in
                [(1, json!([[null, null], [1, 0], [1, 1]])), (0, json!([[null, null], [0, 1]]))]
            {
                let path = format!("/api/test-runs/{}", ids[gone]);
                let deleted = client.send_json(Method::DELETE, &path, &json!({})).await.expect("an answer");
                deleted.success().expect("deleted");
                settled(service).await;
                ids[gone] = 0;
                let left: Vec<i64> = ids.iter().copied().filter(|id| *id > 0).collect();
                assert_eq!(told(&left).await, expected, "{project} without {gone}");
            }
        }
    })
    .await;
}

/// What the rows of runs say of themselves, which is what their insights say as
/// well.
async fn compared(client: &Client, runs: &[i64]) -> Value {
    let mut told = Vec::new();
    for id in runs {
        let run = get(client, &format!("/api/test-runs/{id}")).await;
        let insights = get(client, &format!("/api/test-runs/{id}/insights")).await;
        for (own, read) in [("newRegressions", "newRegressions"), ("fixedTests", "recovered")] {
            assert_eq!(run[own], insights["counts"][read], "{own} of run {id}");
        }
        told.push(json!([run["newRegressions"], run["fixedTests"]]));
    }
    json!(told)
}

/// A run of a branch in an environment, with its tests; its place says when it
/// started.
type Sent = (&'static str, &'static str, Vec<Value>);

/// Submits runs in an order, each after what the last one left to do is done.
async fn in_order(service: &Service, runs: &[Sent], order: &[usize]) -> Vec<i64> {
    let mut ids = vec![0; runs.len()];
    for &place in order {
        let (branch, environment, cases) = &runs[place];
        let hour = u32::try_from(place + 1).expect("an hour");
        let is_red = cases.iter().any(|case| case["status"] == "failed");
        let body = at(hour, branch, if is_red { "failed" } else { "passed" }, cases.clone());
        let mut own = json!({ "projectName": format!("{} runs in the order {order:?}", runs.len()) });
        if !environment.is_empty() {
            own["environment"] = json!(environment);
        }
        ids[place] = submit(service.client(), with(body, own)).await;
        work(service).await;
    }
    ids
}

async fn delete(service: &Service, run: i64) {
    let path = format!("/api/test-runs/{run}");
    let deleted = service.client().send_json(Method::DELETE, &path, &json!({})).await.expect("an answer");
    deleted.success().expect("deleted");
    settled(service).await;
}

#[tokio::test]
async fn branches_compare_alike_in_whatever_order_the_default_branch_comes() {
    for_each_service(async |service| {
        let both = |pays: &str, ships: &str| vec![attempt("pays", pays, 0), attempt("ships", ships, 0)];
        let runs = [
            ("main", "", both("passed", "failed")),
            ("topic", "", both("failed", "skipped")),
            ("main", "", both("failed", "passed")),
            // The first of its branch, and the first of that branch which decides the second test.
            ("other", "", both("passed", "failed")),
            ("topic", "", both("failed", "failed")),
            ("main", "", both("passed", "passed")),
            ("topic", "", both("failed", "failed")),
            ("main", "", both("failed", "failed")),
            ("main", "", both("failed", "failed")),
        ];
        let expected = json!([[null, null], [1, 0], [1, 1], [1, 1], [1, 0], [0, 1], [0, 0], [2, 0], [0, 0]]);
        for order in [
            [0, 1, 2, 3, 4, 5, 6, 7, 8],
            [8, 7, 6, 5, 4, 3, 2, 1, 0],
            [6, 4, 3, 1, 8, 7, 5, 2, 0],
            [0, 2, 5, 7, 8, 1, 3, 4, 6],
            [4, 0, 8, 3, 2, 6, 1, 7, 5],
            [3, 5, 7, 2, 4, 8, 0, 6, 1],
        ] {
            let ids = in_order(service, &runs, &order).await;
            assert_eq!(compared(service.client(), &ids).await, expected, "{order:?}");
            // Without the run before them, they are compared with the first one of the default branch.
            delete(service, ids[2]).await;
            assert_eq!(compared(service.client(), &ids[3..5]).await, json!([[0, 0], [0, 0]]), "{order:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn environments_compare_alike_in_whatever_order_their_runs_come() {
    for_each_service(async |service| {
        let pays = |status: &str| vec![attempt("pays", status, 0)];
        let runs = [
            ("main", "", pays("passed")),
            ("main", "staging", pays("failed")),
            // Without an environment it is compared with all of its branch.
            ("main", "", pays("failed")),
            ("topic", "staging", pays("passed")),
            ("topic", "", pays("failed")),
            ("main", "prod", pays("passed")),
            ("topic", "prod", pays("failed")),
            ("other", "qa", pays("failed")),
        ];
        let expected = json!([[null, null], [1, 0], [0, 0], [0, 1], [1, 0], [0, 1], [1, 0], [1, 0]]);
        for order in [
            [0, 1, 2, 3, 4, 5, 6, 7],
            [7, 6, 5, 4, 3, 2, 1, 0],
            [5, 0, 2, 1, 4, 3, 7, 6],
            [2, 7, 4, 6, 0, 3, 5, 1],
            [6, 3, 1, 4, 7, 0, 2, 5],
        ] {
            let ids = in_order(service, &runs, &order).await;
            assert_eq!(compared(service.client(), &ids).await, expected, "{order:?}");
            delete(service, ids[1]).await;
            assert_eq!(compared(service.client(), &ids[2..4]).await, json!([[1, 0], [0, 1]]), "{order:?}");
        }
    })
    .await;
}

/// A run of a branch that started in this minute of a day, with one test.
fn in_minute(minute: usize, branch: &str, title: &str, status: &str) -> Value {
    let start = format!("2026-01-01T{:02}:{:02}:00.000Z", minute / 60, minute % 60);
    with(at(0, branch, status, vec![attempt(title, status, 0)]), json!({ "startTime": start }))
}

#[tokio::test]
async fn a_test_is_found_again_behind_many_runs_that_leave_it_out() {
    for_each_service(async |service| {
        let client = service.client();
        submit(client, in_minute(1, "main", "ships", "passed")).await;
        let broken = submit(client, in_minute(2, "main", "ships", "failed")).await;
        for minute in 3..45 {
            submit(client, in_minute(minute, "main", "pays", "passed")).await;
        }
        let last = submit(client, in_minute(45, "main", "ships", "failed")).await;
        work(service).await;
        assert_eq!(compared(client, &[last]).await, json!([[0, 0]]));
        delete(service, broken).await;
        assert_eq!(compared(client, &[last]).await, json!([[1, 0]]));
    })
    .await;
}

#[tokio::test]
async fn what_a_branch_did_so_long_ago_that_nobody_knows_is_not_what_the_default_branch_did() {
    for_each_service(async |service| {
        let client = service.client();
        submit(client, in_minute(1, "main", "ships", "passed")).await;
        submit(client, in_minute(2, "topic", "ships", "failed")).await;
        for minute in 4..24 {
            submit(client, in_minute(minute, "topic", "ships", "passed")).await;
        }
        let late = submit(client, in_minute(3, "topic", "ships", "failed")).await;
        work(service).await;
        assert_eq!(compared(client, &[late]).await, json!([[0, 0]]));
    })
    .await;
}

/// A run of one test whose client tells this of where it ran.
fn with_metadata(minute: usize, branch: &str, status: &str, metadata: Value) -> Value {
    with(in_minute(minute, branch, "ships", status), json!({ "metadata": metadata }))
}

#[tokio::test]
async fn branches_are_compared_with_the_default_branch_that_is_set_later() {
    for_each_service(async |service| {
        let client = service.client();
        let main = submit(client, with_metadata(1, "main", "passed", json!({}))).await;
        let develop = submit(client, with_metadata(2, "develop", "failed", json!({}))).await;
        let topic = submit(client, with_metadata(3, "topic", "failed", json!({}))).await;
        let later = submit(client, with_metadata(4, "topic", "failed", json!({}))).await;
        work(service).await;
        let runs = [main, develop, topic, later];
        let nothing = json!([null, null]);
        assert_eq!(compared(client, &runs).await, json!([nothing, nothing, nothing, [0, 0]]));
        let project = get(client, &format!("/api/test-runs/{topic}")).await["projectId"].clone();
        for (default, expected) in [
            (json!("main"), json!([nothing, [1, 0], [1, 0], [0, 0]])),
            (json!("develop"), json!([nothing, nothing, [0, 0], [0, 0]])),
            (Value::Null, json!([nothing, nothing, nothing, [0, 0]])),
        ] {
            let (path, body) = (format!("/api/projects/{project}"), json!({ "defaultBranch": default }));
            let edited = client.send_json(Method::PATCH, &path, &body).await.expect("an answer");
            edited.success().expect("edited");
            work(service).await;
            assert_eq!(compared(client, &runs).await, expected, "{default}");
        }
    })
    .await;
}

#[tokio::test]
async fn branches_are_compared_with_the_default_branch_that_a_client_names_first() {
    for_each_service(async |service| {
        let client = service.client();
        let main = submit(client, with_metadata(1, "main", "passed", json!({}))).await;
        let topic = submit(client, with_metadata(2, "topic", "failed", json!({}))).await;
        work(service).await;
        let nothing = json!([null, null]);
        assert_eq!(compared(client, &[main, topic]).await, json!([nothing, nothing]));
        let names = json!({ "scm": { "defaultBranch": "main" } });
        let other = submit(client, with_metadata(3, "other", "passed", names)).await;
        work(service).await;
        let expected = json!([nothing, [1, 0], [0, 0]]);
        assert_eq!(compared(client, &[main, topic, other]).await, expected);
    })
    .await;
}

#[tokio::test]
async fn the_default_branch_is_learned_from_a_run_that_was_set_up_without_it() {
    for_each_service(async |service| {
        let client = service.client();
        let main = submit(client, with_metadata(1, "main", "passed", json!({}))).await;
        let topic = submit(client, with_metadata(2, "topic", "failed", json!({}))).await;
        work(service).await;
        let project = get(client, &format!("/api/test-runs/{topic}")).await["project"]["name"].clone();
        let body = json!({ "projectName": project });
        let opened = client.post_json("/api/test-runs/setup", &body).await.expect("set up");
        let told =
            json!({ "setupToken": opened["setupToken"], "metadata": { "scm": { "defaultBranch": "main" } } });
        client.post_json(&format!("/api/test-runs/{}/begin", opened["runId"]), &told).await.expect("begun");
        work(service).await;
        assert_eq!(compared(client, &[main, topic]).await, json!([[null, null], [1, 0]]));
    })
    .await;
}

#[tokio::test]
async fn a_result_that_came_late_and_changed_then_is_what_the_run_behind_it_is_compared_with() {
    for_each_service(async |service| {
        let client = service.client();
        let run = |hour, status: &str, retry| {
            let name = json!({ "clientRunId": format!("client-run-of-hour-{hour}") });
            with(at(hour, "main", status, vec![attempt("pays", status, retry)]), name)
        };
        submit(client, run(1, "passed", 0)).await;
        let behind = submit(client, run(3, "failed", 0)).await;
        let regressions = async || {
            work(service).await;
            get(client, &format!("/api/test-runs/{behind}")).await["newRegressions"].clone()
        };
        assert_eq!(regressions().await, 1);
        let late = submit(client, run(2, "failed", 0)).await;
        assert_eq!(regressions().await, 0, "it was broken before");
        assert_eq!(submit(client, run(2, "passed", 1)).await, late);
        assert_eq!(regressions().await, 1, "it passed at last");
    })
    .await;
}

#[tokio::test]
async fn a_test_that_was_brought_again_before_its_last_run_was_deleted_goes_on_counting() {
    for_each_service(async |service| {
        let client = service.client();
        let first = live::start(client, json!({})).await;
        first.results(vec![attempt("pays", "passed", 0), attempt("looks", "passed", 0)]).await;
        first.finish("passed").await;
        settled(service).await;
        // Its results are stored and not counted yet when the run before it goes.
        let second = live::start(client, json!({})).await;
        second.results(vec![attempt("pays", "failed", 0)]).await;
        assert_eq!(second.shown().await["totalTests"], 1);
        delete(service, first.run).await;
        second.results(vec![attempt("ships", "passed", 0)]).await;
        second.finish("failed").await;
        settled(service).await;
        let project = client.json("/api/projects").await.expect("projects")["items"][0].clone();
        assert_eq!(project["totalTestCases"], 2);
        let tests = client.json("/api/projects/1/test-cases").await.expect("tests");
        assert_eq!(tests["items"].as_array().map(Vec::len), Some(2), "{tests}");
    })
    .await;
}
