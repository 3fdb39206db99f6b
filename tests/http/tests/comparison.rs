//! What a run is measured against, and what follows from it: insights,
//! comparison, the numbers on its row, pins and labels.

use callboard_store::jobs;
use callboard_test_support::{Client, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, passing, run, with};
use crate::detail_pages::{page, words_after};

/// Waits until everything that was enqueued is done, by whomever.
pub(crate) async fn work(service: &Service) {
    crate::rows::settled(service).await;
    let mut session = service.state().store().db().read().await.expect("a session");
    assert_eq!(jobs::counts(&mut session).await.expect("counts").parked, 0);
}

/// A run of `shop` that started in this hour of the first of January.
pub(crate) fn at(hour: u32, branch: &str, status: &str, cases: Vec<Value>) -> Value {
    let start = format!("2026-01-01T{hour:02}:00:00.000Z");
    let scm = json!({ "scm": { "defaultBranch": "main" } });
    with(
        run("shop", status, cases),
        json!({ "startTime": start, "branch": branch, "metadata": scm, "isFullRun": true }),
    )
}

pub(crate) async fn submit(client: &Client, submission: Value) -> i64 {
    let stored = client.post_json("/api/test-runs/submit", &submission).await.expect("stored");
    stored["runId"].as_i64().expect("a run")
}

pub(crate) async fn get(client: &Client, path: &str) -> Value {
    client.json(path).await.expect("an answer")
}

pub(crate) fn titles(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|test| test["title"].as_str().expect("a title")).collect()
}

#[tokio::test]
async fn a_run_is_measured_against_the_same_green_run_everywhere() {
    for_each_service(async |service| {
        let client = service.client();
        let all = |word: &str| vec![attempt("pays", word, 0), attempt("ships", "passed", 0)];
        let first = submit(client, at(1, "main", "passed", all("passed"))).await;
        let partial = with(at(3, "main", "passed", all("passed")), json!({ "isFullRun": false }));
        submit(client, partial).await;
        let elsewhere = with(at(4, "main", "passed", all("passed")), json!({ "environment": "staging" }));
        let staging = submit(client, elsewhere).await;
        let later = submit(client, at(9, "main", "passed", all("passed"))).await;
        let green = submit(client, at(2, "main", "passed", all("passed"))).await;
        let red = submit(client, at(5, "main", "failed", all("failed"))).await;
        let topic = submit(client, at(6, "topic", "failed", all("failed"))).await;
        let on_staging = with(at(7, "topic", "failed", all("failed")), json!({ "environment": "staging" }));
        let on_staging = submit(client, on_staging).await;
        let on_qa = with(at(8, "topic", "failed", all("failed")), json!({ "environment": "qa" }));
        let on_qa = submit(client, on_qa).await;

        for (run, baseline, fallback) in [
            (red, green, "same-branch"),
            (topic, green, "default-branch"),
            (on_staging, staging, "default-branch"),
            // Nothing is green there: the default branch anywhere, and of that the newest.
            (on_qa, staging, "default-branch"),
            (later, green, "same-branch"),
            (green, first, "same-branch"),
        ] {
            let base = format!("/api/test-runs/{run}");
            let insights = get(client, &format!("{base}/insights")).await;
            assert_eq!(insights["baseline"]["runId"], baseline, "{insights}");
            assert_eq!(insights["baseline"]["fallback"], fallback);
            assert_eq!(get(client, &format!("{base}/compare")).await["base"]["id"], baseline);
            assert_eq!(get(client, &format!("{base}/regression-context")).await["green"]["runId"], baseline);
            assert_eq!(get(client, &base).await["baseline"]["runId"], baseline);
            let gate =
                client.post_json(&format!("{base}/gate"), &json!({ "maxFailed": 0 })).await.expect("judged");
            assert_eq!(gate["facts"]["baseline"], json!({ "runId": baseline, "fallback": fallback }));
        }

        // The first green run has nothing before it.
        let insights = get(client, &format!("/api/test-runs/{first}/insights")).await;
        assert_eq!(insights["hasBaseline"], false);
        for comparing in [
            "baseline",
            "baselinePassRate",
            "passRateDelta",
            "avgDurationDelta",
            "newRegressions",
            "recurrences",
            "recovered",
            "newFlaky",
            "mostImproved",
            "mostRegressed",
        ] {
            assert!(insights[comparing].is_null(), "{comparing}: {insights}");
        }
        assert_eq!(get(client, &format!("/api/test-runs/{first}")).await["baseline"], Value::Null);
        let refused = client.get(&format!("/api/test-runs/{first}/compare")).await.expect("an answer");
        let body = refused.json().expect("an error");
        assert_eq!((refused.status.as_u16(), &body["data"]["reason"]), (404, &json!("no_baseline")));
        work(service).await;
        assert_eq!(get(client, &format!("/api/test-runs/{first}")).await["newRegressions"], Value::Null);
    })
    .await;
}

