//! Failures by cause: how they come together, what people do with them, and
//! what later results change.

use std::collections::BTreeSet;

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::{ProjectId, RunId};
use callboard_test_support::accounts::for_each_secured_service;
use callboard_test_support::{Client, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, passing, run, with};
use crate::live::{context, picked};

/// A failing click on a button.
fn click(title: &str, button: &str) -> Value {
    let error = format!(
        "TimeoutError: locator.click: Timeout 5000ms exceeded.\nCall log:\n  - waiting for getByTestId('{button}')\n\n    \
         at tests/shop.spec.ts:9:3"
    );
    with(attempt(title, "failed", 0), json!({ "error": error }))
}

/// A submission of a run that began `minutes` from now.
fn at(service: &Service, minutes: i64, cases: Vec<Value>, more: Value) -> Value {
    let start = callboard_domain::time::Timestamp(service.state().now().millis() + minutes * 60_000);
    with(run("shop", "failed", cases), with(json!({ "startTime": start.to_iso() }), more))
}

async fn submit(client: &Client, submission: &Value) -> (i64, i64) {
    let stored = client.post_json("/api/test-runs/submit", submission).await.expect("stored");
    let number = |name: &str| stored[name].as_i64().expect("an id");
    (number("projectId"), number("runId"))
}

async fn get(client: &Client, path: &str) -> Value {
    client.json(path).await.expect(path)
}

async fn write(client: &Client, method: Method, path: &str, body: Value) -> Value {
    client.send_json(method, path, &body).await.and_then(|answer| answer.success()).expect(path)
}

async fn clusters(client: &Client, project: i64) -> Vec<Value> {
    let list = get(client, &format!("/api/projects/{project}/failure-clusters?sort=id")).await;
    list["items"].as_array().expect("clusters").clone()
}

/// Ends the run for the jobs, too.
async fn complete(service: &Service, (project, run): (i64, i64)) {
    let (context, now) = (context(service), service.state().now());
    let checked = callboard_ingest::check_run(&context, ProjectId(project), RunId(run), now);
    checked.await.expect("checked");
}

#[tokio::test]
async fn failures_of_one_cause_come_together_and_a_resend_adds_nothing() {
    for_each_service(async |service| {
        let client = service.client();
        let mut cases = vec![click("pays", "pay"), click("pays twice", "pay"), click("looks", "menu")];
        cases.push(json!({ "title": "breaks", "status": "failed", "duration": 5, "location": "tests/a.spec.ts:1:1" }));
        cases.extend(passing(3));
        let first = at(service, -60, cases, json!({ "clientRunId": "client-run-first" }));
        let (project, run) = submit(client, &first).await;
        submit(client, &first).await;
        let found = clusters(client, project).await;
        assert_eq!(found.len(), 2);
        let pay = found.iter().find(|one| one["selector"] == "testid=pay").expect("the button");
        assert_eq!(
            picked(pay, ["occurrences", "affectedTests", "errorType", "status", "lastSeenStatus", "firstSeenRunId"]),
            [json!(2), json!(2), json!("timeout"), json!("open"), json!("failed"), json!(run)]
        );
        assert_eq!(pay["signature"], "Could not click getByTestId('pay'): not found");

        let groups = get(client, &format!("/api/test-runs/{run}/failure-groups")).await;
        assert_eq!(groups["failedTests"], 4);
        let shown: Vec<_> = groups["items"].as_array().expect("groups").iter().map(|group| picked(group, ["id", "count", "isNew"])).collect();
        assert_eq!(shown[0], [pay["id"].clone(), json!(2), json!(true)]);
        assert_eq!((shown.len(), &shown[2]), (3, &[Value::Null, json!(1), json!(false)]));
        assert_eq!(groups["items"][0]["cases"].as_array().map(Vec::len), Some(2));
        let one_by_one = get(client, &format!("/api/test-runs/{run}/failure-groups?limit=1")).await;
        let mut seen = vec![one_by_one["items"][0]["id"].clone()];
        let mut cursor = one_by_one["nextCursor"].clone();
        while let Some(next) = cursor.as_str() {
            let page = get(client, &format!("/api/test-runs/{run}/failure-groups?limit=1&cursor={next}")).await;
            seen.extend(page["items"].as_array().expect("groups").iter().map(|group| group["id"].clone()));
            cursor = page["nextCursor"].clone();
        }
        assert_eq!(seen, shown.iter().map(|group| group[0].clone()).collect::<Vec<_>>());

        let id = &pay["id"];
        let rows = get(client, &format!("/api/test-runs/{run}/executions?clusterId={id}")).await;
        assert_eq!(rows["items"].as_array().map(Vec::len), Some(2));
        assert!(rows["items"].as_array().expect("rows").iter().all(|row| row["clusterId"] == *id));
        let detail = get(client, &format!("/api/test-run-cases/{}", rows["items"][0]["id"])).await;
        assert_eq!(picked(&detail["cluster"], ["id", "isNew", "sameRunCount"]), [id.clone(), json!(true), json!(2)]);
        let test = get(client, &format!("/api/test-cases/{}", rows["items"][0]["testCaseId"])).await;
        assert_eq!(test["clusters"][0]["id"], *id);
        complete(service, (project, run)).await;
        // Two, but a run without a baseline has nothing to be new against.
        assert_eq!(get(client, &format!("/api/test-runs/{run}")).await["newClusters"], Value::Null);
        assert_eq!(get(client, &format!("/api/projects/{project}")).await["openClusters"], 2);

        // The same again in another run, in another version's words.
        let error = "Error: locator.click: Timeout 400ms exceeded.\nCall log:\n  - waiting for getByTestId('menu')";
        let second = at(service, -30, vec![with(attempt("looks", "failed", 0), json!({ "error": error }))], json!({}));
        let (_, second) = submit(client, &second).await;
        complete(service, (project, second)).await;
        assert_eq!(get(client, &format!("/api/test-runs/{second}")).await["newClusters"], 1);
        let page = get(client, &format!("/api/failure-clusters/{id}")).await;
        assert_eq!(page["affectedTestCases"].as_array().map(Vec::len), Some(2));
        assert_eq!(page["trend"][0]["occurrences"], 2);
        assert!(page["groupedBy"].as_array().expect("fields").contains(&json!({ "field": "locator", "value": "testid=pay" })));
        assert!(page["sampleError"].as_str().expect("a sample").contains("waiting for getByTestId('pay')"));
    })
    .await;
}

#[tokio::test]
async fn failures_on_one_slot_are_on_one_worker_however_often_its_process_was_replaced() {
    for_each_service(async |service| {
        let client = service.client();
        let correlated = async |name: &str, slot_of: fn(usize) -> usize| {
            let cases = (0..40).map(|at| {
                let (fails, slot) = (at % 4 == 1, slot_of(at));
                // Playwright replaces the process after each failure.
                let worker = if fails { 10 + at } else { slot };
                let case = if fails {
                    click(&format!("test {at}"), "pay")
                } else {
                    attempt(&format!("test {at}"), "passed", 0)
                };
                with(case, json!({ "workerIndex": worker, "parallelIndex": slot }))
            });
            let (_, run) = submit(client, &run(name, "failed", cases.collect())).await;
            let groups = get(client, &format!("/api/test-runs/{run}/failure-groups")).await;
            assert_eq!(groups["items"][0]["count"], json!(10), "{groups}");
            groups["items"][0]["workerCorrelated"] == json!(true)
        };
        assert!(correlated("one slot", |at| at % 2).await);
        assert!(!correlated("two slots", |at| (at / 4) % 2).await);
    })
    .await;
}