#[tokio::test]
async fn a_test_that_is_always_red_hides_no_regression() {
    for_each_service(async |service| {
        let client = service.client();
        let cases = |pays: &str, ships: &str| {
            vec![attempt("broken", "failed", 0), attempt("pays", pays, 0), attempt("ships", ships, 0)]
        };
        submit(client, at(1, "main", "failed", cases("passed", "failed"))).await;
        let second = submit(client, at(2, "main", "failed", cases("timedOut", "passed"))).await;
        work(service).await;
        let found = get(client, &format!("/api/test-runs/{second}")).await;
        assert_eq!(
            (&found["newRegressions"], &found["fixedTests"], &found["newFlaky"], &found["baseline"]),
            (&json!(1), &json!(1), &json!(0), &Value::Null)
        );
        let insights = get(client, &format!("/api/test-runs/{second}/insights")).await;
        assert_eq!(insights["hasBaseline"], true);
        assert_eq!(titles(&insights["newRegressions"]), ["pays"]);
        assert_eq!(titles(&insights["recurrences"]), ["broken"]);
        assert_eq!(titles(&insights["recovered"]), ["ships"]);
        assert_eq!(insights["counts"]["newRegressions"], 1);
        let policy = json!({ "maxNewRegressions": 0, "requireBaseline": true });
        let gate = client.post_json(&format!("/api/test-runs/{second}/gate"), &policy).await.expect("judged");
        assert_eq!(gate["violations"][0]["rule"], "max-new-regressions");
        assert_eq!(gate["violations"].as_array().map(Vec::len), Some(1));

        // On a new branch the tests are compared with what they did on the default branch.
        let topic = submit(client, at(3, "topic", "failed", cases("passed", "failed"))).await;
        let insights = get(client, &format!("/api/test-runs/{topic}/insights")).await;
        assert_eq!(titles(&insights["newRegressions"]), ["ships"]);
        assert_eq!(titles(&insights["recovered"]), ["pays"]);
    })
    .await;
}

#[tokio::test]
async fn what_is_new_here_and_known_elsewhere_is_told_as_both() {
    for_each_service(async |service| {
        let client = service.client();
        let cases = |error: Option<&str>| {
            let test = |title: &str| match error {
                Some(error) => with(attempt(title, "failed", 0), json!({ "error": error })),
                None => attempt(title, "passed", 0),
            };
            vec![test("pays"), test("ships")]
        };
        let known = Some("Error: expected 200, got 500");
        let on = |minute, status, error, place: &str| {
            with(at(minute, "main", status, cases(error)), json!({ "environment": place }))
        };
        submit(client, on(1, "passed", None, "production")).await;
        let staging = submit(client, on(2, "failed", known, "staging")).await;
        let production = submit(client, on(3, "failed", known, "production")).await;
        work(service).await;
        let insights = get(client, &format!("/api/test-runs/{production}/insights")).await;
        assert_eq!(insights["counts"]["newRegressions"], 2);
        assert_eq!(insights["newClusters"], json!([]));
        let cause = &insights["knownCauses"][0];
        assert_eq!(insights["knownCauses"].as_array().map(Vec::len), Some(1), "{insights}");
        assert_eq!(
            (&cause["tests"], &cause["firstSeenRunId"], &cause["branch"], &cause["environment"]),
            (&json!(2), &json!(staging), &json!("main"), &json!("staging"))
        );
        let address = format!("/test-runs/{production}?tab=insights");
        let words = words_after(&page(client, &address).await, "Passed last run");
        assert!(
            words.contains(&format!("2 share a known cause, first seen in run {staging} in staging: ")),
            "{words}"
        );
        // In the run that showed the cause first nothing of it was known.
        assert_eq!(
            get(client, &format!("/api/test-runs/{staging}/insights")).await["knownCauses"],
            json!([])
        );
    })
    .await;
}