#[tokio::test]
async fn an_attempt_that_comes_later_moves_the_execution_to_its_cause() {
    for_each_service(async |service| {
        let client = service.client();
        let start = |cases| at(service, -60, cases, json!({ "clientRunId": "client-run-retried" }));
        let retry = |case: Value, retry: u32| with(case, json!({ "retries": retry }));
        let (project, run) = submit(client, &start(vec![click("pays", "pay")])).await;
        let before = clusters(client, project).await;
        submit(client, &start(vec![retry(click("pays", "menu"), 1)])).await;
        let after = clusters(client, project).await;
        assert_eq!((before.len(), after.len()), (1, 1));
        assert_eq!(
            (&before[0]["selector"], &after[0]["selector"]),
            (&json!("testid=pay"), &json!("testid=menu"))
        );
        // Passed at last: the failure before still says why it is flaky.
        submit(client, &start(vec![attempt("pays", "passed", 2)])).await;
        let groups = get(client, &format!("/api/test-runs/{run}/failure-groups")).await;
        assert_eq!(
            picked(&groups["items"][0], ["id", "count", "flaky"]),
            [after[0]["id"].clone(), json!(1), json!(true)]
        );
        assert_eq!(clusters(client, project).await[0]["lastSeenStatus"], "flaky");
        assert_eq!(get(client, &format!("/api/projects/{project}")).await["openClusters"], 1);
    })
    .await;
}

#[tokio::test]
async fn a_resolved_cluster_comes_back_with_a_later_run_and_not_with_a_late_one() {
    for_each_service(async |service| {
        let client = service.client();
        let (project, _) = submit(client, &at(service, -60, vec![click("pays", "pay")], json!({}))).await;
        let cluster = clusters(client, project).await[0].clone();
        let path = format!("/api/failure-clusters/{}", cluster["id"]);
        let status = format!("{path}/status");
        let body = json!({ "status": "resolved", "note": "fixed in 9fceb02" });
        let resolved = write(client, Method::PATCH, &status, body).await["cluster"].clone();
        assert_eq!(picked(&resolved, ["status", "note"]), [json!("resolved"), json!("fixed in 9fceb02")]);
        assert!(
            resolved["fixLandedAt"].is_string() && resolved["timeToResolutionMs"].as_i64() >= Some(3_600_000)
        );
        assert_eq!(get(client, &format!("/api/projects/{project}")).await["openClusters"], 0);
        // The same again changes nothing.
        let again =
            write(client, Method::PATCH, &status, json!({ "status": "resolved" })).await["cluster"].clone();
        assert_eq!(again, resolved);

        // A run that began before, and comes now.
        submit(client, &at(service, -30, vec![click("pays", "pay")], json!({}))).await;
        let late = get(client, &path).await;
        assert_eq!(picked(&late, ["status", "occurrences"]), [json!("resolved"), json!(2)]);
        // A run that began after.
        let later = at(service, 30, vec![click("pays", "pay")], json!({}));
        submit(client, &later).await;
        let back = get(client, &path).await;
        assert_eq!(
            picked(&back, ["status", "occurrences", "fixVerification", "note", "fixLandedAt"]),
            [json!("open"), json!(3), json!("regressed"), json!("fixed in 9fceb02"), Value::Null]
        );
        assert_eq!(get(client, &format!("/api/projects/{project}")).await["openClusters"], 1);
        // What is ignored stays so, and its note can be cleared.
        write(client, Method::PATCH, &status, json!({ "status": "ignored", "triageNote": null })).await;
        submit(client, &at(service, 60, vec![click("pays", "pay")], json!({}))).await;
        assert_eq!(picked(&get(client, &path).await, ["status", "note"]), [json!("ignored"), Value::Null]);
        let list = get(client, &format!("/api/projects/{project}/failure-clusters?status=open")).await;
        assert_eq!(
            (list["items"].as_array().map(Vec::len), &list["counts"]["ignored"]),
            (Some(0), &json!(1))
        );
    })
    .await;
}

#[tokio::test]
async fn clean_runs_prove_a_repair_and_a_failure_disproves_it() {
    for_each_service(async |service| {
        let client = service.client();
        for n in 0..5 {
            submit(client, &at(service, n - 200, vec![click("pays", "pay")], json!({}))).await;
        }
        let clean = |n: i64| {
            let commit = format!("{n:040x}");
            with(
                at(service, n - 100, vec![attempt("pays", "passed", 0)], json!({ "commit": commit })),
                json!({ "status": "passed" }),
            )
        };
        let first = submit(client, &clean(0)).await;
        complete(service, first).await;
        let path = format!("/api/failure-clusters/{}", clusters(client, first.0).await[0]["id"]);
        let shown = get(client, &path).await;
        assert_eq!(
            picked(&shown, ["status", "fixVerification", "fixLandedRunId"]),
            [json!("open"), Value::Null, Value::Null]
        );
        for n in 1..3 {
            let next = submit(client, &clean(n)).await;
            complete(service, next).await;
            complete(service, next).await;
        }
        let shown = get(client, &path).await;
        assert_eq!(
            picked(&shown, ["status", "fixVerification", "fixLandedRunId"]),
            [json!("open"), json!("stopped-failing"), json!(first.1)]
        );
        submit(client, &at(service, -10, vec![click("pays", "pay")], json!({}))).await;
        let shown = get(client, &path).await;
        assert_eq!(
            picked(&shown, ["status", "fixVerification", "fixLandedRunId"]),
            [json!("open"), json!("regressed"), Value::Null]
        );
    })
    .await;
}