#[tokio::test]
async fn a_late_shard_is_counted_and_a_running_run_is_not() {
    for_each_service(async |service| {
        let client = service.client();
        submit(client, at(1, "main", "passed", passing(4))).await;
        let shard = |index: u32, title: &str| {
            let case = with(attempt(title, "failed", 0), json!({ "location": "tests/file-0.spec.ts:1:1" }));
            let case = with(case, json!({ "suitePath": [] }));
            with(
                at(2, "main", "failed", vec![case]),
                json!({ "instanceId": "0123456789abcdef", "shardIndex": index, "shardTotal": 2 }),
            )
        };
        let run = submit(client, shard(1, "test 0")).await;
        work(service).await;
        let found = get(client, &format!("/api/test-runs/{run}")).await;
        assert_eq!(
            (&found["status"], &found["newRegressions"]),
            (&json!("running"), &Value::Null),
            "{found}"
        );
        let gate = client
            .post(&format!("/api/test-runs/{run}/gate"), &json!({ "maxFailed": 9 }))
            .await
            .expect("an answer");
        assert_eq!(
            (gate.status.as_u16(), &gate.json().expect("an error")["code"]),
            (409, &json!("run_not_finished"))
        );
        assert_eq!(submit(client, shard(2, "test 1")).await, run);
        work(service).await;
        let found = get(client, &format!("/api/test-runs/{run}")).await;
        assert_eq!((&found["status"], &found["newRegressions"]), (&json!("failed"), &json!(2)), "{found}");
    })
    .await;
}