#[tokio::test]
async fn what_passed_before_it_failed_elsewhere_proves_no_repair() {
    for_each_service(async |service| {
        let client = service.client();
        let sent = async |minute: i64, place: &str, is_red: bool| {
            let (case, status) = match is_red {
                true => (click("pays", "pay"), "failed"),
                false => (attempt("pays", "passed", 0), "passed"),
            };
            let more = json!({ "environment": place, "status": status });
            let ids = submit(client, &at(service, minute, vec![case], more)).await;
            complete(service, ids).await;
            ids
        };
        for n in 0..5 {
            sent(n - 300, "production", true).await;
        }
        let (project, _) = sent(-250, "production", false).await;
        let path = format!("/api/failure-clusters/{}", clusters(client, project).await[0]["id"]);
        for n in 1..6 {
            sent(n - 250, "production", false).await;
        }
        assert_eq!(get(client, &path).await["fixVerification"], "stopped-failing");
        sent(-200, "staging", true).await;
        assert_eq!(get(client, &path).await["fixVerification"], "regressed");
        sent(-190, "production", false).await;
        let shown = get(client, &path).await;
        assert_eq!(picked(&shown, ["fixVerification", "fixLandedAt"]), [json!("regressed"), Value::Null]);
    })
    .await;
}

#[tokio::test]
async fn a_repair_is_proven_by_more_runs_than_are_known_one_by_one() {
    for_each_service(async |service| {
        let client = service.client();
        let sent = async |minute: i64, is_red: bool| {
            let (case, status) = match is_red {
                true => (click("pays", "pay"), "failed"),
                false => (attempt("pays", "passed", 0), "passed"),
            };
            submit(client, &at(service, minute, vec![case], json!({ "status": status }))).await
        };
        // Three in ten: it takes more clean runs than the sixteen newest, whose times are known.
        for n in 0..10 {
            sent(n - 300, n % 4 == 1).await;
        }
        let mut ids = (0, 0);
        let mut needed = 0;
        for n in 0..40 {
            ids = sent(n - 200, false).await;
            complete(service, ids).await;
            needed += 1;
            let path = format!("/api/failure-clusters/{}", clusters(client, ids.0).await[0]["id"]);
            if get(client, &path).await["fixVerification"] == "stopped-failing" {
                break;
            }
        }
        assert!((17..40).contains(&needed), "{needed} clean runs, the last of them {ids:?}");
    })
    .await;
}