#[tokio::test]
async fn two_runs_are_compared_test_by_test() {
    for_each_service(async |service| {
        let client = service.client();
        let timed = |title: &str, status: &str, duration: i64| {
            with(attempt(title, status, 0), json!({ "duration": duration }))
        };
        let base = vec![
            timed("breaks", "passed", 100),
            timed("stays broken", "failed", 100),
            timed("recovers", "timedOut", 100),
            timed("wobbles", "passed", 100),
            timed("goes", "passed", 100),
            timed("slows", "passed", 1000),
            timed("slows most", "passed", 1000),
            timed("speeds up", "passed", 5000),
            timed("stays", "passed", 1000),
            timed("goes too", "skipped", 0),
        ];
        let base = submit(client, at(1, "main", "failed", base)).await;
        let head = vec![
            timed("breaks", "timedOut", 100),
            timed("stays broken", "failed", 100),
            timed("recovers", "passed", 100),
            timed("wobbles", "failed", 100),
            with(timed("wobbles", "passed", 100), json!({ "retries": 1 })),
            timed("slows", "passed", 1500),
            timed("slows most", "passed", 3000),
            timed("speeds up", "passed", 1000),
            timed("stays", "passed", 1199),
            timed("comes", "passed", 100),
        ];
        let head = submit(client, at(2, "main", "failed", head)).await;

        let whole = get(client, &format!("/api/test-runs/{head}/compare?with=previous")).await;
        assert_eq!((&whole["base"]["id"], &whole["head"]["id"]), (&json!(base), &json!(head)));
        assert_eq!(
            whole["counts"],
            json!({
                "newFailure": 1, "stillFailing": 1, "fixed": 1, "newFlaky": 1, "added": 1, "removed": 2,
                "slower": 2, "faster": 1, "unchanged": 1,
            })
        );
        let change = |test: &Value| {
            format!("{} {}", test["title"].as_str().unwrap(), test["change"].as_str().unwrap())
        };
        let expected = [
            "breaks newFailure",
            "stays broken stillFailing",
            "recovers fixed",
            "wobbles newFlaky",
            "comes added",
            "goes removed",
            "goes too removed",
            "slows most slower",
            "slows slower",
            "speeds up faster",
            "stays unchanged",
        ];
        let mut found: Vec<String> = whole["items"].as_array().unwrap().iter().map(change).collect();
        assert_eq!(found, expected);
        assert_eq!(whole["items"][7]["durationDelta"], 2000);
        assert_eq!((&whole["items"][4]["base"], &whole["items"][5]["head"]), (&Value::Null, &Value::Null));

        // Page by page the same rows, the counts on the first page only.
        let path = format!("/api/test-runs/{head}/compare?with={base}&limit=3");
        let mut page = get(client, &path).await;
        assert!(page["counts"].is_object());
        found.clear();
        loop {
            found.extend(page["items"].as_array().unwrap().iter().map(change));
            let Some(cursor) = page["nextCursor"].as_str() else { break };
            page = get(client, &format!("{path}&cursor={cursor}")).await;
            assert!(page["counts"].is_null());
        }
        assert_eq!(found, expected);
        let some =
            get(client, &format!("/api/test-runs/{head}/compare?with={base}&change=removed,fixed")).await;
        assert_eq!(titles(&some["items"]), ["recovers", "goes", "goes too"]);

        let other = submit(client, run("another project", "passed", passing(1))).await;
        for (query, status, code) in [
            (format!("with={other}"), 400, "invalid_query"),
            ("with=999999".to_owned(), 404, "run_not_found"),
            ("with=green".to_owned(), 400, "invalid_query"),
            ("change=newFailure,gone".to_owned(), 400, "invalid_query"),
        ] {
            let answer =
                client.get(&format!("/api/test-runs/{head}/compare?{query}")).await.expect("an answer");
            let body = answer.json().expect("an error");
            assert_eq!((answer.status.as_u16(), body["code"].as_str()), (status, Some(code)), "{query}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_long_comparison_gives_each_test_once() {
    const TESTS: usize = 1037;
    for_each_service(async |service| {
        let client = service.client();
        let base = submit(client, at(1, "main", "passed", passing(TESTS))).await;
        let mut cases = passing(TESTS);
        cases.truncate(TESTS - 30);
        let head = submit(client, at(2, "main", "passed", cases)).await;
        for (limit, query) in [(200, ""), (7, "&change=removed"), (1, "&change=removed")] {
            let path = format!("/api/test-runs/{head}/compare?with={base}&limit={limit}{query}");
            let mut page = get(client, &path).await;
            let mut ids = std::collections::BTreeSet::new();
            let mut rows = 0;
            loop {
                let items = page["items"].as_array().unwrap();
                rows += items.len();
                ids.extend(items.iter().map(|item| item["testCaseId"].as_i64().unwrap()));
                let Some(cursor) = page["nextCursor"].as_str() else { break };
                page = get(client, &format!("{path}&cursor={cursor}")).await;
            }
            let expected = if query.is_empty() { TESTS } else { 30 };
            assert_eq!((rows, ids.len()), (expected, expected), "{query}");
        }
    })
    .await;
}

#[tokio::test]
async fn durations_are_measured_against_what_a_test_took_before() {
    for_each_service(async |service| {
        let client = service.client();
        let case = |title: &str, duration: i64, worker: i64| {
            with(attempt(title, "passed", 0), json!({ "duration": duration, "workerIndex": worker }))
        };
        for hour in 1..=3 {
            let cases = vec![case("slows", 1000, 0), case("speeds up", 9000, 0), case("stays", 1000, 1)];
            submit(client, at(hour, "main", "passed", cases)).await;
        }
        // The worker of the second test took the place of the first one's.
        let slot = |case: Value, slot: i64| with(case, json!({ "parallelIndex": slot }));
        let cases = vec![
            slot(case("slows", 4000, 0), 0),
            slot(case("speeds up", 2000, 2), 0),
            slot(case("stays", 1100, 1), 1),
        ];
        let run = submit(client, at(4, "main", "passed", cases)).await;
        let insights = get(client, &format!("/api/test-runs/{run}/insights")).await;
        let slower = &insights["mostRegressed"];
        assert_eq!(titles(slower), ["slows"]);
        assert_eq!((&slower[0]["duration"], &slower[0]["previousDuration"]), (&json!(4000), &json!(1000)));
        assert_eq!(titles(&insights["mostImproved"]), ["speeds up"]);
        assert_eq!(titles(&insights["slowestTests"]), ["slows", "speeds up", "stays"]);
        assert_eq!(
            insights["workers"],
            json!([
                { "workerIndex": 0, "parallelIndex": 0, "shardIndex": null, "tests": 2, "duration": 6000 },
                { "workerIndex": 1, "parallelIndex": 1, "shardIndex": null, "tests": 1, "duration": 1100 },
            ])
        );
        assert_eq!(insights["workerImbalance"], 0.6901);
        assert_eq!(insights["avgDurationDelta"], 2367 - 3667);
    })
    .await;
}

#[tokio::test]
async fn a_run_is_seen_by_file_and_time_and_runs_again() {
    for_each_service(async |service| {
        let client = service.client();
        let case = |title: &str, file: &str, line: u32, status: &str, second: u32| {
            let started = format!("2026-01-01T02:00:{second:02}.000Z");
            with(
                attempt(title, status, 0),
                json!({
                    "location": format!("{file}:{line}:1"), "startedAt": started, "workerIndex": second % 2,
                    "browser": { "projectName": "chromium" }, "suitePath": [],
                }),
            )
        };
        let cases = vec![
            case("one", "tests/a (new).spec.ts", 3, "failed", 4),
            case("two", "tests/a (new).spec.ts", 9, "passed", 3),
            case("three", "tests/b.spec.ts", 5, "timedOut", 2),
            case("four", "tests/b.spec.ts", 6, "failed", 1),
        ];
        let run = submit(client, at(2, "main", "failed", cases)).await;
        let base = format!("/api/test-runs/{run}");
        let specs = get(client, &format!("{base}/specs?limit=1")).await;
        assert_eq!(
            (
                &specs["items"][0]["filePath"],
                &specs["items"][0]["failedTests"],
                &specs["items"][0]["totalTests"]
            ),
            (&json!("tests/b.spec.ts"), &json!(2), &json!(2))
        );
        let cursor = specs["nextCursor"].as_str().expect("more");
        let rest = get(client, &format!("{base}/specs?limit=1&cursor={cursor}")).await;
        assert_eq!(
            (&rest["items"][0]["filePath"], &rest["nextCursor"]),
            (&json!("tests/a (new).spec.ts"), &Value::Null)
        );

        let line = get(client, &format!("{base}/timeline?limit=3")).await;
        assert_eq!(titles(&line["items"]), ["three", "one", "four"]);
        let cursor = line["nextCursor"].as_str().expect("more");
        let rest = get(client, &format!("{base}/timeline?limit=3&cursor={cursor}")).await;
        assert_eq!(titles(&rest["items"]), ["two"]);
        assert_eq!(
            titles(&get(client, &format!("{base}/timeline?worker=1")).await["items"]),
            ["four", "two"]
        );

        let again = get(client, &format!("{base}/rerun")).await;
        assert_eq!(
            (&again["count"], &again["items"][0]["target"]),
            (&json!(3), &json!("tests/a (new).spec.ts:3"))
        );
        let command = again["command"].as_str().expect("a command");
        assert!(
            command.starts_with(
                r"npx playwright test './tests/a \(new\).spec.ts:3' ./tests/b.spec.ts:5 ./tests/b.spec.ts:6"
            ),
            "{command}"
        );
        let arguments = client.get(&format!("{base}/rerun?format=args")).await.expect("an answer");
        assert_eq!(format!("npx playwright test {}", arguments.text()), command);
        let none = get(client, &format!("{base}/rerun?select=flaky")).await;
        assert_eq!(none, json!({ "count": 0, "items": [], "command": "" }));
        for wrong in ["rerun?select=red", "rerun?format=yaml", "specs?sort=size", "timeline?worker=-1"] {
            assert_eq!(
                client.get(&format!("{base}/{wrong}")).await.expect("an answer").status,
                400,
                "{wrong}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn what_changed_since_green_is_told_with_the_commits() {
    for_each_service(async |service| {
        let client = service.client();
        let told = |hour: u32, status: &str, commit: &str, node: &str| {
            let metadata = json!({ "scm": { "defaultBranch": "main" }, "runtime": { "nodeVersion": node } });
            let cases = vec![attempt("pays", status, 0)];
            with(at(hour, "main", status, cases), json!({ "commit": commit, "metadata": metadata }))
        };
        submit(client, told(1, "passed", "0123456789abcdef", "22")).await;
        let red = submit(client, told(2, "failed", "fedcba9876543210", "24")).await;
        let context = get(client, &format!("/api/test-runs/{red}/regression-context")).await;
        assert_eq!(
            context["commitRange"]["gitCommand"],
            "git log --oneline 0123456789abcdef..fedcba9876543210"
        );
        assert_eq!(context["newFailures"], 1);
        let differences = context["metadataDiff"].as_array().expect("differences");
        let node =
            differences.iter().find(|found| found["key"] == "runtime.nodeVersion").expect("the version");
        assert_eq!(
            *node,
            json!({ "key": "runtime.nodeVersion", "label": "node version", "before": "22", "after": "24" })
        );
        let first = get(client, "/api/test-runs/1/regression-context").await;
        assert_eq!((&first["hasGreen"], &first["newFailures"]), (&json!(false), &Value::Null));
    })
    .await;
}

#[tokio::test]
async fn an_edited_label_stays_and_a_pinned_run_says_so() {
    for_each_service(async |service| {
        let client = service.client();
        let run =
            submit(client, with(at(1, "main", "passed", passing(1)), json!({ "label": "nightly" }))).await;
        let other = submit(client, at(2, "main", "passed", passing(1))).await;
        let path = format!("/api/test-runs/{run}");
        let edited = client
            .send_json(Method::PATCH, &path, &json!({ "label": "Release 7" }))
            .await
            .expect("an answer");
        assert_eq!(edited.success().expect("edited")["run"]["label"], "Release 7");
        let pin = json!({ "reason": "the last of the old ones" });
        let pinned = client.send_json(Method::PUT, &format!("{path}/pin"), &pin).await.expect("an answer");
        assert_eq!(pinned.success().expect("pinned")["run"]["isPinned"], true);
        assert_eq!(get(client, &path).await["pin"]["reason"], "the last of the old ones");
        let ids = |list: Value| {
            list["items"].as_array().unwrap().iter().map(|run| run["id"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(ids(get(client, "/api/test-runs?pinned=true").await), [json!(run)]);
        assert_eq!(ids(get(client, "/api/test-runs?pinned=false").await), [json!(other)]);
        assert_eq!(ids(get(client, "/api/test-runs?label=Release").await), [json!(run)]);
        let unpinned =
            client.send_json(Method::DELETE, &format!("{path}/pin"), &json!({})).await.expect("an answer");
        assert_eq!(unpinned.success().expect("unpinned")["run"]["isPinned"], false);
        let cleared =
            client.send_json(Method::PATCH, &path, &json!({ "label": null })).await.expect("an answer");
        assert_eq!(cleared.success().expect("cleared")["run"]["label"], Value::Null);
        for (body, code) in [
            (json!({}), "no_fields"),
            (json!({ "label": "x".repeat(201) }), "invalid_field"),
            (json!({ "environment": "x".repeat(101) }), "invalid_field"),
        ] {
            let refused = client.send_json(Method::PATCH, &path, &body).await.expect("an answer");
            let found = refused.json().expect("an error");
            assert_eq!((refused.status.as_u16(), found["code"].as_str()), (400, Some(code)), "{body}");
        }
        let audited = get(client, "/api/audit?action=run.changed").await;
        assert_eq!(audited["items"].as_array().map(Vec::len), Some(4));
        for wrong in
            ["green=maybe", "pinned=2", "hasFailures=no", "status=red", "commit=abc", "order=up", "from=now"]
        {
            let answer = client.get(&format!("/api/test-runs?{wrong}")).await.expect("an answer");
            assert_eq!(
                (answer.status.as_u16(), &answer.json().expect("an error")["code"]),
                (400, &json!("invalid_query")),
                "{wrong}"
            );
        }
    })
    .await;
}