#[tokio::test]
async fn a_test_that_was_repeated_proves_as_much_as_it_passed() {
    for_each_service(async |service| {
        let client = service.client();
        for (times, is_told) in [(1, true), (2, true), (2, false)] {
            let project = format!("repeated {times} {is_told}");
            let sent = async |minute: i64, cases: Vec<Value>, status: &str| {
                let more = json!({ "projectName": project, "status": status });
                submit(client, &at(service, minute, cases, more)).await
            };
            let mut ids = (0, 0);
            for night in 0..5 {
                ids = sent(night - 200, vec![click("pays", "pay")], "failed").await;
            }
            let cluster = clusters(client, ids.0).await[0]["id"].clone();
            let path = format!("/api/failure-clusters/{cluster}");
            let plan = get(client, &format!("{path}/fix-plan")).await;
            let command = plan["verify"]["command"].as_str().expect("a command");
            assert!(command.contains("--repeat-each=2 "), "{command}");
            let began = service.state().now().millis() - 100 * 60_000;
            let repetition = |index: i64| {
                let dated = json!({ "startedAt": began + index * 1000 });
                let told = if is_told { json!({ "repeatEachIndex": index }) } else { json!({}) };
                with(attempt("pays", "passed", 0), with(dated, told))
            };
            let clean = sent(-100, (0..times).map(repetition).collect(), "passed").await;
            complete(service, clean).await;
            let verdict = if times == 2 { json!("stopped-failing") } else { Value::Null };
            assert_eq!(get(client, &path).await["fixVerification"], verdict, "{project}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_repaired_cluster_that_takes_over_a_failing_one_fails() {
    for_each_service(async |service| {
        let client = service.client();
        let both = || vec![click("pays", "pay"), click("pays twice", "pay")];
        let (project, _) = submit(client, &at(service, -60, both(), json!({}))).await;
        let old = clusters(client, project).await[0]["id"].clone();
        let path = format!("/api/failure-clusters/{old}");
        let tests = get(client, &format!("{path}/test-cases?sort=title")).await;
        let test = tests["items"][0]["testCaseId"].clone();
        let title = tests["items"][0]["title"].as_str().expect("a title").to_owned();
        let taken =
            client.post_json(&format!("{path}/extract-cases"), &json!({ "testCaseIds": [test] })).await;
        let new = taken.expect("taken out")["cluster"]["id"].clone();
        let days = async || get(client, &path).await["trend"][0]["occurrences"].clone();
        assert_eq!(days().await, 1, "what was taken out is not counted twice");
        write(client, Method::PATCH, &format!("{path}/status"), json!({ "status": "resolved" })).await;
        submit(client, &at(service, 5, vec![click(&title, "pay")], json!({}))).await;
        assert_eq!(get(client, &path).await["status"], "resolved");
        let merge = format!("/api/failure-clusters/{new}/merge");
        let merged = client.post_json(&merge, &json!({ "intoId": old })).await.expect("merged");
        assert_eq!(
            picked(&merged["cluster"], ["status", "occurrences", "fixLandedAt"]),
            [json!("open"), json!(3), Value::Null]
        );
        assert_eq!(get(client, &format!("/api/projects/{project}")).await["openClusters"], 1);
    })
    .await;
}

#[tokio::test]
async fn tests_that_are_taken_out_stay_out() {
    for_each_service(async |service| {
        let client = service.client();
        let failing = || vec![click("pays", "pay"), click("pays twice", "pay"), click("pays later", "pay")];
        let (project, run) = submit(client, &at(service, -60, failing(), json!({}))).await;
        let old = clusters(client, project).await[0]["id"].clone();
        let tests = get(client, &format!("/api/failure-clusters/{old}/test-cases")).await;
        let tests: Vec<i64> = tests["items"]
            .as_array()
            .expect("tests")
            .iter()
            .filter_map(|test| test["testCaseId"].as_i64())
            .collect();
        let path = format!("/api/failure-clusters/{old}/extract-cases");
        let nobody = client.post(&path, &json!({ "testCaseIds": [999_999] })).await.expect("an answer");
        assert_eq!((nobody.status.as_u16(), clusters(client, project).await.len()), (404, 1));
        let answer = client
            .post_json(&path, &json!({ "testCaseIds": [tests[0]], "note": "another one" }))
            .await
            .expect("taken out");
        assert_eq!(picked(&answer, ["extractedCount", "remainingOccurrences"]), [json!(1), json!(2)]);
        let new = answer["cluster"]["id"].clone();
        assert_eq!(
            picked(&answer["cluster"], ["occurrences", "affectedTests", "note"]),
            [json!(1), json!(1), json!("another one")]
        );
        submit(client, &at(service, -30, failing(), json!({}))).await;
        let counts = async |id: &Value| {
            get(client, &format!("/api/failure-clusters/{id}")).await["occurrences"].clone()
        };
        assert_eq!((counts(&old).await, counts(&new).await), (json!(4), json!(2)));
        let groups = get(client, &format!("/api/test-runs/{run}/failure-groups")).await;
        assert_eq!(groups["items"].as_array().map(Vec::len), Some(2));
        assert_eq!(get(client, &format!("/api/projects/{project}")).await["openClusters"], 2);

        // And back: the id of the one that ended leads to the one that stayed.
        let merged = client
            .post_json(&format!("/api/failure-clusters/{new}/merge"), &json!({ "intoId": old }))
            .await
            .expect("merged");
        assert_eq!(
            picked(&merged["cluster"], ["id", "occurrences", "affectedTests"]),
            [old.clone(), json!(6), json!(3)]
        );
        assert_eq!(get(client, &format!("/api/failure-clusters/{new}")).await["id"], old);
        let rows = get(client, &format!("/api/test-runs/{run}/executions?clusterId={new}")).await;
        assert_eq!(rows["items"].as_array().map(Vec::len), Some(3));
        let unknown = client.get(&format!("/api/test-runs/{run}/executions?clusterId=999999")).await;
        assert_eq!(unknown.expect("an answer").status.as_u16(), 404);
        submit(client, &at(service, -20, failing(), json!({}))).await;
        assert_eq!(counts(&old).await, json!(9));
        assert_eq!(clusters(client, project).await.len(), 1);
        let rows = get(client, &format!("/api/failure-clusters/{old}/occurrences?limit=200")).await;
        assert_eq!(rows["items"].as_array().map(Vec::len), Some(9));
        let same = client
            .post(&format!("/api/failure-clusters/{old}/merge"), &json!({ "intoId": old }))
            .await
            .expect("an answer");
        assert_eq!(same.status.as_u16(), 400);
        assert_eq!(get(client, &format!("/api/projects/{project}")).await["openClusters"], 1);

        // Nothing is left of a cluster whose tests were all taken out: it is neither listed nor found.
        let all = client.post_json(&path, &json!({ "testCaseIds": tests })).await.expect("taken out");
        assert_eq!(all["remainingOccurrences"], 0);
        for question in ["pay".to_owned(), format!("%23{old}")] {
            let found = get(client, &format!("/api/search?kinds=clusters&q={question}")).await;
            let found = found["clusters"].as_array().expect("clusters");
            assert!(found.iter().all(|one| one["id"] != old), "{question}: {found:?}");
        }
        let found = get(client, "/api/search?kinds=clusters&q=pay").await;
        assert_eq!(found["clusters"].as_array().map(Vec::len), Some(1), "{found}");
        assert_eq!(found["clusters"][0]["id"], all["cluster"]["id"]);
    })
    .await;
}

#[tokio::test]
async fn parallel_runs_make_one_cluster_of_a_new_cause() {
    for_each_service(async |service| {
        let client = service.client();
        submit(client, &at(service, -300, passing(1), json!({}))).await;
        let calls = (0..24).map(|n| {
            let cases = (0..10)
                .map(|test| {
                    click(
                        &format!("test {}", (test + n) % 10),
                        &format!("button-{}", char::from(b'a' + (test % 3) as u8)),
                    )
                })
                .collect();
            let call = at(service, n - 100, cases, json!({ "clientRunId": format!("parallel-{n}") }));
            async move { submit(client, &call).await }
        });
        let stored = futures::future::join_all(calls).await;
        let found = clusters(client, stored[0].0).await;
        let counts: i64 = found.iter().filter_map(|one| one["occurrences"].as_i64()).sum();
        assert_eq!((found.len(), counts), (3, 240));
        assert_eq!(get(client, &format!("/api/projects/{}", stored[0].0)).await["openClusters"], 3);
    })
    .await;
}

#[tokio::test]
async fn every_list_of_clusters_shows_each_one_once_whatever_the_page_size() {
    const BUTTONS: usize = 60;
    for_each_service(async |service| {
        let client = service.client();
        let name = |n: usize| {
            format!("button-{}{}", char::from(b'a' + (n / 26) as u8), char::from(b'a' + (n % 26) as u8))
        };
        let cases = (0..BUTTONS).map(|n| click(&format!("test {n}"), &name(n))).collect();
        let (project, run) = submit(client, &at(service, -60, cases, json!({}))).await;
        let paths = [
            format!("/api/projects/{project}/failure-clusters"),
            format!("/api/projects/{project}/failure-clusters?sort=occurrences"),
            format!("/api/projects/{project}/failure-clusters?sort=id&status=open,resolved"),
            "/api/failure-clusters?sort=occurrences&status=open".to_owned(),
            format!("/api/failure-clusters?project={project}&errorType=timeout&q=butt"),
            format!("/api/test-runs/{run}/failure-groups"),
        ];
        for path in paths {
            let mut pages = Vec::new();
            for limit in [1, 7, 200] {
                let path = format!("{path}{}limit={limit}", if path.contains('?') { '&' } else { '?' });
                let (mut ids, mut next) = (Vec::new(), String::new());
                loop {
                    let page = get(client, &format!("{path}{next}")).await;
                    ids.extend(
                        page["items"]
                            .as_array()
                            .expect("items")
                            .iter()
                            .filter_map(|item| item["id"].as_i64()),
                    );
                    let Some(cursor) = page["nextCursor"].as_str() else { break };
                    next = format!("&cursor={cursor}");
                }
                pages.push(ids);
            }
            assert_eq!(pages[0].iter().collect::<BTreeSet<_>>().len(), BUTTONS, "{path}");
            assert!(pages[0].len() == BUTTONS && pages[0] == pages[1] && pages[1] == pages[2], "{path}");
        }
        let first = clusters(client, project).await[0]["id"].clone();
        let body = json!({ "ids": [first, 999_999], "status": "ignored" });
        let refused = client.post("/api/failure-clusters/bulk", &body).await.expect("an answer");
        assert_eq!(refused.status.as_u16(), 404);
        let body = json!({ "ids": [first], "status": "ignored", "snoozedUntil": "2031-01-01" });
        assert_eq!(
            client.post_json("/api/failure-clusters/bulk", &body).await.expect("changed")["updated"],
            1
        );
        let list = get(client, &format!("/api/projects/{project}/failure-clusters?snoozed=true")).await;
        assert_eq!((&list["items"][0]["id"], &list["counts"]["ignored"]), (&first, &json!(1)));
        for (query, param) in [
            ("status=closed", "status"),
            ("errorType=x", "errorType"),
            ("sort=name", "sort"),
            ("assignee=x", "assignee"),
        ] {
            let answer = client.get(&format!("/api/failure-clusters?{query}")).await.expect("an answer");
            assert_eq!(
                (answer.status.as_u16(), answer.json().expect("JSON")["data"]["param"].clone()),
                (400, json!(param))
            );
        }
        let commit = format!("/api/failure-clusters/{first}/base-commit");
        let wrong =
            client.send_json(Method::PATCH, &commit, &json!({ "commit": "main" })).await.expect("an answer");
        assert_eq!(wrong.status.as_u16(), 400);
        write(client, Method::PATCH, &commit, json!({ "commit": "9FCEB02D" })).await;
        assert_eq!(get(client, &format!("/api/failure-clusters/{first}")).await["baseCommit"], "9fceb02d");
    })
    .await;
}

#[tokio::test]
async fn only_who_reaches_the_project_can_be_assigned_and_nobody_learns_of_others() {
    for_each_secured_service(async |service| {
        let reporter = service.account("ada", Role::Reporter).await.expect("an account");
        service.assign(reporter, None).await.expect("assigned");
        let stranger = service.account("bob", Role::User).await.expect("an account");
        let client = service.program_of(reporter, KeyPermission::Full).await.expect("a key");
        let (project, _) = submit(&client, &run("shop", "failed", vec![click("pays", "pay")])).await;
        let id = clusters(&client, project).await[0]["id"].clone();
        let path = format!("/api/failure-clusters/{id}");
        for unknown in [stranger.get(), 999_999] {
            let body = json!({ "assigneeId": unknown });
            let refused = client.send_json(Method::PATCH, &path, &body).await.expect("an answer");
            assert_eq!(refused.status.as_u16(), 404, "{unknown}: {}", refused.text());
            assert_eq!(refused.json().expect("an error")["code"], "user_not_found");
        }
        service.assign(stranger, Some(ProjectId(project))).await.expect("assigned");
        let taken = write(&client, Method::PATCH, &path, json!({ "assigneeId": stranger.get() })).await;
        assert_eq!(taken["cluster"]["assignee"]["username"], "bob");
    })
    .await;
}
